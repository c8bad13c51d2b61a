#include "daemon/service/machine.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "common/control_groups.h"
#include "common/text.h"
#include "tests/support/temporary_directory.h"

namespace jitc::service {
namespace {

using common::cgroup_directories;
using common::field_number;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A copy of the files that matter, as some kind of machine shows them: tests/data/machine/<name>.
Machine machine(const std::string& name, Variables variables = {}) {
  return Machine(JITC_SOURCE_DIR "/tests/data/machine/" + name, std::move(variables));
}

double value_of(const std::vector<Figure>& figures, const std::string& source) {
  for (const auto& figure : figures) {
    if (figure.source == source) return figure.value;
  }
  ADD_FAILURE() << "no figure of " << source;
  return -1;
}

std::vector<std::string> sources_of(const std::vector<Figure>& figures) {
  std::vector<std::string> sources;
  for (const auto& figure : figures) sources.push_back(figure.source);
  return sources;
}

double least(const std::vector<Figure>& figures) {
  double value = std::numeric_limits<double>::infinity();
  for (const auto& figure : figures) value = std::min(value, figure.value);
  return value;
}

TEST(CpuList, CountsRangesAndSingles) {
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7u);
  EXPECT_EQ(count_cpu_list("\t5"), 1u);
}

TEST(CpuList, IsZeroWhenItCannotBeRead) {
  for (const char* list : {"", "a", "3-1", "1,,2", "1-"}) EXPECT_EQ(count_cpu_list(list), 0u) << list;
}

TEST(CpuMax, RoundsUpAndKnowsNoLimit) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 2u);
  EXPECT_EQ(parse_cpu_max("50000 100000"), 1u);
  EXPECT_EQ(parse_cpu_max("max 100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("-1 100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000 0"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("9223372036854775807 1"), 4294967295u);
}

TEST(MemoryLimit, VersionOneWritesNoLimitAsAHugeNumber) {
  EXPECT_EQ(parse_limit("9223372036854771712\n"), std::nullopt);
  EXPECT_EQ(parse_limit("max\n"), std::nullopt);
  EXPECT_EQ(parse_limit("1048576\n"), kMiB);
}

TEST(Fields, AreFoundByTheirWholeName) {
  EXPECT_EQ(field_kb("MemTotalX:  1 kB\nMemTotal:       4 kB\n", "MemTotal"), 4096u);
  EXPECT_EQ(field_number("inactive_file_x 1\ninactive_file 12\n", "inactive_file"), 12u);
  EXPECT_EQ(field_number("anon 3\n", "inactive_file"), std::nullopt);
}

TEST(Pressure, IsTheShareOfTheLastTenSeconds) {
  EXPECT_DOUBLE_EQ(parse_pressure("some avg10=12.50 avg60=1.00 avg300=0.10 total=1\nfull avg10=0.00").value(), 12.5);
  EXPECT_EQ(parse_pressure(""), std::nullopt);
}

TEST(CgroupDirectories, GoFromTheOwnGroupToTheMount) {
  const auto directories = cgroup_directories("0::/user.slice/job.scope\n",
                                              "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", "");
  EXPECT_EQ(directories, (std::vector<std::string>{"/sys/fs/cgroup/user.slice/job.scope", "/sys/fs/cgroup/user.slice",
                                                   "/sys/fs/cgroup"}));
}

TEST(CgroupDirectories, ContainersMountAPartOfTheHierarchy) {
  const char* mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup/memory ro shared:9 - cgroup cgroup rw,memory\n";
  EXPECT_EQ(cgroup_directories("4:memory:/docker/abc/sub\n", mounts, "memory"),
            (std::vector<std::string>{"/sys/fs/cgroup/memory/sub", "/sys/fs/cgroup/memory"}));
  EXPECT_EQ(cgroup_directories("4:memory:/docker/abcdef\n", mounts, "memory"),
            (std::vector<std::string>{"/sys/fs/cgroup/memory"}));
}

TEST(CgroupDirectories, AreNoneWithoutTheController) {
  EXPECT_TRUE(cgroup_directories("0::/\n", "22 1 0:1 / / rw - ext4 /dev/sda rw\n", "").empty());
  EXPECT_TRUE(
      cgroup_directories("2:cpu,cpuacct:/\n", "1 1 0:1 / /c rw - cgroup cgroup rw,cpu,cpuacct\n", "mem").empty());
}

// Eight cores allowed, a job's scope of 1.5 cores and 2 GiB, of which 512 MiB are used and 100 MiB can be dropped.
TEST(Machine, BatchJobWithCgroupVersionTwo) {
  EXPECT_EQ(least(machine("cgroup2_job").cores()), 2);
  EXPECT_NEAR(least(machine("cgroup2_job").memory({})), (2048 - 512 + 100) * kMiB, 100);
  EXPECT_DOUBLE_EQ(value_of(machine("cgroup2_job").pressure(), "/sys/fs/cgroup/slurm/job_7/memory.pressure"), 14.2);
  EXPECT_DOUBLE_EQ(value_of(machine("cgroup2_job").pressure(), "/proc/pressure/memory"), 0.3);
}

// A container whose parent is narrower than itself, version 1.
TEST(Machine, ContainerWithCgroupVersionOne) {
  EXPECT_EQ(least(machine("cgroup1_container").cores()), 1);
  EXPECT_EQ(least(machine("cgroup1_container").memory({})), (400 - 300) * kMiB);
  EXPECT_TRUE(machine("cgroup1_container").pressure().empty());
}

// The group is the mount itself. The superuser is not bound by RLIMIT_NPROC.
TEST(Machine, ContainerWithCgroupVersionTwo) {
  const Machine container = machine("cgroup2_container");
  EXPECT_EQ(value_of(container.cores(), "/sys/fs/cgroup/cpu.max"), 2);
  EXPECT_EQ(value_of(container.memory({}), "/sys/fs/cgroup/memory.max"), 400 * kMiB);
  EXPECT_EQ(sources_of(container.processes({})), std::vector<std::string>{"RLIMIT_NOFILE"});
}

// A step's group has room, the job around it has not: page cache of both kinds can be dropped.
TEST(Machine, BatchStepWithCgroupVersionOne) {
  const auto memory = machine("cgroup1_step").memory({});
  const std::string job = "/sys/fs/cgroup/memory/slurm/uid_1000/job_7";
  EXPECT_EQ(sources_of(memory), (std::vector<std::string>{"/proc/meminfo", job + "/step_0/memory.limit_in_bytes",
                                                          job + "/memory.limit_in_bytes"}));
  EXPECT_EQ(value_of(memory, job + "/step_0/memory.limit_in_bytes"), (4096 - 1000) * kMiB);
  EXPECT_EQ(value_of(memory, job + "/memory.limit_in_bytes"), (4096 - 3000 + 500) * kMiB);
  EXPECT_EQ(sources_of(machine("cgroup1_step").cores()), std::vector<std::string>{"/proc/self/status"});
  EXPECT_EQ(sources_of(machine("cgroup1_step").processes({})), std::vector<std::string>{"RLIMIT_NPROC"});
}

// The own group has no limit, those above it have: memory, the mark where the kernel begins to slow down, cores, tasks.
TEST(Machine, LimitsOfParentsHold) {
  const std::string parent = "/sys/fs/cgroup/user.slice/user-1000.slice";
  const Machine nested = machine("cgroup2_nested");
  EXPECT_EQ(value_of(nested.memory({}), parent + "/memory.max"), (1024 - 600 + 80) * kMiB);
  EXPECT_EQ(value_of(nested.memory({}), parent + "/memory.high"), (900 - 600 + 80) * kMiB);
  EXPECT_EQ(value_of(nested.cores(), "/sys/fs/cgroup/user.slice/cpu.max"), 5);
  EXPECT_EQ(value_of(nested.processes({}), parent + "/pids.max"), (100 - 60) / 8);
}

TEST(Machine, HybridHierarchies) {
  const Machine hybrid = machine("hybrid");
  EXPECT_EQ(value_of(hybrid.memory({}), "/sys/fs/cgroup/memory/job/memory.limit_in_bytes"), 2000 * kMiB);
  EXPECT_EQ(value_of(hybrid.processes({}), "/sys/fs/cgroup/pids/job/pids.max"), 5);
  EXPECT_EQ(value_of(hybrid.processes({}), "RLIMIT_NPROC"), 1);
  EXPECT_DOUBLE_EQ(value_of(hybrid.pressure(), "/sys/fs/cgroup/unified/system.slice/x.service/memory.pressure"), 6.5);
}

// What our own children hold is theirs to hold: the budget is for them.
TEST(Machine, OurChildrenDoNotCountAgainstThemselves) {
  const Holdings ours{.processes = 8, .anonymous_bytes = 40 * kMiB};
  const Machine hybrid = machine("hybrid");
  EXPECT_EQ(value_of(hybrid.memory(ours), "/sys/fs/cgroup/memory/job/memory.limit_in_bytes"), (2048 - 8) * kMiB);
  EXPECT_EQ(value_of(hybrid.memory(ours), "/proc/meminfo"), value_of(hybrid.memory({}), "/proc/meminfo") + 40 * kMiB);
  EXPECT_EQ(value_of(hybrid.processes(ours), "/sys/fs/cgroup/pids/job/pids.max"), 6);
  // Never more than the limit, however they were sampled.
  EXPECT_EQ(
      value_of(hybrid.memory({.anonymous_bytes = 4096 * kMiB}), "/sys/fs/cgroup/memory/job/memory.limit_in_bytes"),
      2048 * kMiB);
}

// A user's limit counts all of his processes and threads; what our children have of them is for compiles.
TEST(Machine, AUsersOtherTasksCount) {
  const Machine user = machine("user_tasks");
  EXPECT_EQ(value_of(user.processes({}), "RLIMIT_NPROC"), (200 - 64) / 8);
  EXPECT_EQ(value_of(user.processes({.processes = 24}), "RLIMIT_NPROC"), (200 - 40) / 8);
  EXPECT_EQ(value_of(user.processes({.processes = 60}), "RLIMIT_NPROC"), (200 - 32) / 8);  // the daemon needs some
}

// Another user's process is not looked at, even if it says that it is of the job.
TEST(Machine, OnlyOwnProcessesAreOfTheJob) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  const testing::TemporaryDirectory directory;
  const std::string root = directory.path() + "/machine";
  std::filesystem::copy(JITC_SOURCE_DIR "/tests/data/machine/slurm_variables", root,
                        std::filesystem::copy_options::recursive);
  ASSERT_EQ(::chown((root + "/proc/40").c_str(), 65534, 65534), 0);
  const Machine job(root, {{"SLURM_JOB_ID", "7"}, {"SLURM_MEM_PER_NODE", "2000"}});
  EXPECT_EQ(value_of(job.memory({}), "SLURM_MEM_PER_NODE"), (2000 - 50) * kMiB);
}

