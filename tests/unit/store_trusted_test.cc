// What others can have put into the writable store or a layer: never used, never written through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "tests/support/store_fixture.h"

namespace jitc::store {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::ErrorKind;
using common::LookupOutcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StoreTest;
using namespace std::chrono_literals;

constexpr uid_t kStranger = 4242;

class TrustedStoreTest : public StoreTest {
 protected:
  void give_away(const std::string& path) { ASSERT_EQ(::chown(path.c_str(), kStranger, kStranger), 0); }
  std::string shard_of(const Digest& key) { return fs::path(path_of(key)).parent_path(); }
  // Puts a link to a directory outside the store where `path` was.
  std::string lead_elsewhere(const std::string& path) {
    const std::string elsewhere = home_.path() + "/elsewhere";
    if (fs::exists(path)) {
      fs::rename(path, elsewhere);
    } else {
      fs::create_directory(elsewhere);
    }
    fs::create_directory_symlink(elsewhere, path);
    return elsewhere;
  }
};

TEST_F(TrustedStoreTest, AnothersEntryIsAbsentCountedAndReplaced) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  const auto store = open();
  const Digest key = key_of(1);
  ASSERT_TRUE(publish(*store, key));
  give_away(path_of(key));
  common::StoredArtifact artifact;
  std::string reason;
  EXPECT_EQ(store->look_up(key, artifact, &reason), LookupOutcome::kUntrusted);
  EXPECT_THAT(reason, HasSubstr("uid 4242"));
  EXPECT_EQ(artifact.path, path_of(key));
  EXPECT_EQ(store->counters().untrusted, 1U);
  EXPECT_TRUE(fs::exists(path_of(key))) << "a look changes nothing";
  ASSERT_TRUE(publish(*store, key));
  EXPECT_EQ(look_up(*store, key), LookupOutcome::kFound);
  EXPECT_EQ(store->counters().quarantined, 1U);
  EXPECT_EQ(files_in(quarantine()).size(), 1U);
}

TEST_F(TrustedStoreTest, AnEntryThatOthersMayWriteIsNotUsed) {
  const auto store = open();
  const Digest key = key_of(1);
  ASSERT_TRUE(publish(*store, key));
  for (const mode_t mode : {0620U, 0602U}) {
    ASSERT_EQ(::chmod(path_of(key).c_str(), mode), 0);
    EXPECT_EQ(look_up(*store, key), LookupOutcome::kUntrusted) << mode;
  }
  EXPECT_TRUE(store->quarantine(key));
  EXPECT_EQ(look_up(*store, key), LookupOutcome::kAbsent);
}

TEST_F(TrustedStoreTest, AGroupsStoreTakesWhatOthersPutThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  Options group = options();
  group.allow_shared = true;
  group.mode = 0664;
  const auto store = open(group);
  const Digest key = key_of(1);
  ASSERT_TRUE(publish(*store, key));
  for (const std::string& path : {path_of(key), shard_of(key), options().directory}) give_away(path);
  EXPECT_EQ(look_up(*store, key), LookupOutcome::kFound);
  EXPECT_EQ(store->counters().untrusted, 0U);
}

TEST_F(TrustedStoreTest, DirectoriesOfAGroupsStoreHandTheirGroupOn) {
  const auto modes = [this](mode_t files) {
    fs::remove_all(options().directory);
    const mode_t before = ::umask(077);
    Options some = options();
    some.mode = files;
    some.allow_shared = true;
    const auto store = open(some);
    const std::string path = *publish(*store, key_of(1));
    ::umask(before);
    EXPECT_EQ(mode_of(path), files);
    EXPECT_EQ(mode_of(shard_of(key_of(1))), mode_of(options().directory));
    EXPECT_EQ(mode_of(temps()), mode_of(options().directory));
    return mode_of(options().directory);
  };
  EXPECT_EQ(modes(0664), 02775U);
  EXPECT_EQ(modes(0660), 02770U);
  EXPECT_EQ(modes(0640), 02750U);
  EXPECT_EQ(modes(0644), 0755U);
  EXPECT_EQ(modes(0600), 0700U);
}

