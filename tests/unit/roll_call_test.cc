// The roll call: what is said of the ranks, and who hears it. Without clocks: the test decides when patience is over.
#include "client/gate/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/failing_new.h"
#include "tests/support/simulated_world.h"

namespace jitc::gate {
namespace {

using ::testing::HasSubstr;
using testing::SimulatedWorld;
using ::testing::StartsWith;
using namespace std::chrono_literals;

constexpr const char* kBegin = "for all ranks to begin call 3";
constexpr const char* kLoad = "for all ranks to load call 3";
constexpr std::size_t kLimit = 1024;

TEST(TellPlaces, NamesWhoIsMissingAndWhereTheOthersWait) {
  EXPECT_EQ(tell_places({Place{30s, kBegin}, std::nullopt, Place{31500ms, kBegin}, Place{29s, kBegin}}),
            "no answer from rank 1 (stopped, or at work elsewhere); "
            "ranks 0, 2, 3 wait for all ranks to begin call 3 (31.5 s)");
}

TEST(TellPlaces, RanksInDifferentCallsAreToldApart) {
  EXPECT_EQ(tell_places({Place{1s, kBegin}, Place{2s, "for all ranks to begin call 4"}}),
            "all ranks answer; rank 0 waits for all ranks to begin call 3 (1 s); "
            "rank 1 waits for all ranks to begin call 4 (2 s)");
  EXPECT_THAT(tell_places({Place{1s, kLoad}, Place{1s, kLoad}}), HasSubstr("; all ranks wait for all ranks to load"));
}

TEST(TellPlaces, CrowdIsShortened) {
  std::vector<std::optional<Place>> places(10'000);
  for (std::size_t rank = 0; rank < places.size(); rank += 2) places[rank] = Place{1s, kBegin};
  const std::string text = tell_places(places);
  EXPECT_THAT(text, HasSubstr("no answer from ranks 1, 3, 5, 7, 9, 11, 13, 15 and 4992 more"));
  EXPECT_THAT(text, HasSubstr("ranks 0, 2, 4, 6, 8, 10, 12, 14 and 4992 more wait for all ranks to begin"));
}

TEST(TellPlaces, ManyLongStepsLeaveTheMissingRanksInSight) {
  std::vector<std::optional<Place>> places(100'000);
  for (std::size_t rank = 0; rank < 50'000; ++rank)
    places[rank] = Place{1s, std::string(112, 'x') + " " + std::to_string(rank % 6)};
  const std::string text = tell_places(places);
  EXPECT_LE(text.size(), kLimit);
  EXPECT_THAT(text, StartsWith("no answer from ranks 50000, 50001"));
  places.clear();
  for (const char* step : {"a", "b", "c", "d", "e", "f"}) places.emplace_back(Place{1s, step});
  EXPECT_THAT(tell_places(places), HasSubstr("rank 3 waits d (1 s); ranks 4, 5 wait in other steps"));
}

// Ranks that are driven one after the other, each as far as it comes.
class Roll {
 public:
  explicit Roll(int size) : world(size), calls_(static_cast<std::size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) tables_.push_back(world.communicator(rank));
  }
  RollCall& begin(int rank, const std::string& step = kBegin) {
    const auto at = static_cast<std::size_t>(rank);
    return *(calls_[at] = std::make_unique<RollCall>(tables_[at], Place{30s, step}, operations));
  }
  std::string close(int rank) {
    RollCall& call = *calls_[static_cast<std::size_t>(rank)];
    call.advance();
    call.close();
    call.advance();
    return call.take_findings();
  }
  bool is_called(int rank) const { return RollCall::is_under_way(tables_[static_cast<std::size_t>(rank)]); }

  SimulatedWorld world;
  Operations operations;

 private:
  std::deque<jitc_communicator> tables_;
  std::vector<std::unique_ptr<RollCall>> calls_;
};

class RollCallOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RollCallOf, ::testing::Values(2, 4, 7));

TEST_P(RollCallOf, AllThatAnswerHearTheSame) {
  const int absent = GetParam() - 1;
  Roll roll(GetParam());
  for (int rank = 0; rank < absent; ++rank) EXPECT_FALSE(roll.begin(rank).advance());
  const std::string told = roll.close(0);
  EXPECT_THAT(told, HasSubstr("no answer from rank " + std::to_string(absent) + " "));
  for (int rank = 1; rank < absent; ++rank) EXPECT_EQ(roll.close(rank), told);
}

TEST_P(RollCallOf, NothingIsWaitedForOnceAllHaveAnswered) {
  Roll roll(GetParam());
  std::vector<RollCall*> calls;
  for (int rank = 0; rank < GetParam(); ++rank) calls.push_back(&roll.begin(rank, rank == 0 ? kLoad : kBegin));
  EXPECT_TRUE(calls[0]->advance());
  calls[0]->close();
  EXPECT_TRUE(calls[0]->advance());
  for (RollCall* call : calls) EXPECT_TRUE(call->advance());
  EXPECT_THAT(roll.close(GetParam() - 1), StartsWith("all ranks answer; rank 0 waits for all ranks to load call 3"));
}

TEST_P(RollCallOf, AbsentRootIsSaidToBeSilent) {
  Roll roll(GetParam());
  for (int rank = 1; rank < GetParam(); ++rank) EXPECT_FALSE(roll.begin(rank).advance());
  for (int rank = 1; rank < GetParam(); ++rank) EXPECT_THAT(roll.close(rank), StartsWith("no answer from rank 0 "));
}

// It is not on the list, but learns who was.
TEST_P(RollCallOf, WhoComesAfterTheRootHasClosedHearsWhatWasFound) {
  const int late = GetParam() - 1;
  Roll roll(GetParam());
  for (int rank = 0; rank < late; ++rank) roll.begin(rank);
  const std::string told = roll.close(0);
  EXPECT_THAT(told, StartsWith("no answer from rank " + std::to_string(late) + " "));
  EXPECT_TRUE(roll.is_called(late));
  roll.begin(late);
  EXPECT_EQ(roll.close(late), told);
}

TEST_P(RollCallOf, PlaceCallsTheRootAndTheRootCallsAll) {
  Roll roll(GetParam());
  for (int rank = 0; rank < GetParam(); ++rank) EXPECT_FALSE(roll.is_called(rank));
  roll.begin(1);
  EXPECT_TRUE(roll.is_called(0));
  for (int rank = 1; rank < GetParam(); ++rank) EXPECT_FALSE(roll.is_called(rank));
  roll.begin(0);
  EXPECT_FALSE(roll.is_called(0));
  for (int rank = 2; rank < GetParam(); ++rank) EXPECT_TRUE(roll.is_called(rank));
}

TEST_P(RollCallOf, RootThatLeavesSaysWhy) {
  Roll roll(GetParam());
  roll.begin(0, "no longer: no memory").leave();
  for (int rank = 1; rank < GetParam(); ++rank) {
    roll.begin(rank);
    EXPECT_EQ(roll.close(rank), "rank 0 waits no longer: no memory");
  }
}

TEST(RollCall, WhatIsHeardSurvivesThatNoMemoryIsLeftToTellIt) {
  for (int spared = 0;; ++spared) {
    Roll roll(4);
    roll.begin(1);
    RollCall& root = roll.begin(0);
    root.advance();
    bool has_failed = false;
    {
      const testing::FailingNew failing(spared, 0);
      try {
        root.close();
      } catch (const std::bad_alloc&) {
        has_failed = true;  // in making the text itself
      }
      if (!failing.has_failed()) break;
    }
    if (!has_failed) {
      EXPECT_THAT(root.take_findings(), StartsWith("no answer from ranks 2, 3 "));
    }
    ASSERT_LT(spared, 200);
  }
}

// What members have sent waits for the root, however late it is.
TEST_P(RollCallOf, LateRootHearsWhoGaveUpBefore) {
  Roll roll(GetParam());
  for (int rank = 1; rank < GetParam(); ++rank) roll.begin(rank);
  for (int rank = 1; rank < GetParam(); ++rank) roll.close(rank);
  EXPECT_TRUE(roll.begin(0, kLoad).advance());
  EXPECT_THAT(roll.close(0), StartsWith("all ranks answer; rank 0 waits for all ranks to load call 3"));
}

TEST_P(RollCallOf, FailingCommunicatorIsNoAnswerAndNoWait) {
  Roll roll(GetParam());
  for (int rank = 0; rank < GetParam() - 1; ++rank) EXPECT_FALSE(roll.begin(rank).advance());
  roll.world.lose_a_rank();
  EXPECT_THAT(roll.close(0), HasSubstr("no answer from rank " + std::to_string(GetParam() - 1)));

  jitc_communicator refusing = roll.world.communicator(0);
  refusing.isend = [](void*, const void*, std::size_t, int, jitc_pending*) { return 5; };
  refusing.irecv = [](void*, void*, std::size_t, int, jitc_pending*) { return 5; };
  RollCall call(refusing, {1s, kBegin}, roll.operations);
  EXPECT_TRUE(call.advance());
  call.close();
  EXPECT_THAT(call.take_findings(), HasSubstr("rank 0 waits for all ranks to begin"));
}

TEST(RollCall, LongStepsAreCut) {
  Roll roll(2);
  roll.begin(0);
  roll.begin(1, std::string(5000, 's'));
  EXPECT_THAT(roll.close(0), HasSubstr("rank 1 waits " + std::string(120, 's') + " (30 s)"));
}

TEST(RollCall, RootAloneGrowsWithTheNumberOfRanks) {
  constexpr int kRanks = 10'000;
  Roll roll(kRanks);
  roll.begin(0);
  const std::size_t of_root = roll.operations.size();
  EXPECT_EQ(of_root, 1 + 2U * (kRanks - 1));
  for (int rank = 1; rank < kRanks - 1; ++rank) roll.begin(rank);
  EXPECT_EQ(roll.operations.size(), of_root + 4U * (kRanks - 2));
  const std::string told = roll.close(0);
  std::size_t bytes = 0;  // what is told to all is there once
  for (const Operation& operation : roll.operations) bytes += operation.bytes.size() == told.size() ? 1 : 0;
  EXPECT_EQ(bytes, 1U);
  EXPECT_THAT(told, StartsWith("no answer from rank 9999 "));
  EXPECT_EQ(roll.close(5000), told);
}

TEST(RollCall, NeedsAllThreeFunctions) {
  jitc_communicator table = SimulatedWorld(2).communicator(0);
  EXPECT_TRUE(RollCall::is_possible(table));
  table.iprobe = nullptr;
  EXPECT_FALSE(RollCall::is_possible(table));
}

}  // namespace
}  // namespace jitc::gate