// No cgroup at all: affinity, and what the host has left less one twentieth of 16 GiB.
TEST(Machine, PlainHost) {
  EXPECT_EQ(least(machine("plain").cores()), 3);
  EXPECT_EQ(least(machine("plain").memory({})), 8192 * kMiB - 16384 * kMiB / 20);
}

// A site without cgroups: the job's rank and the daemon with its worker have 550 of its 2000 MiB; another job's process
// and our compilers are not counted.
TEST(Machine, BatchJobByItsVariables) {
  const Machine job = machine("slurm_variables", {{"SLURM_JOB_ID", "7"},
                                                  {"SLURM_CPUS_ON_NODE", "4"},
                                                  {"SLURM_CPUS_PER_TASK", "1"},
                                                  {"SLURM_MEM_PER_NODE", "2000"}});
  EXPECT_EQ(value_of(job.cores(), "SLURM_CPUS_ON_NODE"), 4);
  EXPECT_EQ(value_of(job.memory({}), "SLURM_MEM_PER_NODE"), (2000 - 550) * kMiB);
  EXPECT_EQ(value_of(job.memory({.anonymous_bytes = 400 * kMiB}), "SLURM_MEM_PER_NODE"), (2000 - 550) * kMiB);
}

TEST(Machine, BatchJobByItsShareOfEachTask) {
  const Machine job = machine("slurm_variables", {{"SLURM_JOB_ID", "7"},
                                                  {"SLURM_CPUS_PER_TASK", "2"},
                                                  {"SLURM_TASKS_PER_NODE", "3(x2),1"},
                                                  {"SLURM_MEM_PER_CPU", "250"}});
  EXPECT_EQ(value_of(job.cores(), "SLURM_CPUS_PER_TASK"), 6);
  EXPECT_EQ(value_of(job.memory({}), "SLURM_MEM_PER_CPU"), (6 * 250 - 550) * kMiB);
}

