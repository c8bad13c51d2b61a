// What the store removes: the least recently used, and what dead writers left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/store_fixture.h"

namespace jitc::store {
namespace {

namespace fs = std::filesystem;
using common::LookupOutcome;
using common::Owner;
using common::owner_of;
using common::temp_name;
using ::testing::HasSubstr;
using testing::StoreTest;
using namespace std::chrono_literals;

// ---- eviction -------------------------------------------------------------------------------------------------------

class EvictionTest : public StoreTest {
 protected:
  // Entries 0..count-1, used one day apart, the first longest ago, the last two days ago.
  void fill(Store& store, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(publish(store, key_of(i)));
      set_used(path_of(key_of(i)), now_ - 24h * (count + 1 - i));
    }
  }
  std::set<int> left(int count) {
    std::set<int> numbers;
    for (int i = 0; i < count; ++i) {
      if (fs::exists(path_of(key_of(i)))) numbers.insert(i);
    }
    return numbers;
  }
  Options at_most(std::uint64_t entries) {
    Options some = options();
    some.max_entries = entries;
    return some;
  }
  const FileTime now_ = std::chrono::system_clock::now();
};

TEST_F(EvictionTest, TheLeastRecentlyUsedGoFirst) {
  const auto store = open(at_most(10));
  fill(*store, 12);
  EXPECT_EQ(look_up(*store, key_of(0)), LookupOutcome::kFound);  // used now
  store->touch(key_of(1));
  const Cleaned cleaned = store->clean();
  EXPECT_TRUE(cleaned.done);
  EXPECT_EQ(cleaned.evicted, 3U);
  EXPECT_EQ(left(12), (std::set<int>{0, 1, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(cleaned.entries_left, 9U);
  EXPECT_EQ(store->counters().evicted, 3U);
}

TEST_F(EvictionTest, BytesCountToo) {
  const std::uint64_t one = kElf.size() + tail_of(key_of(1)).size();
  Options some = options();
  some.max_bytes = 10 * one;
  const auto store = open(some);
  fill(*store, 10);
  EXPECT_EQ(store->clean().evicted, 0U);
  EXPECT_FALSE(store->wants_cleaning());
  ASSERT_TRUE(publish(*store, key_of(10)));
  EXPECT_TRUE(store->wants_cleaning());
  EXPECT_EQ(store->clean().evicted, 2U);
  EXPECT_EQ(store->size_bytes(), 9 * one);
  EXPECT_FALSE(store->wants_cleaning());
}

TEST_F(EvictionTest, WhatWasUsedWithinTheHourStaysWhateverTheLimit) {
  const auto store = open(at_most(1));
  fill(*store, 3);
  set_used(path_of(key_of(1)), now_ - 59min);
  set_used(path_of(key_of(2)), now_ - 61min);
  ASSERT_TRUE(publish(*store, key_of(3)));
  store->clean();
  EXPECT_EQ(left(4), (std::set<int>{1, 3}));
}

TEST_F(EvictionTest, NoLimitEvictsNothing) {
  Options unlimited = at_most(0);
  unlimited.max_bytes = 0;
  const auto store = open(unlimited);
  fill(*store, 5);
  EXPECT_TRUE(store->wants_cleaning());  // it has never looked
  EXPECT_EQ(store->clean().evicted, 0U);
  EXPECT_FALSE(store->wants_cleaning());
}

TEST_F(EvictionTest, WhatNobodyUsesForTooLongGoes) {
  Options aged = at_most(0);
  aged.max_age = 24h * 5;
  const auto store = open(aged);
  fill(*store, 6);  // used 7, 6, 5, 4, 3 and 2 days ago
  set_used(path_of(key_of(5)), now_ + 24h * 365);
  const std::uint64_t one = kElf.size() + tail_of(key_of(1)).size();
  const Cleaned cleaned = store->clean();
  EXPECT_EQ(cleaned.evicted, 3U);
  EXPECT_EQ(cleaned.evicted_bytes, 3 * one);
  EXPECT_EQ(left(6), (std::set<int>{3, 4, 5}));
  // The limit passes by itself: it is looked at again after an hour.
  files_.clock = now_ + 30min;
  EXPECT_FALSE(store->wants_cleaning());
  files_.clock = now_ + 36h;
  EXPECT_TRUE(store->wants_cleaning());
  EXPECT_EQ(store->clean().evicted, 1U);
  EXPECT_FALSE(store->wants_cleaning());
}

TEST_F(EvictionTest, TheLastHourStaysWhateverTheAge) {
  Options aged = at_most(0);
  aged.max_age = 1s;
  const auto store = open(aged);
  fill(*store, 3);
  set_used(path_of(key_of(1)), now_ - 59min);
  store->clean();
  EXPECT_EQ(left(3), (std::set<int>{1}));
}

TEST_F(EvictionTest, ADryRunSaysTheSameAndChangesNothing) {
  Options aged = at_most(4);
  aged.max_age = 24h * 6;
  const auto store = open(aged);
  fill(*store, 6);
  set_used(path_of(key_of(5)), now_ + 24h * 365);
  fs::create_directory(quarantine());
  for (int i = 0; i < 20; ++i) overwrite(quarantine() + "/" + std::to_string(i), "broken");
  Owner dead = Owner::this_process();
  dead.pid = 4'000'000;
  overwrite(temps() + "/" + temp_name(dead), "partial");
  const Cleaned would = store->clean(true);
  EXPECT_EQ(left(6).size(), 6U);
  EXPECT_EQ(store->counters().evicted, 0U);
  FileInfo info;
  real_file_system().status(path_of(key_of(5)), info);
  EXPECT_GT(info.used, now_ + 24h);
  const Cleaned did = store->clean();
  EXPECT_EQ(did.evicted, 3U);
  for (const auto member : {&Cleaned::evicted, &Cleaned::evicted_bytes, &Cleaned::stale_temps,
                            &Cleaned::quarantine_removed, &Cleaned::entries_left, &Cleaned::bytes_left})
    EXPECT_EQ(would.*member, did.*member);
  EXPECT_EQ(did.quarantine_removed, 4U);
  EXPECT_EQ(did.stale_temps, 1U);
}

TEST_F(EvictionTest, AnEntryDated2099TakesItsPlaceInTheOrder) {
  const auto store = open(at_most(4));
  fill(*store, 4);
  set_used(path_of(key_of(0)), now_ + 24h * 365 * 70);
  EXPECT_EQ(store->clean().evicted, 0U);
  FileInfo info;
  real_file_system().status(path_of(key_of(0)), info);
  EXPECT_LE(info.used, std::chrono::system_clock::now());
  EXPECT_GE(info.used, now_ - 1min);
}

// What people write for "never", and years that no clock means.
TEST_F(EvictionTest, NoAgeAndNoDateIsTooLargeToCount) {
  for (const auto age : {24h * 90'000, 24h * 100'000'000, std::chrono::hours(std::chrono::hours(24) * 1'000'000'000)}) {
    Options aged = at_most(0);
    aged.max_age = age;
    const auto store = open(aged);
    fill(*store, 3);
    set_used(path_of(key_of(0)), FileTime(0s));
    EXPECT_EQ(store->clean().evicted, 0U);
  }
  const auto store = open(at_most(2));
  fill(*store, 3);
  for (const auto& [number, time] : {std::pair{0, "@-12000000000"}, {1, "@0"}, {2, "2500-01-01"}})
    ASSERT_EQ(std::system(("touch -d " + std::string(time) + " " + path_of(key_of(number))).c_str()), 0);
  store->clean();
  EXPECT_EQ(left(3), (std::set<int>{2}));
}

TEST_F(EvictionTest, OfOneAllowedEntryOneStays) {
  const auto store = open(at_most(1));
  fill(*store, 3);
  store->clean();
  EXPECT_EQ(left(3), (std::set<int>{2}));
}

// The clock stepped back: everything seems to come from the future, and still the limit holds, in the same order.
TEST_F(EvictionTest, AClockThatStepsBackDoesNotStopEviction) {
  const auto store = open(at_most(4));
  fill(*store, 6);
  files_.clock = now_ - 24h * 365;
  EXPECT_EQ(store->clean().evicted, 3U);
  EXPECT_EQ(left(6), (std::set<int>{3, 4, 5}));
}

TEST_F(EvictionTest, AUseBetweenTheScanAndTheRemovalSaves) {
  const auto store = open(at_most(4));
  fill(*store, 5);
  bool listed = false;
  files_.before = [&](const std::string& operation) {
    if (operation == "unlink" && !std::exchange(listed, true)) set_used(path_of(key_of(1)), now_);
  };
  store->clean();
  EXPECT_EQ(left(5), (std::set<int>{1, 3, 4}));  // 2 went instead
}

// On another node another cleaner was faster: its removals count as room, nothing fails, nobody removes too much.
TEST_F(EvictionTest, FilesThatAreGoneAreNormal) {
  const auto store = open(at_most(10));
  fill(*store, 12);
  bool done = false;
  files_.before = [&](const std::string& operation) {
    if (operation == "unlink" && !std::exchange(done, true)) {
      for (int i = 0; i < 3; ++i) fs::remove(path_of(key_of(i)));
    }
  };
  const Cleaned cleaned = store->clean();
  EXPECT_EQ(cleaned.evicted, 0U);
  EXPECT_EQ(cleaned.entries_left, 9U);
  EXPECT_EQ(left(12).size(), 9U);
}

// As on other nodes, where nobody hears of this node's cleaner.
TEST_F(EvictionTest, TwoCleanersAndReadersAtOnce) {
  constexpr int kEntries = 200;
  std::vector<std::unique_ptr<Store>> stores;
  stores.reserve(4);
  for (int i = 0; i < 4; ++i) stores.push_back(open(at_most(100)));
  fill(*stores[0], kEntries);
  std::barrier start(4);
  std::atomic<std::uint64_t> evicted{0};
  std::atomic<int> cleaned{0}, corrupt{0}, confined{0};
  std::vector<std::thread> threads;
  threads.reserve(stores.size());
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      if (i < 2 && unshare(CLONE_NEWNET) != 0) ++confined;
      start.arrive_and_wait();
      if (i < 2) {
        const Cleaned result = stores[i]->clean();
        cleaned += result.done ? 1 : 0;
        evicted += result.evicted;
        EXPECT_LE(result.entries_left, 100U);
        return;
      }
      for (int number = 0; number < kEntries; number += 2) {  // the others may go
        if (look_up(*stores[i], key_of(number)) == LookupOutcome::kCorrupt) ++corrupt;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(corrupt, 0);
  EXPECT_EQ(left(kEntries).size(), kEntries - evicted);  // each removed once
  EXPECT_GE(evicted, kEntries / 2U);
  if (confined > 0) GTEST_SKIP() << "no network namespace can be made: only one of them cleaned";
  EXPECT_EQ(cleaned, 2);
}

TEST_F(EvictionTest, OneCleanerAtATimeOnANode) {
  const auto store = open(at_most(100)), other = open(at_most(100));
  bool tried = false;
  files_.before = [&](const std::string& operation) {
    if (operation != "list" || std::exchange(tried, true)) return;
    EXPECT_FALSE(other->clean().done);
    EXPECT_TRUE(other->wants_cleaning());  // it has not looked itself
  };
  EXPECT_TRUE(store->clean().done);
  EXPECT_TRUE(tried);
  EXPECT_TRUE(other->clean().done);  // the turn was given back
}

// Another user may bind the name of our turn first: a socket of this process's that says to be of somebody else.
TEST_F(EvictionTest, NobodyElseCanKeepACleanerFromItsWork) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const auto store = open(at_most(10));
  fill(*store, 12);
  const std::string canonical = fs::canonical(options().directory);
  const std::string name = "jitc-clean-0-" + common::sha256(canonical).hex().substr(0, 32);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const common::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  EXPECT_TRUE(store->clean(true).done) << "who does not listen is none of ours";
  ASSERT_EQ(::syscall(SYS_setresuid, 0, 12'345, 0), 0);  // of this thread alone
  const int listened = ::listen(socket.get(), 1);
  ASSERT_EQ(::syscall(SYS_setresuid, 0, 0, 0), 0);
  ASSERT_EQ(listened, 0);
  EXPECT_EQ(store->clean().evicted, 3U);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  EXPECT_FALSE(store->clean().done) << "this one is ours";
}

// A cron job must not believe that there is nothing.
TEST_F(EvictionTest, WhatCannotBeSeenOrRemovedIsSaid) {
  const auto store = open(at_most(4));
  fill(*store, 6);
  ASSERT_TRUE(store->clean(true).complete);
  const std::uint64_t bytes = store->size_bytes();
  for (const unsigned first : {1U, 2U, 3U}) {  // v1, and two of the shards; before them the temporary files
    files_.arm({.operation = "list", .first = first, .error = EACCES});
    const Cleaned cleaned = store->clean();
    files_.disarm();
    EXPECT_FALSE(cleaned.complete) << first;
    ASSERT_TRUE(cleaned.problem) << first;
    EXPECT_EQ(cleaned.problem->kind, common::ErrorKind::kStoreUnavailable);
    EXPECT_THAT(cleaned.problem->thing, HasSubstr(options().directory + "/v1"));
    EXPECT_EQ(store->size_bytes(), bytes) << "what was not seen is not gone";
    if (cleaned.evicted > 0) break;
  }
  fill(*store, 6);
  files_.arm({.operation = "unlink", .count = 100, .error = EROFS});
  const Cleaned kept = store->clean();
  files_.disarm();
  EXPECT_TRUE(kept.complete);
  EXPECT_TRUE(kept.held_up);
  ASSERT_TRUE(kept.problem);
  EXPECT_THAT(kept.problem->message, HasSubstr("cannot be removed"));
  EXPECT_EQ(kept.evicted, 0U);
  EXPECT_EQ(left(6).size(), 6U);
  files_.arm({.operation = "list", .first = 0, .error = EACCES});
  EXPECT_TRUE(store->clean().complete) << "of temporary files";
}

TEST_F(EvictionTest, ADryRunMakesNothing) {
  const auto store = open(at_most(4));
  fill(*store, 6);
  fs::remove(temps());
  Options looking = at_most(4);
  looking.make = false;
  EXPECT_EQ(open(looking)->clean(true).evicted, 3U);
  EXPECT_FALSE(fs::exists(temps()));
}

TEST_F(EvictionTest, StrangeFilesAreLeftAlone) {
  const auto store = open(at_most(1));
  fill(*store, 1);
  const std::string shard = fs::path(path_of(key_of(0))).parent_path();
  overwrite(shard + "/notes.txt", "mine");
  overwrite(options().directory + "/v1/README", "mine");
  set_used(shard + "/notes.txt", FileTime(1s));
  const Cleaned cleaned = store->clean();
  EXPECT_EQ(cleaned.evicted, 0U);
  EXPECT_EQ(cleaned.entries_left, 1U);
  EXPECT_EQ(bytes_of(shard + "/notes.txt"), "mine");
  EXPECT_EQ(left(1).size(), 1U);
}

// Nobody finds it there, and it takes room.
TEST_F(EvictionTest, AnArtifactInAnotherShardCounts) {
  const auto store = open(at_most(4));
  fill(*store, 5);
  const std::string other = options().directory + "/v1/zz";
  fs::create_directory(other);
  fs::rename(path_of(key_of(0)), other + "/" + key_of(0).hex() + ".so");
  EXPECT_EQ(store->clean().evicted, 2U);
  EXPECT_TRUE(fs::is_empty(other));
  EXPECT_EQ(left(5), (std::set<int>{2, 3, 4}));
}

// ---- what it costs --------------------------------------------------------------------------------------------------

class StoreCostTest : public EvictionTest {
 protected:
  StoreCostTest() {
    files_.before = [this](const std::string& operation) { ++made_[operation]; };
  }
  // The calls that `work` makes, by operation.
  template <class Work>
  std::map<std::string, int> calls_of(Work work) {
    made_.clear();
    work();
    return made_;
  }
  // In one shard.
  static common::Digest near_key(int number) {
    common::Digest key = key_of(number);
    key.bytes[0] = 7;
    return key;
  }

 private:
  std::map<std::string, int> made_;
};

TEST_F(StoreCostTest, APublishCostsTheSameWhateverTheStoreHas) {
  const auto store = open();
  ASSERT_TRUE(publish(*store, near_key(0)));
  const auto first = calls_of([&] { ASSERT_TRUE(publish(*store, near_key(1))); });
  EXPECT_FALSE(first.contains("list"));
  for (int i = 2; i < 500; ++i) ASSERT_TRUE(publish(*store, near_key(i)));
  EXPECT_EQ(calls_of([&] { ASSERT_TRUE(publish(*store, near_key(500))); }), first);
}

TEST_F(StoreCostTest, CleaningLooksAtEachEntryOnce) {
  const auto store = open(at_most(0));
  const auto clean = [&] { EXPECT_EQ(store->clean().evicted, 0U); };
  ASSERT_TRUE(publish(*store, near_key(0)));
  auto expected = calls_of(clean);
  for (int i = 1; i <= 300; ++i) ASSERT_TRUE(publish(*store, near_key(i)));
  expected["status"] += 300;
  EXPECT_EQ(calls_of(clean), expected);
}

TEST_F(StoreCostTest, ARemovalIsALookAndACall) {
  constexpr int kCount = 200;
  const auto store = open(at_most(100)), unlimited = open(at_most(0));
  fill(*store, kCount);
  auto expected = calls_of([&] { EXPECT_EQ(unlimited->clean().evicted, 0U); });
  expected["status"] += 110;
  expected["unlink"] += 110;
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(store->clean().evicted, 110U); }), expected);
}

// While all was used within the hour a scan gains nothing, and each publish would make one.
TEST_F(StoreCostTest, AStoreThatCannotBeCleanedIsNotScannedWithEachPublish) {
  const auto store = open(at_most(10));
  int scans = 0;
  files_.clock = now_;
  const auto publish_more = [&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      ASSERT_TRUE(publish(*store, key_of(i)));
      if (!store->wants_cleaning()) continue;
      ++scans;
      EXPECT_TRUE(store->clean().done);
    }
  };
  publish_more(0, 100);
  EXPECT_EQ(scans, 2);  // the first one, and when the limit was passed
  files_.clock = now_ + 59s;
  publish_more(100, 110);
  EXPECT_EQ(scans, 2);
  files_.clock = now_ + 61s;
  publish_more(110, 120);
  EXPECT_EQ(scans, 3);
  // One of them may go, which is not room enough.
  set_used(path_of(key_of(0)), now_ - 2h);
  files_.clock = now_ + 122s;
  publish_more(120, 130);
  EXPECT_EQ(scans, 4);
  EXPECT_EQ(store->counters().evicted, 1U);
  for (int i = 1; i < 130; ++i) set_used(path_of(key_of(i)), now_ - 2h);
  files_.clock = now_ + 183s;
  publish_more(130, 132);
  EXPECT_EQ(scans, 5);
  EXPECT_FALSE(store->wants_cleaning());
  EXPECT_LE(left(132).size(), 10U);
}

TEST_F(StoreCostTest, CleaningEndsSoonWhenItIsTold) {
  const auto store = open(at_most(10));
  fill(*store, 100);
  int lists = 0;
  files_.before = [&](const std::string& operation) {
    if (operation == "list" && ++lists == 3) store->stop_cleaning();
  };
  EXPECT_FALSE(store->clean().done);
  EXPECT_LE(lists, 4);
  EXPECT_TRUE(store->wants_cleaning());
  EXPECT_EQ(left(100).size(), 100U);

  const auto other = open(at_most(10));
  files_.before = [&](const std::string& operation) {
    if (operation == "unlink") other->stop_cleaning();
  };
  EXPECT_EQ(other->clean().evicted, 1U);
  EXPECT_EQ(left(100).size(), 99U);
}

// ---- quarantine -----------------------------------------------------------------------------------------------------

TEST_F(StoreTest, TheQuarantineIsBoundedByNumberBytesAndAge) {
  const auto store = open();
  fs::create_directory(quarantine());
  const FileTime now = std::chrono::system_clock::now();
  const auto put = [&](const std::string& name, std::uint64_t size, FileTime when) {
    overwrite(quarantine() + "/" + name, "");
    fs::resize_file(quarantine() + "/" + name, size);  // a hole: no blocks
    set_used(quarantine() + "/" + name, when);
  };
  put("old", 1, now - 24h * 31);
  put("recent", 1, now - 24h * 29);
  fs::create_symlink("/etc/passwd", quarantine() + "/link");
  EXPECT_EQ(store->clean().quarantine_removed, 1U);
  EXPECT_THAT(files_in(quarantine()), ::testing::UnorderedElementsAre("recent", "link"));
  put("huge", std::uint64_t{60} << 20, now - 2h);
  put("next", std::uint64_t{5} << 20, now - 1h);
  store->clean();
  EXPECT_THAT(files_in(quarantine()), ::testing::UnorderedElementsAre("recent", "link", "next"));
  for (int i = 0; i < 20; ++i) put(std::to_string(i), 1, now - 30min + 1s * i);
  fs::create_symlink("/etc/passwd", quarantine() + "/newest");
  store->clean();
  EXPECT_EQ(files_in(quarantine()).size(), 16U);
  EXPECT_FALSE(fs::exists(quarantine() + "/recent"));
  EXPECT_TRUE(fs::exists(fs::symlink_status(quarantine() + "/newest")));
}

// A clock that was wrong must not make the oldest of all the last one to go.
TEST_F(StoreTest, WhatIsInTheQuarantineFromTheFutureGivesWayToWhatComesNow) {
  const auto store = open();
  fs::create_directory(quarantine());
  const FileTime now = std::chrono::system_clock::now();
  for (int i = 0; i < 16; ++i) {
    overwrite(quarantine() + "/future" + std::to_string(i), "");
    set_used(quarantine() + "/future" + std::to_string(i), now + 24h * 365 * 70);
  }
  for (int i = 0; i < 5; ++i) overwrite(quarantine() + "/now" + std::to_string(i), "");
  EXPECT_EQ(store->clean().quarantine_removed, 5U);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(fs::exists(quarantine() + "/now" + std::to_string(i))) << i;
  files_.clock = now + 24h * 32;  // they count from when they were seen
  EXPECT_EQ(store->clean().quarantine_removed, 16U);
}

TEST_F(StoreTest, DirectoriesInTheQuarantineGoAsFilesDo) {
  const auto store = open();
  testing::TemporaryDirectory outside;
  overwrite(outside.path() + "/file", "mine");
  for (int i = 0; i < 20; ++i) {
    const std::string piece = quarantine() + "/" + std::to_string(i);
    fs::create_directories(piece + "/inside/deeper");
    fs::create_directory_symlink(outside.path(), piece + "/inside/link");
    set_used(piece, std::chrono::system_clock::now() - 24h + 1s * i);
  }
  EXPECT_EQ(store->clean().quarantine_removed, 4U);
  EXPECT_EQ(std::distance(fs::directory_iterator(quarantine()), fs::directory_iterator()), 16);
  EXPECT_FALSE(fs::exists(quarantine() + "/0"));
  EXPECT_EQ(bytes_of(outside.path() + "/file"), "mine");
}

// Its key would never have a lease again.
TEST_F(StoreTest, WhatStandsInALeasesPlaceGoesAfterADay) {
  const auto store = open();
  const FileTime now = std::chrono::system_clock::now();
  std::vector<std::string> places;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(publish(*store, key_of(i)));
    places.push_back(fs::path(path_of(key_of(i))).replace_extension(".lease"));
  }
  fs::create_directories(places[0] + "/inside");
  ASSERT_EQ(mkfifo(places[1].c_str(), 0600), 0);
  fs::create_symlink("/nowhere", places[2]);
  overwrite(places[3], "garbage");
  EXPECT_EQ(store->clean().stale_leases, 0U) << "it came just now";
  set_used(places[0], now + 24h * 365);  // from the future: it has its day from now on
  EXPECT_EQ(store->clean().stale_leases, 0U);
  files_.clock = now + 25h;
  EXPECT_EQ(store->clean().stale_leases, 4U);
  for (const std::string& place : places) EXPECT_FALSE(fs::exists(fs::symlink_status(place))) << place;
}

