#include "daemon/service/machine.h"

#include <gtest/gtest.h>

namespace jitc::service {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A copy of the files that matter, as some kind of machine shows them: tests/data/machine/<name>.
Machine machine(const std::string& name) { return Machine(JITC_SOURCE_DIR "/tests/data/machine/" + name); }

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

TEST(Pressure, DoesNotFlutter) {
  EXPECT_FALSE(steady_pressure(false, 8));
  EXPECT_TRUE(steady_pressure(true, 8));
  EXPECT_TRUE(steady_pressure(false, 11));
  EXPECT_FALSE(steady_pressure(true, 4));
}

TEST(Budget, FallsAtOnceAndRisesOnlyForMore) {
  EXPECT_EQ(steady_budget(1000, 900), 900u);
  EXPECT_EQ(steady_budget(1000, 970), 1000u);
  EXPECT_EQ(steady_budget(1000, 1100), 1000u);
  EXPECT_EQ(steady_budget(1000, 1200), 1200u);
  EXPECT_EQ(steady_budget(0, 5), 5u);
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
  EXPECT_EQ(machine("cgroup2_job").cores(), 2u);
  EXPECT_EQ(machine("cgroup2_job").memory_left(), (2048 - 512 + 100) * kMiB);
  EXPECT_DOUBLE_EQ(machine("cgroup2_job").memory_pressure(), 14.2);
}

// A container whose parent is narrower than itself, version 1.
TEST(Machine, ContainerWithCgroupVersionOne) {
  EXPECT_EQ(machine("cgroup1_container").cores(), 1u);
  EXPECT_EQ(machine("cgroup1_container").memory_left(), (400 - 300) * kMiB);
  EXPECT_DOUBLE_EQ(machine("cgroup1_container").memory_pressure(), 0);
}

// No cgroup at all: affinity, and what the host has left less one twentieth of 16 GiB.
TEST(Machine, PlainHost) {
  EXPECT_EQ(machine("plain").cores(), 3u);
  EXPECT_EQ(machine("plain").memory_left(), 8192 * kMiB - 16384 * kMiB / 20);
}

TEST(Machine, NothingReadableGivesOneCoreAndNoMemory) {
  EXPECT_EQ(machine("absent").cores(), 1u);
  EXPECT_EQ(machine("absent").memory_left(), 0u);
}

TEST(Machine, DescriptorsBoundTheSlots) {
  EXPECT_EQ(slots_within(0), 1u);
  EXPECT_EQ(slots_within(64), 6u);
  EXPECT_EQ(slots_within(1024), 246u);
  EXPECT_GT(slots_within(~std::uint64_t{0}), 1'000'000u);
}

}  // namespace
}  // namespace jitc::service
