#include "client/cli/program.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string_view>

#include "client/cli/context.h"
#include "common/files.h"
#include "common/programs.h"
#include "common/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX wants it declared

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::Fd;
using common::pointers_to;
using common::Result;

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;  // of what it says

std::vector<std::string> environment_with(const Variables& variables) {
  std::map<std::string, std::string, std::less<>> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equal = text.find('=');
    if (equal != text.npos) all.insert_or_assign(std::string(text.substr(0, equal)), text.substr(equal + 1));
  }
  for (const auto& [name, value] : variables) all.insert_or_assign(name, value);
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

// In a process group of its own, so that what it starts can be ended with it.
int spawn(std::vector<std::string> argv, const Variables& variables, const Fd& in, const Fd& out, const Fd& err,
          pid_t& pid) {
  std::vector<std::string> environment = environment_with(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.get(), STDERR_FILENO);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&usual, number);
  posix_spawnattr_setsigdefault(&how, &usual);
  const int error =
      ::posix_spawnp(&pid, argv[0].c_str(), &files, &how, pointers_to(argv).data(), pointers_to(environment).data());
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

// As wait_readable(), through interrupts.
Result<int> wait_whatever_comes(const Fd& process, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    pollfd ended = {process.get(), POLLIN, 0};
    const std::chrono::duration<double, std::milli> left = end - std::chrono::steady_clock::now();
    const int got = ::poll(&ended, 1, static_cast<int>(std::max(0.0, left.count())));
    if (got >= 0 || errno != EINTR) return std::max(got, 0);
  }
}

// A process that waits for a file system that hangs does not end by it: it is waited for no longer than this.
void end_program(pid_t pid, const Fd& process) {
  constexpr int kPatience = 2000;  // ms
  ::kill(-pid, SIGKILL);
  pollfd ended{process.get(), POLLIN, 0};
  while (::poll(&ended, 1, kPatience) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<Ended> run_program(const std::vector<std::string>& argv, const Variables& variables, const std::string& input,
                          double seconds, Interrupts interrupts) {
  const auto in = common::sealed_memfd("input", input, /*executable=*/false);
  const Fd out(::memfd_create("out", MFD_CLOEXEC)), err(::memfd_create("err", MFD_CLOEXEC));
  if (!in || !out || !err) return fail(ErrorKind::kInternal, "no memory file can be made", argv[0]);
  pid_t pid = 0;
  if (const int error = spawn(argv, variables, *in, out, err, pid); error != 0)
    return common::fail_errno(ErrorKind::kUnreachable, error, "cannot be started", argv[0]);
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) {
    const int error = errno;
    end_program(pid, process);
    return common::fail_errno(ErrorKind::kInternal, error, "cannot be waited for", argv[0]);
  }
  auto ready = interrupts == Interrupts::kHeeds ? wait_readable({process.get()}, Deadline(0), seconds)
                                                : wait_whatever_comes(process, seconds);
  if (!ready || *ready == 0) end_program(pid, process);
  int status = 0;
  ::waitpid(pid, &status, WNOHANG);  // it has ended, unless no kill reaches it
  if (!ready) return std::unexpected(std::move(ready.error()));
  if (*ready == 0) return fail(ErrorKind::kTimedOut, "it does not end", argv[0], "run it by hand");
  Ended ended;
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.out = common::read_all(out.get(), "out", kMostBytes).value_or("");
  ended.err = common::read_all(err.get(), "err", kMostBytes).value_or("");
  return ended;
}

std::string first_line(const std::vector<std::string>& argv, double seconds) {
  const auto ended = run_program(argv, {}, {}, seconds);
  if (!ended || ended->code != 0) return {};
  for (const auto line : common::split(ended->out, '\n'))
    if (line.find_first_not_of(" \t") != line.npos) return std::string(line);
  return {};
}

std::string on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const auto directory : common::split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    std::string file = (directory.empty() ? "." : std::string(directory)) + "/" + name;
    if (common::is_program(file)) return file;
  }
  return {};
}

}  // namespace jitc::cli
