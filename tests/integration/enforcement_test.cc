// What a compile may take, as the real jitc-worker keeps it: by control groups, and by sampling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/owner.h"
#include "daemon/worker/process_tree.h"
#include "tests/support/worker_client.h"

namespace jitc::testing {
namespace {

using Finished = v1::WorkerReport::Finished;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::uint64_t kMiB = 1 << 20;

// Where the groups of the worker are: its own words.
std::string place_of_groups(const std::string& enforcement) {
  const std::string before = " below ";
  const auto begin = enforcement.find(before) + before.size();
  return enforcement.substr(begin, enforcement.find(';', begin) - begin);
}

// Groups that a process made, by the pid in their names.
std::vector<std::string> groups_of(pid_t maker, const std::string& place) {
  std::vector<std::string> found;
  for (const std::string& base : {place, std::string("/sys/fs/cgroup/pids")}) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename();
      const auto owner = name.starts_with("jitc-") ? common::owner_of(name.substr(5)) : std::nullopt;
      if (owner && owner->pid == maker) found.push_back(entry->path());
    }
  }
  return found;
}

enum class By { kGroups, kSampling };

class EnforcementTest : public ::testing::TestWithParam<By> {
 protected:
  void SetUp() override {
    const std::vector<std::string> off = {"--control-groups", "0"};
    worker_ =
        std::make_unique<WorkerClient>(WorkerClient::Setup{.options = by_groups() ? std::vector<std::string>() : off});
    if (by_groups() && enforcement().starts_with("sampling")) GTEST_SKIP() << enforcement();
  }
  static bool by_groups() { return GetParam() == By::kGroups; }
  const std::string& enforcement() const { return worker_->ready().enforcement(); }
  static v1::WorkerCommand::Start fake(std::uint64_t memory = 0) {
    auto start = WorkerClient::request();
    start.set_compiler_path(JITC_BIN_DIR "/jitc-fakecc");
    start.set_memory_limit_bytes(memory);
    return start;
  }
  static std::string orders(std::initializer_list<std::string> orders) {
    std::string text;
    for (const std::string& order : orders) text += "// fakecc: " + order + "\n";
    return text + "int f(void) { return 1; }\n";
  }
  Finished compile(std::initializer_list<std::string> what, const v1::WorkerCommand::Start& start) {
    return worker_->compile(orders(what), start).finished;
  }
  std::string place(const char* name) const { return worker_->temporary_directory() + "/" + name; }
  // Usage reports come while the compiler runs, so this waits for events.
  void wait_for_file(const char* name) {
    while (!std::filesystem::exists(place(name))) worker_->next();
  }

  std::unique_ptr<WorkerClient> worker_;
};

INSTANTIATE_TEST_SUITE_P(By, EnforcementTest, ::testing::Values(By::kGroups, By::kSampling),
                         [](const auto& one) { return one.param == By::kGroups ? "Groups" : "Sampling"; });

TEST_P(EnforcementTest, SaysHowLimitsAreKept) {
  EXPECT_THAT(enforcement(),
              StartsWith(by_groups() ? "control groups v" : "sampling: control groups are switched off"));
}

TEST_P(EnforcementTest, AGrandchildWithoutMemoryIsProven) {
  const Finished finished = compile({"fork", "allocate 500M"}, fake(256 * kMiB));
  EXPECT_EQ(finished.outcome(), Finished::OUT_OF_MEMORY) << finished.DebugString();
  if (!by_groups()) {
    EXPECT_THAT(finished.evidence(), HasSubstr("virtual memory exhausted"));
    return;
  }
  EXPECT_THAT(finished.evidence(), StartsWith("control group: memory."));
  EXPECT_THAT(finished.evidence(), HasSubstr(": oom_kill 1;"));
  EXPECT_GT(finished.peak_bytes(), 200 * kMiB);
  EXPECT_LT(finished.peak_bytes(), 300 * kMiB);
}

TEST_P(EnforcementTest, TheSumOfTheTreeIsLimited) {
  // Each process stays under the limit, both together do not.
  const Finished finished =
      compile({"allocate 160M", "fork", "allocate 160M", "hold " + place("never")}, fake(256 * kMiB));
  EXPECT_EQ(finished.outcome(), Finished::OUT_OF_MEMORY) << finished.DebugString();
  EXPECT_THAT(finished.evidence(), HasSubstr(by_groups() ? "oom_kill" : "sampled"));
}

