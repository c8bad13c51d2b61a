// Who compiles what among the daemons of a store, as one of them asks and tells it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/service/claims.h"
#include "tests/support/store_fixture.h"

namespace jitc::service {
namespace {

using schedule::ClaimOutcome;
using schedule::FlightId;
using store::Claim;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::StoreTest;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

class ClaimsTest : public StoreTest {
 protected:
  ClaimsTest() : store_(open()), other_(store::Store::open(options()).value()) { start({}); }
  ~ClaimsTest() override {
    release_.set_value();
    claims_->end();
    claims_->join();
  }

  void start(Claims::Patience patience) {
    if (claims_) claims_->join();
    claims_.emplace(
        state_, store_->leases(), [this](FlightId flight, ClaimOutcome outcome) { told_[flight].push_back(outcome); },
        patience);
  }
  template <class Holds>
  void run_until(Holds holds) {
    while (!holds()) state_.run_one_for(10ms);
  }
  void run_until_told(FlightId flight, std::size_t count = 1) {
    run_until([&] { return told_[flight].size() >= count; });
  }
  std::string lease() { return bytes_of(lease_of(key_)); }
  // Its thread stands before this call, after it was made `passes` times, until the test is over or release_ is set.
  void hang(const std::string& at, int passes = 0) {
    passes_ = passes;
    files_.before = [this, at, released = release_.get_future().share()](const std::string& operation) {
      if (operation == at && ++met_ > passes_) released.wait();
      unlinked_ = unlinked_ || operation == "unlink";
    };
  }

  asio::io_context state_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(state_);
  std::promise<void> release_;
  int passes_ = 0;
  std::atomic<int> met_{0};
  std::atomic<bool> unlinked_{false};
  std::unique_ptr<store::Store> store_, other_;  // on the same directory; the second one's calls never fail
  std::map<FlightId, std::vector<ClaimOutcome>> told_;
  std::optional<Claims> claims_;
  const common::Digest key_ = key_of(1);
};

TEST_F(ClaimsTest, OneThatIsOursBeatsUntilItIsDropped) {
  claims_->claim(1, key_);
  run_until_told(1);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kOurs));
  const std::string first = lease();
  EXPECT_FALSE(first.empty());
  run_until([&] { return lease() != first; });
  EXPECT_EQ(other_->leases().claim(key_).kind, Claim::Kind::kTheirs);
  claims_->drop(1);
  run_until([&] { return lease().empty(); });
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kOurs));
}

TEST_F(ClaimsTest, WhatAnotherCompilesIsOverWhenItIsPublished) {
  const Claim theirs = other_->leases().claim(key_);
  claims_->claim(1, key_);
  run_until_told(1);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere));
  ASSERT_TRUE(publish(*other_, key_));
  run_until_told(1, 2);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere, ClaimOutcome::kOver));
  EXPECT_THAT(lease(), StartsWith(theirs.text));  // it is still there, and theirs
}

// Whoever has a slot first makes the next one.
TEST_F(ClaimsTest, WhenAnotherHasGivenUpNobodyHasTheLease) {
  const Claim theirs = other_->leases().claim(key_);
  claims_->claim(1, key_);
  run_until_told(1);
  other_->leases().release(key_, theirs.text);
  run_until_told(1, 2);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere, ClaimOutcome::kOver));
  run_until([&] { return lease().empty(); });
  claims_->claim(1, key_);
  run_until_told(1, 3);
  EXPECT_EQ(told_[1].back(), ClaimOutcome::kOurs);
  EXPECT_EQ(other_->leases().claim(key_).kind, Claim::Kind::kTheirs);
}

// The call of the first claim is under way still when the second one is made: its lease is in the way of the second
// one, and nobody's.
TEST_F(ClaimsTest, TheAnswerToADroppedClaimIsNotThatToTheNextOne) {
  claims_->claim(1, key_);
  claims_->drop(1);
  claims_->claim(1, key_);
  run_until_told(1, 2);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere, ClaimOutcome::kOver));
  run_until([&] { return lease().empty(); });
}

TEST_F(ClaimsTest, WhatIsPublishedAlreadyIsOver) {
  ASSERT_TRUE(publish(*other_, key_));
  claims_->claim(1, key_);
  run_until_told(1);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kOver));
  EXPECT_THAT(lease(), IsEmpty());
}

TEST_F(ClaimsTest, OneThatIsSilentForTooLongIsTakenOver) {
  start({.with_holder = 600ms});
  const Claim theirs = other_->leases().claim(key_);
  claims_->claim(1, key_);
  run_until_told(1, 2);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere, ClaimOutcome::kOver));
  EXPECT_FALSE(other_->leases().beat(key_, theirs.text, 1));
  run_until([&] { return lease().empty(); });
}

TEST_F(ClaimsTest, OneThatIsSilentAndCannotBeRemovedIsOverToo) {
  start({.with_holder = 300ms});
  other_->leases().claim(key_);
  files_.arm({.operation = "rename", .count = ~0U, .error = EACCES});
  claims_->claim(1, key_);
  run_until_told(1, 2);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere, ClaimOutcome::kOver));
}

TEST_F(ClaimsTest, OneThatBeatsIsWaitedFor) {
  start({.with_holder = 1500ms});
  const Claim theirs = other_->leases().claim(key_);
  claims_->claim(1, key_);
  run_until_told(1);
  const auto end = Clock::now() + 4s;
  std::uint64_t beats = 0;
  run_until([&] {
    other_->leases().beat(key_, theirs.text, ++beats);
    return Clock::now() > end;
  });
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere));
}

TEST_F(ClaimsTest, AStoreThatHangsHoldsUpOneClaimForAMoment) {
  start({.with_store = 300ms});
  hang("open");
  claims_->claim(1, key_);
  run_until_told(1);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kOurs));
  claims_->claim(2, key_of(2));
  state_.poll();
  EXPECT_THAT(told_[2], ElementsAre(ClaimOutcome::kOurs));
  release_.set_value();
  run_until([&] { return unlinked_ && lease().empty(); });  // the lease that came too late is not kept
  release_ = {};
}

TEST_F(ClaimsTest, AStoreThatHangsEndsTheWaitForAnother) {
  start({.with_holder = 600ms, .with_store = 300ms});
  other_->leases().claim(key_);
  hang("open", 2);
  claims_->claim(1, key_);
  run_until_told(1, 2);
  EXPECT_THAT(told_[1], ElementsAre(ClaimOutcome::kElsewhere, ClaimOutcome::kOver));
}

TEST_F(ClaimsTest, OneThatIsDroppedBeforeItIsAnsweredKeepsNoLease) {
  claims_->claim(1, key_);
  claims_->drop(1);
  claims_->claim(2, key_of(2));
  run_until([&] { return !told_[2].empty() && lease().empty(); });
  EXPECT_THAT(told_[1], IsEmpty());
}

TEST_F(ClaimsTest, NothingIsLeftAtTheEnd) {
  for (int i = 1; i <= 5; ++i) claims_->claim(static_cast<FlightId>(i), key_of(i));
  for (int i = 1; i <= 5; ++i) run_until_told(static_cast<FlightId>(i));
  claims_->end();
  claims_->join();
  EXPECT_THAT(leases(), IsEmpty());
}

}  // namespace
}  // namespace jitc::service
