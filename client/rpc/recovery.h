// What a compile does when its daemon has gone away before it answered. To ask again is harmless, since asking twice
// for one key merges or hits; but a source that ends every daemon it meets must not end them for ever, so that the
// number of tries is bounded.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "client/rpc/daemon.h"
#include "client/rpc/wait.h"
#include "common/error.h"

namespace jitc::rpc {

class Recovery {
 public:
  static constexpr std::uint32_t kTries = 3;  // the first and two more

  // The references must outlive this object.
  Recovery(const std::string& socket_path, const Daemon::Options& options, const Daemon::Events& events, Wait& wait)
      : socket_path_(socket_path), options_(options), events_(events), wait_(wait) {}

  // The request was sent and ended with this error; `was_met`: its daemon had answered during this call. Success: send
  // it again; else the error that ends the call.
  common::Result<void> after_call(common::Error error, bool was_met);
  // Nobody could be connected to. Success: somebody serves the socket now.
  common::Result<void> after_connect(common::Error error);

 private:
  // Until somebody listens, at most for the silence that the caller allows, however many listen and go again meanwhile.
  common::Result<void> wait_for_daemon(common::Error error);

  const std::string& socket_path_;
  const Daemon::Options& options_;
  const Daemon::Events& events_;
  Wait& wait_;
  std::uint32_t calls_ = 0;                                   // that were lost
  std::uint32_t connects_ = 0;                                // that failed
  std::optional<common::Error> lost_;                         // how a call ended whose daemon had been met
  std::optional<std::chrono::steady_clock::time_point> end_;  // of the wait for the next one
};

}  // namespace jitc::rpc
