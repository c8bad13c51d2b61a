// The trace as Chrome's trace events ("Trace Event Format"), in microseconds of the node's monotonic clock.
#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "client/cli/json_text.h"
#include "client/cli/trace_view.h"

namespace jitc::cli {
namespace {

using json = nlohmann::ordered_json;
using Kind = TraceSpan::Kind;

// Threads that are no slots; a slot's number is its lane.
constexpr std::uint32_t kAnswers = 0;  // what was answered without a compile

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kLookUp:
      return "look-up";
    case Kind::kQueued:
      return "queued";
    case Kind::kElsewhere:
      return "elsewhere";
    case Kind::kPublishing:
      return "publishing";
    default:
      return "";
  }
}

class Events {
 public:
  explicit Events(const TraceView& view) : view_(view) {}

  json all() {
    describe();
    for (const TraceSpan& span : view_.spans) add(span);
    for (const TraceSample& sample : view_.samples) add(sample);
    json all = json::array();
    for (auto& [at, event] : events_) all.push_back(std::move(event));
    return all;
  }

 private:
  json& event(const char* phase, std::string name, std::uint64_t at) {
    json added = {{"name", std::move(name)}, {"ph", phase}, {"ts", at}, {"pid", view_.pid}};
    return events_.emplace(at, std::move(added))->second;
  }

  void metadata(const char* what, std::uint32_t thread, json arguments) {
    json& added = event("M", what, 0);
    added["tid"] = thread;
    added["args"] = std::move(arguments);
  }

  void describe() {
    metadata("process_name", kAnswers, {{"name", "jitcd " + view_.version + " on " + view_.node}});
    std::uint32_t lanes = 0;
    for (const TraceSpan& span : view_.spans) lanes = std::max(lanes, span.lane);
    metadata("thread_name", kAnswers, {{"name", "answers"}});
    metadata("thread_sort_index", kAnswers, {{"sort_index", 0}});
    for (std::uint32_t lane = 1; lane <= lanes; ++lane) {
      metadata("thread_name", lane, {{"name", "slot " + std::to_string(lane)}});
      metadata("thread_sort_index", lane, {{"sort_index", lane}});
    }
  }

  static json arguments(const TraceSpan& span) {
    json all = {{"flight", span.flight}, {"source", span.name}, {"client", span.client}, {"compiler", span.compiler}};
    if (!span.outcome.empty()) all["outcome"] = span.outcome;
    if (span.open) all["open"] = true;
    if (span.kind == Kind::kRunning) {
      all["attempt"] = span.attempt;
      all["limit_bytes"] = span.limit_bytes;
      all["peak_bytes"] = span.peak_bytes;
    }
    return all;
  }

  void add(const TraceSpan& span) {
    if (span.kind == Kind::kRunning) return add_running(span);
    const bool answer = span.kind == Kind::kAnswered || (span.kind == Kind::kLookUp && span.outcome == "HIT");
    if (answer) return add_answer(span);
    // These overlap: no thread could hold them. One name for all of a kind, so that they share a track.
    for (const char* phase : {"b", "e"}) {
      const bool begins = *phase == 'b';
      json& added = event(phase, name_of(span.kind), begins ? span.begin : span.end);
      added["cat"] = name_of(span.kind);
      added["id"] = ++(begins ? begun_ : ended_);
      added["tid"] = kAnswers;
      if (begins) added["args"] = arguments(span);
    }
  }

  void add_running(const TraceSpan& span) {
    json& added = event("X", span.name.empty() ? "unnamed" : span.name, span.begin);
    added["cat"] = "compile";
    added["dur"] = span.end - span.begin;
    added["tid"] = span.lane;
    added["args"] = arguments(span);
  }

  void add_answer(const TraceSpan& span) {
    json& added = event("i", span.outcome, span.end);
    added["cat"] = "answer";
    added["s"] = "t";
    added["tid"] = kAnswers;
    added["args"] = arguments(span);
  }

  void add(const TraceSample& sample) {
    json& memory = event("C", "memory", sample.at);
    memory["args"] = {{"used_bytes", sample.memory_bytes}, {"budget_bytes", sample.budget_bytes}};
    json& slots = event("C", "slots", sample.at);
    slots["args"] = {{"slots", sample.slots}};
  }

  const TraceView& view_;
  std::multimap<std::uint64_t, json> events_;  // by their time; those of one moment as they were made
  std::uint64_t begun_ = 0, ended_ = 0;
};

}  // namespace

std::string chrome_trace(const TraceView& view) {
  const json object = {{"traceEvents", Events(view).all()},
                       {"displayTimeUnit", "ms"},
                       {"otherData",
                        {{"node", view.node},
                         {"version", view.version},
                         {"now_us", view.now},
                         {"now_unix_us", view.now_unix},
                         {"dropped_spans", view.dropped}}}};
  return one_line(object) + "\n";
}

}  // namespace jitc::cli
