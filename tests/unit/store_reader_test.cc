#include "common/store_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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

TEST(StoreReader, FirstLayerThatHasItAnswers) {
  const TemporaryDirectory site;
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  const StoreReader reader({site.path(), own.path()});
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
  const StoreReader reader({site.path(), own.path()});
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
  EXPECT_EQ(StoreReader({own.path()}).look_up(key, artifact), LookupOutcome::kAbsent);
}

TEST(StoreReader, TouchMovesTheTimeOfUse) {
  const TemporaryDirectory own;
  const Digest key = sha256("k");
  put(own.path(), key, artifact_bytes(key));
  const std::string path = artifact_path(own.path(), key);
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  touch_artifact(path);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_GT(status.st_mtime, 1000);
  touch_artifact(path + "-absent");
}

}  // namespace
}  // namespace jitc::common
