#include "daemon/worker/program.h"

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "common/programs.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/process_tree.h"

namespace jitc::worker {
namespace {

using common::pointers_to;

constexpr int kExecFailed = 127;

}  // namespace

ProcessLimits limits_of(const v1::WorkerCommand::Start& start) {
  ProcessLimits limits{.cpu_seconds = start.cpu_seconds()};
  if (!start.memory_kept_by_kernel()) limits.memory_bytes = start.memory_limit_bytes();
  return limits;
}

// vfork: the child shares this process's memory until it executes, so nothing is copied; it makes system calls only.
ProgramEnd run_program(Program program) {
  const std::vector<char*> words = pointers_to(program.words);
  const std::vector<char*> entries = pointers_to(program.environment);
  volatile int exec_error = 0;
  const pid_t pid = vfork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
    limit_external(program.limits.memory_bytes, program.limits.cpu_seconds);
    dup2(program.out, STDOUT_FILENO);
    dup2(program.err, STDERR_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    execve(program.path.c_str(), words.data(), entries.data());
    exec_error = errno;
    _exit(kExecFailed);
  }
  ProgramEnd ended;
  if (pid < 0) {
    ended.exec_error = errno;
    return ended;
  }
  while (waitpid(pid, &ended.status, 0) < 0 && errno == EINTR) {
  }
  ended.exec_error = exec_error;
  return ended;
}

void end_leftovers() {
  end_descendants(getpid());
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace jitc::worker
