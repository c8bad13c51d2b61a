// The trace as Chrome's events and as a picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "client/cli/trace_view.h"

namespace jitc::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = TraceSpan::Kind;

constexpr std::uint64_t kStart = 5'000'000'000;
constexpr std::uint64_t kMiB = 1 << 20;

TraceView two_slots() {
  TraceView view{
      .node = "n01", .version = "0.1", .pid = 42, .now = kStart + 900'000, .now_unix = 1'700'000'000'000'000};
  view.spans = {
      {.kind = Kind::kLookUp, .flight = 1, .name = "a.c", .begin = kStart, .end = kStart + 1000, .outcome = "MISS"},
      {.kind = Kind::kQueued, .flight = 1, .name = "a.c", .begin = kStart + 1000, .end = kStart + 1000},
      {.kind = Kind::kRunning,
       .lane = 1,
       .attempt = 1,
       .flight = 1,
       .name = "a.c",
       .client = "me",
       .compiler = "gcc",
       .begin = kStart + 1000,
       .end = kStart + 500'000,
       .outcome = "DONE",
       .limit_bytes = 200 * kMiB,
       .peak_bytes = 100 * kMiB},
      {.kind = Kind::kQueued, .flight = 2, .name = "b.c", .begin = kStart + 2000, .end = kStart + 300'000},
      {.kind = Kind::kRunning,
       .open = true,
       .lane = 2,
       .attempt = 1,
       .flight = 2,
       .name = "b.c",
       .begin = kStart + 300'000,
       .end = kStart + 900'000},
      {.kind = Kind::kLookUp, .name = "hit.c", .begin = kStart + 600'000, .end = kStart + 600'000, .outcome = "HIT"},
  };
  view.samples = {{kStart - 1000, 0, 400 * kMiB, 2}, {kStart + 100'000, 150 * kMiB, 400 * kMiB, 2}};
  return view;
}

TraceView many(std::size_t count) {
  TraceView view{.node = "n01", .version = "0.1", .pid = 42, .now = kStart + 1'000'000 * count};
  for (std::size_t i = 0; i < count; ++i)
    view.spans.push_back({.kind = Kind::kRunning,
                          .lane = static_cast<std::uint32_t>(1 + i % 4),
                          .attempt = 1,
                          .flight = i,
                          .name = "kernel" + std::to_string(i) + ".c",
                          .begin = kStart + i * 1000,
                          .end = kStart + i * 1000 + 3000,
                          .outcome = i % 7 == 0 ? "INVALID_SOURCE" : "DONE"});
  return view;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Are the elements closed in the order in which they were opened, and is nothing there that XML does not know?
void expect_well_formed(const std::string& xml) {
  static const std::regex tag(R"(<(/?)([a-z]+)((?: [a-zA-Z0-9-]+="[^"<&]*(?:&(?:amp|lt|gt|quot);[^"<&]*)*")*) ?(/?)>)");
  std::vector<std::string> open;
  std::size_t at = 0;
  for (std::sregex_iterator match(xml.begin(), xml.end(), tag), end; match != end; ++match) {
    const std::string between = xml.substr(at, static_cast<std::size_t>(match->position()) - at);
    EXPECT_EQ(between.find('<'), std::string::npos) << between;
    EXPECT_FALSE(std::regex_search(between, std::regex("&(?!(amp|lt|gt|quot);)"))) << between;
    at = static_cast<std::size_t>(match->position() + match->length());
    if (!(*match)[1].str().empty()) {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), (*match)[2]);
      open.pop_back();
    } else if ((*match)[4].str().empty()) {
      open.push_back((*match)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
  for (const char c : xml) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
}

TEST(ChromeTrace, HasALaneForEachSlotAndMemoryBesideItsBudget) {
  const json trace = json::parse(chrome_trace(two_slots()));
  std::map<int, std::string> threads;
  std::map<std::string, int> begun;
  std::uint64_t last = 0;
  for (const json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 42);
    EXPECT_GE(event["ts"].get<std::uint64_t>(), last) << "not in order";
    last = event["ts"];
    if (event["ph"] == "M" && event["name"] == "thread_name") threads[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "b") ++begun[event["cat"].get<std::string>() + event["id"].dump()];
    if (event["ph"] == "e") --begun[event["cat"].get<std::string>() + event["id"].dump()];
  }
  EXPECT_EQ(threads, (std::map<int, std::string>{{0, "answers"}, {1, "slot 1"}, {2, "slot 2"}}));
  for (const auto& [id, open] : begun) EXPECT_EQ(open, 0) << id;
  EXPECT_EQ(begun.size(), 3u);  // a look-up and two in the queue

  const auto find = [&](const std::string& phase, const std::string& name) {
    for (const json& event : trace["traceEvents"])
      if (event["ph"] == phase && event["name"] == name) return event;
    return json();
  };
  const json compile = find("X", "a.c");
  EXPECT_EQ(compile["tid"], 1);
  EXPECT_EQ(compile["ts"], kStart + 1000);
  EXPECT_EQ(compile["dur"], 499'000);
  EXPECT_EQ(compile["args"]["outcome"], "DONE");
  EXPECT_EQ(compile["args"]["peak_bytes"], 100 * kMiB);
  EXPECT_EQ(find("X", "b.c")["args"]["open"], true);
  EXPECT_EQ(find("C", "memory")["args"], (json{{"used_bytes", 0}, {"budget_bytes", 400 * kMiB}}));
  EXPECT_EQ(find("i", "HIT")["ts"], kStart + 600'000);
  EXPECT_THAT(find("M", "process_name")["args"]["name"].get<std::string>(), HasSubstr("n01"));
}

TEST(ChromeTrace, EscapesNamesAndReplacesWhatIsNotUtf8) {
  TraceView view = two_slots();
  view.spans[2].name = "q\"uo\\te\n\x01\xff.c";
  const json trace = json::parse(chrome_trace(view));
  bool found = false;
  for (const json& event : trace["traceEvents"]) found |= event["name"] == "q\"uo\\te\n\x01\xef\xbf\xbd.c";
  EXPECT_TRUE(found);
}

TEST(SvgTimeline, ShowsBarsTooltipsMemoryAndBudget) {
  const std::string svg = svg_timeline(two_slots());
  expect_well_formed(svg);
  for (const char* text :
       {">slot 1<", ">slot 2<", ">queue<", ">answers<", "<title>a.c\ncompiled, after 499 ms",
        "peak 100 MiB, limit 200 MiB", "client me, compiler gcc", "<title>b.c\nruns still, so far",
        "<title>budget</title>", "stroke-dasharray", "2 starts of a compiler, 1 compiled, 1 runs still"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
}

TEST(SvgTimeline, WhatIsCompiledOtherwiseThanAskedLooksSo) {
  TraceView view = two_slots();
  const std::string before = svg_timeline(view);
  for (auto& span : view.spans)
    if (span.outcome == "DONE") span.outcome = "DEGRADED";
  const std::string svg = svg_timeline(view);
  EXPECT_THAT(svg, HasSubstr("compiled at another level"));
  EXPECT_THAT(before, HasSubstr("#0072b2"));
  EXPECT_THAT(svg, Not(HasSubstr("#0072b2"))) << "the colour of what is compiled as asked";
}

TEST(SvgTimeline, EscapesNames) {
  TraceView view = two_slots();
  view.spans[2].name = "</title><script>a&\"b\"\x01\xff";
  const std::string svg = svg_timeline(view);
  expect_well_formed(svg);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;/title&gt;&lt;script&gt;a&amp;&quot;b&quot;??"));
}

TEST(SvgTimeline, OfNothingOfOneAndOfManySpans) {
  expect_well_formed(svg_timeline({}));
  for (const std::size_t count : {1, 2000}) {
    const std::string svg = svg_timeline(many(count));
    EXPECT_EQ(count_of(svg, "<title>kernel"), count);
    // Bars lie within the picture.
    const std::regex bar(R"re(<rect x="([0-9.]+)" y="([0-9.]+)" width="([0-9.]+)")re");
    for (std::sregex_iterator match(svg.begin(), svg.end(), bar), end; match != end; ++match)
      EXPECT_LE(std::stod((*match)[1]) + std::stod((*match)[3]), 1201);
  }
}

TEST(SvgTimeline, TheQueueStaysWithinItsRoom) {
  TraceView view = many(4);
  for (std::size_t i = 0; i < 2000; ++i)
    view.spans.push_back({.kind = Kind::kQueued, .flight = i, .name = "w.c", .begin = kStart, .end = kStart + 6000});
  const std::string svg = svg_timeline(view);
  std::smatch size;
  ASSERT_TRUE(std::regex_search(svg, size, std::regex(R"re(height="([0-9.]+)" font-family)re")));
  EXPECT_LT(std::stod(size[1]), 700);
  EXPECT_EQ(count_of(svg, "<title>w.c\nwaits"), 2000u);
}

TEST(TraceView, LastPartCutsAtItsBegin) {
  TraceView view = last_part(two_slots(), 0.5);  // from 400 ms on
  ASSERT_EQ(view.spans.size(), 3u);
  EXPECT_EQ(view.spans[0].name, "a.c");
  EXPECT_EQ(view.spans[0].begin, kStart + 400'000);
  ASSERT_EQ(view.samples.size(), 1u);
  EXPECT_EQ(view.samples[0].memory_bytes, 150 * kMiB);
  EXPECT_EQ(last_part(two_slots(), 1e9).spans.size(), 6u);
}

TEST(TraceView, LeavesOutKindsThatItDoesNotKnow) {
  const TraceView view = trace_view(R"({"node":"n","spans":[{"kind":"RUNNING","begin_us":9,"end_us":7},
                                        {"kind":"OF_TOMORROW"},{"kind":"QUEUED","begin_us":3,"end_us":4},
                                        {"kind":"ELSEWHERE","begin_us":4,"end_us":5}]})");
  ASSERT_EQ(view.spans.size(), 3u);
  EXPECT_EQ(view.spans[0].kind, Kind::kQueued);
  EXPECT_EQ(view.spans[1].kind, Kind::kElsewhere);
  EXPECT_EQ(view.spans[2].end, 9u);
}

}  // namespace
}  // namespace jitc::cli
