// Leases: who compiles what, between daemons of one store; and that nothing rests on them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/owner.h"
#include "tests/support/store_fixture.h"

namespace jitc::store {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::Owner;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StoreTest;
using Kind = Claim::Kind;
using namespace std::chrono_literals;

class LeaseTest : public StoreTest {
 protected:
  std::string shard_of(const Digest& key) { return fs::path(path_of(key)).parent_path(); }
  // As another daemon left it.
  std::string leave(const Digest& key, const Owner& owner, unsigned beats = 0) {
    fs::create_directories(shard_of(key));
    std::string text = common::temp_name(owner) + " " + std::to_string(beats) + "\n";
    overwrite(lease_of(key), text);
    return text;
  }
  static Owner elsewhere() {
    Owner owner = Owner::this_process();
    owner.host += "2";
    owner.boot = "another";
    return owner;
  }
  static Owner ended() {
    Owner owner = Owner::this_process();
    owner.start += 1;
    return owner;
  }
  const Digest key_ = key_of(1);
};

TEST_F(LeaseTest, OneHasItUntilItIsReleased) {
  const auto store = open(), other = open();
  const Claim ours = store->leases().claim(key_);
  ASSERT_EQ(ours.kind, Kind::kOurs);
  const Claim theirs = other->leases().claim(key_);
  ASSERT_EQ(theirs.kind, Kind::kTheirs);
  EXPECT_EQ(theirs.text, bytes_of(lease_of(key_)));
  EXPECT_THAT(theirs.text, HasSubstr(ours.text));
  EXPECT_EQ(other->leases().claim(key_of(2)).kind, Kind::kOurs);
  store->leases().release(key_, ours.text);
  EXPECT_FALSE(fs::exists(lease_of(key_)));
  EXPECT_EQ(other->leases().claim(key_).kind, Kind::kOurs);
}

TEST_F(LeaseTest, EachBeatChangesWhatItSays) {
  const auto store = open();
  const Claim ours = store->leases().claim(key_);
  std::string said = bytes_of(lease_of(key_));
  for (const unsigned beats : {1U, 2U, 10U, 11U}) {
    EXPECT_TRUE(store->leases().beat(key_, ours.text, beats));
    EXPECT_NE(std::exchange(said, bytes_of(lease_of(key_))), said);
    EXPECT_EQ(said, ours.text + " " + std::to_string(beats) + "\n");
  }
}

TEST_F(LeaseTest, WhatWasPublishedMeanwhileNeedsNone) {
  const auto store = open();
  ASSERT_TRUE(publish(*store, key_));
  EXPECT_EQ(store->leases().claim(key_).kind, Kind::kPublished);
  EXPECT_THAT(leases(), IsEmpty());
  leave(key_, elsewhere());
  EXPECT_EQ(store->leases().claim(key_).kind, Kind::kPublished);
}

TEST_F(LeaseTest, OneThatSaysTheSameStillIsTakenOver) {
  const auto store = open(), other = open();
  const Claim silent = other->leases().claim(key_);
  const Claim seen = store->leases().claim(key_);
  const Claim taken = store->leases().take_over(key_, seen.text);
  ASSERT_EQ(taken.kind, Kind::kOurs);
  EXPECT_FALSE(other->leases().beat(key_, silent.text, 1));
  other->leases().release(key_, silent.text);
  EXPECT_TRUE(store->leases().beat(key_, taken.text, 1));
  EXPECT_THAT(files_in(temps()), IsEmpty());
}

TEST_F(LeaseTest, OneThatBeatSinceIsLeft) {
  const auto store = open(), other = open();
  const Claim theirs = other->leases().claim(key_);
  const Claim seen = store->leases().claim(key_);
  ASSERT_TRUE(other->leases().beat(key_, theirs.text, 1));
  const Claim claim = store->leases().take_over(key_, seen.text);
  EXPECT_EQ(claim.kind, Kind::kTheirs);
  EXPECT_TRUE(other->leases().beat(key_, theirs.text, 2));
  EXPECT_THAT(files_in(temps()), IsEmpty());
}

// The slower of two that saw the same silence moves the faster one's new lease, and gives it back.
TEST_F(LeaseTest, OfTwoThatTakeOverOneWins) {
  const auto store = open();
  auto faster = Store::open(options());
  ASSERT_TRUE(faster);
  const std::string text = leave(key_, elsewhere());
  Claim first;
  files_.before = [&](const std::string& operation) {
    if (operation == "rename" && first.kind == Kind::kNone) first = (*faster)->leases().take_over(key_, text);
  };
  const Claim second = store->leases().take_over(key_, text);
  EXPECT_EQ(first.kind, Kind::kOurs);
  EXPECT_EQ(second.kind, Kind::kTheirs);
  EXPECT_THAT(second.text, HasSubstr(first.text));
  EXPECT_TRUE((*faster)->leases().beat(key_, first.text, 1));
}

TEST_F(LeaseTest, OfTwoThatTakeOverOneWinsWhereThereAreNoLinksEither) {
  const auto store = open();
  auto faster = Store::open(options());
  ASSERT_TRUE(faster);
  for (const int error : {EPERM, ENOTSUP, EMLINK, ENOSYS}) {
    const std::string text = leave(key_, elsewhere());
    Claim first;
    files_.before = [&](const std::string& operation) {
      if (operation == "rename" && first.kind == Kind::kNone) first = (*faster)->leases().take_over(key_, text);
    };
    files_.arm({.operation = "link", .count = ~0U, .error = error});
    EXPECT_EQ(store->leases().take_over(key_, text).kind, Kind::kTheirs);
    EXPECT_TRUE((*faster)->leases().beat(key_, first.text, 1)) << std::strerror(error);
    EXPECT_THAT(files_in(temps()), IsEmpty());
    (*faster)->leases().release(key_, first.text);
  }
}

TEST_F(LeaseTest, ManyThatTakeOverAtOnceAreNotAllWithoutIt) {
  constexpr int kThreads = 8, kRounds = 50;
  std::vector<std::unique_ptr<Store>> stores;
  stores.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) stores.push_back(open());
  std::vector<std::string> texts(kRounds);
  for (int round = 0; round < kRounds; ++round) texts[round] = leave(key_of(round), elsewhere());
  std::barrier start(kThreads);
  std::vector<std::atomic<int>> ours(kRounds);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        start.arrive_and_wait();
        ours[round] += stores[i]->leases().take_over(key_of(round), texts[round]).kind == Kind::kOurs ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  int sum = 0;
  for (const auto& count : ours) {
    EXPECT_GE(count, 1);
    sum += count;
  }
  RecordProperty("leases_per_key", std::to_string(static_cast<double>(sum) / kRounds));
}

