// The gate when ranks are late, lost or without memory, when the store hangs and when the communicator fails: nobody
// waits for ever, and nobody alone succeeds or fails.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/failing_new.h"
#include "tests/support/gate_expect.h"

namespace jitc::gate {
namespace {

using testing::TestRank;

class GateFault : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GateFault, ::testing::Values(2, 4, 7));

TEST_P(GateFault, BeatsCarryAWaitThatIsLongerThanTheDeadline) {
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.pacing = {.silence = 1s, .beat = 20ms}; });
  auto& last = world.rank(GetParam() - 1);
  std::mutex mutex;
  std::condition_variable heard;
  world.rank(0).compiler.work = [&](const common::Request& request, const Report& report) -> common::Result<Obtained> {
    report({rpc::Progress::Phase::kCompiling, 0, 1.5, 4096});
    // Until the last rank has heard of it for longer than the deadline: one second is 50 beats.
    std::unique_lock lock(mutex);
    while (last.beats < 60) heard.wait_for(lock, 5ms);
    return Obtained{testing::make_artifact("answer", testing::key_of(request)), testing::key_of(request),
                    Origin::kCompiled};
  };
  expect_delivered(world.compile(request_for(kSource)), Origin::kCompiled);
  EXPECT_GE(world.rank(0).beats, 60);
}

// What a rank's patience is, only that rank knows; beats come often enough for it all the same.
TEST(OneGate, BeatsAreForTheLeastPatientRank) {
  GateWorld world(3, [](int rank, GateOptions& options) {
    options.pacing = {.silence = rank == 2 ? 2s : 60s, .beat = 30s, .roll_call = 20ms};
  });
  auto& last = world.rank(2);
  std::atomic<bool> has_given_up = false;
  std::mutex mutex;
  std::condition_variable heard;
  world.rank(0).compiler.work = [&](const common::Request& request, const Report& report) -> common::Result<Obtained> {
    report({rpc::Progress::Phase::kCompiling, 0, 1.5, 4096});
    // Until the last rank has heard of it for longer than its deadline, or has given up.
    std::unique_lock lock(mutex);
    while (last.beats < 10 && !has_given_up) heard.wait_for(lock, 5ms);
    return Obtained{testing::make_artifact("answer", testing::key_of(request)), testing::key_of(request),
                    Origin::kCompiled};
  };
  testing::on_ranks(3, [&](int rank) {
    const auto outcome = world.rank(rank).gate->compile(demand_of(kSource));
    EXPECT_TRUE(outcome) << common::to_line(outcome.error().error);
    if (outcome) return;
    has_given_up = true;
    world.world().lose_a_rank();
  });
}

TEST_P(GateFault, RankThatStaysAwayIsATimeOutAndBreaksTheCommunicator) {
  const int absent = GetParam() - 1;
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.pacing = {.arrival = 50ms, .roll_call = 20ms}; });
  testing::on_ranks(GetParam(), [&](int rank) {
    if (rank == absent) return;
    Gate& gate = *world.rank(rank).gate;
    const auto outcome = gate.compile(demand_of(kSource));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().error.kind, ErrorKind::kTimedOut);
    EXPECT_TRUE(outcome.error().is_broken);
    EXPECT_THAT(outcome.error().error.message, HasSubstr("rank " + std::to_string(rank)));
    EXPECT_THAT(outcome.error().error.message, HasSubstr("begin call 1"));
    const auto later = gate.compile(demand_of(kSource));
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().error.kind, ErrorKind::kBroken);
    EXPECT_THAT(later.error().error.message, HasSubstr("begin call 1"));
  });
  EXPECT_EQ(world.compiles(), 0);
}

