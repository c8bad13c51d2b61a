// The client's only way to the daemon. libjitc reaches the implementation through libjitc-rpc.so, opened by a rank that
// must compile; the command links it. In compile() no string or container changes owner across this interface (the two
// sides may have different allocators): references in, callbacks out. The other calls are for the command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/command.h"
#include "common/error.h"
#include "common/request.h"

namespace jitc::rpc {

// What a waiting caller is told, about once a second.
struct Progress {
  // kArriving: other ranks have not begun the call yet. kReconnecting: the daemon went away, another is asked.
  // kElsewhere: another node compiles it, for the store that both have.
  enum class Phase : std::uint32_t { kConnecting, kQueued, kCompiling, kLoading, kArriving, kReconnecting, kElsewhere };
  Phase phase = Phase::kConnecting;
  std::uint32_t place = 0;  // in the queue; 0: running
  double seconds = 0;       // since the call began
  std::uint64_t memory_bytes = 0;
};

struct Reply {
  std::string_view key;    // 64 hex digits
  std::string_view path;   // empty: not published
  std::string_view bytes;  // the whole artifact file, when asked for or not published
  bool hit = false;
  bool merged = false;
  double compile_seconds = 0;
  std::uint64_t peak_bytes = 0;
  bool degraded = false;  // not compiled with the flags asked for, and not published; a warning says how and why
};

class Daemon {
 public:
  // Called on the thread that called compile(), before it returns. They must not throw.
  struct Events {
    // Return false to give up (the request is cancelled: kCancelled). May be empty.
    std::function<bool(const Progress&)> progress;
    std::function<void(const Reply&)> reply;  // exactly one of these two is called, before compile() returns
    std::function<void(const common::Error&)> failure;
    std::function<void(std::string_view)> warning;  // may be empty
    std::function<void(std::string_view)> again;    // the daemon went away and is asked again; empty: a warning
    std::function<void(std::string_view)> rung;     // what the daemon tried, in order, before the reply; may be empty
    // Nobody serves the socket: starts a daemon, or says that there is none (false). Empty: a daemon that took the
    // request on and went away is waited for, as long as silence is allowed.
    std::function<bool()> start;
    // Of a command by_caller: its turn has come, and lasts until this returns. The call ends with kCancelled then.
    std::function<void()> admitted;
  };
  struct Options {
    bool want_bytes = true;
    double silence_seconds = 30;  // no event for so long: kTimedOut
    double total_seconds = 0;     // 0: none
    // Somebody else starts a daemon at this time: nobody there yet is waited for, as long as silence is allowed.
    bool awaits_daemon = false;
  };
  virtual ~Daemon() = default;
  // Blocks. Connects when it is not connected, and again when the daemon went away before it had answered (see
  // recovery.h): the request is sent at most three times. A request that was taken on and is sent again is told of as a
  // warning. Threads may call at the same time.
  virtual void compile(const common::Request& request, const Options& options, const Events& events) = 0;
  // Of a call that the daemon answers from memory: seconds that it may take in all (0: no end), and who is asked about
  // once a second whether to go on (may be empty; false: kCancelled).
  struct Limits {
    double seconds = 0;
    std::function<bool()> go_on;
  };
  // `what` is hello, jobs, stats or trace; the answer is a JSON object (stats: counter to value, flat).
  virtual common::Result<std::string> query(std::string_view what, const Limits& limits) = 0;
  virtual common::Result<void> cancel(std::uint64_t flight, const Limits& limits) = 0;
  virtual common::Result<void> drain(const Limits& limits) = 0;
  // As compile(), for a compiler's command line. `name` is for people.
  virtual void run(const common::Command& command, const std::string& name, const Options& options,
                   const Events& events) = 0;
};

// What libjitc and libjitc-rpc.so must have in common, since they share the layouts of C++ types: the project's version
// (common::build_version), and the layouts that this compiler and standard library give.
constexpr std::uint32_t interface_version(std::string_view project_version) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  const auto mix = [&hash](std::uint32_t value) { hash = (hash ^ value) * 16777619; };
  for (const char c : project_version) mix(static_cast<unsigned char>(c));
  for (const std::size_t size :
       {sizeof(common::Request), sizeof(common::Error), sizeof(Daemon::Options), sizeof(Daemon::Events),
        sizeof(common::Command), sizeof(Reply), sizeof(Progress), sizeof(std::string)})
    mix(static_cast<std::uint32_t>(size));
  return hash;
}

}  // namespace jitc::rpc

extern "C" {
// The library's only exported symbols. jitc_rpc_open gives null when the library is of another interface version; it
// does not connect yet. The caller releases the object with jitc_rpc_close.
jitc::rpc::Daemon* jitc_rpc_open(std::uint32_t interface_version, const char* socket_path);
void jitc_rpc_close(jitc::rpc::Daemon* daemon);
}
