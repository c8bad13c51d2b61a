#include "client/cli/start.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "client/rpc/spawn.h"
#include "common/runtime_dir.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::fail_errno;
using common::Fd;
using common::Result;

// A daemon that is not ready after so long is not getting ready.
constexpr double kStartSeconds = 60;
constexpr int kStartAttempts = 5;
constexpr double kLookAgainSeconds = 0.1;
constexpr double kShowSeconds = 1;
constexpr std::uint64_t kMostLockBytes = 4096;  // it holds a number

Fd open_process(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool has_open(pid_t pid, const struct stat& file) {
  std::error_code error;
  const std::string descriptors = "/proc/" + std::to_string(pid) + "/fd";
  for (std::filesystem::directory_iterator it(descriptors, error), end; !error && it != end; it.increment(error)) {
    struct stat status{};
    if (::stat(it->path().c_str(), &status) == 0 && status.st_dev == file.st_dev && status.st_ino == file.st_ino)
      return true;
  }
  return false;
}

// The process whose id the lock file has, if there is such a process; the file's status. Its pidfd is opened before
// anything is checked, so that the process that is checked is the one that a signal would reach. The lock itself is not
// tried: whoever tries to take it is in the way of a daemon that starts at the same moment.
std::optional<LockHolder> process_named_in_lock(const std::string& runtime_dir, struct stat& status) {
  const std::string path = runtime_dir + "/" + common::kLockName;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
  const auto text = common::read_all(file.get(), path, kMostLockBytes);
  LockHolder named;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), named.pid).ec != std::errc{})
    return std::nullopt;
  named.process = open_process(named.pid);
  if (!named.process) return std::nullopt;
  return named;
}

std::string jitcd_path() {
  std::error_code ignored;  // without a folder it is looked for on the PATH
  return (std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "jitcd").string();
}

ErrorKind kind_of_exit(int code) {
  for (const auto kind : {ErrorKind::kUsage, ErrorKind::kRefused, ErrorKind::kStoreUnavailable})
    if (common::exit_code(kind) == code) return kind;
  return ErrorKind::kUnreachable;
}

// Waits for the end of a process that gets a daemon ready.
Result<void> watch(const rpc::FirstProcess& process, const Deadline& deadline) {
  if (!process.handle) return {};
  const auto got = wait_readable({process.handle.get()}, deadline, kStartSeconds);
  if (!got) return std::unexpected(got.error());
  if (*got == 0)
    return fail(ErrorKind::kTimedOut, "the daemon did not get ready", "jitcd",
                "see jitcd.log in the runtime directory");
  return {};
}

// jitcd's first process ends when its daemon serves, or with the reason why it does not.
Result<void> start_daemon(const Context& context, const Deadline& deadline) {
  if (auto prepared = common::prepare_runtime_directory(context.runtime_dir); !prepared) return prepared;
  // A memory file and not a pipe: nobody waits for its end, whoever keeps it open.
  const Fd words(::memfd_create("jitcd-words", MFD_CLOEXEC));
  if (!words) return fail_errno(ErrorKind::kInternal, errno, "no memory file can be made", "jitcd-words");
  const std::string path = jitcd_path();
  const auto process = rpc::spawn_daemon(path, {"--runtime-dir=" + context.runtime_dir}, words.get());
  if (!process) return std::unexpected(process.error());
  const auto watched = watch(*process, deadline);
  if (!watched) rpc::end_daemon(*process);
  const int code = rpc::exit_code(*process);
  if (!watched || code == 0) return watched;
  std::string text = common::read_all(words.get(), "jitcd-words").value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return fail(kind_of_exit(code), "the daemon did not start: " + (text.empty() ? "it gave no reason" : text), path,
              "see jitcd.log in " + context.runtime_dir);
}

// Another process may have been first: its daemon holds the lock and is still getting ready. Its socket and its
// identity file appear in the directory. False when nobody holds the lock any more.
Result<bool> wait_until_served(const Context& context, const Deadline& deadline) {
  const Fd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ::inotify_add_watch(changes.get(), context.runtime_dir.c_str(), IN_CREATE | IN_MOVED_TO | IN_ATTRIB);
  for (;;) {
    auto probe = common::connect_own(context.socket());
    if (probe || probe.error().kind == ErrorKind::kTimedOut) return true;
    if (probe.error().kind != ErrorKind::kUnreachable) return std::unexpected(std::move(probe.error()));
    struct stat file{};
    const auto named = process_named_in_lock(context.runtime_dir, file);
    if (!named) return false;
    // A process that is being killed has no open files any more while the kernel has not yet given up its lock: its end
    // is what to wait for. For the others, listen() itself makes no event: hence a second look after a moment.
    const bool holds = has_open(named->pid, file);
    if (auto waited = wait_readable({changes.get(), named->process.get()}, deadline, kLookAgainSeconds); !waited)
      return std::unexpected(std::move(waited.error()));
    if (!holds) return false;
    std::array<char, 4096> events;
    while (::read(changes.get(), events.data(), events.size()) > 0) {
    }
  }
}

}  // namespace

std::optional<LockHolder> lock_holder(const std::string& runtime_dir) {
  struct stat file{};
  auto named = process_named_in_lock(runtime_dir, file);
  if (!named || !has_open(named->pid, file)) return std::nullopt;
  return named;
}

std::optional<LockHolder> find_daemon(const Context& context) {
  auto holder = lock_holder(context.runtime_dir);
  if (!holder) std::fprintf(stderr, "jitc: no daemon runs in %s\n", context.runtime_dir.c_str());
  return holder;
}

Result<void> wait_for_end(const LockHolder& holder, const Deadline& deadline, const std::function<void()>& meanwhile) {
  for (;;) {
    const auto ended = wait_readable({holder.process.get()}, deadline, kShowSeconds);
    if (!ended) return std::unexpected(ended.error());
    if (*ended > 0) return {};
    if (meanwhile) meanwhile();
  }
}

Result<void> ensure_daemon(const Context& context, bool may_start, const Deadline& deadline) {
  auto probe = common::connect_own(context.socket());
  // A full backlog is a daemon, if a busy one.
  if (probe || probe.error().kind == ErrorKind::kTimedOut) return {};
  if (probe.error().kind != ErrorKind::kUnreachable) return std::unexpected(std::move(probe.error()));
  if (!may_start)
    return fail(ErrorKind::kUnreachable, "no daemon runs, and none may be started (JITC_AUTOSTART)", context.socket(),
                "start one with 'jitc daemon start'");
  // The lock's holder that jitcd met may have been a daemon in the act of ending: then start again.
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    if (auto started = start_daemon(context, deadline); !started) return started;
    const auto served = wait_until_served(context, deadline);
    if (!served) return std::unexpected(served.error());
    if (*served) return {};
  }
  return fail(ErrorKind::kUnreachable, "the daemon starts and ends again", context.socket(),
              "see jitcd.log in " + context.runtime_dir);
}

// The lock is held during the start: the others have nothing else to do.
bool Restart::operator()() {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  if (auto serves = ensure_daemon(context_, true, deadline_); !serves) failure_ = std::move(serves.error());
  return !failure_;
}

std::optional<common::Error> Restart::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace jitc::cli
