#include "client/rpc/patience.h"

#include <algorithm>
#include <string>

namespace jitc::rpc {
namespace {

// A century: as good as none, and it cannot overflow a clock.
constexpr double kLongest = 100.0 * 365 * 24 * 3600;

std::optional<Patience::Clock::duration> limit(double seconds) {
  if (!(seconds > 0)) return std::nullopt;
  return std::chrono::duration_cast<Patience::Clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

// "30" or "0.25": as people write seconds.
std::string as_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

Patience::Patience(Time start, double silence_seconds, double total_seconds)
    : start_(start),
      last_look_(start),
      next_tick_(start + kTick),
      silence_limit_(limit(silence_seconds)),
      silence_seconds_(silence_seconds),
      total_seconds_(total_seconds) {
  if (const auto total = limit(total_seconds)) end_ = start + *total;
}

void Patience::heard(Time now) {
  silence_ = {};
  last_look_ = now;
}

void Patience::waited(Time now) {
  silence_ += std::min<Clock::duration>(now - last_look_, 2 * kTick);
  last_look_ = now;
}

Patience::Time Patience::wake() const {
  Time wake = next_tick_;
  if (silence_limit_) wake = std::min(wake, last_look_ + std::max(*silence_limit_ - silence_, Clock::duration::zero()));
  if (end_) wake = std::min(wake, *end_);
  return wake;
}

bool Patience::take_tick(Time now) {
  if (now < next_tick_) return false;
  next_tick_ = now + kTick;
  return true;
}

std::optional<common::Error> Patience::expired(Time now) const {
  common::Error error;
  error.kind = common::ErrorKind::kTimedOut;
  if (end_ && now >= *end_) {
    error.message = "not finished within the " + as_text(total_seconds_) + " s that the caller allows in all";
    error.remedy = "allow more time, or look with 'jitc status' at what the daemon is doing";
    return error;
  }
  if (silence_limit_ && silence_ >= *silence_limit_) {
    error.message = "the daemon said nothing for " + as_text(silence_seconds_) + " s";
    error.remedy = "is it stopped? See 'jitc status'; JITC_TIMEOUT is the silence allowed";
    return error;
  }
  return std::nullopt;
}

}  // namespace jitc::rpc
