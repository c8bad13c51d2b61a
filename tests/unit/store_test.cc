#include "daemon/store/store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "common/artifact.h"
#include "common/files.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_directory.h"

namespace jitc::store {
namespace {

namespace fs = std::filesystem;
using common::Owner;
using common::owner_of;
using common::temp_name;
using namespace std::chrono_literals;
using common::Digest;
using common::ErrorKind;
using common::LookupOutcome;
using testing::FaultyFileSystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryDirectory;

const std::string kElf = "\177ELF" + std::string(3000, 'x');

std::string tail_of(const Digest& key) { return common::make_tail(kElf, {.name = "a test"}, key, 0); }
Digest key_of(int number) { return common::sha256("key " + std::to_string(number)); }
std::string bytes_of(const std::string& path) { return common::read_file(path).value_or(""); }
void overwrite(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
mode_t mode_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}
void set_used(const std::string& path, FileTime used) {
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(used.time_since_epoch()).count();
  const timespec times[] = {{since, 0}, {since, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}
std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) names.push_back(entry.path().filename());
  return names;
}

class StoreTest : public ::testing::Test {
 protected:
  Options options() { return {.directory = home_.path() + "/store"}; }
  std::unique_ptr<Store> open(Options options) {
    auto store = Store::open(std::move(options), files_);
    EXPECT_TRUE(store) << common::to_line(store.error());
    return store ? std::move(*store) : nullptr;
  }
  std::unique_ptr<Store> open() { return open(options()); }
  common::Result<std::string> publish(Store& store, const Digest& key) {
    return store.publish(key, kElf, tail_of(key));
  }
  std::string path_of(const Digest& key) { return common::artifact_path(options().directory, key); }
  std::string temps() { return options().directory + "/v1/tmp"; }
  std::string quarantine() { return options().directory + "/v1/quarantine"; }
  static LookupOutcome look_up(Store& store, const Digest& key) {
    common::StoredArtifact artifact;
    return store.look_up(key, artifact);
  }
  // Absent, or whole: never anything else under a final name.
  bool is_published(const Digest& key) {
    if (!fs::exists(fs::symlink_status(path_of(key)))) return false;
    const std::string bytes = bytes_of(path_of(key));
    const auto view = common::verify_artifact(bytes);
    EXPECT_TRUE(view && view->key == key) << "a broken file has a final name";
    return true;
  }

  TemporaryDirectory home_;
  FaultyFileSystem files_;
};

// ---- publish --------------------------------------------------------------------------------------------------------

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

// ---- integrity ------------------------------------------------------------------------------------------------------

TEST_F(StoreTest, DamageIsFoundQuarantinedAndRebuilt) {
  const auto store = open();
  const Digest key = key_of(1);
  const std::string good = kElf + tail_of(key);
  std::vector<std::string> damaged;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{10}, std::size_t{100}, std::size_t{1000}, good.size() / 2, good.size() - 1}) {
    damaged.push_back(good.substr(0, size));
  }
  for (std::size_t i = 0; i < 100; ++i) {
    std::string bytes = good;
    const std::size_t at = i * (good.size() - 1) / 99;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (i % 8)));
    damaged.push_back(bytes);
    damaged.push_back(good.substr(0, at));
  }
  damaged.push_back(kElf + tail_of(key_of(2)));  // another key's artifact, whole
  damaged.push_back(good + "x");
  std::uint64_t expected = 0;
  for (const std::string& bytes : damaged) {
    ASSERT_TRUE(publish(*store, key));
    overwrite(path_of(key), bytes);
    std::string reason;
    common::StoredArtifact artifact;
    ASSERT_EQ(store->look_up(key, artifact, &reason), LookupOutcome::kCorrupt) << bytes.size();
    EXPECT_FALSE(reason.empty());
    EXPECT_EQ(store->counters().quarantined, ++expected);
    EXPECT_EQ(look_up(*store, key), LookupOutcome::kAbsent);
  }
  ASSERT_TRUE(publish(*store, key));
  EXPECT_EQ(look_up(*store, key), LookupOutcome::kFound);
  EXPECT_EQ(files_in(quarantine()).size(), damaged.size());
  store->clean();
  EXPECT_EQ(files_in(quarantine()).size(), 16U);
}