// Where the step has a group of that size, its accounting counts.
TEST(Machine, AGroupStandsForTheJobsVariable) {
  const auto sources = [](const char* mebibytes) {
    return sources_of(machine("cgroup1_step", {{"SLURM_JOB_ID", "7"}, {"SLURM_MEM_PER_NODE", mebibytes}}).memory({}));
  };
  EXPECT_EQ(std::ranges::count(sources("4096"), "SLURM_MEM_PER_NODE"), 0);
  EXPECT_EQ(std::ranges::count(sources("3000"), "SLURM_MEM_PER_NODE"), 1);
}

TEST(Machine, VariablesOutsideAJobOrWithoutSenseMeanNothing) {
  const Machine left_over = machine("slurm_variables", {{"SLURM_CPUS_ON_NODE", "4"}, {"SLURM_MEM_PER_NODE", "2000"}});
  EXPECT_EQ(sources_of(left_over.cores()), std::vector<std::string>{"/proc/self/status"});
  EXPECT_EQ(sources_of(left_over.memory({})), std::vector<std::string>{"/proc/meminfo"});
  const Machine senseless = machine("slurm_variables", {{"SLURM_JOB_ID", "7"},
                                                        {"SLURM_CPUS_ON_NODE", "many"},
                                                        {"SLURM_CPUS_PER_TASK", "-1"},
                                                        {"SLURM_MEM_PER_NODE", "0"},  // all that the node has
                                                        {"SLURM_MEM_PER_CPU", "99999999999999999999"}});
  EXPECT_EQ(sources_of(senseless.cores()), std::vector<std::string>{"/proc/self/status"});
  EXPECT_EQ(sources_of(senseless.memory({})), std::vector<std::string>{"/proc/meminfo"});
}

TEST(Machine, WhatCannotBeReadOrUnderstoodGivesNoFigure) {
  for (const char* kind : {"absent", "unreadable", "garbage"}) {
    const Machine broken = machine(kind);
    EXPECT_EQ(sources_of(broken.cores()), std::vector<std::string>{"assumed"}) << kind;
    EXPECT_EQ(least(broken.cores()), 1) << kind;
    EXPECT_TRUE(broken.memory({}).empty()) << kind;
    EXPECT_TRUE(broken.processes({}).empty()) << kind;
    EXPECT_TRUE(broken.pressure().empty()) << kind;
  }
}

TEST(Machine, DescriptorsBoundTheSlots) {
  EXPECT_EQ(slots_within(0), 1u);
  EXPECT_EQ(slots_within(64), 6u);
  EXPECT_EQ(slots_within(1024), 246u);
  EXPECT_GT(slots_within(~std::uint64_t{0}), 1'000'000u);
}

}  // namespace
}  // namespace jitc::service