// Ranks may be far apart when they come to the call: the patience of a call under way does not count then.
TEST_P(GateFault, RankThatComesLateIsWaitedForAndThatIsTold) {
  const int late = GetParam() - 1;
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.pacing = {.silence = 500ms, .beat = 20ms}; });
  std::atomic<int> told = 0;
  testing::on_ranks(GetParam(), [&](int rank) {
    if (rank == late) {
      while (told < GetParam() - 1) std::this_thread::yield();
    }
    TestRank self;
    std::atomic<bool> has_told = false;
    GateOptions options{.pacing = {.silence = 500ms, .beat = 20ms}, .host_isa = 0xf};
    Gate gate(world.world().communicator(rank), options, testing::services_of(self.modules, self.store, self.compiler),
              [&](const std::string& name, const rpc::Progress& progress) {
                if (progress.phase != rpc::Progress::Phase::kArriving || progress.seconds < 1) return;
                EXPECT_EQ(name, "residual.c");
                if (!has_told.exchange(true)) ++told;
              });
    const auto outcome = gate.compile(demand_of(kSource));
    ASSERT_TRUE(outcome) << common::to_line(outcome.error().error);
  });
}

TEST_P(GateFault, NoLimitIsPatienceWithoutEnd) {
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.pacing = {.silence = 0s, .arrival = 0s}; });
  expect_delivered(world.compile(request_for(kSource)), Origin::kCompiled);
}

// The root's look-up hangs in a file system: a failure for all within the deadline, and the communicator lives on.
TEST_P(GateFault, HungStoreIsATimeOutEverywhereAndBreaksNothing) {
  struct HungStore : StoreLookup {
    std::optional<Obtained> look_up(const common::Request&) override {
      is_in = true;
      is_in.notify_all();
      is_free.wait(false);
      has_ended = true;
      has_ended.notify_all();
      return std::nullopt;
    }
    std::atomic<bool> is_in = false;
    std::atomic<bool> is_free = false;
    std::atomic<bool> has_ended = false;
  };
  const auto hung = std::make_shared<HungStore>();
  testing::SimulatedWorld world(GetParam());
  GateWorld::Outcomes outcomes(static_cast<std::size_t>(GetParam()), std::unexpected(Failure{}));
  testing::on_ranks(GetParam(), [&](int rank) {
    const auto compiler = std::make_shared<testing::FakeCompiler>();
    ModuleTable modules;
    GateOptions options{.pacing = {.silence = 300ms, .beat = 50ms}, .host_isa = 0xf};
    Gate gate(world.communicator(rank), options, {modules, hung, compiler}, {});
    outcomes[static_cast<std::size_t>(rank)] = gate.compile(demand_of(kSource));
    EXPECT_FALSE(gate.broken());
    EXPECT_EQ(compiler->compiles, 0);
  });
  expect_same_failure(outcomes, ErrorKind::kTimedOut, "the store does not answer", {});
  EXPECT_TRUE(hung->is_in);
  hung->is_free = true;
  hung->is_free.notify_all();
  hung->has_ended.wait(false);
}

// One rank is out of memory for anything large, such as the artifact that it receives.
TEST_P(GateFault, RankWithoutMemoryIsNamedOnAll) {
  const int poor = GetParam() - 1;
  GateWorld world(GetParam());
  GateWorld::Outcomes outcomes(static_cast<std::size_t>(GetParam()), std::unexpected(Failure{}));
  testing::on_ranks(GetParam(), [&](int rank) {
    Demand demand = demand_of(kSource);
    std::optional<testing::FailingNew> failing;
    // What a rank needs to take part, such as the piece that is received, it has from the beginning.
    if (rank == poor) failing.emplace(0, 5000, true);
    auto outcome = world.rank(rank).gate->compile(std::move(demand));
    failing.reset();
    outcomes[static_cast<std::size_t>(rank)] = std::move(outcome);
  });
  expect_same_failure(outcomes, ErrorKind::kNotLoaded, "no memory", {poor});
  expect_works_again(world);
}

// ---- any one allocation may fail on a rank -------------------------------------------------------------------------

// A call that all ranks make, in which one of them lacks memory once.
struct PoorCall {
  std::string name;
  std::vector<std::string> modules;
  bool compiles = true;   // else the compile fails
  bool differs = false;   // the last rank asks for something else
  bool is_found = false;  // in the store
};