TEST_F(LeaseTest, ThatOfAProcessThatHasEndedIsTakenOverAtOnce) {
  const auto store = open();
  leave(key_, ended());
  EXPECT_EQ(store->leases().claim(key_).kind, Kind::kOurs);
}

// Of another boot or node nobody can tell.
TEST_F(LeaseTest, ThatOfAnotherBootIsWaitedFor) {
  const auto store = open();
  Owner other_boot = ended();
  other_boot.boot = "00000000-1";
  leave(key_, other_boot);
  EXPECT_EQ(store->leases().claim(key_).kind, Kind::kTheirs);
  overwrite(lease_of(key_), "");
  EXPECT_EQ(store->leases().claim(key_).kind, Kind::kTheirs);
  EXPECT_EQ(store->leases().take_over(key_, "").kind, Kind::kOurs);
}

TEST_F(LeaseTest, ItsModeIsThatOfTheStore) {
  Options some = options();
  some.mode = 0640;
  const auto store = open(some);
  const mode_t before = ::umask(077);
  const Claim claim = store->leases().claim(key_);
  ::umask(before);
  EXPECT_EQ(claim.kind, Kind::kOurs);
  EXPECT_EQ(mode_of(lease_of(key_)), 0640U);
  EXPECT_EQ(mode_of(shard_of(key_)), 02750U);
}

TEST_F(LeaseTest, WithOddThingsInTheWayOneCompilesWithout) {
  const auto store = open();
  for (int i = 1; i <= 3; ++i) fs::create_directories(shard_of(key_of(i)));
  fs::create_directory(lease_of(key_of(1)));
  fs::create_symlink("/dev/null", lease_of(key_of(2)));
  ASSERT_EQ(::mkfifo(lease_of(key_of(3)).c_str(), 0600), 0);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(store->leases().claim(key_of(i)).kind, Kind::kNone) << i;
  fs::remove_all(shard_of(key_));
  overwrite(shard_of(key_), "a file");
  EXPECT_EQ(store->leases().claim(key_).kind, Kind::kNone);
}

