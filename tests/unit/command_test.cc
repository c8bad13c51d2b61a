// What a command's key is over, and how a file's state is told.
#include "common/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using ::testing::ElementsAre;

TEST(Command, KeyIsOfDigestAndCompilerAndOfTheCpuWhereThatMatters) {
  Command command;
  command.digest = sha256("one");
  const Digest key = command_key(command, "compiler", "cpu");
  EXPECT_EQ(command_key(command, "compiler", "another cpu"), key);
  EXPECT_NE(command_key(command, "another compiler", "cpu"), key);
  command.for_this_cpu = true;
  EXPECT_NE(command_key(command, "compiler", "cpu"), command_key(command, "compiler", "another cpu"));
  command.for_this_cpu = false;
  command.directory = "/elsewhere";
  command.argv = {"gcc", "-o", "elsewhere"};
  EXPECT_EQ(command_key(command, "compiler", "cpu"), key);  // the digest says what matters of these
  command.digest = sha256("two");
  EXPECT_NE(command_key(command, "compiler", "cpu"), key);
}

TEST(Command, VariablesOfDrivers) {
  EXPECT_THAT(driver_variables({"A=1", "PATH=/bin", "PATHS=x", "LD_LIBRARY_PATH=/l", "MYPATH=/x"}),
              ElementsAre("PATH=/bin", "LD_LIBRARY_PATH=/l"));
}

TEST(Command, StateOfAFileChangesWithIt) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  EXPECT_EQ(file_state(path), "absent");
  std::ofstream(path) << "text";
  const std::string before = file_state(path);
  EXPECT_NE(before, "absent");
  EXPECT_EQ(file_state(path), before);
  std::ofstream(path + "2") << "text";
  std::filesystem::rename(path + "2", path);
  EXPECT_NE(file_state(path), before);
}

}  // namespace
}  // namespace jitc::common
