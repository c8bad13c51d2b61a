// When a waiting caller is told something, and when it gives up. Pure: the time is given.
#pragma once

#include <chrono>
#include <optional>

#include "common/error.h"

namespace jitc::rpc {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static constexpr std::chrono::seconds kTick{1};

  // Limits of 0 (or less) mean none.
  Patience(Time start, double silence_seconds, double total_seconds);

  // Something came from the daemon.
  void heard(Time now);
  // Call whenever `wake()` has come. Silence counts only while this process ran: an interval longer than two ticks
  // means that the process itself was stopped (a debugger, a suspended laptop), and then what the daemon sent meanwhile
  // has not been read yet.
  void waited(Time now);
  // The next time to look: a tick, or a limit that comes before it.
  Time wake() const;
  // True once per tick.
  bool take_tick(Time now);
  // kTimedOut, once a limit has passed.
  std::optional<common::Error> expired(Time now) const;
  double seconds(Time now) const { return std::chrono::duration<double>(now - start_).count(); }

 private:
  Time start_;
  Time last_look_;
  Time next_tick_;
  Clock::duration silence_{};
  std::optional<Clock::duration> silence_limit_;
  std::optional<Time> end_;
  double silence_seconds_;
  double total_seconds_;
};

}  // namespace jitc::rpc