TEST_F(StoreTest, APublishMovesABrokenEntryOutOfItsWay) {
  const auto store = open();
  const Digest key = key_of(1);
  ASSERT_TRUE(publish(*store, key));
  overwrite(path_of(key), "broken");
  ASSERT_TRUE(publish(*store, key));
  EXPECT_TRUE(is_published(key));
  EXPECT_EQ(store->counters().quarantined, 1U);
  EXPECT_EQ(bytes_of(quarantine() + "/" + files_in(quarantine()).at(0)), "broken");
}

TEST_F(StoreTest, WhatIsNotAFileIsMovedOutOfTheWayToo) {
  const auto store = open();
  const Digest key = key_of(1);
  fs::create_directories(fs::path(path_of(key)).parent_path());
  fs::create_symlink("/etc/passwd", path_of(key));
  ASSERT_TRUE(publish(*store, key));
  EXPECT_TRUE(is_published(key));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path_of(key))));
}

// The slower of two who saw the same broken entry moves what the faster one has published since.
TEST_F(StoreTest, AGoodEntryThatWasMovedByMistakeComesBack) {
  const auto store = open();
  const Digest key = key_of(1);
  ASSERT_TRUE(publish(*store, key));
  overwrite(path_of(key), "broken");
  bool done = false;
  files_.before = [&](const std::string& operation) {
    if (operation == "rename" && !std::exchange(done, true)) overwrite(path_of(key), kElf + tail_of(key));
  };
  EXPECT_EQ(look_up(*store, key), LookupOutcome::kCorrupt);
  EXPECT_TRUE(done);
  EXPECT_TRUE(is_published(key));
}

// ---- layers ---------------------------------------------------------------------------------------------------------

TEST_F(StoreTest, ReadOnlyLayersAnswerFirstAndStayUntouched) {
  Options site_options = options();
  site_options.directory = home_.path() + "/site";
  const Digest key = key_of(1), broken = key_of(2);
  {
    const auto site = open(site_options);
    ASSERT_TRUE(publish(*site, key));
    ASSERT_TRUE(publish(*site, broken));
  }
  const std::string broken_path = common::artifact_path(site_options.directory, broken);
  overwrite(broken_path, "broken");
  Options both = options();
  both.read_only = {site_options.directory};
  const auto store = open(both);
  set_used(common::artifact_path(site_options.directory, key), FileTime(1000s));
  common::StoredArtifact artifact;
  ASSERT_EQ(store->look_up(key, artifact), LookupOutcome::kFound);
  EXPECT_EQ(artifact.path, common::artifact_path(site_options.directory, key));
  FileInfo info;
  real_file_system().status(artifact.path, info);
  EXPECT_EQ(info.used, FileTime(1000s));
  EXPECT_EQ(look_up(*store, broken), LookupOutcome::kCorrupt);
  EXPECT_EQ(bytes_of(broken_path), "broken");
  EXPECT_EQ(store->counters().quarantined, 0U);
  ASSERT_TRUE(publish(*store, broken));
  EXPECT_EQ(look_up(*store, broken), LookupOutcome::kFound);
}

TEST_F(StoreTest, AStoreThatCannotBeWrittenServesWhatItHas) {
  {
    const auto store = open();
    ASSERT_TRUE(publish(*store, key_of(1)));
  }
  files_.before = [this](const std::string& operation) {
    static const std::set<std::string> kWriting = {"mkdir", "open", "link", "rename", "unlink", "touch", "chmod"};
    files_.disarm();
    if (kWriting.contains(operation)) files_.arm({.operation = operation, .error = EROFS});
  };
  const auto store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kFound);
  const auto path = publish(*store, key_of(2));
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, ErrorKind::kStoreUnavailable);
  EXPECT_THAT(path.error().message, HasSubstr("Read-only"));
  overwrite(path_of(key_of(1)), "broken");
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kCorrupt);
  EXPECT_EQ(store->counters().quarantined, 0U);
}

TEST_F(StoreTest, AStoreThatCannotBeMadeIsNoErrorUntilItIsWritten) {
  overwrite(home_.path() + "/file", "");
  Options impossible = options();
  impossible.directory = home_.path() + "/file/store";
  const auto store = open(impossible);
  ASSERT_TRUE(store);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kAbsent);
  const auto path = publish(*store, key_of(1));
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, ErrorKind::kStoreUnavailable);
  EXPECT_TRUE(store->clean().done);
}

// ---- whose directory ------------------------------------------------------------------------------------------------

