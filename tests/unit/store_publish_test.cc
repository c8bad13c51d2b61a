// Publishing: under a final name there is a whole file or nothing, whatever fails and whoever races.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/store_fixture.h"

namespace jitc::store {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::ErrorKind;
using common::LookupOutcome;
using testing::FaultyFileSystem;
using ::testing::IsEmpty;
using testing::StoreTest;

TEST_F(StoreTest, PublishesAWholeFileAndFindsIt) {
  const auto store = open();
  const Digest key = key_of(1);
  EXPECT_EQ(look_up(*store, key), LookupOutcome::kAbsent);
  const auto path = publish(*store, key);
  ASSERT_TRUE(path) << common::to_line(path.error());
  EXPECT_EQ(*path, path_of(key));
  EXPECT_EQ(bytes_of(*path), kElf + tail_of(key));
  common::StoredArtifact artifact;
  ASSERT_EQ(store->look_up(key, artifact), LookupOutcome::kFound);
  EXPECT_EQ(artifact.view.elf, kElf);
  EXPECT_THAT(files_in(temps()), IsEmpty());
  EXPECT_TRUE(store->sync(*path));
  EXPECT_EQ(store->counters().published, 1U);
  EXPECT_EQ(store->size_bytes(), kElf.size() + tail_of(key).size());
}

TEST_F(StoreTest, APublishedPathKeepsItsBytes) {
  const auto store = open();
  const Digest key = key_of(1);
  const std::string path = *publish(*store, key);
  struct stat before{}, after{};
  ::stat(path.c_str(), &before);
  const std::string other_elf = kElf + "made by another compiler run";
  ASSERT_TRUE(store->publish(key, other_elf, common::make_tail(other_elf, {}, key, 0)));
  ::stat(path.c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(bytes_of(path), kElf + tail_of(key));
  EXPECT_EQ(store->counters().published, 1U);
  EXPECT_THAT(files_in(temps()), IsEmpty());
}

TEST_F(StoreTest, ManyPublishersOfOneKeyAllSucceedAndOneLinks) {
  constexpr int kThreads = 8, kRounds = 25;
  std::vector<std::unique_ptr<Store>> stores;  // as many daemons
  stores.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) stores.push_back(open());
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(stores.size());
  std::atomic<int> failures{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        start.arrive_and_wait();
        if (!publish(*stores[i], key_of(round))) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  std::uint64_t published = 0;
  for (const auto& store : stores) published += store->counters().published;
  EXPECT_EQ(published, static_cast<std::uint64_t>(kRounds));
  for (int round = 0; round < kRounds; ++round) EXPECT_TRUE(is_published(key_of(round)));
  EXPECT_THAT(files_in(temps()), IsEmpty());
}

// Every call of a publish fails once, in turn, with every error, before and after it did its work.
TEST_F(StoreTest, WhateverCallFailsTheFinalNameIsAbsentOrWhole) {
  int number = 0;
  for (const bool broken_entry_in_the_way : {false, true}) {
    for (const bool after_it : {false, true}) {
      for (const int error : {ENOENT, EEXIST, EPERM, ENOSPC, EDQUOT, EBUSY, EIO, ESTALE, EROFS, EACCES, EINTR}) {
        for (unsigned at = 0;; ++at) {
          const Digest key = key_of(++number);
          fs::remove_all(options().directory);
          const auto store = open();
          if (broken_entry_in_the_way) {
            fs::create_directory(fs::path(path_of(key)).parent_path());
            overwrite(path_of(key), "half a file");
          }
          files_.arm({.first = at, .error = error, .after_it = after_it});
          const auto path = publish(*store, key);
          const bool reached = files_.failed() > 0;
          files_.disarm();
          SCOPED_TRACE("call " + std::to_string(at) + " " + std::strerror(error) + (after_it ? " after it" : ""));
          if (!path && broken_entry_in_the_way && bytes_of(path_of(key)) == "half a file") {
            // It could not be moved; nobody takes it for an artifact.
          } else {
            EXPECT_EQ(is_published(key), path.has_value());
          }
          if (!path) {
            const ErrorKind kind = path.error().kind;
            EXPECT_TRUE(kind == ErrorKind::kStoreUnavailable || kind == ErrorKind::kStoreFull);
            EXPECT_FALSE(path.error().remedy.empty());
          }
          // Next time nothing fails, and it must work whatever was left.
          ASSERT_TRUE(publish(*store, key));
          ASSERT_TRUE(is_published(key));
          if (!reached) break;  // there are no more calls
          ASSERT_LT(at, 100U);
        }
      }
    }
  }
}

// As after kill -9 between any two calls.
TEST_F(StoreTest, ADeathBetweenTwoCallsLeavesNothingBroken) {
  for (unsigned at = 0;; ++at) {
    const Digest key = key_of(static_cast<int>(at));
    fs::remove_all(options().directory);
    const auto store = open();
    files_.arm({.first = at, .count = ~0U});
    const auto path = publish(*store, key);
    const bool reached = files_.failed() > 0;
    files_.disarm();
    is_published(key);
    ASSERT_TRUE(publish(*store, key));
    if (!reached) break;
  }
}

TEST_F(StoreTest, CleanupThatFailsDoesNotFailThePublish) {
  const auto store = open();
  for (const int error : {EBUSY, ENOENT, ESTALE, EIO}) {
    files_.arm({.operation = "unlink", .count = 100, .error = error});
    EXPECT_TRUE(publish(*store, key_of(error)));
    EXPECT_TRUE(is_published(key_of(error)));
  }
}

TEST_F(StoreTest, ALinkThatWasDoneThoughReportedAsFailedIsAPublish) {
  const auto store = open();
  for (const int error : {ENOENT, EEXIST, EIO, ESTALE}) {
    files_.arm({.operation = "link", .first = 1, .error = error, .after_it = true});
    files_.arm({.operation = "link", .first = 0, .error = error, .after_it = true});
    ASSERT_EQ(look_up(*store, key_of(error)), LookupOutcome::kAbsent);
    fs::create_directories(fs::path(path_of(key_of(error))).parent_path());
    EXPECT_TRUE(publish(*store, key_of(error))) << std::strerror(error);
    EXPECT_EQ(files_.failed(), 1U);
    EXPECT_TRUE(is_published(key_of(error)));
  }
}

TEST_F(StoreTest, WhereLinksAreRefusedItRenamesAndReplacesNothing) {
  const auto store = open();
  for (const int error : {EPERM, ENOTSUP, EMLINK, ENOSYS}) {
    const Digest key = key_of(error);
    files_.arm({.operation = "link", .count = 100, .error = error});
    ASSERT_TRUE(publish(*store, key)) << std::strerror(error);
    ASSERT_TRUE(is_published(key));
    struct stat before{}, after{};
    ::stat(path_of(key).c_str(), &before);
    ASSERT_TRUE(publish(*store, key));
    ::stat(path_of(key).c_str(), &after);
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_THAT(files_in(temps()), IsEmpty());
  }
}

TEST_F(StoreTest, WithNeitherLinkNorExclusiveRenameNothingIsPublished) {
  const auto store = open();
  ASSERT_TRUE(publish(*store, key_of(1)));
  files_.arm({.count = 0});
  files_.before = [this](const std::string& operation) {
    if (operation == "link") files_.arm({.operation = "link", .error = EPERM});
    if (operation == "rename_no_replace") files_.arm({.operation = "rename_no_replace", .error = EINVAL});
  };
  const auto path = publish(*store, key_of(2));
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, ErrorKind::kStoreUnavailable);
  EXPECT_FALSE(is_published(key_of(2)));
  EXPECT_THAT(files_in(temps()), IsEmpty());
}

TEST_F(StoreTest, AStoreWipedMeanwhileIsMadeAgain) {
  const auto store = open();
  ASSERT_TRUE(publish(*store, key_of(1)));
  for (const std::string at : {"open", "write", "fchmod", "close", "link"}) {
    bool wiped = false;
    files_.before = [&](const std::string& operation) {
      if (operation == at && !std::exchange(wiped, true)) fs::remove_all(options().directory);
    };
    const auto path = publish(*store, key_of(2));
    EXPECT_TRUE(path) << at << ": " << common::to_line(path.error());
    EXPECT_TRUE(wiped);
    EXPECT_TRUE(is_published(key_of(2)));
  }
}

TEST_F(StoreTest, AShortWriteGoesOn) {
  class Chunks : public FaultyFileSystem {
    ssize_t write(int fd, std::string_view bytes) override {
      return FaultyFileSystem::write(fd, bytes.substr(0, std::min<std::size_t>(bytes.size(), 7)));
    }
  } chunks;
  auto store = Store::open(options(), chunks);
  ASSERT_TRUE(store);
  EXPECT_TRUE(publish(**store, key_of(1)));
  EXPECT_TRUE(is_published(key_of(1)));
}

TEST_F(StoreTest, AFullStoreSaysSoAndLeavesNoPartialFile) {
  const auto store = open();
  for (const char* operation : {"open", "write", "fchmod", "close", "link"}) {
    for (const int error : {ENOSPC, EDQUOT}) {
      files_.arm({.operation = operation, .count = 100, .error = error});
      const auto path = publish(*store, key_of(1));
      ASSERT_FALSE(path) << operation;
      EXPECT_EQ(path.error().kind, ErrorKind::kStoreFull) << operation;
      EXPECT_FALSE(is_published(key_of(1)));
      EXPECT_THAT(files_in(temps()), IsEmpty()) << operation;
    }
  }
}

TEST_F(StoreTest, ARealFullFileSystem) {
  struct Mount {
    explicit Mount(std::string directory) : path(std::move(directory)) {
      fs::create_directory(path);
      mounted = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k,mode=0700") == 0;
    }
    ~Mount() {
      if (mounted) ::umount(path.c_str());
    }
    std::string path;
    bool mounted;
  } mount(options().directory);
  if (!mount.mounted) GTEST_SKIP() << "mounting needs root";
  const auto store = open();
  const std::string elf = "\177ELF" + std::string(20'000, 'y');
  int published = 0;
  common::Result<std::string> path;
  for (; published < 20; ++published) {
    const Digest key = key_of(published);
    path = store->publish(key, elf, common::make_tail(elf, {}, key, 0));
    if (!path) break;
  }
  EXPECT_GT(published, 0);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, ErrorKind::kStoreFull);
  EXPECT_FALSE(is_published(key_of(published)));
  EXPECT_THAT(files_in(temps()), IsEmpty());
  EXPECT_EQ(look_up(*store, key_of(0)), LookupOutcome::kFound);
}

}  // namespace
}  // namespace jitc::store
