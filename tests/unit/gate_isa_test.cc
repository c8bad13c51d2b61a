// Jobs whose ranks have different CPUs: code for what all have, or a refusal before anything is loaded.
#include "common/isa.h"
#include "tests/support/gate_expect.h"

namespace jitc::gate {
namespace {

constexpr common::IsaMask kOld = 0x3, kNew = 0xf;
constexpr common::IsaMask kFeature = common::IsaMask{1} << 40;  // one of the bits beyond the levels

// The last rank's CPU is the old one.
class GateOfMixedCpus : public ::testing::TestWithParam<int> {
 protected:
  int old_rank() const { return GetParam() - 1; }
  GateWorld::Configure cpus(bool adopts = false) const {
    return [last = old_rank(), adopts](int rank, GateOptions& options) {
      options.host_isa = rank == last ? kOld : kNew;
      options.adopts_root = adopts;
    };
  }
  static common::Request native_request() {
    common::Request request = request_for(kSource);
    request.isa_wish = "native";
    return request;
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, GateOfMixedCpus, ::testing::Values(2, 3, 7));

TEST_P(GateOfMixedCpus, WhatIsAdoptedFromTheRootIsForAllCpus) {
  GateWorld world(GetParam(), cpus(true));
  const auto outcomes = world.compile([this](int rank) {
    return rank == old_rank() ? demand_of("double other(void);\n", "theirs") : demand_of(kSource, "the root's");
  });
  ASSERT_NO_FATAL_FAILURE(expect_delivered(outcomes, Origin::kCompiled));
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome->manifest, "the root's");
  EXPECT_EQ(world.rank(0).compiler.isa_level, common::isa_level_of(kOld));
  EXPECT_EQ(world.compiles(), 1);
  expect_delivered(world.compile([](int) { return demand_of(kSource, "the root's"); }), Origin::kMemory);
}

TEST_P(GateOfMixedCpus, ALevelOrNativeIsTheCallersWordAndNotLowered) {
  for (const std::string& wish : {std::string("native"), std::string(common::isa_levels().back())}) {
    GateWorld world(GetParam(), cpus());
    common::Request request = request_for(kSource);
    request.isa_wish = wish;
    expect_delivered(world.compile(request), Origin::kCompiled);
    EXPECT_EQ(world.rank(0).compiler.isa_level, "") << wish;
  }
}

TEST_P(GateOfMixedCpus, StoredCodeForABetterCpuIsRefusedBeforeItIsLoaded) {
  GateWorld world(GetParam(), cpus());
  world.rank(0).store.has_it = true;
  world.rank(0).store.isa_needed = kNew;
  const std::string message = "needs " + common::isa_text(kNew) + ", this CPU has " + common::isa_text(kOld);
  expect_same_failure(world.compile(native_request()), ErrorKind::kRefused, message, {old_rank()});
  EXPECT_EQ(world.compiles(), 0);
  world.rank(0).store.has_it = false;
  expect_works_again(world);
}

// Two CPUs of one level are not the same: what is native to one may crash on the other.
TEST_P(GateOfMixedCpus, AFeatureBeyondTheLevelCountsToo) {
  GateWorld world(GetParam(), [this](int rank, GateOptions& options) {
    options.host_isa = rank == old_rank() ? kNew : kNew | kFeature;
  });
  world.rank(0).store.has_it = true;
  world.rank(0).store.isa_needed = kNew | kFeature;
  expect_same_failure(world.compile(native_request()), ErrorKind::kRefused, "this CPU has", {old_rank()});
  world.rank(0).store.isa_needed = kNew;
  expect_delivered(world.compile(native_request()), Origin::kStore);
}

}  // namespace
}  // namespace jitc::gate
