// Limits that are not the compile's own: of a group around the worker, of the daemon. Nothing about the source is told
// by them, and a rank that shares them outlives the compiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "common/control_groups.h"
#include "common/files.h"
#include "common/text.h"
#include "daemon/worker/control_group.h"
#include "daemon/worker/process_tree.h"
#include "tests/support/process.h"
#include "tests/support/worker_client.h"

namespace jitc::testing {
namespace {

using Finished = v1::WorkerReport::Finished;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t number_in(const std::string& path) {
  return std::strtoull(common::read_file(path).value_or("").c_str(), nullptr, 10);
}

// A group of version 1 below this process's own, and this process's way there and back.
class Group {
 public:
  explicit Group(const char* controller) {
    const auto text = [](const char* path) { return common::read_file(path).value_or(""); };
    const auto own = common::cgroup_directories(text("/proc/self/cgroup"), text("/proc/self/mountinfo"), controller);
    if (own.empty()) return;
    home_ = own.front();
    const std::string path = home_ + "/test-" + std::to_string(getpid());
    std::error_code error;
    if (std::filesystem::create_directory(path, error)) path_ = path;
  }
  Group(const Group&) = delete;
  ~Group() {
    leave();
    if (path_.empty()) return;
    static_cast<void>(worker::write_control(path_ + "/freezer.state", "THAWED"));  // of that controller only
    rmdir(path_.c_str());
  }
  explicit operator bool() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  bool set(const char* file, std::uint64_t value) const {
    return worker::write_control(path_ + "/" + file, std::to_string(value)).has_value();
  }
  bool enter() const { return set("cgroup.procs", static_cast<std::uint64_t>(getpid())); }
  void leave() const {
    if (!path_.empty()) static_cast<void>(worker::write_control(home_ + "/cgroup.procs", std::to_string(getpid())));
  }

 private:
  std::string home_, path_;
};

v1::WorkerCommand::Start fake(std::uint64_t memory) {
  auto start = WorkerClient::request();
  start.set_compiler_path(JITC_BIN_DIR "/jitc-fakecc");
  start.set_memory_limit_bytes(memory);
  return start;
}

std::string orders(std::initializer_list<std::string> orders) {
  std::string text;
  for (const std::string& order : orders) text += "// fakecc: " + order + "\n";
  return text + "int f(void) { return 1; }\n";
}

class ForeignLimitTest : public ::testing::Test {
 protected:
  // The worker is in the group, this process is not.
  void start_worker_in(const Group& group) {
    ASSERT_TRUE(group.enter());
    worker_ = std::make_unique<WorkerClient>();
    group.leave();
  }
  std::string place(const char* name) const { return worker_->temporary_directory() + "/" + name; }
  void expect_outside(const Finished& finished, const std::string& words) const {
    EXPECT_EQ(finished.outcome(), Finished::CRASHED) << finished.DebugString();
    EXPECT_TRUE(finished.outside()) << finished.DebugString();
    EXPECT_THAT(finished.message(), HasSubstr(words));
  }

  std::unique_ptr<WorkerClient> worker_;
};

class FullJobTest : public ForeignLimitTest {
 protected:
  static constexpr std::uint64_t kLimit = 400 * kMiB;

  void SetUp() override {
    if (!job_ || !job_.set("memory.limit_in_bytes", kLimit)) GTEST_SKIP() << "no memory group of version 1 here";
    static_cast<void>(job_.set("memory.memsw.limit_in_bytes", kLimit));  // not where swap is not accounted
    start_worker_in(job_);
    ASSERT_THAT(worker_->ready().enforcement(), StartsWith("control groups v1"));
  }
  void TearDown() override { worker_.reset(); }

  // Grows until the group has no room, pages of files given up, and a little more. A program of its own: nothing that
  // this process has counts as the solver's when the kernel looks for the largest.
  testing::Finished run_solver() const {
    const std::string text = common::read_file(job_.path() + "/memory.stat").value_or("");
    const std::uint64_t files = common::field_number(text, "total_inactive_file").value_or(0) +
                                common::field_number(text, "total_active_file").value_or(0);
    const std::uint64_t bytes = kLimit - number_in(job_.path() + "/memory.usage_in_bytes") + files + 20 * kMiB;
    const std::string solver = "echo $$ > " + job_.path() + "/cgroup.procs && exec /usr/bin/python3 -c \"b'x' * " +
                               std::to_string(bytes) + "\"";
    return run({"/bin/sh", "-c", solver});
  }

