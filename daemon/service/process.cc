#include "daemon/service/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "common/identity.h"
#include "common/oom_score.h"
#include "common/runtime_dir.h"

namespace jitc::service {
namespace {

using common::ErrorKind;
using common::Fd;

constexpr int kExitBug = 70;
constexpr std::size_t kThreads = 24;  // twice what an idle daemon has
constexpr const char* kAlreadyRunning = "already running";

// What travels through the starter's pipe: nothing but 'R', or 'E', the exit code and the text.
[[noreturn]] void wait_for_daemon(int pipe) {
  std::string answer;
  char buffer[512];
  for (;;) {
    const ssize_t size = read(pipe, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(size));
    if (answer[0] == 'R') _exit(0);
  }
  if (answer.size() < 2) {
    std::fputs("jitcd: ended before it could serve; see jitcd.log in the runtime directory\n", stderr);
    _exit(kExitBug);
  }
  std::fprintf(stderr, "jitcd: %s\n", answer.c_str() + 2);
  _exit(answer[1]);
}

void write_quietly(int fd, std::string_view bytes) {
  // A starter that is gone does not matter to the daemon.
  if (fd >= 0) static_cast<void>(common::write_all(fd, bytes, "starter"));
}

// A lock on a file that another process has unlinked meanwhile guards nothing: the name must still be this file.
bool is_named(int fd, const std::string& path) {
  struct stat held{}, named{};
  return fstat(fd, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

common::Result<Starter> Starter::detach() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return common::fail_errno(ErrorKind::kInternal, errno, "cannot make a pipe", "start");
  Fd reader(ends[0]), writer(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    return common::fail_errno(ErrorKind::kInternal, errno, "cannot start a process", "fork",
                              "raise the limit on processes (ulimit -u)");
  }
  if (child > 0) {
    writer.reset();
    wait_for_daemon(reader.get());
  }
  return Starter(std::move(writer), true);
}

void Starter::ready() {
  write_quietly(pipe_.get(), "R");
  pipe_.reset();
}

int Starter::ended(const std::string& text, int exit_code) {
  if (detached_ && pipe_) {
    write_quietly(pipe_.get(), std::string{'E', static_cast<char>(exit_code)} + text);
  } else {
    std::fprintf(stderr, "jitcd: %s\n", text.c_str());
  }
  pipe_.reset();
  return exit_code;
}

void clean_process(bool detached, std::initializer_list<int> keep) {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error of the write
  for (const int warning : {SIGUSR1, SIGUSR2})
    ::signal(warning, SIG_IGN);  // a batch system's, before a job's time is up
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(077);
  if (chdir("/") != 0) std::perror("jitcd: chdir /");

  unsigned first = 3;
  for (const int fd : keep) {
    if (fd < static_cast<int>(first)) continue;
    if (static_cast<unsigned>(fd) > first) close_range(first, static_cast<unsigned>(fd) - 1, 0);
    first = static_cast<unsigned>(fd) + 1;
  }
  close_range(first, ~0u, 0);

  if (!detached) return;
  setsid();
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = 0; fd < 3; ++fd) dup2(null.get(), fd);
}

void append_errors_to(const std::string& file) {
  const Fd log(open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (log) dup2(log.get(), STDERR_FILENO);
}

void prepare_process() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  common::raise_oom_score(common::kServiceOomScore);
}

DaemonLock::DaemonLock(std::string directory, bool is_last, Fd file)
    : directory_(std::move(directory)),
      path_(directory_ + "/" + common::kLockName),
      is_last_(is_last),
      file_(std::move(file)) {}

common::Result<DaemonLock> DaemonLock::take(const std::string& runtime_dir, bool is_last) {
  const std::string path = runtime_dir + "/" + common::kLockName;
  for (;;) {
    if (auto directory = common::prepare_runtime_directory(runtime_dir); !directory)
      return std::unexpected(directory.error());
    Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file && errno == ENOENT) continue;  // a daemon that ended has just taken the directory with it
    if (!file) return common::fail_errno(ErrorKind::kRefused, errno, "cannot open the lock file", path);
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return common::fail_errno(ErrorKind::kRefused, errno, "cannot lock", path);
      char pid[32] = {};
      // The holder may not have written its id yet.
      const bool known = pread(file.get(), pid, sizeof pid - 1, 0) > 0;
      return common::fail(
          ErrorKind::kRefused,
          kAlreadyRunning + std::string(", pid ") + (known ? std::string(pid, strcspn(pid, "\n")) : "not yet known"),
          runtime_dir);
    }
    // Between open and flock the last holder may have ended and removed the file, and a third process made a new one.
    if (!is_named(file.get(), path)) continue;
    const std::string pid = std::to_string(getpid()) + "\n";
    if (ftruncate(file.get(), 0) != 0) return common::fail_errno(ErrorKind::kRefused, errno, "cannot write", path);
    if (auto written = common::write_all(file.get(), pid, path); !written) return std::unexpected(written.error());
    return DaemonLock(runtime_dir, is_last, std::move(file));
  }
}

bool DaemonLock::guards() const { return is_named(file_.get(), path_); }

void DaemonLock::release() {
  if (file_ && guards()) {
    // The lock goes last of the files: a daemon that starts meanwhile is refused, or makes all of them anew.
    if (is_last_) unlink((directory_ + "/" + common::kIdentityFile).c_str());
    unlink(path_.c_str());
    if (is_last_) rmdir(directory_.c_str());
  }
  file_.reset();
}

void end_process() {
#ifndef __SANITIZE_ADDRESS__
  std::_Exit(0);
#endif
}

void end_within(std::chrono::seconds patience) {
  // A signal, not a thread: it comes whatever the threads hang in, and needs nothing that may be short.
  ::signal(SIGALRM, [](int) {
    constexpr std::string_view kLate = "jitcd: did not end in time; ends now with what hangs\n";
    static_cast<void>(!write(STDERR_FILENO, kLate.data(), kLate.size()));
    std::_Exit(0);
  });
  alarm(static_cast<unsigned>(patience.count()));
}

common::Result<void> check_thread_limit() {
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::vector<std::thread> threads;
  bool enough = true;
  try {
    while (threads.size() < kThreads) threads.emplace_back([released] { released.wait(); });
  } catch (const std::system_error&) {  // the limit
    enough = false;
  }
  const std::size_t count = threads.size();
  release.set_value();
  for (auto& thread : threads) thread.join();
  if (enough) return {};
  return common::fail(common::ErrorKind::kRefused,
                      "only " + std::to_string(count) + " of " + std::to_string(kThreads) + " threads can be had",
                      "jitcd", "raise the limit of processes and threads (ulimit -u, or the control group's pids.max)");
}

std::uint64_t descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  return limit.rlim_cur;
}

bool is_already_running(const common::Error& error) { return error.message.starts_with(kAlreadyRunning); }

std::string executable_directory() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

}  // namespace jitc::service
