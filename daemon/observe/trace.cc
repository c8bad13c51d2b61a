#include "daemon/observe/trace.h"

#include <algorithm>
#include <utility>

#include "common/utf8.h"

namespace jitc::observe {
namespace {

constexpr std::uint64_t kNoticeable = std::uint64_t{1} << 20;
constexpr std::string_view kCancelled = "CANCELLED", kHit = "HIT";

constexpr std::string_view kCutMark = "...";

// At most this many bytes, whole characters; of what is longer a mark and the end: paths differ there.
std::string cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t from = text.size() - (most - kCutMark.size());
  while (from < text.size() && common::utf8_length(text, from) == 0) ++from;
  return std::string(kCutMark) + text.substr(from);
}

std::shared_ptr<const TraceSubject> shortened(const TraceSubject& subject) {
  return std::make_shared<const TraceSubject>(TraceSubject{cut(subject.name, Trace::kLongestName),
                                                           cut(subject.client, Trace::kLongestOther),
                                                           cut(subject.compiler, Trace::kLongestOther)});
}

// One more; true when one had to go for it.
template <class Event>
bool push(std::deque<Event>& ring, Event event, std::size_t most) {
  const bool full = ring.size() == most;
  if (full) ring.pop_front();
  ring.push_back(std::move(event));
  return full;
}

bool differ(std::uint64_t a, std::uint64_t b) {
  return a != b && (b == 0 || std::max(a, b) - std::min(a, b) >= kNoticeable);
}

}  // namespace

void Trace::begin(std::uint64_t flight, const TraceSubject& subject) {
  flights_[flight] = Flight{.subject = shortened(subject), .current = {}};
}

void Trace::enter(Time now, std::uint64_t id, Kind kind, std::uint32_t attempt, std::uint64_t limit_bytes) {
  const auto found = flights_.find(id);
  if (found == flights_.end()) return;
  Flight& flight = found->second;
  end(now, flight, {}, 0);
  flight.current = {.kind = kind,
                    .lane = kind == Kind::kRunning ? take_lane() : 0,
                    .attempt = attempt,
                    .flight = id,
                    .subject = flight.subject,
                    .begin = now,
                    .end = now,
                    .outcome = {},
                    .limit_bytes = limit_bytes};
  flight.in_something = true;
}

void Trace::leave(Time now, std::uint64_t id, Kind kind, std::string_view outcome, std::uint64_t peak_bytes) {
  const auto found = flights_.find(id);
  if (found != flights_.end() && found->second.current.kind == kind) end(now, found->second, outcome, peak_bytes);
}

void Trace::forget(Time now, std::uint64_t id) {
  const auto found = flights_.find(id);
  if (found == flights_.end()) return;
  end(now, found->second, kCancelled, 0);
  flights_.erase(found);
}

void Trace::instant(Time now, Kind kind, const TraceSubject& subject, std::string_view outcome) {
  keep({.kind = kind, .subject = shortened(subject), .begin = now, .end = now, .outcome = outcome});
}

void Trace::sample(const TraceSample& sample) {
  if (!samples_.empty()) {
    const TraceSample& last = samples_.back();
    if (!differ(last.memory_bytes, sample.memory_bytes) && !differ(last.budget_bytes, sample.budget_bytes) &&
        last.slots == sample.slots)
      return;
  }
  push(samples_, sample, kMostSamples);
}

TraceSnapshot Trace::snapshot(Time now) const {
  TraceSnapshot snapshot{.now = now, .spans = {}, .samples = {samples_.begin(), samples_.end()}, .dropped = dropped_};
  snapshot.spans.reserve(hits_.size() + spans_.size() + flights_.size());
  snapshot.spans.insert(snapshot.spans.end(), hits_.begin(), hits_.end());
  snapshot.spans.insert(snapshot.spans.end(), spans_.begin(), spans_.end());
  for (const auto& [id, flight] : flights_) {
    if (!flight.in_something) continue;
    snapshot.spans.push_back(flight.current);
    snapshot.spans.back().open = true;
    snapshot.spans.back().end = now;
  }
  return snapshot;
}

void Trace::end(Time now, Flight& flight, std::string_view outcome, std::uint64_t peak_bytes) {
  if (!std::exchange(flight.in_something, false)) return;
  flight.current.end = now;
  flight.current.outcome = outcome;
  flight.current.peak_bytes = peak_bytes;
  if (flight.current.lane > 0) lanes_[flight.current.lane - 1] = false;
  keep(flight.current);
}

void Trace::keep(TraceSpan span) {
  const bool hit = span.kind == Kind::kLookUp && span.outcome == kHit;
  dropped_ += push(hit ? hits_ : spans_, std::move(span), hit ? kMostHits : kMostSpans) ? 1 : 0;
}

std::uint32_t Trace::take_lane() {
  const auto free = std::ranges::find(lanes_, false);
  const auto lane = static_cast<std::uint32_t>(free - lanes_.begin());
  if (free == lanes_.end()) lanes_.push_back(true);
  lanes_[lane] = true;
  return lane + 1;
}

}  // namespace jitc::observe