// A disk that breaks everything must not fill it up before the next cleaning.
TEST_F(StoreTest, TheQuarantineIsBoundedWithoutCleaning) {
  constexpr int kBroken = 60;
  const auto store = open();
  for (int i = 0; i < kBroken; ++i) {
    ASSERT_TRUE(publish(*store, key_of(i)));
    overwrite(path_of(key_of(i)), "broken");
    if (i % 3 == 0) {
      EXPECT_EQ(look_up(*store, key_of(i)), LookupOutcome::kCorrupt);
    } else if (i % 3 == 1) {
      ASSERT_TRUE(publish(*store, key_of(i)));
    } else {
      store->set_aside(key_of(i));
    }
    EXPECT_LE(files_in(quarantine()).size(), 16U) << i;
  }
  EXPECT_EQ(files_in(quarantine()).size(), 16U);
  EXPECT_EQ(store->counters().quarantined, kBroken);
}

// What was not used for a month and is found broken now came today.
TEST_F(StoreTest, TheQuarantineCountsFromTheMove) {
  const auto store = open();
  ASSERT_TRUE(publish(*store, key_of(1)));
  overwrite(path_of(key_of(1)), "broken");
  set_used(path_of(key_of(1)), std::chrono::system_clock::now() - 24h * 365);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kCorrupt);
  EXPECT_EQ(store->clean().quarantine_removed, 0U);
  EXPECT_EQ(files_in(quarantine()).size(), 1U);
}

