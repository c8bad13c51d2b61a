// What the store finds: damage, read-only layers, directories that are not its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/snapshot.h"
#include "tests/support/store_fixture.h"

namespace jitc::store {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::ErrorKind;
using common::LookupOutcome;
using ::testing::HasSubstr;
using testing::snapshot;
using testing::StoreTest;
using namespace std::chrono_literals;

// ---- manifests ------------------------------------------------------------------------------------------------------

// Of all layers, the last used at the end; what is cut, empty or no artifact is left out.
TEST_F(StoreTest, NewestManifests) {
  store::Options layered = options();
  layered.read_only = {home_.path() + "/site"};
  {
    store::Options site = options();
    site.directory = layered.read_only.front();
    const auto writer = open(site);
    ASSERT_TRUE(writer->publish(key_of(0), kElf, common::make_tail(kElf, {.name = "site"}, key_of(0), 0)));
    set_used(common::artifact_path(site.directory, key_of(0)), std::chrono::system_clock::now() - 30min);
  }
  const auto store = open(layered);
  for (int i = 1; i <= 6; ++i) {
    ASSERT_TRUE(store->publish(key_of(i), kElf, common::make_tail(kElf, {.name = std::to_string(i)}, key_of(i), 0)));
    set_used(path_of(key_of(i)), std::chrono::system_clock::now() - i * 1h);
  }
  overwrite(path_of(key_of(2)), bytes_of(path_of(key_of(2))).substr(0, 2000));
  overwrite(path_of(key_of(3)), "");
  const auto names = [&](std::size_t most, std::chrono::milliseconds patience) {
    std::vector<std::string> found;
    for (const auto& manifest : store->newest_manifests(most, patience)) found.push_back(manifest.name);
    return found;
  };
  set_used(path_of(key_of(2)), std::chrono::system_clock::now() - 2h);
  set_used(path_of(key_of(3)), std::chrono::system_clock::now() - 3h);
  EXPECT_EQ(names(100, 1min), (std::vector<std::string>{"6", "5", "4", "1", "site"}));
  EXPECT_EQ(names(5, 1min), (std::vector<std::string>{"4", "1", "site"}));
  EXPECT_TRUE(names(100, 0s).empty());
  EXPECT_FALSE(std::filesystem::exists(quarantine()));  // looking is no use, and changes nothing
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
  EXPECT_EQ(files_in(quarantine()).size(), 16U);  // nobody has cleaned
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

TEST_F(StoreTest, ALayerThatIsNotThereIsToldAndReadWhenItComes) {
  const std::string site = home_.path() + "/site", group = home_.path() + "/group";
  fs::create_directory(group);
  Options layered = options();
  layered.read_only = {site, group};
  const auto store = open(layered);
  EXPECT_EQ(store->layers().size(), 3U);
  ASSERT_EQ(store->unread_layers().size(), 1U);
  EXPECT_EQ(store->unread_layers().front().thing, site);
  EXPECT_EQ(store->unread_layers().front().kind, ErrorKind::kStoreUnavailable);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kAbsent);
  EXPECT_FALSE(fs::exists(site));
  EXPECT_TRUE(fs::is_empty(group));
  Options writer = options();
  writer.directory = site;
  ASSERT_TRUE(publish(*open(writer), key_of(1)));
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kFound);
}

// In a mount namespace of its own: a mount that root cannot write to either. 77: this system gives none.
template <class Body>
int with_read_only_mount(const std::string& directory, const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const char* at = directory.c_str();
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(at, at, nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, at, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      ::_exit(77);
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST_F(StoreTest, ALayerOnAReadOnlyMountIsReadAndItsCorruptArtifactBuiltPrivately) {
  Options site_options = options();
  site_options.directory = home_.path() + "/site";
  const Digest key = key_of(1), broken = key_of(2);
  {
    const auto site = open(site_options);
    ASSERT_TRUE(publish(*site, key));
    ASSERT_TRUE(publish(*site, broken));
  }
  overwrite(common::artifact_path(site_options.directory, broken), "broken");
  Options both = options();
  both.read_only = {site_options.directory};
  const auto before = snapshot(site_options.directory);
  const int ended = with_read_only_mount(site_options.directory, [&] {
    std::ofstream file(site_options.directory + "/file");
    EXPECT_FALSE(file.is_open()) << "the mount is read-only";
    const auto store = open(both);
    EXPECT_TRUE(store->unread_layers().empty());
    common::StoredArtifact artifact;
    EXPECT_EQ(store->look_up(key, artifact), LookupOutcome::kFound);
    EXPECT_TRUE(artifact.is_read_only);
    EXPECT_EQ(artifact.path, common::artifact_path(site_options.directory, key));
    EXPECT_EQ(look_up(*store, broken), LookupOutcome::kCorrupt);
    EXPECT_TRUE(publish(*store, broken));
    EXPECT_EQ(store->look_up(broken, artifact), LookupOutcome::kFound);
    EXPECT_EQ(artifact.path, path_of(broken));
    EXPECT_TRUE(store->clean().done);
  });
  if (ended == 77) GTEST_SKIP() << "no mount namespace can be made here";
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(snapshot(site_options.directory), before);
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

}  // namespace
}  // namespace jitc::store