TEST_F(TrustedStoreTest, AStoreThatOthersCanReplaceMeanwhileIsLeftAlone) {
  Options deep = options();
  deep.directory = home_.path() + "/parent/store";
  const auto store = open(deep);
  ASSERT_TRUE(publish(*store, key_of(1)));
  ASSERT_EQ(::chmod((home_.path() + "/parent").c_str(), 0777), 0);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kUntrusted);
  for (int i = 1; i <= 2; ++i) {
    const auto published = publish(*store, key_of(i));
    ASSERT_FALSE(published);
    EXPECT_EQ(published.error().kind, ErrorKind::kRefused);
  }
  EXPECT_FALSE(store->quarantine(key_of(1)));
  EXPECT_EQ(store->remove(key_of(1)), Store::Removal::kKept);
  ASSERT_EQ(::chmod((home_.path() + "/parent").c_str(), 0755), 0);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kFound);
}

TEST_F(TrustedStoreTest, ALayerThatAnotherReplacesMeanwhileIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  Options site = options();
  site.directory = home_.path() + "/way/site";
  site.mode = 0644;
  ASSERT_TRUE(publish(*open(site), key_of(1)));
  const auto give_to = [&](uid_t uid) {
    for (const auto& entry : fs::recursive_directory_iterator(site.directory))
      ASSERT_EQ(::lchown(entry.path().c_str(), uid, uid), 0);
    ASSERT_EQ(::chown(site.directory.c_str(), uid, uid), 0);
  };
  give_to(4343);
  Options both = options();
  both.read_only = {site.directory};
  const auto store = open(both);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kFound);
  give_to(kStranger);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kUntrusted);
  ASSERT_EQ(::chmod((home_.path() + "/way").c_str(), 01777), 0);
  give_to(4343);
  EXPECT_EQ(look_up(*store, key_of(1)), LookupOutcome::kUntrusted) << "anybody could have been first";
  EXPECT_THAT(open(both)->refused_layers(), ::testing::SizeIs(1));
}

TEST_F(TrustedStoreTest, TheFirstMemberLocksNobodyOut) {
  Options group = options();
  group.allow_shared = true;
  for (const mode_t top : {02770U, 0775U, 0700U}) {
    fs::remove_all(group.directory);
    fs::create_directory(group.directory);
    ASSERT_EQ(::chmod(group.directory.c_str(), top), 0);
    const auto store = open(group);
    ASSERT_TRUE(publish(*store, key_of(1)));
    overwrite(path_of(key_of(1)), "broken");
    EXPECT_TRUE(store->quarantine(key_of(1)));
    for (const std::string& path : {group.directory + "/v1", temps(), shard_of(key_of(1)), quarantine()})
      EXPECT_EQ(mode_of(path), top) << path;
  }
  group.allow_shared = false;
  fs::remove_all(group.directory);
  fs::create_directory(group.directory);
  ASSERT_EQ(::chmod(group.directory.c_str(), 0755), 0);
  open(group);
  EXPECT_EQ(mode_of(temps()), 0700U) << "a private one is as the setting says";
}

// ---- links inside the store -----------------------------------------------------------------------------------------

TEST_F(TrustedStoreTest, AShardThatIsALinkIsNeitherReadNorWrittenNorCleaned) {
  Options tiny = options();
  tiny.max_entries = 1;
  const auto store = open(tiny);
  const Digest key = key_of(1);
  ASSERT_TRUE(publish(*store, key));
  set_used(path_of(key), std::chrono::system_clock::now() - 48h);
  const std::string elsewhere = lead_elsewhere(shard_of(key));
  const auto before = files_in(elsewhere);
  EXPECT_EQ(look_up(*store, key), LookupOutcome::kUntrusted);
  const auto path = publish(*store, key);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, ErrorKind::kRefused);
  EXPECT_FALSE(store->quarantine(key));
  store->set_aside(key);
  EXPECT_EQ(store->remove(key), Store::Removal::kKept);
  EXPECT_EQ(store->clean().entries_left, 0U);
  EXPECT_EQ(files_in(elsewhere), before);
}

