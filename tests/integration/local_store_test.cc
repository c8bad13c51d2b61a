// What the root of a job believes when it reads a store itself.
#include "client/gate/local_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "common/artifact.h"
#include "common/identity.h"
#include "common/store_reader.h"
#include "tests/support/temporary_directory.h"

namespace jitc::gate {
namespace {

class LocalStoreTest : public ::testing::Test {
 protected:
  LocalStoreTest() {
    identity_.version = common::build_version();
    identity_.pid = 1;
    identity_.compilers = {{"clang", "", "a compiler"}};
    identity_.triple = "x86_64-test";
    identity_.native_isa = "test";
    identity_.store = directory_.path() + "/store";
    request_.origin = "int f(void) { return 42; }\n";
    request_.compiler = "clang";
    path_ = common::artifact_path(identity_.store, common::resolve(request_, identity_)->key);
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    write({});
  }
  void write(const common::Manifest& manifest) const {
    const std::string elf = "\177ELF of a test";
    std::ofstream(path_) << elf << common::make_tail(elf, manifest, common::resolve(request_, identity_)->key, 1);
  }
  bool hits() {
    EXPECT_TRUE(common::write_identity(directory_.path(), identity_));
    return LocalStore(directory_.path()).look_up(request_).has_value();
  }

  testing::TemporaryDirectory directory_;
  common::Identity identity_;
  common::Request request_;
  std::string path_;
};

TEST_F(LocalStoreTest, WhatOthersCanHaveMadeIsNoHit) {
  EXPECT_TRUE(hits());
  ASSERT_EQ(::chmod(path_.c_str(), 0664), 0);
  EXPECT_FALSE(hits());
  identity_.store_is_shared = true;
  EXPECT_TRUE(hits()) << "a group's store";
  identity_.store_is_shared = false;
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path_.c_str(), 4242, 4242), 0);
  EXPECT_FALSE(hits());
  ASSERT_EQ(::chown(identity_.store.c_str(), 4242, 4242), 0);
  identity_.read_only_stores = {identity_.store};
  EXPECT_TRUE(hits()) << "a layer is its owner's";
}

TEST_F(LocalStoreTest, WhatWasNotCheckedIsNoHitForWhoWantsThat) {
  request_.checked = true;
  EXPECT_FALSE(hits());
  write({.checked = true});
  EXPECT_TRUE(hits());
  request_.checked = false;
  EXPECT_TRUE(hits());
}

TEST_F(LocalStoreTest, AHitInAReadOnlyLayerLeavesItsTime) {
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), old, 0), 0);
  const std::string store = std::exchange(identity_.store, directory_.path() + "/own");
  identity_.read_only_stores = {store};
  struct stat status{};
  EXPECT_TRUE(hits());
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mtime, 1000);
  identity_.read_only_stores.clear();
  identity_.store = store;
  EXPECT_TRUE(hits());
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_GT(status.st_mtime, 1000);
}

// The identity file stays when the daemon has ended.
TEST_F(LocalStoreTest, TheWayToTheStoreIsLookedAtEachTime) {
  const std::string parent = directory_.path() + "/parent";
  std::filesystem::create_directory(parent);
  std::filesystem::rename(identity_.store, parent + "/store");
  identity_.store = parent + "/store";
  EXPECT_TRUE(hits());
  ASSERT_EQ(::chmod(parent.c_str(), 0777), 0);
  EXPECT_FALSE(hits()) << "others may replace it";
  identity_.read_only_stores = {identity_.store};
  EXPECT_FALSE(hits());
  identity_.store_is_shared = true;
  EXPECT_TRUE(hits()) << "a group's store";
}

TEST_F(LocalStoreTest, ALayerThatAnotherHasReplacedIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving directories away needs root";
  identity_.read_only_stores = {identity_.store};
  identity_.store.clear();
  const std::string layer = identity_.read_only_stores.front();
  const auto give_to = [&](uid_t uid) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(layer))
      ASSERT_EQ(::chown(entry.path().c_str(), uid, uid), 0);
    ASSERT_EQ(::chown(layer.c_str(), uid, uid), 0);
  };
  give_to(1002);
  identity_.store_owners = {{layer, 1002}};
  EXPECT_TRUE(hits());
  give_to(1003);
  EXPECT_FALSE(hits());
  give_to(1002);
  EXPECT_TRUE(hits());
}

TEST_F(LocalStoreTest, LinksAndFifosInsideAreNoHits) {
  const std::string shard = std::filesystem::path(path_).parent_path();
  ASSERT_EQ(::rename(shard.c_str(), (directory_.path() + "/away").c_str()), 0);
  ASSERT_EQ(::symlink("../../away", shard.c_str()), 0);
  EXPECT_FALSE(hits());
  std::filesystem::remove(shard);
  std::filesystem::create_directory(shard);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(hits());
}

}  // namespace
}  // namespace jitc::gate