class GateWithoutMemory : public ::testing::TestWithParam<std::tuple<PoorCall, int>> {
 protected:
  static constexpr int kSize = 4;
  using All = std::vector<std::optional<Outcome<std::vector<Delivery>>>>;

  static const PoorCall& call() { return std::get<0>(GetParam()); }
  static int poor() { return std::get<1>(GetParam()); }

  static std::vector<Demand> demands(int rank, const std::string& what) {
    std::vector<Demand> demands;
    for (const std::string& module : call().modules)
      demands.push_back(
          {request_for(what + " of_" + module + (call().differs && rank == kSize - 1 ? "_mine;" : ";"), module), "k"});
    return demands;
  }

  static void configure(int rank, GateOptions& options) {
    options.pacing = {.beat = 2ms, .roll_call = 60s};
    options.node = rank < 2 ? 1 : 2;
  }

  // True: an allocation has failed on the poor rank.
  static bool call_all(GateWorld& world, int spared, All& all) {
    bool has_failed = false;
    testing::on_ranks(kSize, [&](int rank) {
      std::vector<Demand> asked = demands(rank, "int");
      std::optional<testing::FailingNew> failing;
      if (rank == poor()) failing.emplace(spared);
      auto outcome = world.rank(rank).gate->compile_all(asked);
      if (failing) has_failed = failing->has_failed();
      failing.reset();
      all[static_cast<std::size_t>(rank)] = std::move(outcome);
    });
    return has_failed;
  }

  // All have succeeded, or none, and can go on, or not; and those that are not poor have failed alike.
  static void expect_one_outcome(const All& all) {
    const auto& others = *all[poor() == 1 ? 2 : 1];
    for (int rank = 0; rank < kSize; ++rank) {
      const auto& outcome = *all[static_cast<std::size_t>(rank)];
      ASSERT_EQ(outcome.has_value(), others.has_value()) << "rank " << rank << outcome.error().error.message;
      if (outcome) continue;
      const common::Error& error = outcome.error().error;
      EXPECT_EQ(outcome.error().is_broken, others.error().is_broken) << "rank " << rank << ": " << error.message;
      if (rank == poor() && error.kind == ErrorKind::kNotLoaded)
        continue;  // it may lack the memory for the others' words
      EXPECT_EQ(error.kind, others.error().error.kind) << error.message;
      if (outcome.error().is_broken) continue;
      if (rank == poor()) {  // it may lack the memory to join the others' words
        EXPECT_THAT(others.error().error.message, HasSubstr(error.message));
      } else {
        EXPECT_EQ(error, others.error().error);
      }
    }
  }

  // The next call works for all; or all say that the communicator is broken, without waiting for their patience.
  static void expect_next_is_common(GateWorld& world) {
    std::vector<std::optional<Outcome<Delivery>>> next(kSize);
    testing::on_ranks(kSize, [&](int rank) {
      next[static_cast<std::size_t>(rank)] = world.rank(rank).gate->compile(demand_of("int of_next;"));
    });
    for (const auto& outcome : next) {
      ASSERT_EQ(outcome->has_value(), next.front()->has_value());
      if (!*outcome) {
        EXPECT_TRUE(outcome->error().is_broken) << outcome->error().error.message;
      }
    }
  }
};

std::vector<PoorCall> poor_calls() {
  return {{"Single", {"a"}},
          {"SingleFound", {"a"}, true, false, true},
          {"SingleFails", {"a"}, false},
          {"SingleDiffers", {"a"}, true, true},
          {"Batch", {"a", "b", "c", "d"}},
          {"BatchFound", {"a", "b"}, true, false, true},
          {"BatchFails", {"a", "b", "c"}, false}};
}

// Rank 2 leads, rank 3 does not.
INSTANTIATE_TEST_SUITE_P(Calls, GateWithoutMemory,
                         ::testing::Combine(::testing::ValuesIn(poor_calls()), ::testing::Values(0, 2, 3)),
                         [](const auto& one) {
                           return std::get<0>(one.param).name + "OnRank" + std::to_string(std::get<1>(one.param));
                         });

