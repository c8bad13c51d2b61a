#include "common/store_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/files.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using testing::TemporaryDirectory;

std::string artifact_bytes(const Digest& key) {
  const std::string elf = "\177ELF of a test";
  return elf + make_tail(elf, Manifest{}, key, 1);
}

void put(const std::string& store, const Digest& key, const std::string& bytes) {
  const std::string path = artifact_path(store, key);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << bytes;
}

TEST(StoreReader, AFileThatIsTooLongIsCorruptAndTakesNoMemory) {
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  for (const std::uintmax_t size : {std::uintmax_t{900} << 20, std::uintmax_t{40} << 30}) {
    put(own.path(), key, artifact_bytes(key));
    std::filesystem::resize_file(artifact_path(own.path(), key), size);
    StoredArtifact artifact;
    std::string reason;
    EXPECT_EQ(StoreReader({{own.path()}}).look_up(key, artifact, &reason), LookupOutcome::kCorrupt);
    EXPECT_NE(reason, "");
    EXPECT_EQ(artifact.path, artifact_path(own.path(), key));
    EXPECT_LT(artifact.bytes.capacity(), std::size_t{1} << 20);
    EXPECT_FALSE(read_manifest(artifact.path));
  }
}

TEST(StoreReader, FirstLayerThatHasItAnswers) {
  const TemporaryDirectory site;
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  const StoreReader reader({{site.path()}, {own.path()}});
  StoredArtifact artifact;
  EXPECT_EQ(reader.look_up(key, artifact), LookupOutcome::kAbsent);
  put(own.path(), key, artifact_bytes(key));
  ASSERT_EQ(reader.look_up(key, artifact), LookupOutcome::kFound);
  EXPECT_EQ(artifact.path, artifact_path(own.path(), key));
  put(site.path(), key, artifact_bytes(key));
  ASSERT_EQ(reader.look_up(key, artifact), LookupOutcome::kFound);
  EXPECT_EQ(artifact.path, artifact_path(site.path(), key));
  EXPECT_EQ(artifact.view.elf, "\177ELF of a test");
}

TEST(StoreReader, CorruptEntryIsNamedUnlessAnotherLayerHasAGoodOne) {
  const TemporaryDirectory site;
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  const StoreReader reader({{site.path()}, {own.path()}});
  StoredArtifact artifact;
  std::string reason;
  for (const std::string& bad :
       {std::string(), std::string("half"), artifact_bytes(key).substr(1), artifact_bytes(sha256("other"))}) {
    put(site.path(), key, bad);
    ASSERT_EQ(reader.look_up(key, artifact, &reason), LookupOutcome::kCorrupt) << bad.size();
    EXPECT_EQ(artifact.path, artifact_path(site.path(), key));
    EXPECT_FALSE(reason.empty());
  }
  put(own.path(), key, artifact_bytes(key));
  EXPECT_EQ(reader.look_up(key, artifact), LookupOutcome::kFound);
}

TEST(StoreReader, SymlinksInsideTheStoreAreNotFollowed) {
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  put(own.path(), key, artifact_bytes(key));
  const std::string path = artifact_path(own.path(), key);
  ASSERT_EQ(::rename(path.c_str(), (own.path() + "/elsewhere").c_str()), 0);
  ASSERT_EQ(::symlink((own.path() + "/elsewhere").c_str(), path.c_str()), 0);
  StoredArtifact artifact;
  EXPECT_EQ(StoreReader({{own.path()}}).look_up(key, artifact), LookupOutcome::kAbsent);
}

// Whoever opened a FIFO plainly would wait for its writer.
TEST(StoreReader, WhatIsNoFileIsAbsentAndNotWaitedFor) {
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  const std::string path = artifact_path(own.path(), key);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const auto is_absent = [&] {
    StoredArtifact artifact;
    std::string reason;
    EXPECT_EQ(StoreReader({{own.path()}}).look_up(key, artifact, &reason), LookupOutcome::kAbsent);
    EXPECT_EQ(reason, "not a regular file");
    EXPECT_FALSE(read_manifest(path));
    std::filesystem::remove(path);
  };
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  is_absent();
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  is_absent();
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string beside = own.path() + "/s";  // the entry's path is too long
  std::ranges::copy(beside, address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::rename(beside.c_str(), path.c_str()), 0);
  is_absent();
  if (::geteuid() == 0 && ::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) is_absent();  // /dev/zero
}

TEST(StoreReader, DirectoriesThatAreLinksAreNotFollowed) {
  const TemporaryDirectory own, elsewhere;
  const Digest key = sha256("k");
  put(own.path(), key, artifact_bytes(key));
  const std::string shard = std::filesystem::path(artifact_path(own.path(), key)).parent_path();
  for (const std::string& directory : {shard, own.path() + "/v1"}) {
    const std::string away = elsewhere.path() + "/" + (directory == shard ? "shard" : "v1");
    ASSERT_EQ(::rename(directory.c_str(), away.c_str()), 0);
    ASSERT_EQ(::symlink(away.c_str(), directory.c_str()), 0);
    for (const Trust trust : {Trust::kOwn, Trust::kOwner, Trust::kEverybody}) {
      StoredArtifact artifact;
      std::string reason;
      EXPECT_EQ(StoreReader({{own.path(), trust}}).look_up(key, artifact, &reason), LookupOutcome::kUntrusted);
      EXPECT_EQ(reason, directory + ": not a directory");
    }
    ASSERT_EQ(::unlink(directory.c_str()), 0);
    ASSERT_EQ(::rename(away.c_str(), directory.c_str()), 0);
  }
}

TEST(StoreReader, AGoodEntryOfAnotherLayerGoesBeforeOneThatIsNotTrusted) {
  const TemporaryDirectory site, own;
  const Digest key = sha256("k");
  put(site.path(), key, artifact_bytes(key));
  ASSERT_EQ(::chmod(artifact_path(site.path(), key).c_str(), 0666), 0);
  const StoreReader reader({{site.path(), Trust::kOwner}, {own.path()}});
  StoredArtifact artifact;
  std::string reason;
  EXPECT_EQ(reader.look_up(key, artifact, &reason), LookupOutcome::kUntrusted);
  EXPECT_EQ(artifact.path, artifact_path(site.path(), key));
  EXPECT_EQ(reason, "others may write it");
  put(own.path(), key, "broken");
  EXPECT_EQ(reader.look_up(key, artifact), LookupOutcome::kCorrupt);
  EXPECT_EQ(artifact.path, artifact_path(own.path(), key));
  put(own.path(), key, artifact_bytes(key));
  EXPECT_EQ(reader.look_up(key, artifact), LookupOutcome::kFound);
}

TEST(StoreReader, TouchMovesTheTimeOfUse) {
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  put(own.path(), key, artifact_bytes(key));
  const std::string path = artifact_path(own.path(), key);
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  struct stat status{};
  const auto time_after = [&](const StoreLayer& layer) {
    StoredArtifact artifact;
    EXPECT_EQ(StoreReader({layer}).look_up(key, artifact), LookupOutcome::kFound);
    touch_artifact(artifact);
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mtime;
  };
  EXPECT_EQ(time_after({own.path(), Trust::kOwner, /*is_read_only=*/true}), 1000);
  EXPECT_GT(time_after({own.path()}), 1000);
  StoredArtifact absent;
  absent.path = path + "-absent";
  touch_artifact(absent);
}

}  // namespace
}  // namespace jitc::common
