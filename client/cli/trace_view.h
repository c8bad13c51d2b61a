// What the daemon recorded, for those who draw it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::cli {

struct TraceSpan {
  enum class Kind : std::uint8_t { kLookUp, kQueued, kElsewhere, kRunning, kPublishing, kAnswered };
  Kind kind = Kind::kLookUp;
  bool open = false;  // it lasts still
  std::uint32_t lane = 0, attempt = 0;
  std::uint64_t flight = 0;
  std::string name, client, compiler;
  std::uint64_t begin = 0, end = 0;  // microseconds of the node's monotonic clock
  std::string outcome;               // DONE, HIT, MISS or an error's kind; empty: nothing to say
  std::uint64_t limit_bytes = 0, peak_bytes = 0;
  double seconds() const { return static_cast<double>(end - begin) * 1e-6; }
};

struct TraceSample {  // holds until the next one
  std::uint64_t at = 0, memory_bytes = 0, budget_bytes = 0;
  std::uint32_t slots = 0;
};

struct TraceView {
  std::string node, version;
  std::int64_t pid = 0;
  std::uint64_t now = 0, now_unix = 0;  // the same moment by both clocks, microseconds
  std::uint64_t dropped = 0;
  std::vector<TraceSpan> spans;      // by their begin
  std::vector<TraceSample> samples;  // in order
};

// From the JSON object of rpc::Daemon::query("trace"). Kinds that this client does not know are left out.
TraceView trace_view(std::string_view json);

// The last `seconds` of it.
TraceView last_part(TraceView view, double seconds);

// Chrome's trace events as JSON, which Perfetto opens: a thread for each slot, the queue, memory beside its budget.
std::string chrome_trace(const TraceView& view);

// A picture of the same: one self-contained SVG file.
std::string svg_timeline(const TraceView& view);

}  // namespace jitc::cli