  Group job_{"memory"};
};

TEST_F(FullJobTest, TheCompileIsTheVictimAndNotTheSolver) {
  const std::uint64_t job =
      worker_->start(orders({"allocate 120M", "note " + place("begun"), "hold " + place("never")}), fake(256 * kMiB));
  worker_->wait_started(job);
  while (!std::filesystem::exists(place("begun"))) worker_->next();
  const testing::Finished solver = run_solver();
  EXPECT_EQ(solver.exit_code, 0) << solver.err;
  const Finished finished = worker_->wait_finished(job).finished;
  expect_outside(finished, "the control group " + job_.path() + " ran out of memory");
  EXPECT_THAT(finished.evidence(), HasSubstr("oom_kill"));
  // Nothing is wrong with the next one.
  EXPECT_EQ(worker_->compile(orders({"allocate 60M"}), fake(256 * kMiB)).finished.outcome(), Finished::DONE);
}

// The group of the compile is full then, but only of what it would have given up for more.
TEST_F(FullJobTest, PagesOfFilesMakeNoLimitTheCompilesOwn) {
  struct statfs files{};
  if (statfs(worker_->temporary_directory().c_str(), &files) != 0 || files.f_type == TMPFS_MAGIC) {
    GTEST_SKIP() << "files are memory in " << worker_->temporary_directory();
  }
  const std::uint64_t job = worker_->start(
      orders({"allocate 60M", "file 300M", "note " + place("begun"), "hold " + place("never")}), fake(150 * kMiB));
  worker_->wait_started(job);
  while (!std::filesystem::exists(place("begun"))) worker_->next();
  const testing::Finished solver = run_solver();
  EXPECT_EQ(solver.exit_code, 0) << solver.err;
  const Finished finished = worker_->wait_finished(job).finished;
  expect_outside(finished, "the control group " + job_.path() + " ran out of memory");
  EXPECT_THAT(finished.evidence(), HasSubstr("oom_kill"));
}

TEST_F(FullJobTest, ItsLimitIsNotTheCompilesOwn) {
  expect_outside(worker_->compile(orders({"fork", "allocate 600M"}), fake(800 * kMiB)).finished,
                 "the control group " + job_.path() + " ran out of memory");
  // Its own is told as such inside the same group.
  EXPECT_EQ(worker_->compile(orders({"fork", "allocate 300M"}), fake(150 * kMiB)).finished.outcome(),
            Finished::OUT_OF_MEMORY);
}

TEST_F(ForeignLimitTest, ProcessesOfTheJob) {
  const Group job("pids");
  if (!job || !job.set("pids.max", 40)) GTEST_SKIP() << "no group of processes of version 1 here";
  start_worker_in(job);
  if (!worker_->ready().enforcement().starts_with("control groups")) GTEST_SKIP() << worker_->ready().enforcement();
  expect_outside(worker_->compile(orders({"swarm 60"}), fake(256 * kMiB)).finished,
                 "the control group " + job.path() + " allows no more");
  EXPECT_EQ(worker_->compile(orders({"swarm 5", "complain", "exit 1"}), fake(256 * kMiB)).finished.outcome(),
            Finished::INVALID_SOURCE);
  worker_.reset();
}

// By control groups and by sampling.
class HangingTest : public ForeignLimitTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, HangingTest, ::testing::Values("1", "0"),
                         [](const auto& one) { return *one.param == '1' ? "Groups" : "Sampling"; });

// As in a call to a file server that does not answer.
TEST_P(HangingTest, AProcessThatCannotBeKilledKeepsItsSlotAndHoldsUpNobody) {
  const Group frozen("freezer");
  if (!frozen) GTEST_SKIP() << "no freezer group of version 1 here";
  worker_ = std::make_unique<WorkerClient>(WorkerClient::Setup{.options = {"--control-groups", GetParam()}});
  const std::uint64_t job =
      worker_->start(orders({"fork", "note " + place("begun"), "hold " + place("never")}), fake(256 * kMiB));
  const pid_t supervisor = worker_->wait_started(job);
  while (!std::filesystem::exists(place("begun"))) worker_->next();
  for (const pid_t pid : worker::descendants(supervisor)) {
    ASSERT_TRUE(frozen.set("cgroup.procs", static_cast<std::uint64_t>(pid)));
  }
  ASSERT_TRUE(worker::write_control(frozen.path() + "/freezer.state", "FROZEN"));
  worker_->cancel(job);
  const std::uint64_t other = worker_->start("int f(void) { return 1; }", WorkerClient::request());
  common::Fd module;
  v1::WorkerReport report;
  while (!report.has_finished()) report = worker_->next(&module);
  EXPECT_EQ(report.finished().job(), other);
  EXPECT_FALSE(worker::descendants(supervisor).empty());
  ASSERT_TRUE(worker::write_control(frozen.path() + "/freezer.state", "THAWED"));
  EXPECT_EQ(worker_->wait_finished(job).finished.outcome(), Finished::CANCELLED);
  EXPECT_TRUE(worker_->wait_alone());
}

// By control groups and by sampling; an external compiler and the embedded one.
class AddressSpaceTest : public ForeignLimitTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, AddressSpaceTest, ::testing::Values("1", "0"),
                         [](const auto& one) { return *one.param == '1' ? "Groups" : "Sampling"; });

TEST_P(AddressSpaceTest, OfTheDaemonIsNotTheCompilesLimit) {
  constexpr rlim_t kSpace = 900 * kMiB;
  worker_ = std::make_unique<WorkerClient>(
      WorkerClient::Setup{.options = {"--control-groups", GetParam()}, .limits = {{RLIMIT_AS, kSpace}}});
  const std::string words = "limit of address space (ulimit -v) is 900 MiB";
  expect_outside(worker_->compile(orders({"reserve 2G"}), fake(1024 * kMiB)).finished, words);
  // The embedded one: the module itself is larger than that.
  auto embedded = WorkerClient::request();
  embedded.set_memory_limit_bytes(4096 * kMiB);
  const std::string source = "double table[150000000] = {1};\ndouble f(int i) { return table[i]; }\n";
  expect_outside(worker_->compile(source, embedded).finished, words);
}

}  // namespace
}  // namespace jitc::testing
