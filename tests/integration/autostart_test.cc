// A daemon that is started from a rank and never comes up does not hold the rank up.
#include "client/gate/autostart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "client/gate/first_contact.h"
#include "tests/support/temporary_directory.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class Autostart : public ::testing::Test {
 protected:
  // A program in place of jitcd that notes its process id first.
  Start start(const std::string& script, std::chrono::milliseconds limit) const {
    const std::string program = directory_.path() + "/program";
    std::ofstream(program) << "#!/bin/sh\necho $$ > '" << directory_.path() << "/pid'\n" << script << "\n";
    EXPECT_EQ(chmod(program.c_str(), 0700), 0);
    return {.runtime_dir = directory_.path() + "/run", .program = program, .limit = limit};
  }
  pid_t pid() const {
    pid_t noted = 0;
    std::ifstream(directory_.path() + "/pid") >> noted;
    return noted;
  }
  bool is_gone() const { return pid() > 0 && kill(pid(), 0) != 0 && errno == ESRCH; }

 private:
  testing::TemporaryDirectory directory_;
};

TEST_F(Autostart, ProgramThatHangsIsEndedAtTheLimit) {
  int reports = 0;
  const auto started = ensure_daemon(start("exec sleep 600", 1500ms), [&](const rpc::Progress& progress) {
    EXPECT_EQ(progress.phase, rpc::Progress::Phase::kConnecting);
    ++reports;
    return true;
  });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(started.error().message, HasSubstr("neither served nor ended"));
  EXPECT_GE(reports, 1);
  EXPECT_TRUE(is_gone());
}

TEST_F(Autostart, ProgramThatIgnoresThePoliteEndIsKilled) {
  const auto started = ensure_daemon(start("trap '' TERM\nsleep 600 & wait; wait; sleep 600", 1s),
                                     [](const rpc::Progress&) { return true; });
  ASSERT_FALSE(started);
  EXPECT_TRUE(is_gone());
}

TEST_F(Autostart, NobodyWaitsAnyMore) {
  const auto started = ensure_daemon(start("exec sleep 600", 60s), [](const rpc::Progress&) { return false; });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::kCancelled);
  EXPECT_TRUE(is_gone());
}

TEST_F(Autostart, ProgramThatEndsWithoutServingIsUnreachable) {
  const auto started = ensure_daemon(start("exit 3", 60s), [](const rpc::Progress&) { return true; });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(started.error().message, HasSubstr("does not serve"));
}

TEST(FirstContact, StartsOnceAndNeverAfterAConnection) {
  FirstContact never_connected;
  EXPECT_TRUE(never_connected.may_start());
  never_connected.has_started();
  EXPECT_FALSE(never_connected.may_start());
  FirstContact connected;
  connected.connect();
  EXPECT_FALSE(connected.may_start());
}

}  // namespace
}  // namespace jitc::gate