TEST_P(GateWithoutMemory, NoRankFailsAlone) {
  for (int spared = 0;; ++spared) {
    SCOPED_TRACE("allocation " + std::to_string(spared));
    GateWorld world(kSize, configure);
    world.rank(0).store.has_it = call().is_found;
    for (int rank = 0; rank < kSize && !call().compiles; ++rank)
      world.rank(rank).compiler.work = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
        return common::fail(ErrorKind::kInvalidSource, "no ';' where one should be, in " + request.name, request.name);
      };
    All all(kSize);
    const bool has_failed = call_all(world, spared, all);
    ASSERT_NO_FATAL_FAILURE(expect_one_outcome(all));
    for (int rank = 0; rank < kSize; ++rank) world.rank(rank).compiler.work = nullptr;
    ASSERT_NO_FATAL_FAILURE(expect_next_is_common(world));
    if (!has_failed) return;
    ASSERT_LT(spared, 3000);
  }
}

TEST(GateBroken, WhatIsAbandonedWithoutMemoryIsBrokenAllTheSame) {
  testing::GateWorld world(1);
  gate::Gate& gate = *world.rank(0).gate;
  Failure cause{{ErrorKind::kInternal, "a reason that is longer than what a string holds in itself", {}, {}}, {}};
  bool has_thrown = false;
  try {
    const testing::FailingNew failing(0, 0, true);
    static_cast<void>(gate.abandon(std::move(cause)));
  } catch (const std::bad_alloc&) {
    has_thrown = true;
  }
  EXPECT_TRUE(has_thrown);
  const auto outcome = gate.compile({request_for(kSource), ""});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().error.kind, ErrorKind::kBroken);
  EXPECT_EQ(world.world().operations(), 0U);
}

TEST_P(GateFault, RootThatFallsSilentIsATimeOutOnAllOthers) {
  testing::SimulatedWorld world(GetParam());
  testing::on_ranks(GetParam(), [&](int rank) {
    if (rank == 0) {
      // The root agrees and is never heard of again.
      Collectives collectives(world.communicator(0), {});
      Certificate certificate{true, true, std::nullopt, 0xf, {}};
      certificate.call = numbered(call_digest(common::request_digest(request_for(kSource)), "constants"), 1);
      CertificateWords words = certificate.words();
      ASSERT_TRUE(collectives.all_or(words, "for"));
      ASSERT_TRUE(judge(words).all_alike);
      return;
    }
    testing::TestRank self;
    GateOptions options{.pacing = {.silence = 500ms, .roll_call = 20ms}, .host_isa = 0xf};
    Gate gate(world.communicator(rank), options, testing::services_of(self.modules, self.store, self.compiler), {});
    const auto outcome = gate.compile(demand_of(kSource));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().error.kind, ErrorKind::kTimedOut);
    EXPECT_THAT(outcome.error().error.message, HasSubstr("sign of rank 0"));
    EXPECT_EQ(self.compiler.compiles + self.store.lookups, 0);
  });
}

TEST(OneGate, BrokenCommunicatorIsNotReleased) {
  GateWorld world(2, [](int, GateOptions& options) { options.pacing = {.arrival = 20ms, .roll_call = 20ms}; });
  EXPECT_FALSE(world.rank(0).gate->compile(demand_of(kSource)));
  world.rank(0).gate.reset();
  EXPECT_EQ(world.world().released(), 0);
  world.rank(1).gate.reset();
  EXPECT_EQ(world.world().released(), 1);
}

