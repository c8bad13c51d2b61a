// What is said when ranks are lost: the errors of all that are left name who is missing, and where the others wait.
//
// The root asks when the other ranks have already said where they wait, so that nothing depends on how fast the ranks
// run. Patience for what never comes is short, for what comes it is long; the root's own is never over.
#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/gate/roll_call.h"
#include "tests/support/gate_expect.h"

namespace jitc::gate {
namespace {

using Phase = rpc::Progress::Phase;
using ::testing::Not;

// Unwinds a rank's call: the rank is never heard of again.
struct Stopped {};

class Watchdog : public ::testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }
  int last() const { return size() - 1; }

  // All call but those for which `stays_away`. A rank that stops has no outcome.
  void compile(GateWorld& world, const std::function<bool(int)>& stays_away) {
    outcomes_.assign(static_cast<std::size_t>(size()), std::nullopt);
    testing::on_ranks(size(), [&](int rank) {
      if (stays_away(rank)) return;
      try {
        outcomes_[static_cast<std::size_t>(rank)] = world.rank(rank).gate->compile(demand_of(kSource));
      } catch (const Stopped&) {
        outcomes_[static_cast<std::size_t>(rank)] = std::nullopt;
      }
    });
  }
  bool has_outcome(int rank) const { return outcomes_[static_cast<std::size_t>(rank)].has_value(); }

  // When the root is told of `phase` it goes on when so many others have given up.
  static void root_hears(GateWorld& world, Phase phase, std::size_t others) {
    world.rank(0).on_progress = [&world, phase, others](const rpc::Progress& progress) {
      if (progress.phase == phase) {
        EXPECT_TRUE(world.world().wait_for_messages(static_cast<int>(others)));
      }
    };
  }

  // A time-out that says all of `texts`; and from now on every call says so.
  void expect_told(GateWorld& world, int rank, const std::vector<std::string>& texts) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    ASSERT_TRUE(has_outcome(rank));
    const auto& outcome = *outcomes_[static_cast<std::size_t>(rank)];
    ASSERT_FALSE(outcome);
    const common::Error& error = outcome.error().error;
    EXPECT_EQ(error.kind, ErrorKind::kTimedOut);
    EXPECT_TRUE(outcome.error().is_broken);
    EXPECT_THAT(error.message, ::testing::StartsWith("rank " + std::to_string(rank) + " waited "));
    EXPECT_THAT(error.remedy, HasSubstr("MPI_Abort"));
    for (const std::string& text : texts) EXPECT_THAT(error.message, HasSubstr(text));
    for (int again = 0; again < 2; ++again) {
      const auto later = world.rank(rank).gate->compile(demand_of(kSource));
      ASSERT_FALSE(later);
      EXPECT_EQ(later.error().error.kind, ErrorKind::kBroken);
      EXPECT_TRUE(later.error().is_broken);
      EXPECT_THAT(later.error().error.message, HasSubstr(error.message));
    }
  }

  // "no answer from ranks 1, 3"
  std::string no_answer(const std::vector<int>& ranks) const { return "no answer from " + name_ranks(ranks, size()); }
  // "ranks 0, 2 wait for all ranks to begin call 1"
  std::string wait(const std::vector<int>& ranks, const std::string& step) const {
    return name_ranks(ranks, size()) + (ranks.size() == 1 ? " waits " : " wait ") + step;
  }
  std::vector<int> all_but(const std::vector<int>& missing) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank)
      if (std::ranges::find(missing, rank) == missing.end()) ranks.push_back(rank);
    return ranks;
  }

  std::vector<std::optional<Outcome<Delivery>>> outcomes_;
};
INSTANTIATE_TEST_SUITE_P(Ranks, Watchdog, ::testing::Values(2, 4, 7));

constexpr const char* kBegin = "for all ranks to begin call 1";
constexpr const char* kLoad = "for all ranks to load call 1";

