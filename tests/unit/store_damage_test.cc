// Thousands of damaged artifacts in a store: none is found; what the daemon sees is counted, put
// away and built again.
// TEST_SEED and TEST_DAMAGES choose others; the seed is printed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/artifact_damage.h"
#include "tests/support/store_fixture.h"

namespace jitc::store {
namespace {

using common::Digest;
using common::LookupOutcome;
using testing::StoreTest;

constexpr std::size_t kArtifacts = 12;
constexpr std::size_t kKeptInQuarantine = 16;
constexpr std::uint64_t kSeenByDaemonOnceIn = 20;  // damages; the others are seen by readers, who only miss

struct Good {
  Digest key;
  std::string elf, tail;
};

// Of less than a page to some, with manifests short and long.
std::vector<Good> good_artifacts() {
  std::vector<Good> all;
  for (std::size_t i = 0; i < kArtifacts; ++i) {
    Good good{.key = common::sha256("artifact " + std::to_string(i)), .elf = "\177ELF", .tail = ""};
    for (std::size_t n = 0; good.elf.size() < 40 + i * i * 150; ++n) good.elf += std::to_string(n * (i + 1)) + '\0';
    good.tail = common::make_tail(good.elf, {.name = std::to_string(i), .log = std::string(i * 40, 'w')}, good.key, i);
    all.push_back(std::move(good));
  }
  return all;
}

// In place: cutting the file to nothing first makes some file systems write through to the disk.
void put(const std::string& path, const std::string& bytes) {
  const common::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  ASSERT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes.size())), 0);
}

TEST_F(StoreTest, NoDamagedArtifactIsFound) {
  const std::uint64_t seed = testing::number_from_environment("TEST_SEED", 20'260'301);
  const std::uint64_t count = testing::number_from_environment("TEST_DAMAGES", 10'000);
  std::printf("TEST_SEED=%llu TEST_DAMAGES=%llu\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(count));
  const auto artifacts = good_artifacts();
  std::vector<std::string> files;
  for (const Good& good : artifacts) files.push_back(good.elf + good.tail);
  testing::Damager damager(seed, files);
  const auto store = open();
  for (const Good& good : artifacts) ASSERT_TRUE(store->publish(good.key, good.elf, good.tail));
  const common::StoreReader reader({{options().directory}});

  std::uint64_t quarantined = 0;
  std::map<std::string, std::uint64_t> kinds;
  for (std::uint64_t i = 1; i <= count; ++i) {
    const testing::Damage damage = damager.next();
    const Good& good = artifacts[damage.of];
    SCOPED_TRACE(damage.kind + std::string(", damage ") + std::to_string(i));
    put(path_of(good.key), damage.bytes);

    common::StoredArtifact artifact;
    std::string reason;
    ASSERT_EQ(reader.look_up(good.key, artifact, &reason), LookupOutcome::kCorrupt);
    ASSERT_FALSE(reason.empty());
    ++kinds[damage.kind];
    if (i % kSeenByDaemonOnceIn != 0) continue;
    ASSERT_EQ(look_up(*store, good.key), LookupOutcome::kCorrupt);
    ASSERT_EQ(store->counters().quarantined, ++quarantined);
    ASSERT_EQ(look_up(*store, good.key), LookupOutcome::kAbsent) << "the daemon builds it again";

    ASSERT_TRUE(store->publish(good.key, good.elf, good.tail));
    ASSERT_EQ(reader.look_up(good.key, artifact), LookupOutcome::kFound);
    ASSERT_EQ(artifact.bytes, files[damage.of]);
    if (quarantined % 100 == 0) {
      ASSERT_TRUE(store->clean().done);
      ASSERT_LE(files_in(quarantine()).size(), kKeptInQuarantine);
    }
  }
  store->clean();
  EXPECT_EQ(files_in(quarantine()).size(), std::min<std::size_t>(quarantined, kKeptInQuarantine));
  EXPECT_TRUE(files_in(temps()).empty());
  for (const auto& [kind, times] : kinds)
    std::printf("%6llu %s\n", static_cast<unsigned long long>(times), kind.c_str());
}

// A good one of any layer is served, wherever the damaged one lies.
TEST_F(StoreTest, DamageInOneLayerHidesNoOther) {
  const auto artifacts = good_artifacts();
  std::vector<std::string> files;
  for (const Good& good : artifacts) files.push_back(good.elf + good.tail);
  testing::Damager damager(1, files);
  Options layered = options();
  layered.read_only = {home_.path() + "/site"};
  const auto store = open(layered);
  for (int i = 0; i < 300; ++i) {
    const testing::Damage damage = damager.next();
    const Good& good = artifacts[damage.of];
    ASSERT_TRUE(store->publish(good.key, good.elf, good.tail));
    const std::string site = common::artifact_path(layered.read_only[0], good.key);
    std::filesystem::create_directories(std::filesystem::path(site).parent_path());
    put(i % 2 == 0 ? site : path_of(good.key), damage.bytes);
    if (i % 2 != 0) put(site, files[damage.of]);
    common::StoredArtifact artifact;
    ASSERT_EQ(store->look_up(good.key, artifact), LookupOutcome::kFound) << damage.kind << i;
    ASSERT_EQ(artifact.bytes, files[damage.of]);
    std::filesystem::remove(site);
    std::filesystem::remove(path_of(good.key));
  }
  EXPECT_EQ(store->counters().quarantined, 0U);
}

}  // namespace
}  // namespace jitc::store
