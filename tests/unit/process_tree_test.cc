// A tree of processes as the worker sees and ends it.
#include "daemon/worker/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/kcmp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace jitc::worker {
namespace {

using ::testing::ElementsAre;

// A child that does something and then waits for its end; it is there when what it does is done.
class Child {
 public:
  explicit Child(const std::function<void()>& act) {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      act();
      say(ends[1]);
      for (;;) pause();
    }
    close(ends[1]);
    char done = 0;
    EXPECT_EQ(read(ends[0], &done, 1), 1);
    close(ends[0]);
  }
  Child(const Child&) = delete;
  ~Child() {
    kill(pid_, SIGKILL);
    if (!reaped_) waitpid(pid_, nullptr, 0);
  }
  static void say(int fd) { static_cast<void>(!write(fd, "x", 1)); }
  pid_t pid() const { return pid_; }
  int status() {
    int status = 0;
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return status;
  }

 private:
  pid_t pid_ = 0;
  bool reaped_ = false;
};

TEST(ProcessTree, ASignalReachesOnlyTheProcessThatIsMeant) {
  Child child([] {});
  signal_if(child.pid(), SIGKILL, [] { return false; });
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
  signal_if(child.pid(), SIGTERM, [] { return true; });
  const int status = child.status();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

// Between vfork and exec.
TEST(ProcessTree, MemoryThatTwoProcessesHaveTogetherCountsOnce) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer makes a fork of every vfork";
#endif
  if (syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0, 0) != 0) GTEST_SKIP() << "the kernel does not compare memory";
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t root = fork();
  if (root == 0) {
    const pid_t pid = vfork();
    if (pid == 0) {
      Child::say(told[1]);
      for (;;) pause();
    }
    _exit(0);
  }
  char begun = 0;
  ASSERT_EQ(read(told[0], &begun, 1), 1);
  const TreeUse use = use_of_tree(root);
  const Memory memory = memory_of(root);
  const std::vector<pid_t> below = descendants(root);
  ASSERT_EQ(below.size(), 1u);
  kill(below.front(), SIGKILL);
  waitpid(root, nullptr, 0);
  for (const int end : told) close(end);
  EXPECT_EQ(use.processes, 2u);
  EXPECT_EQ(use.resident_bytes, memory.resident);
  EXPECT_EQ(use.anonymous_bytes, memory.anonymous);
}

TEST(ProcessTree, APassKillsAllBelowTheRoot) {
  Child root([] {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // one whose parent dies while it is made stays below
    if (fork() > 0) return;
    if (fork() >= 0) {
      for (;;) pause();
    }
  });
  kill(root.pid(), SIGSTOP);
  // A pass may come before the grandchild is made.
  for (std::vector<pid_t> killed; !(killed = kill_descendants(root.pid())).empty();) {
    await_ends(killed, std::chrono::seconds(60));
  }
  EXPECT_THAT(descendants(root.pid()), ElementsAre());
  EXPECT_EQ(waitpid(root.pid(), nullptr, WNOHANG), 0);
}

}  // namespace
}  // namespace jitc::worker
