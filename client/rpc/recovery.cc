#include "client/rpc/recovery.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <utility>

#include "common/files.h"
#include "common/runtime_dir.h"

namespace jitc::rpc {
namespace {

using common::ErrorKind;
using common::Result;
using std::chrono::steady_clock;

// A daemon that is not back after so long is not coming, however patient the caller is.
constexpr double kLongestSeconds = 60;
// listen() itself makes no event in the directory, what goes before it does.
constexpr double kLookAgainSeconds = 0.05;

// Of a daemon's last word, or of none: does another one have the request to answer?
bool is_loss(const common::Error& error, const Progress& state) {
  if (error.kind == ErrorKind::kUnreachable) return true;
  // One that drains refuses what is new, and finishes what it has taken on: unless it is told to end at once.
  const bool taken_on = state.phase == Progress::Phase::kCompiling || state.place > 0;
  return error.kind == ErrorKind::kDraining && taken_on;
}

// Of the next thing that appears in the directory of a socket; while that is not there, in the nearest one around it
// that is. Where nothing can be watched each tick looks.
void watch_directory_of(const std::string& socket_path, int changes) {
  constexpr std::uint32_t kAppears = IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_ONESHOT;
  for (std::size_t slash = socket_path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = socket_path.rfind('/', slash - 1)) {
    const std::string directory = socket_path.substr(0, slash);
    if (::inotify_add_watch(changes, directory.c_str(), kAppears) >= 0 || errno != ENOENT) return;
  }
}

// Waits for a change, at most so long; was there one?
bool wait_for_change(int changes, double seconds) {
  pollfd waiting = {changes, POLLIN, 0};
  const bool changed = ::poll(&waiting, 1, static_cast<int>(std::ceil(1000 * seconds))) > 0;
  std::array<char, 4096> events;
  while (changed && ::read(changes, events.data(), events.size()) > 0) {
  }
  return changed;
}

std::string whole_seconds(double seconds) { return std::to_string(static_cast<long>(std::ceil(seconds))) + " s"; }

}  // namespace

Result<void> Recovery::after_call(common::Error error, bool was_met) {
  Progress& state = wait_.state();
  if (!is_loss(error, state)) return std::unexpected(std::move(error));
  if (++calls_ == kTries) {
    error.message = "in each of " + std::to_string(kTries) + " tries " + error.message;
    error.tries = kTries;
    error.remedy = "does this source end it? Its log says why: jitcd.log in the runtime directory";
    return std::unexpected(std::move(error));
  }
  // Else a connection was open from an earlier call, and its daemon has ended since.
  using Phase = Progress::Phase;
  was_met |= state.phase == Phase::kQueued || state.phase == Phase::kCompiling || state.phase == Phase::kElsewhere;
  if (was_met) {
    lost_ = error;
    end_.reset();
    if (const auto& tell = events_.again ? events_.again : events_.warning)
      tell(error.message + "; asked again, try " + std::to_string(calls_ + 1) + " of " + std::to_string(kTries));
  }
  state = {.phase = Progress::Phase::kReconnecting};
  return {};
}

Result<void> Recovery::after_connect(common::Error error) {
  if (error.kind != ErrorKind::kUnreachable || ++connects_ == kTries) return std::unexpected(std::move(error));
  // Who told a daemon to end did not mean that another is started at once; another may be on its way.
  const bool told_to_end = lost_ && lost_->kind == ErrorKind::kDraining;
  if (events_.start && !told_to_end) {
    if (events_.start()) return {};
    return std::unexpected(std::move(error));
  }
  if (!lost_ && !options_.awaits_daemon) return std::unexpected(std::move(error));
  return wait_for_daemon(lost_.value_or(std::move(error)));
}

Result<void> Recovery::wait_for_daemon(common::Error error) {
  const double allowed =
      options_.silence_seconds > 0 ? std::min(options_.silence_seconds, kLongestSeconds) : kLongestSeconds;
  if (!end_) {
    end_ = steady_clock::now() +
           std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(allowed));
    wait_.heard();  // of the daemon's end: what is allowed is counted from here
  }
  const common::Fd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (bool changed = false;;) {
    watch_directory_of(socket_path_, changes.get());  // before the look, so that nothing comes between
    const auto probe = common::connect_own(socket_path_);
    if (probe || probe.error().kind == ErrorKind::kTimedOut) return {};
    if (probe.error().kind != ErrorKind::kUnreachable) return std::unexpected(probe.error());
    const double left = std::chrono::duration<double>(*end_ - steady_clock::now()).count();
    if (left <= 0) {
      error.message += std::string(lost_ ? "; no other" : "; none") + " came within " + whole_seconds(allowed);
      return std::unexpected(std::move(error));
    }
    changed = wait_for_change(changes.get(), std::min({left, wait_.until_look(), changed ? kLookAgainSeconds : left}));
    if (*end_ <= steady_clock::now()) continue;  // one last look, and our own words
    if (auto looked = wait_.look(); !looked) {
      looked.error().thing = socket_path_;
      return std::unexpected(std::move(looked.error()));
    }
  }
}

}  // namespace jitc::rpc