TEST_F(StoreTest, ADirectoryThatOthersMayWriteIsRefused) {
  const auto refused = [this](const std::string& directory) {
    Options asked = options();
    asked.directory = directory;
    const auto store = Store::open(asked, files_);
    EXPECT_FALSE(store) << directory;
    if (store) return;
    EXPECT_EQ(store.error().kind, ErrorKind::kRefused);
    EXPECT_FALSE(store.error().remedy.empty());
    asked.allow_shared = true;
    EXPECT_TRUE(Store::open(asked, files_)) << directory;
  };
  const auto make = [this](const std::string& name, mode_t mode) {
    const std::string path = home_.path() + "/" + name;
    fs::create_directory(path);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  };
  refused(make("group", 0770));
  refused(make("world", 0777));
  refused(make("parent", 0777) + "/store");
  fs::create_directory_symlink(make("private", 0700), home_.path() + "/link");
  refused(home_.path() + "/link");
  refused(home_.path() + "/link/");
  if (::geteuid() == 0) {
    const std::string foreign = make("foreign", 0700);
    ASSERT_EQ(::chown(foreign.c_str(), 12345, 12345), 0);
    refused(foreign);
  }
  Options sticky = options();
  sticky.directory = make("sticky", 01777) + "/store";
  EXPECT_TRUE(Store::open(sticky, files_));
}

TEST_F(StoreTest, AfterAWipeTheDirectoryIsCheckedAgain) {
  const auto store = open();
  fs::remove_all(options().directory);
  fs::create_directory(options().directory);
  ASSERT_EQ(::chmod(options().directory.c_str(), 0777), 0);
  const auto path = publish(*store, key_of(1));
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, ErrorKind::kRefused);
}

TEST_F(StoreTest, NoDirectoryIsAnError) {
  const auto store = Store::open({}, files_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kUsage);
}

TEST_F(StoreTest, ModesAreTheSettingsNotTheUmasks) {
  const mode_t before = ::umask(077);
  Options shared = options();
  shared.mode = 0644;
  const auto store = open(shared);
  const std::string path = *publish(*store, key_of(1));
  ::umask(before);
  EXPECT_EQ(mode_of(path), 0644U);
  EXPECT_EQ(mode_of(fs::path(path).parent_path()), 0755U);
  EXPECT_EQ(mode_of(options().directory), 0755U);
  fs::remove_all(options().directory);
  const mode_t loose = ::umask(0);
  const auto own = open();
  const std::string own_path = *publish(*own, key_of(1));
  ::umask(loose);
  EXPECT_EQ(mode_of(own_path), 0600U);
  EXPECT_EQ(mode_of(fs::path(own_path).parent_path()), 0700U);
}

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

TEST_F(EvictionTest, TwoCleanersAndReadersAtOnce) {
  constexpr int kEntries = 200;
  std::vector<std::unique_ptr<Store>> stores;
  stores.reserve(4);
  for (int i = 0; i < 4; ++i) stores.push_back(open(at_most(100)));
  fill(*stores[0], kEntries);
  std::barrier start(4);
  std::atomic<std::uint64_t> evicted{0};
  std::atomic<int> cleaned{0}, corrupt{0};
  std::vector<std::thread> threads;
  threads.reserve(stores.size());
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      if (i < 2) {
        const Cleaned result = stores[i]->clean();
        cleaned += result.done ? 1 : 0;
        evicted += result.evicted;
        return;
      }
      for (int number = 0; number < kEntries; ++number) {
        if (look_up(*stores[i], key_of(number)) == LookupOutcome::kCorrupt) ++corrupt;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(cleaned, 1);
  EXPECT_EQ(corrupt, 0);
  EXPECT_EQ(left(kEntries).size(), kEntries - evicted);  // each removed once
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

TEST_F(EvictionTest, StrangeFilesAreLeftAlone) {
  const auto store = open(at_most(1));
  fill(*store, 1);
  const std::string shard = fs::path(path_of(key_of(0))).parent_path();
  overwrite(shard + "/notes.txt", "mine");
  overwrite(options().directory + "/v1/README", "mine");
  set_used(shard + "/notes.txt", FileTime(1s));
  store->clean();
  EXPECT_EQ(bytes_of(shard + "/notes.txt"), "mine");
  EXPECT_EQ(left(1).size(), 1U);
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
  const std::string kept[] = {put(self, now - 48h), put(elsewhere, now), put(container, now - 23h)};
  overwrite(temps() + "/strange", "");
  EXPECT_EQ(store->clean().stale_temps, std::size(gone));
  EXPECT_EQ(store->counters().stale_temps, std::size(gone));
  for (const std::string& path : gone) EXPECT_FALSE(fs::exists(path)) << path;
  for (const std::string& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::exists(temps() + "/strange"));
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
