// What the tests of the gate expect of all ranks.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <new>
#include <string>
#include <vector>

#include "tests/support/gate_fixture.h"

namespace jitc::testing {

inline constexpr const char* kSource = "double answer(double x);\n";

inline double call_answer(const gate::Delivery& delivery) {
  const auto address = delivery.module->symbol("answer");
  EXPECT_TRUE(address);
  return address ? reinterpret_cast<double (*)(double)>(*address)(2.0) : 0.0;
}

inline void expect_delivered(const GateWorld::Outcomes& outcomes, gate::Origin origin) {
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome) << common::to_line(outcome.error().error);
    EXPECT_EQ(outcome->origin, origin);
    EXPECT_EQ(call_answer(*outcome), 84.0);
  }
}

// Every rank has this failure, to the letter.
inline void expect_same_failure(const GateWorld::Outcomes& outcomes, common::ErrorKind kind, const std::string& text,
                                const std::vector<int>& ranks) {
  for (const auto& outcome : outcomes) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().error.kind, kind) << common::to_line(outcome.error().error);
    EXPECT_THAT(outcome.error().error.message, ::testing::HasSubstr(text));
    EXPECT_EQ(outcome.error().ranks, ranks);
    EXPECT_EQ(outcome.error().error, outcomes.front().error().error);
    EXPECT_FALSE(outcome.error().is_broken);
  }
}

inline void expect_works_again(GateWorld& world) {
  for (int rank = 0; rank < world.size(); ++rank) world.rank(rank).compiler.work = nullptr;
  const auto outcomes = world.compile(request_for("double answer(double y);\n"));
  expect_delivered(outcomes, gate::Origin::kCompiled);
}

inline std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  gethostname(name.data(), HOST_NAME_MAX);
  return name.data();
}

inline gate::Demand demand_of(const std::string& source, const std::string& manifest = "constants") {
  return {request_for(source), manifest};
}

}  // namespace jitc::testing

// What every test of the gate calls by its short name.
namespace jitc::gate {
using common::ErrorKind;
using testing::demand_of;
using testing::expect_delivered;
using testing::expect_same_failure;
using testing::expect_works_again;
using testing::GateWorld;
using ::testing::HasSubstr;
using testing::kSource;
using testing::request_for;
using namespace std::chrono_literals;
}  // namespace jitc::gate
