// Dead children are children until they are reaped.
#include "common/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace jitc::common {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Processes, ChildrenOfAllThreadsLivingAndDead) {
  // The other thread stays until its child was looked at: else the child goes over to this one.
  pid_t pid = 0;
  std::thread([&pid] {
    pid = fork();
    if (pid == 0) {
      for (;;) pause();
    }
    EXPECT_THAT(children_of(getpid()), Contains(pid));
    kill(pid, SIGKILL);
    siginfo_t ended;
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_THAT(children_of(getpid()), Contains(pid));
  }).join();
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_THAT(children_of(getpid()), Not(Contains(pid)));
  EXPECT_THAT(children_of(pid), IsEmpty());
}

}  // namespace
}  // namespace jitc::common