// Ranks that come far apart: the patience of the root would last for minutes more when the others' ends. Only where it
// is alone there is nobody else to give up first.
Pacing arriving(int rank, std::size_t here) {
  if (rank == 0) return {.arrival = here > 1 ? Pacing().arrival : 40ms, .beat = 10ms, .roll_call = 20ms};
  return {.arrival = 40ms, .beat = 10ms};
}

TEST_P(Watchdog, RanksThatNeverCallAreNamed) {
  std::vector<std::vector<int>> cases{{last()}};
  if (last() > 1) cases.push_back({1, last()});
  for (const std::vector<int>& missing : cases) {
    const std::vector<int> here = all_but(missing);
    GateWorld world(size(), [&](int rank, GateOptions& options) { options.pacing = arriving(rank, here.size()); });
    root_hears(world, Phase::kArriving, here.size() - 1);
    compile(world, [&](int rank) { return std::ranges::find(missing, rank) != missing.end(); });
    for (const int rank : here) expect_told(world, rank, {no_answer(missing), wait(here, kBegin)});
    EXPECT_EQ(world.compiles(), 0);
  }
}

TEST_P(Watchdog, RootThatNeverCallsIsSaidToBeSilent) {
  GateWorld world(size(), [](int, GateOptions& options) { options.pacing = {.arrival = 40ms, .roll_call = 20ms}; });
  compile(world, [](int rank) { return rank == 0; });
  for (int rank = 1; rank < size(); ++rank) expect_told(world, rank, {no_answer({0}), kBegin});
}

// The root is the last to see it: it would load for as long as it takes the others to give up.
TEST_P(Watchdog, RankThatStopsIsNamedWithTheStepOfTheOthers) {
  for (const Phase phase : {Phase::kCompiling, Phase::kLoading}) {
    std::atomic<bool> has_stopped = false;
    GateWorld world(size(), [&](int rank, GateOptions& options) {
      if (rank == 0)
        options.pacing = {.silence = size() > 2 ? Pacing().arrival : 100ms, .beat = 10ms, .roll_call = 20ms};
      if (rank != 0) options.pacing = {.silence = 500ms, .beat = 10ms};
    });
    world.rank(0).compiler.work = [&](const common::Request& request, const Report& report) {
      report({Phase::kCompiling, 0, 1, 0});
      if (phase == Phase::kCompiling) has_stopped.wait(false);
      return common::Result<Obtained>(Obtained{testing::make_artifact("answer", testing::key_of(request)),
                                               testing::key_of(request), Origin::kCompiled});
    };
    world.rank(last()).on_progress = [&](const rpc::Progress& progress) {
      if (progress.phase != phase) return;
      has_stopped = true;
      has_stopped.notify_all();
      throw Stopped();
    };
    root_hears(world, Phase::kLoading, static_cast<std::size_t>(size() - 2));
    compile(world, [](int) { return false; });
    EXPECT_FALSE(has_outcome(last()));
    for (int rank = 0; rank < last(); ++rank)
      expect_told(world, rank, {no_answer({last()}), wait(all_but({last()}), kLoad)});
    EXPECT_EQ(world.compiles(), 1);
  }
}

TEST_P(Watchdog, RootThatStopsInTheHandOffIsSaidToBeSilent) {
  GateWorld world(
      size(), [](int, GateOptions& options) { options.pacing = {.silence = 500ms, .beat = 10ms, .roll_call = 20ms}; });
  world.rank(0).compiler.work = [](const common::Request&, const Report& report) -> common::Result<Obtained> {
    while (report({Phase::kCompiling, 0, 1, 0})) std::this_thread::yield();
    return common::fail(ErrorKind::kCancelled, "given up");
  };
  world.rank(0).on_progress = [](const rpc::Progress& progress) {
    if (progress.phase == Phase::kCompiling) throw Stopped();
  };
  compile(world, [](int) { return false; });
  for (int rank = 1; rank < size(); ++rank)
    expect_told(world, rank, {no_answer({0}), "for a sign of rank 0, which compiles call 1"});
}

