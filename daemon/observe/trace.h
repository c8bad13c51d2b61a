// What happened when, for a timeline: each flight's way through look-up, queue, slot and publishing, and the memory of
// the compilers against its budget. The latest of it: the oldest is dropped, memory stays bounded. State thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace jitc::observe {

// Whose work it was; texts are cut to what a trace needs.
struct TraceSubject {
  std::string name, client, compiler;
};

struct TraceSpan {
  using Time = std::chrono::steady_clock::time_point;
  enum class Kind : std::uint8_t {
    kLookUp,      // outcome HIT or MISS; hits that clients served themselves have no length and no flight
    kQueued,      // CANCELLED, or empty: it started
    kElsewhere,   // another node compiles it: CANCELLED, or empty: that one is done
    kRunning,     // one per attempt: DONE or the error's kind
    kPublishing,  // empty
    kAnswered,    // at once, by a refusal or an earlier failure: the error's kind; no length
  };
  Kind kind = Kind::kLookUp;
  bool open = false;       // in a snapshot: it lasts still
  std::uint32_t lane = 0;  // 1-based: the slot that it ran in; no two in one lane at the same time. 0: none
  std::uint32_t attempt = 0;
  std::uint64_t flight = 0;
  std::shared_ptr<const TraceSubject> subject;  // never null
  Time begin, end;
  std::string_view outcome;  // of static storage
  std::uint64_t limit_bytes = 0, peak_bytes = 0;
};

struct TraceSample {
  TraceSpan::Time at;
  std::uint64_t memory_bytes = 0;  // compiles and spares together
  std::uint64_t budget_bytes = 0;
  std::uint32_t slots = 0;
};

struct TraceSnapshot {
  TraceSpan::Time now;
  std::vector<TraceSpan> spans;
  std::vector<TraceSample> samples;
  std::uint64_t dropped = 0;  // spans that had to go
};

class Trace {
 public:
  using Time = TraceSpan::Time;
  using Kind = TraceSpan::Kind;
  // A reply with this much, all texts at their longest, stays below gRPC's default limit of 4 MiB. Look-ups that hit
  // have a ring of their own: they are many and short, and would push the compiles out.
  static constexpr std::size_t kMostSpans = 16'384, kMostHits = 2'048, kMostSamples = 4'096;
  static constexpr std::size_t kLongestName = 64, kLongestOther = 32;

  void begin(std::uint64_t flight, const TraceSubject& subject);
  // Ends what the flight was in, and begins this; kRunning takes the lowest free lane. Unknown flights are ignored.
  void enter(Time now, std::uint64_t flight, Kind kind, std::uint32_t attempt = 0, std::uint64_t limit_bytes = 0);
  // Ends it if the flight is in this.
  void leave(Time now, std::uint64_t flight, Kind kind, std::string_view outcome, std::uint64_t peak_bytes = 0);
  // The flight is over; whatever it was in was cancelled.
  void forget(Time now, std::uint64_t flight);
  // Something without a way: kLookUp that hit, kAnswered.
  void instant(Time now, Kind kind, const TraceSubject& subject, std::string_view outcome);
  // Kept only when it differs noticeably from the one before.
  void sample(const TraceSample& sample);

  TraceSnapshot snapshot(Time now) const;

 private:
  struct Flight {
    std::shared_ptr<const TraceSubject> subject;
    TraceSpan current;
    bool in_something = false;
  };
  void end(Time now, Flight& flight, std::string_view outcome, std::uint64_t peak_bytes);
  void keep(TraceSpan span);
  std::uint32_t take_lane();

  std::unordered_map<std::uint64_t, Flight> flights_;
  std::vector<bool> lanes_;  // taken
  std::deque<TraceSpan> spans_, hits_;
  std::deque<TraceSample> samples_;
  std::uint64_t dropped_ = 0;
};

}  // namespace jitc::observe