// ---- temporary files ------------------------------------------------------------------------------------------------

TEST_F(StoreTest, TempsOfDeadWritersGoThoseOfLivingOnesStay) {
  const auto store = open();
  const Owner self = Owner::this_process();
  const auto put = [this](const Owner& owner, FileTime used) {
    const std::string path = temps() + "/" + temp_name(owner);
    overwrite(path, "partial");
    set_used(path, used);
    return path;
  };
  const FileTime now = std::chrono::system_clock::now();
  Owner dead = self, recycled = self, rebooted = self, elsewhere = self, container = self;
  dead.pid = 4'000'000;  // above every pid_max
  recycled.start += 1;
  rebooted.boot = "00000000-0000-0000-0000-000000000000-1";
  elsewhere.host = "another.node.example";
  container.boot = container.boot.substr(0, container.boot.rfind('-')) + "-17";
  const std::string gone[] = {put(dead, now), put(recycled, now), put(rebooted, now), put(elsewhere, now - 25h),
                              put(container, now - 25h)};
  const std::string future = put(elsewhere, now + 24h * 365 * 70);
  const std::string kept[] = {put(self, now - 48h), put(elsewhere, now), put(container, now - 23h)};
  overwrite(temps() + "/strange", "");
  EXPECT_EQ(store->clean().stale_temps, std::size(gone));
  EXPECT_EQ(store->counters().stale_temps, std::size(gone));
  for (const std::string& path : gone) EXPECT_FALSE(fs::exists(path)) << path;
  for (const std::string& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::exists(temps() + "/strange"));
  EXPECT_TRUE(fs::exists(future));
  files_.clock = now + 25h;  // it counts from when it was seen
  store->clean();
  EXPECT_FALSE(fs::exists(future));
}

TEST(TempName, SaysItsOwner) {
  const Owner owner{
      .host = "node.with.dots", .boot = "1b4e28ba-2fa1-11d2-883f-0016d3cca427-4026531836", .pid = 17, .start = 99};
  const std::string name = temp_name(owner);
  EXPECT_THAT(name, HasSubstr("node.with.dots.1b4e28ba-2fa1-11d2-883f-0016d3cca427-4026531836.17.99."));
  const Owner read = owner_of(name).value_or(Owner{});
  EXPECT_EQ(read.host, owner.host);
  EXPECT_EQ(read.boot, owner.boot);
  EXPECT_EQ(read.pid, owner.pid);
  EXPECT_EQ(read.start, owner.start);
  EXPECT_NE(temp_name(owner), name);
  for (const char* strange : {"", ".", "....", "a.b.c.d.e", "a.b.1.x.e", "b.1.2.e", "a.b.99999999999999.1.e"}) {
    EXPECT_FALSE(owner_of(strange)) << strange;
  }
}

}  // namespace
}  // namespace jitc::store
