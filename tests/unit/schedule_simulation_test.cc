// A million events of a simulated node, and what must hold after each (tests/support/schedule_simulation.h).
#include <gtest/gtest.h>

#include "tests/support/schedule_simulation.h"

namespace jitc::testing {
namespace {

constexpr std::uint64_t kEvents = 250'000;  // each: what is rare needs so many to be met

class ScheduleSimulationTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ScheduleSimulationTest, HoldsAfterEveryEvent) {
  ScheduleSimulation node(GetParam());
  node.run(kEvents);
  ASSERT_EQ(node.violation(), "");
  EXPECT_GE(node.events(), kEvents);
  // It was not a walk in the park.
  const auto& seen = node.seen();
  const auto& counters = node.counters();
  EXPECT_GT(seen.hits, kEvents / 1000);
  EXPECT_GT(seen.done, kEvents / 100);
  EXPECT_GT(seen.left, kEvents / 1000);
  EXPECT_GT(seen.rejoined, 0U);
  EXPECT_GT(seen.alone, 0U);
  EXPECT_GT(seen.outside, kEvents / 10'000);
  EXPECT_GT(seen.longest_queue, 100U);
  EXPECT_GT(seen.idle_queue, kEvents / 100);
  EXPECT_GT(counters.merged, 0U);
  EXPECT_GT(counters.cancelled, 0U);
  EXPECT_GT(counters.out_of_memory, 0U);
  EXPECT_GT(counters.rung_alone, 0U);
  EXPECT_GT(counters.rung_degraded, 0U);
  EXPECT_GT(counters.degraded, 0U);
  EXPECT_GT(counters.rung_crashed, 0U);
  EXPECT_GT(counters.rung_worker_lost, 0U);
  EXPECT_GT(counters.refused_queue_full, 0U);
  EXPECT_GT(counters.failures_remembered, 0U);
  RecordProperty("simulated_seconds", static_cast<int>(node.simulated_seconds()));
}

TEST(SharedStoreSimulationTest, HoldsAfterEveryEvent) {
  ScheduleSimulation node(5, true);
  node.run(kEvents);
  ASSERT_EQ(node.violation(), "");
  EXPECT_GT(node.seen().elsewhere, kEvents / 1000);
  EXPECT_GT(node.seen().left_elsewhere, 0U);
  EXPECT_GT(node.counters().retries, 0U);
  EXPECT_EQ(node.counters().elsewhere, node.seen().elsewhere);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScheduleSimulationTest, ::testing::Range<std::uint64_t>(1, 5));

}  // namespace
}  // namespace jitc::testing