// It finds a reduction that the others have left behind complete, and nobody in the hand-off; but it hears from the
// root what they have found.
TEST_P(Watchdog, RankThatComesAfterTheOthersGaveUpEndsToo) {
  GateWorld world(size(), [&](int rank, GateOptions& options) {
    options.pacing = arriving(rank, all_but({last()}).size());
    if (rank == last()) options.pacing = {.silence = 10min, .beat = 10ms};
  });
  root_hears(world, Phase::kArriving, static_cast<std::size_t>(size() - 2));
  compile(world, [&](int rank) { return rank == last(); });
  for (int rank = 0; rank < last(); ++rank) expect_told(world, rank, {no_answer({last()})});
  compile(world, [&](int rank) { return rank != last(); });
  expect_told(world, last(), {"call 1, until another rank gave up: " + no_answer({last()})});
  EXPECT_EQ(world.compiles(), 0);
}

// It alone has something to load for so long that the others give up; then their last reduction is complete for it.
TEST_P(Watchdog, RankThatIsLateAtTheEndDoesNotSucceedAlone) {
  GateWorld world(size(), [&](int rank, GateOptions& options) {
    options.pacing = {.silence = 500ms, .beat = 10ms, .roll_call = 60s};
    if (rank == 0) options.pacing = {.silence = size() > 2 ? 10min : 100ms, .beat = 10ms, .roll_call = 60s};
    if (rank == last()) options.pacing = {.silence = 10min, .beat = 10ms, .roll_call = 60s};
  });
  root_hears(world, Phase::kLoading, static_cast<std::size_t>(size() - 2));
  world.rank(last()).on_progress = [&](const rpc::Progress& progress) {
    // The others' words to the root, and the root's call to all.
    if (progress.phase == Phase::kLoading) {
      EXPECT_TRUE(world.world().wait_for_messages(size() - 2 + size() - 1));
    }
  };
  compile(world, [](int) { return false; });
  for (int rank = 0; rank < size(); ++rank) expect_told(world, rank, {"all ranks answer", wait(all_but({}), kLoad)});
}

TEST_P(Watchdog, RootThatComesLateHearsWhereTheOthersGaveUp) {
  GateWorld world(size(), [](int rank, GateOptions& options) {
    options.pacing = {.silence = 10min, .arrival = rank ? 40ms : Pacing().arrival, .beat = 10ms, .roll_call = 20ms};
  });
  compile(world, [](int rank) { return rank == 0; });
  for (int rank = 1; rank < size(); ++rank) expect_told(world, rank, {no_answer({0})});
  compile(world, [](int rank) { return rank != 0; });
  expect_told(world, 0, {"all ranks answer", wait({0}, ""), wait(all_but({0}), kBegin)});
}

// One rank waits elsewhere and gives up there: nobody else's patience has to end, and all say the same.
TEST_P(Watchdog, FirstPatienceThatEndsIsEverybodys) {
  GateWorld world(size(), [](int, GateOptions& options) { options.pacing = {.beat = 10ms, .roll_call = 60s}; });
  const jitc_communicator table = world.world().communicator(last());
  Operations operations;
  RollCall call(table, {31s, "for something else"}, operations);
  compile(world, [&](int rank) { return rank == last(); });
  for (int rank = 0; rank < last(); ++rank)
    expect_told(world, rank,
                {"until another rank gave up: all ranks answer", wait(all_but({last()}), kBegin),
                 wait({last()}, "for something else (31 s)")});
  EXPECT_TRUE(call.advance());
}

