// What jitcd's command line and a batch job's variables come to.
#include "daemon/service/options.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

namespace jitc::service {
namespace {

using testing::ScopedEnvironment;

Options options_of(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "jitcd");
  return read_command_line(static_cast<int>(arguments.size()), arguments.data()).value().options.value();
}

TEST(Options, OutsideABatchJobADaemonEndsWhenIdleAndLeavesItsDirectory) {
  const Options options = options_of({"--foreground"});
  EXPECT_EQ(options.idle_seconds, 1800);
  EXPECT_FALSE(options.is_jobs);
}

TEST(Options, ABatchJobsStepLastsAsLongAsTheJob) {
  const ScopedEnvironment job{{"SLURM_JOB_ID", "7"}};
  EXPECT_EQ(options_of({"--foreground"}).idle_seconds, 0);
  EXPECT_EQ(options_of({"--foreground", "--idle-exit", "5"}).idle_seconds, 5) << "unless told otherwise";
  EXPECT_EQ(options_of({}).idle_seconds, 1800) << "one in the background may be nobody's any more";
}

TEST(Options, OnlyTheDirectoryThatABatchJobGivesIsTheJobs) {
  const ScopedEnvironment job{{"SLURM_JOB_ID", "7"}, {"SLURMD_NODENAME", "n1"}, {"XDG_RUNTIME_DIR", "/run/user/5"}};
  EXPECT_TRUE(options_of({}).is_jobs);
  EXPECT_TRUE(options_of({"--runtime-dir", "/run/user/5/jitc/7.n1"}).is_jobs) << "as a client that starts it says";
  EXPECT_FALSE(options_of({"--runtime-dir", "/run/user/5/jitc"}).is_jobs);
}

TEST(Options, AStoreWhosePathIsNotUtf8IsRefusedWhereverItComesFrom) {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path odd = directory.path() + "/\xff";
  std::filesystem::create_directory(odd);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(odd);
  const char* arguments[] = {"jitcd", "--store", "relative"};
  const auto refused = read_command_line(3, arguments);
  std::filesystem::current_path(before);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, common::ErrorKind::kUsage);
  EXPECT_EQ(refused.error().thing, directory.path() + "/?/relative");
}

}  // namespace
}  // namespace jitc::service