TEST_F(TrustedStoreTest, TheOtherDirectoriesAreNoLinksEither) {
  for (const std::string name : {"/v1", "/v1/tmp", "/v1/quarantine"}) {
    fs::remove_all(options().directory);
    fs::remove_all(home_.path() + "/elsewhere");
    const auto store = open();
    ASSERT_TRUE(publish(*store, key_of(0)));
    const std::string elsewhere = lead_elsewhere(options().directory + name);
    overwrite(elsewhere + "/" + common::temp_name({.host = "gone", .boot = "b-1", .pid = 1, .start = 1}), "another's");
    overwrite(path_of(key_of(0)), "broken");
    const auto before = files_in(elsewhere);
    look_up(*store, key_of(0));
    const auto published = publish(*store, key_of(1));
    EXPECT_EQ(published.has_value(), name == "/v1/quarantine");
    const FileTime later = std::chrono::system_clock::now() + 24h * 365;
    files_.clock = later;
    EXPECT_EQ(store->clean().stale_temps, 0U);
    files_.clock.reset();
    EXPECT_EQ(files_in(elsewhere), before) << name;
    const auto again = Store::open(options(), files_);
    ASSERT_FALSE(again) << name;
    EXPECT_EQ(again.error().kind, ErrorKind::kRefused);
  }
}

TEST_F(TrustedStoreTest, ALinkOnTheWayIsResolvedOnce) {
  fs::create_directory(home_.path() + "/first");
  fs::create_directory(home_.path() + "/second");
  fs::create_directory_symlink("first", home_.path() + "/way");
  Options through = options();
  through.directory = home_.path() + "/way/store";
  const auto store = open(through);
  EXPECT_EQ(store->directory(), home_.path() + "/first/store");
  fs::remove(home_.path() + "/way");
  fs::create_directory_symlink("second", home_.path() + "/way");
  ASSERT_TRUE(publish(*store, key_of(1)));
  EXPECT_THAT(files_in(home_.path() + "/second"), IsEmpty());
}

// ---- read-only layers -----------------------------------------------------------------------------------------------

TEST_F(TrustedStoreTest, ALayerIsItsOwnersAndNoThirdPartys) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  Options site = options();
  site.directory = home_.path() + "/site";
  site.mode = 0644;
  {
    const auto writer = open(site);
    for (int i = 1; i <= 2; ++i) ASSERT_TRUE(publish(*writer, key_of(i)));
  }
  const std::string theirs = common::artifact_path(site.directory, key_of(1));
  for (const auto& entry : fs::recursive_directory_iterator(site.directory))
    ASSERT_EQ(::lchown(entry.path().c_str(), 4343, 4343), 0);
  ASSERT_EQ(::chown(site.directory.c_str(), 4343, 4343), 0);
  give_away(common::artifact_path(site.directory, key_of(2)));
  Options both = options();
  both.read_only = {site.directory};
  const auto store = open(both);
  EXPECT_THAT(store->refused_layers(), IsEmpty());
  common::StoredArtifact artifact;
  EXPECT_EQ(store->look_up(key_of(1), artifact), LookupOutcome::kFound);
  EXPECT_EQ(artifact.path, theirs);
  EXPECT_EQ(look_up(*store, key_of(2)), LookupOutcome::kUntrusted);
  EXPECT_EQ(store->counters().untrusted, 1U);
  ASSERT_TRUE(publish(*store, key_of(2)));
  EXPECT_EQ(look_up(*store, key_of(2)), LookupOutcome::kFound);
}

TEST_F(TrustedStoreTest, ALayerThatOthersMayWriteIsLeftOut) {
  const std::string good = home_.path() + "/good", bad = home_.path() + "/bad";
  fs::create_directory(good);
  fs::create_directory(bad);
  ASSERT_EQ(::chmod(bad.c_str(), 0775), 0);
  Options layered = options();
  layered.read_only = {bad, good};
  const auto store = open(layered);
  ASSERT_EQ(store->layers().size(), 2U);
  EXPECT_EQ(store->layers().front().path, good);
  ASSERT_EQ(store->refused_layers().size(), 1U);
  EXPECT_EQ(store->refused_layers().front().thing, bad);
  layered.allow_shared = true;
  EXPECT_EQ(open(layered)->layers().size(), 3U);
}

}  // namespace
}  // namespace jitc::store