// A rank that takes nothing does not keep the root from the others: they get their module, and learn of the loss when
// all must say that they have loaded.
TEST_P(GateFault, RankLostDuringTheCompileIsATimeOutOnAllOthers) {
  const int lost = GetParam() - 1;
  if (lost == 1) GTEST_SKIP() << "with two ranks there is no third to see it";
  GateWorld world(GetParam(), [](int, GateOptions& options) {
    options.pacing = {.silence = 500ms, .beat = 10ms, .roll_call = 20ms};
  });
  testing::on_ranks(GetParam(), [&](int rank) {
    if (rank == lost) {
      // Takes part in the certificate, then stops for good.
      jitc_communicator table = world.world().communicator(rank);
      table.release = nullptr;
      Collectives collectives(table, {});
      Certificate certificate{true, true, std::nullopt, 0xf, {}};
      certificate.call = numbered(call_digest(common::request_digest(request_for(kSource)), "constants"), 1);
      CertificateWords words = certificate.words();
      ASSERT_TRUE(collectives.all_or(words, "for"));
      return;
    }
    const auto outcome = world.rank(rank).gate->compile(demand_of(kSource));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().error.kind, ErrorKind::kTimedOut);
    EXPECT_THAT(outcome.error().error.message, HasSubstr("to load"));
  });
  EXPECT_EQ(world.compiles(), 1);
}

// One is in the midst of making its code, and cannot be told: it holds up neither the rank nor that the others are
// told.
TEST(OneGate, StuckWorkHoldsNobodyUp) {
  struct Slow {
    std::atomic<bool> is_free = false;
    std::atomic<int> begun = 0;
    std::atomic<int> ended = 0;
  };
  constexpr int kMany = 20;
  const auto slow = std::make_shared<Slow>();
  const auto compiler = std::make_shared<testing::FakeCompiler>();
  compiler->work = [slow](const common::Request&, const Report& report) -> common::Result<Obtained> {
    ++slow->begun;
    slow->begun.notify_all();
    while (report({})) std::this_thread::sleep_for(1ms);
    ++slow->ended;
    slow->ended.notify_all();
    return common::fail(ErrorKind::kCancelled, "given up");
  };
  {
    LeaderWork work(std::make_shared<testing::FakeStore>(), compiler);
    std::vector<LeaderWork::Order> orders(kMany, {0, request_for(kSource), {}, false});
    orders.front().make_code = [slow](const common::Request&) -> common::Result<std::string> {
      ++slow->begun;
      slow->begun.notify_all();
      slow->is_free.wait(false);
      return common::fail(ErrorKind::kInternal, "freed");
    };
    for (std::size_t i = 0; i < kMany; ++i) orders[i].module = i;
    work.begin(Work::kCompile, std::move(orders));
    for (int begun = 0; begun < kMany; begun = slow->begun) slow->begun.wait(begun);
  }
  for (int ended = 0; ended < kMany - 1; ended = slow->ended) slow->ended.wait(ended);
  slow->is_free = true;
  slow->is_free.notify_all();
}

TEST(OneGate, FailingCommunicatorEndsTheRootsWork) {
  std::atomic<bool> has_begun = false;
  jitc_communicator table{};
  table.size = sizeof table;
  table.state = &has_begun;
  table.ranks = 1;
  table.iallreduce_or = serial_communicator().iallreduce_or;
  table.ibcast = [](void* state, void*, std::size_t, int, jitc_pending*) {
    static_cast<std::atomic<bool>*>(state)->wait(false);
    return 13;
  };
  table.test = serial_communicator().test;
  table.error_text = [](void*, int, char* text, std::size_t) { std::strcpy(text, "link down"); };
  bool is_told = false;
  testing::TestRank self;
  self.compiler.work = [&](const common::Request&, const Report& report) -> common::Result<Obtained> {
    has_begun = true;
    has_begun.notify_all();
    while (report({})) std::this_thread::yield();
    is_told = true;
    return common::fail(ErrorKind::kCancelled, "given up");
  };
  GateOptions options{.pacing = {.beat = 1ms}, .host_isa = 0xf};
  Gate gate(table, options, testing::services_of(self.modules, self.store, self.compiler), {});
  const auto outcome = gate.compile(demand_of(kSource));
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.error().is_broken);
  EXPECT_THAT(outcome.error().error.message, HasSubstr("link down"));
  EXPECT_TRUE(is_told);
}

}  // namespace
}  // namespace jitc::gate
