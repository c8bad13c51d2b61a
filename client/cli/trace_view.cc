#include "client/cli/trace_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace jitc::cli {
namespace {

using nlohmann::json;
using Kind = TraceSpan::Kind;

const std::map<std::string, Kind, std::less<>>& kinds() {
  static const std::map<std::string, Kind, std::less<>> all{
      {"LOOK_UP", Kind::kLookUp},  {"QUEUED", Kind::kQueued},         {"ELSEWHERE", Kind::kElsewhere},
      {"RUNNING", Kind::kRunning}, {"PUBLISHING", Kind::kPublishing}, {"ANSWERED", Kind::kAnswered}};
  return all;
}

template <class Value>
Value value(const json& object, const char* name) {
  return object.value(name, Value{});
}

TraceSpan span_of(const json& object, Kind kind) {
  TraceSpan span;
  span.kind = kind;
  span.open = value<bool>(object, "open");
  span.lane = value<std::uint32_t>(object, "lane");
  span.attempt = value<std::uint32_t>(object, "attempt");
  span.flight = value<std::uint64_t>(object, "flight");
  span.name = value<std::string>(object, "name");
  span.client = value<std::string>(object, "client");
  span.compiler = value<std::string>(object, "compiler");
  span.begin = value<std::uint64_t>(object, "begin_us");
  span.end = std::max(span.begin, value<std::uint64_t>(object, "end_us"));
  span.outcome = value<std::string>(object, "outcome");
  span.limit_bytes = value<std::uint64_t>(object, "limit_bytes");
  span.peak_bytes = value<std::uint64_t>(object, "peak_bytes");
  return span;
}

}  // namespace

TraceView trace_view(std::string_view text) {
  const json object = json::parse(text);
  TraceView view;
  view.node = value<std::string>(object, "node");
  view.version = value<std::string>(object, "version");
  view.pid = value<std::int64_t>(object, "pid");
  view.now = value<std::uint64_t>(object, "now_us");
  view.now_unix = value<std::uint64_t>(object, "now_unix_us");
  view.dropped = value<std::uint64_t>(object, "dropped");
  for (const auto& span : value<json::array_t>(object, "spans")) {
    const auto kind = kinds().find(value<std::string>(span, "kind"));
    if (kind != kinds().end()) view.spans.push_back(span_of(span, kind->second));
  }
  for (const auto& sample : value<json::array_t>(object, "samples"))
    view.samples.push_back({value<std::uint64_t>(sample, "at_us"), value<std::uint64_t>(sample, "memory_bytes"),
                            value<std::uint64_t>(sample, "budget_bytes"), value<std::uint32_t>(sample, "slots")});
  std::ranges::sort(view.spans, {},
                    [](const TraceSpan& span) { return std::tuple(span.begin, span.kind, span.flight); });
  return view;
}

TraceView last_part(TraceView view, double seconds) {
  const auto length = static_cast<std::uint64_t>(seconds * 1e6);
  const std::uint64_t from = view.now - std::min(view.now, length);
  std::erase_if(view.spans, [from](const TraceSpan& span) { return span.end < from; });
  for (TraceSpan& span : view.spans) span.begin = std::max(span.begin, from);
  // The sample that holds at the beginning stays.
  const auto later = std::ranges::upper_bound(view.samples, from, {}, &TraceSample::at);
  if (later != view.samples.begin()) {
    view.samples.erase(view.samples.begin(), later - 1);
    view.samples.front().at = std::max(view.samples.front().at, from);
  }
  return view;
}

}  // namespace jitc::cli