// It alone is told by its communicator, at the call's beginning or end. The others do not wait for their patience.
TEST_P(Watchdog, RankWhoseCommunicatorFailsTellsTheOthers) {
  using Start = testing::SimulatedWorld::Start;
  for (const int failing : {0, last()}) {
    for (const int spared : {0, 1}) {
      SCOPED_TRACE("rank " + std::to_string(failing) + " after " + std::to_string(spared));
      GateWorld world(size(), [](int, GateOptions& options) { options.pacing = {.arrival = 60s, .beat = 10ms}; });
      world.world().fail_start(failing, Start::kReduce, spared);
      compile(world, [](int) { return false; });
      const Outcome<Delivery>& own = *outcomes_[static_cast<std::size_t>(failing)];
      ASSERT_FALSE(own);
      EXPECT_EQ(own.error().error.kind, ErrorKind::kBroken);
      EXPECT_THAT(own.error().error.message, HasSubstr("code 80"));
      for (int rank = 0; rank < size(); ++rank)
        if (rank != failing)
          expect_told(world, rank,
                      {"until another rank gave up: ", wait({failing}, "no longer: the communicator failed")});
    }
  }
}

// The leader of a turn waits for no rank: it hears of it with its next beat, and its compile is given up.
TEST_P(Watchdog, LeaderHearsThatARankGaveUp) {
  GateWorld world(size(), [](int, GateOptions& options) { options.pacing = {.beat = 10ms, .roll_call = 60s}; });
  const jitc_communicator table = world.world().communicator(last());
  Operations operations;
  std::optional<RollCall> call;
  std::atomic<bool> is_told = false;
  world.rank(0).compiler.work = [&](const common::Request&, const Report& report) -> common::Result<Obtained> {
    while (report({Phase::kCompiling, 0, 1, 0})) std::this_thread::yield();
    is_told = true;
    is_told.notify_all();
    return common::fail(ErrorKind::kCancelled, "given up");
  };
  world.rank(last()).on_progress = [&](const rpc::Progress& progress) {
    if (progress.phase != Phase::kCompiling) return;
    call.emplace(table, Place{31s, "for something else"}, operations);
    throw Stopped();
  };
  compile(world, [](int) { return false; });
  for (int rank = 0; rank < last(); ++rank)
    expect_told(world, rank, {"until another rank gave up: all ranks answer", "for something else (31 s)"});
  is_told.wait(false);
}

TEST_P(Watchdog, CommunicatorWithoutMessagesNamesTheWaitingRank) {
  testing::SimulatedWorld world(size());
  testing::TestRank self;
  jitc_communicator table = world.communicator(0);
  table.isend = nullptr;
  table.irecv = nullptr;
  table.iprobe = nullptr;
  GateOptions options{.pacing = {.arrival = 20ms, .roll_call = 60s}, .host_isa = 0xf};
  Gate gate(table, options, testing::services_of(self.modules, self.store, self.compiler), {});
  const auto outcome = gate.compile(demand_of(kSource));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().error.message, HasSubstr("for all ranks to begin call 1: not all ranks began it"));
  EXPECT_THAT(outcome.error().error.message, Not(HasSubstr("answer")));
}

// Half an hour in the daemon's queue, in small: the beats of five times the silence that is allowed.
TEST(OneGateInAQueue, BeatsAreNoSilenceHoweverLongTheyGoOn) {
  GateWorld world(4, [](int, GateOptions& options) { options.pacing = {.silence = 500ms, .beat = 10ms}; });
  std::atomic<int> heard = 0;
  world.rank(3).on_progress = [&](const rpc::Progress& progress) {
    if (progress.phase != Phase::kQueued) return;
    ++heard;
    heard.notify_all();
  };
  world.rank(0).compiler.work = [&](const common::Request& request, const Report& report) {
    for (std::uint32_t place = 250; place > 0; --place) {
      const int before = heard;
      report({Phase::kQueued, place, 1, 0});
      heard.wait(before);
    }
    return common::Result<Obtained>(Obtained{testing::make_artifact("answer", testing::key_of(request)),
                                             testing::key_of(request), Origin::kCompiled});
  };
  expect_delivered(world.compile(request_for(kSource)), Origin::kCompiled);
  EXPECT_GE(heard, 250);
}

}  // namespace
}  // namespace jitc::gate