// Others could have put a lease there, or take what is put there.
TEST_F(LeaseTest, NoneIsMadeReadOrRemovedInADirectoryThatOthersMayWriteOrThroughALink) {
  const auto store = open();
  const Claim ours = store->leases().claim(key_);
  const std::string said = bytes_of(lease_of(key_));
  const std::string shard = shard_of(key_), real = options().directory + "/real";
  const auto is_left_alone = [&] {
    EXPECT_EQ(store->leases().claim(key_).kind, Kind::kNone);
    EXPECT_EQ(store->leases().take_over(key_, said).kind, Kind::kNone);
    EXPECT_FALSE(store->leases().beat(key_, ours.text, 1));
    store->leases().release(key_, ours.text);
    EXPECT_EQ(bytes_of(lease_of(key_)), said);
  };
  fs::permissions(shard, fs::perms::all);
  is_left_alone();
  fs::permissions(shard, fs::perms::owner_all);
  fs::rename(shard, real);
  fs::create_symlink(real, shard);
  is_left_alone();
  fs::remove(shard);
  fs::rename(real, shard);
  EXPECT_TRUE(store->leases().beat(key_, ours.text, 1));
}

TEST_F(LeaseTest, AFullStoreGivesNoneAndKeepsNothing) {
  const auto store = open();
  ASSERT_EQ(store->leases().claim(key_of(2)).kind, Kind::kOurs);
  for (const char* operation : {"open", "fchmod", "write", "close"}) {
    for (const int error : {ENOSPC, EDQUOT, EROFS, EACCES}) {
      files_.arm({.operation = operation, .count = 100, .error = error});
      EXPECT_EQ(store->leases().claim(key_).kind, Kind::kNone) << operation << ' ' << std::strerror(error);
      EXPECT_FALSE(fs::exists(lease_of(key_))) << operation;
    }
  }
}

TEST_F(LeaseTest, AStoreWipedMeanwhileIsMadeAgain) {
  const auto store = open();
  const Claim ours = store->leases().claim(key_);
  fs::remove_all(options().directory);
  EXPECT_FALSE(store->leases().beat(key_, ours.text, 1));
  EXPECT_EQ(store->leases().claim(key_).kind, Kind::kOurs);
}

// Whatever call fails: nobody is left waiting for a lease that nobody has.
TEST_F(LeaseTest, WhateverCallFailsOneCanCompile) {
  const auto store = open(), other = open();
  for (const bool was_taken : {false, true}) {
    for (const bool after_it : {false, true}) {
      for (const int error : {ENOENT, EEXIST, EPERM, ENOSPC, EBUSY, EIO, ESTALE, EROFS, EINTR}) {
        for (unsigned at = 0;; ++at) {
          SCOPED_TRACE("call " + std::to_string(at) + " " + std::strerror(error) + (after_it ? " after it" : ""));
          fs::remove_all(shard_of(key_));
          if (was_taken) leave(key_, ended());
          files_.arm({.first = at, .error = error, .after_it = after_it});
          const Claim claim = store->leases().claim(key_);
          const bool reached = files_.failed() > 0;
          files_.disarm();
          if (claim.kind == Kind::kOurs) store->leases().release(key_, claim.text);
          const Claim next = other->leases().claim(key_);
          if (next.kind == Kind::kTheirs) {
            EXPECT_EQ(other->leases().take_over(key_, next.text).kind, Kind::kOurs);
          } else {
            EXPECT_EQ(next.kind, Kind::kOurs);
          }
          if (!reached) break;
          ASSERT_LT(at, 100U);
        }
      }
    }
  }
}

TEST_F(LeaseTest, TheCleanerRemovesThoseOfTheDeadAndTheOld) {
  const auto store = open();
  leave(key_of(1), ended());
  leave(key_of(2), elsewhere());
  leave(key_of(3), elsewhere());
  leave(key_of(4), elsewhere());
  overwrite(lease_of(key_of(4)), "");
  set_used(lease_of(key_of(3)), std::chrono::system_clock::now() - 25h);
  set_used(lease_of(key_of(4)), std::chrono::system_clock::now() - 25h);
  const Claim living = store->leases().claim(key_of(5));
  EXPECT_EQ(store->clean().stale_leases, 3U);
  EXPECT_TRUE(fs::exists(lease_of(key_of(2))));
  EXPECT_TRUE(store->leases().beat(key_of(5), living.text, 1));
  EXPECT_EQ(leases().size(), 2U);
  EXPECT_THAT(files_in(temps()), IsEmpty());
}

}  // namespace
}  // namespace jitc::store
