#include "client/rpc/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace jitc::rpc {
namespace {

using common::ErrorKind;
using common::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{2};  // between the polite end and the other

// The CPUs that this process was pinned to (a rank's core, perhaps) are not the daemon's: for the life of this object
// the thread may run wherever its cpuset allows, and what it starts inherits that.
class WholeCpuset {
 public:
  WholeCpuset() : is_saved_(sched_getaffinity(0, sizeof before_, &before_) == 0) {
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof all);  // the kernel keeps the CPUs of the cpuset
    if (is_saved_) sched_setaffinity(0, sizeof all, &all);
  }
  ~WholeCpuset() {
    if (is_saved_) sched_setaffinity(0, sizeof before_, &before_);
  }
  WholeCpuset(const WholeCpuset&) = delete;
  WholeCpuset& operator=(const WholeCpuset&) = delete;

 private:
  cpu_set_t before_{};
  bool is_saved_;
};

// posix_spawn's two option objects.
struct SpawnOptions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnOptions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnOptions() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
};

void direct_streams(posix_spawn_file_actions_t& files, int words) {
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (words < 0) {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&files, words, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, words, STDERR_FILENO);
  }
}

// What ends the job, or Ctrl-C at the command, must not end the daemon by accident.
void set_apart(posix_spawnattr_t& attributes) {
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

}  // namespace

Result<FirstProcess> spawn_daemon(const std::string& program, std::vector<std::string> flags, int words) {
  SpawnOptions options;
  direct_streams(options.files, words);
  set_apart(options.attributes);
  std::string name = program;
  std::vector<char*> arguments = {name.data()};
  for (std::string& flag : flags) arguments.push_back(flag.data());
  arguments.push_back(nullptr);
  FirstProcess process;
  int code = 0;
  {
    const WholeCpuset unpinned;
    code = posix_spawnp(&process.pid, program.c_str(), &options.files, &options.attributes, arguments.data(), environ);
  }
  if (code != 0)
    return common::fail_errno(ErrorKind::kUnreachable, code, "the daemon cannot be started", program,
                              code == EAGAIN ? "raise the limit of processes and threads (ulimit -u)"
                                             : "install jitcd, or start it beforehand with 'jitc daemon start'");
  process.handle = common::Fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  // ESRCH: the program reaps all its children itself, and has done so.
  if (!process.handle && errno != ESRCH)
    return common::fail_errno(ErrorKind::kUnreachable, errno, "the daemon's start cannot be watched", "pidfd_open");
  return process;
}

bool wait_for_end(const FirstProcess& process, steady_clock::time_point deadline) {
  while (process.handle) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    pollfd end{process.handle.get(), POLLIN, 0};
    const int ready = poll(&end, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready > 0) break;
    if (ready == 0 || errno != EINTR) return false;
  }
  return true;
}

// All of its session's group.
void end_daemon(const FirstProcess& process) {
  kill(-process.pid, SIGTERM);
  if (!wait_for_end(process, steady_clock::now() + kGrace)) kill(-process.pid, SIGKILL);
}

int exit_code(const FirstProcess& process) {
  int status = 0;
  while (waitpid(process.pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace jitc::rpc
