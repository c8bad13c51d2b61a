// Who may have put something into a store.
#include "common/store_trust.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryDirectory;

constexpr uid_t kStranger = 4242, kSite = 4343;

class StoreTrustTest : public ::testing::Test {
 protected:
  std::string make(const std::string& name, mode_t mode = 0700, uid_t owner = ::geteuid()) const {
    std::string path = home_.path() + "/" + name;
    fs::create_directories(path);
    EXPECT_EQ(::chown(path.c_str(), owner, static_cast<gid_t>(-1)), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static std::string resolved(const std::string& path, Trust trust = Trust::kOwn) {
    const auto found = resolve_store({path, trust});
    return found ? *found : std::string(name_of(found.error().kind)) + " " + found.error().thing;
  }
  static std::string refused(const std::string& path) { return "REFUSED " + path; }

  TemporaryDirectory home_;
};

TEST_F(StoreTrustTest, EveryDirectoryOnTheWayCounts) {
  const std::string store = make("a/b/store");
  EXPECT_EQ(resolved(store), store);
  for (const std::string& one : {make("a"), make("a/b"), store}) {
    for (const mode_t mode : {0770U, 0777U, 0702U}) {
      ASSERT_EQ(::chmod(one.c_str(), mode), 0);
      EXPECT_EQ(resolved(store), refused(one)) << mode;
      EXPECT_EQ(resolved(store, Trust::kOwner), refused(one)) << mode;
      EXPECT_EQ(resolved(store, Trust::kEverybody), store) << mode;
      ASSERT_EQ(::chmod(one.c_str(), 0755), 0);
    }
  }
}

TEST_F(StoreTrustTest, InAStickyDirectoryOnlyOwnersRename) {
  make("sticky", 01777);
  const std::string store = make("sticky/store");
  EXPECT_EQ(resolved(store), store);
  EXPECT_EQ(resolved(home_.path() + "/sticky/new"), home_.path() + "/sticky/new") << "made next, then looked at again";
  EXPECT_EQ(resolved(home_.path() + "/sticky/new", Trust::kOwner), refused(home_.path() + "/sticky/new"))
      << "a layer that is not there yet could be anybody's";
}

TEST_F(StoreTrustTest, WhatDoesNotExistYetStays) {
  const std::string below = home_.path() + "/x/../y//z/";
  EXPECT_EQ(resolved(below), home_.path() + "/y/z");
  EXPECT_EQ(resolved(home_.path() + "/site", Trust::kOwner), home_.path() + "/site");
}

TEST_F(StoreTrustTest, LinksOnTheWayAreFollowedOnceAndLookedAt) {
  const std::string store = make("real/deep/store");
  fs::create_directory_symlink("real/deep", home_.path() + "/relative");
  fs::create_directory_symlink(make("real"), home_.path() + "/absolute");
  fs::create_directory_symlink("../../relative", home_.path() + "/real/deep/up");
  EXPECT_EQ(resolved(home_.path() + "/relative/store"), store);
  EXPECT_EQ(resolved(home_.path() + "/absolute/deep/up/store"), store);
  ASSERT_EQ(::chmod((home_.path() + "/real/deep").c_str(), 0777), 0);
  EXPECT_EQ(resolved(home_.path() + "/absolute/deep/up/store"), refused(home_.path() + "/real/deep"));
  fs::create_directory_symlink("loop", home_.path() + "/loop");
  EXPECT_EQ(resolved(home_.path() + "/loop/store"), "STORE_UNAVAILABLE " + home_.path() + "/loop");
}

TEST_F(StoreTrustTest, APrivateStoreIsNoLinkAndAReadOnlyLayerMayBeOne) {
  const std::string store = make("store"), link = home_.path() + "/current";
  fs::create_directory_symlink("store", link);
  EXPECT_EQ(resolved(link), refused(link));
  EXPECT_EQ(resolved(link, Trust::kOwner), store);
  EXPECT_EQ(resolved(link, Trust::kEverybody), store);
}

TEST_F(StoreTrustTest, OwnersOnTheWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving directories away needs root";
  const std::string site = make("apps", 0755, kSite), store = make("apps/store", 0755, kSite);
  EXPECT_EQ(resolved(store), refused(site));
  EXPECT_EQ(resolved(store, Trust::kOwner), store) << "a read-only layer's owner may own the way to it";
  EXPECT_EQ(resolved(store, Trust::kEverybody), store);
  make("apps", 0755, kStranger);
  EXPECT_EQ(resolved(store, Trust::kOwner), refused(site));
  make("apps", 0755, 0);
  fs::create_directory_symlink(store, home_.path() + "/link");
  ASSERT_EQ(::lchown((home_.path() + "/link").c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(resolved(home_.path() + "/link", Trust::kOwner), refused(home_.path() + "/link"));
}

TEST_F(StoreTrustTest, InAStickyDirectoryALayersOwnerCanHaveBeenAnybody) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving directories away needs root";
  make("sticky", 01777);
  const std::string theirs = make("sticky/theirs", 0755, kSite), store = make("sticky/theirs/store", 0755, kSite);
  EXPECT_EQ(resolved(theirs, Trust::kOwner), refused(theirs));
  EXPECT_EQ(resolved(store, Trust::kOwner), refused(theirs)) << "nor further down";
  make("sticky/roots", 0755);
  const std::string below = make("sticky/roots/store", 0755, kSite);
  EXPECT_EQ(resolved(below, Trust::kOwner), below) << "root alone could make one there";
  EXPECT_EQ(resolved(home_.path() + "/sticky/roots/../theirs", Trust::kOwner), refused(theirs));
  const std::string elsewhere = make("elsewhere", 0755, kSite), link = home_.path() + "/sticky/link";
  fs::create_directory_symlink(elsewhere, link);
  EXPECT_EQ(resolved(link, Trust::kOwner), elsewhere);
  ASSERT_EQ(::lchown(link.c_str(), kSite, kSite), 0);
  EXPECT_EQ(resolved(link, Trust::kOwner), refused(link));
}

TEST_F(StoreTrustTest, ALayersOwnerIsWhoItWasWhenItWasOpened) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving directories away needs root";
  const auto layer = open_layer({make("site", 0755, kSite), Trust::kOwner});
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->owner, kSite);
  EXPECT_TRUE(open_layer(*layer));
  make("site", 0755, kStranger);
  EXPECT_FALSE(open_layer(*layer));
  EXPECT_TRUE(open_layer({layer->path, Trust::kOwner})) << "for who names it now";
  make("site", 0755, 0);
  EXPECT_TRUE(open_layer(*layer)) << "root is always believed";
  const auto later = open_layer({home_.path() + "/later", Trust::kOwner});
  ASSERT_TRUE(later);
  EXPECT_EQ(later->owner, std::nullopt);
  make("later", 0755, kSite);
  EXPECT_EQ(open_layer(*later)->owner, kSite) << "root alone could make it";
}

TEST_F(StoreTrustTest, WhatIsInside) {
  const StoreLayer own{make("store"), Trust::kOwn}, owner{own.path, Trust::kOwner},
      everybody{own.path, Trust::kEverybody};
  const std::string shard = own.path + "/v1";
  EXPECT_TRUE(check_inside(own, shard)) << "absent";
  make("store/v1", 0755);
  EXPECT_TRUE(check_inside(own, shard));
  make("store/v1", 0775);
  EXPECT_FALSE(check_inside(own, shard));
  EXPECT_FALSE(check_inside(owner, shard));
  EXPECT_TRUE(check_inside(everybody, shard));
  make("store/v1", 01777);
  EXPECT_FALSE(check_inside(own, shard)) << "others may make entries in it";
  fs::remove(shard);
  fs::create_directory_symlink(make("elsewhere"), shard);
  for (const StoreLayer& layer : {own, owner, everybody}) {
    const auto looked = check_inside(layer, shard);
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().kind, ErrorKind::kRefused);
    EXPECT_EQ(looked.error().thing, shard);
  }
}

TEST_F(StoreTrustTest, WhomALayerBelieves) {
  const std::string store = make("store");
  struct stat status{};
  status.st_mode = S_IFREG | 0644;
  const auto believes = [&](Trust trust, uid_t uid) {
    status.st_uid = uid;
    return Believed({.path = store, .trust = trust, .owner = ::geteuid() == 0 ? kSite : ::geteuid()})
        .doubt(status)
        .empty();
  };
  for (const Trust trust : {Trust::kOwn, Trust::kOwner, Trust::kEverybody}) {
    EXPECT_TRUE(believes(trust, ::geteuid()));
    EXPECT_TRUE(believes(trust, 0));
    EXPECT_EQ(believes(trust, kStranger), trust == Trust::kEverybody);
  }
  if (::geteuid() == 0) {
    EXPECT_TRUE(believes(Trust::kOwner, kSite));
    EXPECT_FALSE(believes(Trust::kOwn, kSite));
  }
  status.st_mode = S_IFREG | 0664;
  EXPECT_FALSE(believes(Trust::kOwn, ::geteuid()));
  EXPECT_TRUE(believes(Trust::kEverybody, ::geteuid()));
}

}  // namespace
}  // namespace jitc::common
