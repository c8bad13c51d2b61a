// Who lives of those that left files behind, and of whom this process cannot tell.
#include "common/owner.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/files.h"

namespace jitc::common {
namespace {

constexpr uid_t kNobody = 65534;

// A process that has ended, and was waited for.
pid_t ended_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

TEST(Owner, IsAliveWhileItsProcessIs) {
  const Owner self = Owner::this_process();
  EXPECT_EQ(life_of(self, self), Life::kAlive);
  Owner other = self;
  other.start += 1;
  EXPECT_EQ(life_of(other, self), Life::kDead) << "its number was given again";
  other.pid = ended_process();
  EXPECT_EQ(life_of(other, self), Life::kDead);
}

TEST(Owner, WhereNobodyCanLookIsUnknown) {
  const Owner self = Owner::this_process();
  Owner other = self;
  other.host += "2";
  EXPECT_EQ(life_of(other, self), Life::kUnknown);
  other = self;
  other.boot += "1";
  EXPECT_EQ(life_of(other, self), Life::kUnknown) << "another pid namespace";
  other.boot = "00000000-1";
  EXPECT_EQ(life_of(other, self), Life::kDead) << "booted since";
  // A process that sees no /proc does not know its boot.
  other.boot = "unknown-0";
  EXPECT_EQ(life_of(other, self), Life::kUnknown);
  EXPECT_EQ(life_of(self, other), Life::kUnknown);
}

// As one user of a node whose /proc shows the own processes alone; 77: that cannot be had here.
int look_with_hidden_processes(const Owner& living, const Owner& dead) {
  constexpr int kSkipped = 77;
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", 0, "hidepid=2") != 0)
    return kSkipped;
  // The group, too: that of root sees them.
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
      ::setresuid(kNobody, kNobody, kNobody) != 0)
    return kSkipped;
  if (process_start_time(living.pid) != 0) return kSkipped;
  if (life_of(living, living) != Life::kUnknown) return 1;
  if (life_of(dead, living) != Life::kDead) return 2;
  const Owner self = Owner::this_process();
  return life_of(self, self) == Life::kAlive ? 0 : 3;
}

TEST(Owner, OfAnotherUserWhomProcHidesIsNotDead) {
  const Owner living = Owner::this_process();
  Owner dead = living;
  dead.pid = ended_process();
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) ::_exit(look_with_hidden_processes(living, dead));
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "/proc cannot be mounted with hidepid";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Owner, NamesOfNoProcessAreNone) {
  for (const char* name : {"host.boot-1.0.5.ab", "host.boot-1.-1.5.ab"}) EXPECT_FALSE(owner_of(name)) << name;
  EXPECT_TRUE(owner_of("host.boot-1.1.5.ab"));
}

}  // namespace
}  // namespace jitc::common
