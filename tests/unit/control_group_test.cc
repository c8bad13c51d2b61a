// What a control group tells, from files as the kernel writes them: kernels differ, and a machine has one.
#include "daemon/worker/control_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace jitc::worker {
namespace {

using ::testing::IsEmpty;

class ControlGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    place_ = (std::filesystem::temp_directory_path() / "jitc-control-group-XXXXXX").string();
    ASSERT_NE(mkdtemp(place_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(place_); }
  void write(const std::string& file, const std::string& text) const { std::ofstream(place_ + "/" + file) << text; }

  std::string place_;
};

// From 6.11 on: nothing in the group whose fork was refused.
TEST_F(ControlGroupTest, ForksThatAGroupAroundRefusesAreSeen) {
  std::filesystem::create_directory(place_ + "/job");
  for (const char* group : {"", "job/"}) {
    write(std::string(group) + "pids.max", "40");
    write(std::string(group) + "pids.events.local", "max 7\n");
  }
  auto group = ControlGroup::make({2, place_ + "/job", place_ + "/job"});
  ASSERT_TRUE(group);
  group->watch_around();
  EXPECT_THAT(group->refusing_around(), IsEmpty());  // what was before
  write("pids.events.local", "max 8\n");
  EXPECT_EQ(group->refusing_around(), place_);
  write("job/pids.events.local", "max 8\n");
  EXPECT_EQ(group->refusing_around(), place_ + "/job");
  EXPECT_EQ(group->refused_processes(), 0u);
}

}  // namespace
}  // namespace jitc::worker
