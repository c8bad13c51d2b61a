#include "client/gate/autostart.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/files.h"
#include "common/runtime_dir.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using common::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kTick{1};
constexpr std::chrono::seconds kGrace{2};  // between the polite end and the other

// Ranks are pinned to a core; the daemon and its compilers are not theirs. What this thread starts inherits its
// affinity.
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

// <prefix>/bin/jitcd for <prefix>/lib/libjitc.so; without one the name alone, for the PATH.
std::string daemon_program() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&ensure_daemon), &info) && info.dli_fname) {
    const std::string library = info.dli_fname;
    const std::string beside = library.substr(0, library.rfind('/') + 1) + "../bin/jitcd";
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "jitcd";
}

Result<pid_t> spawn(std::string program, const std::string& runtime_dir) {
  SpawnOptions options;
  posix_spawn_file_actions_addopen(&options.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&options.files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // A session of its own and clean signals: what ends the job must not end the daemon by accident.
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&options.attributes, &none);
  posix_spawnattr_setsigdefault(&options.attributes, &all);
  posix_spawnattr_setflags(&options.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);

  std::string flag = "--runtime-dir=" + runtime_dir;
  std::array<char*, 3> arguments = {program.data(), flag.data(), nullptr};
  pid_t pid = 0;
  const WholeCpuset unpinned;
  const int code = posix_spawnp(&pid, program.c_str(), &options.files, &options.attributes, arguments.data(), environ);
  if (code != 0)
    return common::fail_errno(ErrorKind::kUnreachable, code, "the daemon cannot be started", program,
                              "install jitcd, or start it before the job with 'jitc daemon start'");
  return pid;
}

// Until the process has ended, at most until `deadline`.
enum class Wait { kEnded, kNotYet };
Wait wait_for(const common::Fd& process, steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    pollfd end{process.get(), POLLIN, 0};
    const int ready = poll(&end, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready > 0) return Wait::kEnded;
    if (ready == 0 || errno != EINTR) return Wait::kNotYet;
  }
}

// The process and what it has started: all of its session's group.
void end_process(pid_t pid, const common::Fd& process) {
  kill(-pid, SIGTERM);
  if (wait_for(process, steady_clock::now() + kGrace) == Wait::kNotYet) kill(-pid, SIGKILL);
}

// Waits for the end of jitcd's first process, which is reaped.
Result<void> watch(pid_t pid, const Start& start, const Report& report) {
  const common::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // ESRCH: the program reaps all its children itself, and has done so.
  if (!process && errno != ESRCH)
    return common::fail_errno(ErrorKind::kUnreachable, errno, "the daemon's start cannot be watched", "pidfd_open");
  const steady_clock::time_point begin = steady_clock::now();
  const steady_clock::time_point deadline = begin + start.limit;
  Result<void> result;
  while (process && result && wait_for(process, std::min(deadline, steady_clock::now() + kTick)) == Wait::kNotYet) {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    if (!report({rpc::Progress::Phase::kConnecting, 0, seconds, 0}))
      result = common::fail(ErrorKind::kCancelled, "nobody waits for the daemon any more", start.runtime_dir);
    else if (steady_clock::now() >= deadline)
      result = common::fail(ErrorKind::kUnreachable,
                            "a daemon was started, and neither served nor ended within " +
                                std::to_string(std::chrono::duration_cast<std::chrono::seconds>(start.limit).count()) +
                                " s; it was ended",
                            start.runtime_dir, "run 'jitcd --foreground' to see what it waits for");
    if (!result) end_process(pid, process);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return result;
}

}  // namespace

Result<void> ensure_daemon(const Start& start, const Report& report) {
  const std::string socket = start.runtime_dir + "/" + common::kSocketName;
  Result<common::Fd> connected = common::connect_own(socket);
  if (connected || connected.error().kind != ErrorKind::kUnreachable) {
    return connected ? Result<void>() : std::unexpected(std::move(connected.error()));
  }
  if (auto prepared = common::prepare_runtime_directory(start.runtime_dir); !prepared) return prepared;
  const Result<pid_t> pid = spawn(start.program.empty() ? daemon_program() : start.program, start.runtime_dir);
  if (!pid) return std::unexpected(pid.error());
  if (auto watched = watch(*pid, start, report); !watched) return watched;

  // The process has ended: its daemon serves, or does not, since another was first, or something is wrong.
  if (connected = common::connect_own(socket); connected) return {};
  common::Error error = std::move(connected.error());
  error.message = "a daemon was started and does not serve: " + error.message;
  error.remedy = "see its words on the job's standard error, or run 'jitcd --foreground'";
  return std::unexpected(std::move(error));
}

}  // namespace jitc::gate
