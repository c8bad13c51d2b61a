// The daemon's trace: spans that follow a flight, lanes, bounds.
#include "daemon/observe/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/utf8.h"

namespace jitc::observe {
namespace {

using Kind = TraceSpan::Kind;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

class TraceTest : public ::testing::Test {
 protected:
  static TraceSpan::Time at(int ms) { return TraceSpan::Time(milliseconds(ms)); }
  // A flight that compiles from `begin` to `end`.
  void compile(std::uint64_t flight, int begin, int end) {
    trace.begin(flight, {"f.c", "job", "clang"});
    trace.enter(at(begin), flight, Kind::kRunning, 1, 100);
    trace.leave(at(end), flight, Kind::kRunning, "DONE", 50);
    trace.forget(at(end), flight);
  }
  Trace trace;
};

TEST_F(TraceTest, FollowsAFlightThroughItsStages) {
  trace.begin(7, {"f.c", "job", "clang"});
  trace.enter(at(0), 7, Kind::kLookUp);
  trace.leave(at(1), 7, Kind::kLookUp, "MISS");
  trace.enter(at(1), 7, Kind::kQueued);
  trace.enter(at(4), 7, Kind::kRunning, 1, 100);
  trace.leave(at(9), 7, Kind::kRunning, "DONE", 50);
  trace.enter(at(9), 7, Kind::kPublishing);
  trace.leave(at(10), 7, Kind::kPublishing, {});
  trace.forget(at(10), 7);
  const auto spans = trace.snapshot(at(11)).spans;
  ASSERT_EQ(spans.size(), 4u);
  const std::array kinds{Kind::kLookUp, Kind::kQueued, Kind::kRunning, Kind::kPublishing};
  const std::array times{0, 1, 4, 9, 10};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].kind, kinds[i]);
    EXPECT_EQ(spans[i].begin, at(times[i]));
    EXPECT_EQ(spans[i].end, at(times[i + 1]));
    EXPECT_EQ(spans[i].flight, 7u);
    EXPECT_EQ(spans[i].subject->name, "f.c");
    EXPECT_FALSE(spans[i].open);
  }
  EXPECT_EQ(spans[0].outcome, "MISS");
  EXPECT_EQ(spans[2].outcome, "DONE");
  EXPECT_EQ(spans[2].lane, 1u);
  EXPECT_EQ(spans[2].limit_bytes, 100u);
  EXPECT_EQ(spans[2].peak_bytes, 50u);
}

TEST_F(TraceTest, LanesAreTheLowestThatAreFree) {
  std::vector<std::uint32_t> lanes;
  const auto start = [&](std::uint64_t flight, int ms) {
    trace.begin(flight, {});
    trace.enter(at(ms), flight, Kind::kRunning, 1);
    for (const auto& span : trace.snapshot(at(ms)).spans)
      if (span.open && span.flight == flight) lanes.push_back(span.lane);
  };
  start(1, 0);
  start(2, 0);
  start(3, 0);
  trace.leave(at(1), 2, Kind::kRunning, "DONE");
  start(4, 2);
  start(5, 2);
  EXPECT_THAT(lanes, ElementsAre(1, 2, 3, 2, 4));
}

TEST_F(TraceTest, WhatLastsStillIsOpenAndWhatIsForgottenWasCancelled) {
  trace.begin(1, {});
  trace.enter(at(0), 1, Kind::kQueued);
  auto spans = trace.snapshot(at(5)).spans;
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_TRUE(spans[0].open);
  EXPECT_EQ(spans[0].end, at(5));
  trace.forget(at(6), 1);
  spans = trace.snapshot(at(9)).spans;
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_FALSE(spans[0].open);
  EXPECT_EQ(spans[0].outcome, "CANCELLED");
  EXPECT_EQ(spans[0].end, at(6));
}

TEST_F(TraceTest, LateReportsAreIgnored) {
  compile(1, 0, 1);
  trace.leave(at(2), 1, Kind::kRunning, "DONE");
  trace.enter(at(2), 1, Kind::kPublishing);
  trace.begin(2, {});
  trace.enter(at(2), 2, Kind::kQueued);
  trace.leave(at(3), 2, Kind::kRunning, "DONE");  // it does not run
  const auto spans = trace.snapshot(at(4)).spans;
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_TRUE(spans[1].open);
}

TEST_F(TraceTest, KeepsTheLatestAndCountsWhatItDropped) {
  for (std::size_t i = 0; i < Trace::kMostSpans + 10; ++i) compile(i, static_cast<int>(i), static_cast<int>(i + 1));
  auto snapshot = trace.snapshot(at(0));
  ASSERT_EQ(snapshot.spans.size(), Trace::kMostSpans);
  EXPECT_EQ(snapshot.dropped, 10u);
  EXPECT_EQ(snapshot.spans.front().flight, 10u);
  // Hits, however many, push no compile out.
  for (std::size_t i = 0; i < 2 * Trace::kMostHits; ++i) trace.instant(at(0), Kind::kLookUp, {}, "HIT");
  snapshot = trace.snapshot(at(0));
  EXPECT_EQ(snapshot.spans.size(), Trace::kMostSpans + Trace::kMostHits);
  EXPECT_EQ(snapshot.spans.back().flight, Trace::kMostSpans + 9);
}

TEST_F(TraceTest, SamplesAreKeptWhenSomethingChanged) {
  constexpr std::uint64_t kMiB = 1 << 20;
  trace.sample({at(0), 0, 100 * kMiB, 4});
  trace.sample({at(1), 1000, 100 * kMiB, 4});
  trace.sample({at(2), 2 * kMiB, 100 * kMiB, 4});
  trace.sample({at(3), 2 * kMiB + 1000, 100 * kMiB, 4});
  trace.sample({at(4), 2 * kMiB, 90 * kMiB, 4});
  trace.sample({at(5), 2 * kMiB, 90 * kMiB, 2});
  trace.sample({at(6), 0, 90 * kMiB, 2});  // the end of the last compile, whatever it took
  std::vector<TraceSpan::Time> times;
  for (const auto& sample : trace.snapshot(at(9)).samples) times.push_back(sample.at);
  EXPECT_THAT(times, ElementsAre(at(0), at(2), at(4), at(5), at(6)));
  for (std::size_t i = 0; i < 2 * Trace::kMostSamples; ++i) trace.sample({at(9), (i % 2) * 8 * kMiB, 0, 2});
  EXPECT_EQ(trace.snapshot(at(9)).samples.size(), Trace::kMostSamples);
}

TEST_F(TraceTest, LongNamesKeepTheirEndsAndWholeCharacters) {
  trace.instant(at(0), Kind::kAnswered, {std::string(300, 'x') + "/é.c", "c", std::string(99, 'p')}, "REFUSED");
  trace.instant(at(0), Kind::kAnswered, {"é" + std::string(Trace::kLongestName - 1, 'x'), {}, {}}, "REFUSED");
  const auto spans = trace.snapshot(at(0)).spans;
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].subject->name.size(), Trace::kLongestName);
  EXPECT_TRUE(spans[0].subject->name.ends_with("/é.c"));
  EXPECT_EQ(spans[0].subject->compiler.size(), Trace::kLongestOther);
  EXPECT_TRUE(spans[0].subject->name.starts_with("...x")) << "cut, and not marked so";
  EXPECT_EQ(spans[1].subject->name, "..." + std::string(Trace::kLongestName - 3, 'x'));
}

}  // namespace
}  // namespace jitc::observe
