#include "client/cli/cc_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "client/cli/context.h"
#include "common/files.h"
#include "common/programs.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::Fd;
using common::pointers_to;

constexpr int kCannotRun = 126, kDependencyDescriptor = 3;

std::vector<std::string> words_of(const CcCompiler& compiler, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {compiler.name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

int cannot_run(const CcCompiler& compiler, int error_number) {
  return report({.kind = ErrorKind::kUsage,
                 .message = std::string("cannot be run: ") + std::strerror(error_number),
                 .thing = compiler.path}),
         kCannotRun;
}

// A terminal's interrupt reaches the compiler too, whose end decides.
class Deaf {
 public:
  Deaf() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &ignore, &before_[i]);
  }
  ~Deaf() { restore(); }
  Deaf(const Deaf&) = delete;
  Deaf& operator=(const Deaf&) = delete;
  void restore() const {  // system calls only
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGQUIT};
  std::array<struct sigaction, kSignals.size()> before_{};
};

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace

int become_compiler(const CcCompiler& compiler) {
  std::vector<std::string> words = words_of(compiler, compiler.arguments);
  execv(compiler.path.c_str(), pointers_to(words).data());
  return cannot_run(compiler, errno);
}

int run_compiler(const CcCompiler& compiler) {
  std::vector<std::string> words = words_of(compiler, compiler.arguments);
  const std::vector<char*> pointers = pointers_to(words);
  volatile int exec_error = 0;
  int status = 0;
  {
    const Deaf deaf;
    const pid_t parent = getpid();
    // The child shares this process's memory until it executes: system calls only.
    const pid_t pid = vfork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(kCannotRun);
      deaf.restore();
      execv(compiler.path.c_str(), pointers.data());
      exec_error = errno;
      _exit(kCannotRun);
    }
    if (pid < 0) return cannot_run(compiler, errno);
    status = wait_for(pid);
  }
  if (exec_error != 0) return cannot_run(compiler, exec_error);
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

common::Result<CcHeard> hear_compiler(const CcCompiler& compiler, const std::vector<std::string>& arguments) {
  std::array<Fd, 3> heard;
  for (Fd& one : heard) {
    // Above those that it gets.
    one = Fd(fcntl(Fd(memfd_create("jitc-cc", MFD_CLOEXEC)).get(), F_DUPFD_CLOEXEC, kDependencyDescriptor + 1));
    if (!one) return common::fail_errno(ErrorKind::kInternal, errno, "no memory file can be made", "jitc-cc");
  }
  std::vector<std::string> words = words_of(compiler, arguments);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, heard[0].get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, heard[1].get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&files, heard[2].get(), kDependencyDescriptor);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, compiler.path.c_str(), &files, nullptr, pointers_to(words).data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return common::fail_errno(ErrorKind::kUsage, error, "cannot be run", compiler.path);
  const int status = wait_for(pid);
  CcHeard words_heard;
  if (WIFEXITED(status)) words_heard.exit_code = WEXITSTATUS(status);
  std::string* const texts[] = {&words_heard.out, &words_heard.err, &words_heard.dependencies};
  for (std::size_t i = 0; i < heard.size(); ++i) {
    auto text = common::read_all(heard[i].get(), compiler.path);
    if (!text) return std::unexpected(text.error());
    *texts[i] = std::move(*text);
  }
  return words_heard;
}

}  // namespace jitc::cli