TEST_P(EnforcementTest, AKillByAnybodyElseIsNotCalledOutOfMemory) {
  const Finished finished = compile({"fork", "crash 9"}, fake(256 * kMiB));
  EXPECT_EQ(finished.outcome(), Finished::CRASHED) << finished.DebugString();
  EXPECT_THAT(finished.message(), HasSubstr("Killed signal terminated program cc1"));
}

TEST_P(EnforcementTest, OnlyMemoryThatIsUsedCounts) {
  const Finished finished = compile({"reserve 4G", "fork", "allocate 20M", "exit 5"}, fake(256 * kMiB));
  // Without a group the address space has to be limited, since a sample comes late.
  if (by_groups()) {
    EXPECT_THAT(finished.message(), HasSubstr("status 5")) << finished.DebugString();
  } else {
    EXPECT_EQ(finished.outcome(), Finished::OUT_OF_MEMORY) << finished.DebugString();
  }
}

TEST_P(EnforcementTest, TheRestOfTheNodeIsUnharmed) {
  const std::uint64_t bystander =
      worker_->start(orders({"allocate 100M", "note " + place("begun"), "hold " + place("go")}), fake(256 * kMiB));
  wait_for_file("begun");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(compile({"fork", "allocate 500M"}, fake(256 * kMiB)).outcome(), Finished::OUT_OF_MEMORY);
  }
  std::filesystem::create_directory(place("go"));
  EXPECT_EQ(worker_->wait_finished(bystander).finished.outcome(), Finished::DONE);
}

TEST_P(EnforcementTest, ThePeakIsThatOfTheTree) {
  const Finished finished = compile({"allocate 150M", "fork", "allocate 150M"}, fake(1024 * kMiB));
  EXPECT_EQ(finished.outcome(), Finished::DONE) << finished.DebugString();
  // Too short for a sample: only the group knows the sum.
  EXPECT_GT(finished.peak_bytes(), (by_groups() ? 300 : 150) * kMiB);
  EXPECT_LT(finished.peak_bytes(), 500 * kMiB);
}

TEST_P(EnforcementTest, PagesOfFilesAreNoPeak) {
  struct statfs place{};
  if (statfs(worker_->temporary_directory().c_str(), &place) != 0 || place.f_type == TMPFS_MAGIC) {
    GTEST_SKIP() << "files are memory in " << worker_->temporary_directory();
  }
  const Finished finished = compile({"file 300M", "allocate 20M"}, fake(1024 * kMiB));
  EXPECT_EQ(finished.outcome(), Finished::DONE) << finished.DebugString();
  EXPECT_GT(finished.peak_bytes(), 20 * kMiB);
  EXPECT_LT(finished.peak_bytes(), 200 * kMiB);
}

TEST_P(EnforcementTest, TheEmbeddedCompilerIsLimitedAsWell) {
  worker_->set_spares(1);
  worker_->wait_usage([](const auto& usage) { return usage.spares() == 1; });
  std::string source = "double f(double x) {\n";
  for (int i = 0; i < 20'000; ++i) source += "  x = x * x > " + std::to_string(i) + " ? x + 1.5 : x / (x + 2);\n";
  source += "  return x;\n}\n";
  auto start = WorkerClient::request();
  start.set_memory_limit_bytes(100 * kMiB);
  const Finished finished = worker_->compile(source, start).finished;
  EXPECT_EQ(finished.outcome(), Finished::OUT_OF_MEMORY) << finished.DebugString();
  EXPECT_THAT(finished.evidence(), AnyOf(HasSubstr("oom_kill"), HasSubstr("exit code 97"), HasSubstr("sampled")));
  EXPECT_EQ(worker_->compile("int f(void) { return 1; }", start).finished.outcome(), Finished::DONE);
}

TEST_P(EnforcementTest, TooManyProcessesAreRefused) {
  const Finished finished = compile({"swarm 400", "hold " + place("never")}, fake());
  EXPECT_EQ(finished.outcome(), Finished::REFUSED) << finished.DebugString();
  EXPECT_THAT(finished.message(), HasSubstr("more than 256 processes"));
  EXPECT_TRUE(worker_->wait_alone());
}

TEST_P(EnforcementTest, CpuTimeIsThatOfTheTree) {
  auto start = fake();
  start.set_cpu_seconds(1);  // for none of the processes too short, for all together
  const Finished finished = compile({"relay 20"}, start);
  EXPECT_EQ(finished.outcome(), Finished::TIMED_OUT) << finished.DebugString();
  EXPECT_THAT(finished.message(), HasSubstr("together"));
  EXPECT_TRUE(worker_->wait_alone());
}

TEST_P(EnforcementTest, ACompileThatTakesForEverIsEnded) {
  auto start = fake();
  start.set_cpu_seconds(1);
  const Finished finished = compile({"hold " + place("never")}, start);
  EXPECT_EQ(finished.outcome(), Finished::TIMED_OUT) << finished.DebugString();
  EXPECT_THAT(finished.message(), HasSubstr("10 times its CPU limit"));
}

std::string affinity_of(pid_t pid) {
  const std::string text = common::read_file("/proc/" + std::to_string(pid) + "/status").value_or("");
  const auto begin = text.find("Cpus_allowed_list:");
  return text.substr(begin, text.find('\n', begin) - begin);
}

int oom_score_of(pid_t pid) {
  return std::atoi(common::read_file("/proc/" + std::to_string(pid) + "/oom_score_adj").value_or("").c_str());
}

TEST_P(EnforcementTest, CompilersYieldToTheSolver) {
  const std::uint64_t job =
      worker_->start(orders({"fork", "note " + place("reached"), "hold " + place("never")}), fake());
  const pid_t supervisor = worker_->wait_started(job);
  wait_for_file("reached");
  std::vector<pid_t> processes = worker::descendants(supervisor);
  EXPECT_EQ(processes.size(), 2u);  // the compiler, and what it started
  processes.push_back(supervisor);
  const int here = getpriority(PRIO_PROCESS, 0);
  for (const pid_t pid : processes) {
    EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(pid)), std::min(here + 10, 19));
    EXPECT_EQ(oom_score_of(pid), 1000);
    EXPECT_EQ(affinity_of(pid), affinity_of(getpid()));
  }
  worker_->cancel(job);
  EXPECT_EQ(worker_->wait_finished(job).finished.outcome(), Finished::CANCELLED);
}

class ControlGroupsTest : public EnforcementTest {};
INSTANTIATE_TEST_SUITE_P(By, ControlGroupsTest, ::testing::Values(By::kGroups), [](const auto&) { return "Groups"; });

TEST_P(ControlGroupsTest, NoneIsLeftWhenTheTreesHaveEnded) {
  const std::string where = place_of_groups(enforcement());
  const pid_t pid = worker_->pid();
  const std::string held = orders({"orphan", "fork", "note " + place("reached"), "hold " + place("never")});
  const std::uint64_t job = worker_->start(held, fake(256 * kMiB));
  wait_for_file("reached");
  EXPECT_FALSE(groups_of(pid, where).empty());
  worker_->cancel(job);
  EXPECT_EQ(worker_->wait_finished(job).finished.outcome(), Finished::CANCELLED);
  compile({"orphan"}, fake(256 * kMiB));
  compile({"fork", "allocate 500M"}, fake(256 * kMiB));
  // The next child has another group; those of the ones before are gone when it is there.
  EXPECT_EQ(worker_->compile("int f(void) { return 1; }").finished.outcome(), Finished::DONE);
  worker_->start(held, fake());
  worker_.reset();
  EXPECT_THAT(groups_of(pid, where), IsEmpty());
}

TEST_P(ControlGroupsTest, WhatADeadWorkerLeftIsRemovedByTheNext) {
  const std::string where = place_of_groups(enforcement());
  const pid_t dead = worker_->pid();
  const std::uint64_t job = worker_->start(
      orders({"orphan", "fork", "note " + place("reached"), "hold " + place("never")}), fake(256 * kMiB));
  const pid_t supervisor = worker_->wait_started(job);
  wait_for_file("reached");
  std::vector<pid_t> processes = worker::descendants(supervisor);
  kill(dead, SIGKILL);
  worker_.reset();  // reaps it
  EXPECT_FALSE(groups_of(dead, where).empty());
  const WorkerClient next;
  EXPECT_THAT(groups_of(dead, where), IsEmpty());
  for (const pid_t pid : processes) {
    EXPECT_TRUE(kill(pid, 0) != 0 ||
                common::read_file("/proc/" + std::to_string(pid) + "/stat")->find(") Z") != std::string::npos);
  }
}

}  // namespace
}  // namespace jitc::testing
