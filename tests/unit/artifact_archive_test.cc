// Artifacts in one archive file: what comes out of it is what went in, or is told and never published.
#include "client/cli/artifact_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/tar.h"
#include "common/request.h"
#include "tests/support/store_fixture.h"

namespace jitc::cli {
namespace {

using common::Digest;
using common::ErrorKind;
using ::testing::HasSubstr;
using State = ImportedEntry::State;

// An artifact whose manifest leads to its key.
std::pair<Digest, std::string> artifact_number(int number) {
  const std::string elf = "\177ELF" + std::string(200 + 150 * static_cast<std::size_t>(number), 'x');
  common::Manifest manifest;
  const Digest request = common::sha256("request " + std::to_string(number));
  manifest.request = request.hex();
  manifest.compiler = "clang";
  manifest.compiler_identity = "a compiler";
  manifest.triple = "x86_64-test";
  manifest.isa = "x86-64-v2";
  const Digest key = common::artifact_key(request, {"clang", {}, "a compiler"}, {"x86_64-test", "x86-64-v2"});
  manifest.key = key.hex();
  return {key, elf + common::make_tail(elf, manifest, key, 1)};
}

std::string entry_of(const Digest& key, const std::string& artifact) {
  std::string bytes;
  const auto written = write_entry(
      [&bytes](std::string_view piece) -> common::Result<void> {
        bytes += piece;
        return {};
      },
      key, artifact);
  EXPECT_TRUE(written);
  return bytes;
}

// A regular file of any name.
std::string file_named(const std::string& name, const std::string& content) {
  return tar_header(name, content.size()) + content + std::string(tar_padding(content.size()), '\0');
}

// With its sum put right.
std::string changed(std::string header, std::size_t at, char byte) {
  header[at] = byte;
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  return header.replace(148, 8, digits.data(), 8);
}

class ArtifactArchive : public testing::StoreTest {
 protected:
  ArtifactArchive() {
    for (int number = 0; number < 5; ++number) artifacts_.insert(artifact_number(number));
    for (const auto& [key, bytes] : artifacts_) archive_ += entry_of(key, bytes);
    archive_ += tar_end();
  }

  common::Result<void> import(std::string_view archive, store::Store& store) {
    told_.clear();
    const Supply supply = [&archive](char* buffer, std::size_t most) -> common::Result<std::size_t> {
      const std::size_t count = archive.copy(buffer, std::min<std::size_t>(most, 100));  // never all at once
      archive.remove_prefix(count);
      return count;
    };
    return import_artifacts(supply, store, [this](const ImportedEntry& entry) { told_.push_back(entry); });
  }
  std::size_t told(State state) const {
    return static_cast<std::size_t>(std::ranges::count(told_, state, &ImportedEntry::state));
  }
  // Every file in the store is one of the artifacts, under its key. Their number.
  std::size_t published() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(options().directory)) {
      if (!entry.is_regular_file()) continue;
      const auto key = Digest::from_hex(entry.path().stem().string());
      EXPECT_TRUE(key && artifacts_.contains(*key)) << entry.path();
      if (!key || !artifacts_.contains(*key)) continue;
      EXPECT_EQ(bytes_of(entry.path()), artifacts_[*key]);
      EXPECT_EQ(entry.path(), path_of(*key));
      ++count;
    }
    return count;
  }

  std::map<Digest, std::string> artifacts_;
  std::string archive_;
  std::vector<ImportedEntry> told_;
};

TEST_F(ArtifactArchive, WhatGoesInComesOut) {
  const auto store = open();
  ASSERT_TRUE(import(archive_, *store));
  EXPECT_EQ(told(State::kPublished), 5U);
  EXPECT_EQ(published(), 5U);
  EXPECT_EQ(store->counters().published, 5U);
}

TEST_F(ArtifactArchive, WhatTheStoreHasStays) {
  const auto store = open();
  const auto& [key, bytes] = *artifacts_.begin();
  ASSERT_TRUE(import(entry_of(key, bytes) + tar_end(), *store));
  set_used(path_of(key), store::FileTime(std::chrono::seconds(1000)));
  ASSERT_TRUE(import(archive_, *store));
  EXPECT_EQ(told(State::kPresent), 1U);
  EXPECT_EQ(told(State::kPublished), 4U);
  ASSERT_TRUE(import(entry_of(key, bytes) + archive_, *store)) << "twice in one archive";
  EXPECT_EQ(told(State::kPresent), 6U);
  store::FileInfo info;
  ASSERT_EQ(store::real_file_system().status(path_of(key), info), 0);
  EXPECT_EQ(info.used, store::FileTime(std::chrono::seconds(1000)));
}

TEST_F(ArtifactArchive, ACorruptOneInTheStoreIsReplaced) {
  const auto store = open();
  ASSERT_TRUE(import(archive_, *store));
  overwrite(path_of(artifacts_.begin()->first), "broken");
  ASSERT_TRUE(import(archive_, *store));
  EXPECT_EQ(told(State::kPublished), 1U);
  EXPECT_EQ(bytes_of(path_of(artifacts_.begin()->first)), artifacts_.begin()->second);
}

TEST_F(ArtifactArchive, NamesMeanNothing) {
  const auto store = open();
  std::string renamed;
  for (const auto& [key, bytes] : artifacts_) renamed += file_named("./x/" + key.hex().substr(0, 5), bytes);
  ASSERT_TRUE(import(changed(tar_header("v1/", 0), 156, '5') + renamed + tar_end(), *store));
  EXPECT_EQ(told_.size(), 5U) << "directories are nothing to tell of";
  EXPECT_EQ(published(), 5U);
}

TEST_F(ArtifactArchive, WhatIsNoArtifactIsToldAndTheRestImported) {
  const auto store = open();
  const auto& [key, bytes] = *artifacts_.begin();
  const auto [other, others] = artifact_number(9);
  // Whole, but its manifest is another artifact's.
  const auto view = common::verify_artifact(bytes);
  ASSERT_TRUE(view);
  const std::string elf(view->elf);
  auto manifest = *common::manifest_from_json(view->manifest);
  const std::string of_another = elf + common::make_tail(elf, manifest, other, 1);
  manifest.key = other.hex();
  const std::string claimed = elf + common::make_tail(elf, manifest, other, 1);
  const std::string name = common::artifact_path("v1", key);
  const std::string bad = file_named("readme", "a text") + file_named("empty", "") + file_named(name, of_another) +
                          file_named(name, claimed) + file_named("/etc/passwd", bytes) +
                          file_named("v1/../../x", bytes) + file_named("..", bytes) +
                          changed(tar_header(name, 0), 156, '1') + changed(tar_header(name, 0), 156, '2') +
                          changed(tar_header("device", 0), 156, '3') + changed(tar_header("fifo", 0), 156, '6') +
                          changed(tar_header("pax", 3), 156, 'x') + "abc" + std::string(509, '\0');
  const auto imported = import(bad + archive_, *store);
  EXPECT_TRUE(imported) << common::to_line(imported.error());
  EXPECT_EQ(told(State::kRefused), 12U);
  EXPECT_EQ(told(State::kPublished), 5U);
  EXPECT_EQ(published(), 5U);
  for (const auto& entry : told_)
    if (entry.state == State::kRefused) {
      EXPECT_FALSE(entry.reason.message.empty()) << entry.name;
    }
}

TEST_F(ArtifactArchive, OneThatIsCutShortGivesWhatCameBefore) {
  const auto& [key, bytes] = *artifacts_.begin();
  const std::size_t first = entry_of(key, bytes).size();
  for (std::size_t size = 0; size < archive_.size() - 2 * kTarBlock + 1; size += 97) {
    std::filesystem::remove_all(options().directory);
    const auto store = open();
    const auto imported = import(std::string_view(archive_).substr(0, size), *store);
    ASSERT_FALSE(imported) << size;
    EXPECT_EQ(imported.error().kind, ErrorKind::kCorrupt);
    EXPECT_THAT(imported.error().message, HasSubstr("cut short"));
    EXPECT_EQ(published(), told(State::kPublished));
    EXPECT_GE(published(), size >= first ? 1U : 0U);
  }
}

TEST_F(ArtifactArchive, TooLargeASizeTakesNoMemory) {
  const auto store = open();
  const auto imported = import(tar_header("v1/huge.so", kTarMostBytes) + "x", *store);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(import(tar_header("v1/large.so", kLargestArtifact) + "x", *store).error().kind, ErrorKind::kCorrupt);
}

TEST_F(ArtifactArchive, AStoreThatTakesNoMoreEndsTheImport) {
  const auto store = open();
  files_.arm({.operation = "write", .first = 4, .count = 1000, .error = ENOSPC});
  const auto imported = import(archive_, *store);
  files_.disarm();
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().kind, ErrorKind::kStoreFull);
  EXPECT_EQ(told(State::kPublished), 2U);
  EXPECT_EQ(published(), 2U);
}

TEST_F(ArtifactArchive, OfAThousandDamagesNothingWrongIsPublished) {
  std::mt19937_64 random(20261130);
  const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  std::size_t imported = 0, complained = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = archive_;
    const std::size_t at = below(bytes.size()), count = 1 + below(700), to = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.erase(at, count);
        break;
      case 3:
        bytes.insert(at, bytes.substr(to, count));
        break;
      case 4:
        bytes.replace(at, count, std::min(count, bytes.size() - at), '\0');
        break;
      default:
        bytes.replace(at, count, bytes.substr(to, count));
        break;
    }
    if (i % 50 == 0) std::filesystem::remove_all(options().directory);
    const auto store = open();
    const auto done = import(bytes, *store);
    imported += told(State::kPublished);
    complained += !done || told(State::kRefused) > 0;
    published();
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_GT(imported, 50U);
  EXPECT_GT(complained, 600U);
}

// Made by another program from docs/formats.md.
TEST_F(ArtifactArchive, TheGoldenOneIsReadAndWrittenAgain) {
  const std::string formats = std::string(JITC_SOURCE_DIR) + "/tests/data/formats/";
  const std::string artifact = bytes_of(formats + "artifact_v1.so"), archive = bytes_of(formats + "archive_v1.tar");
  const auto view = check_artifact(artifact);
  ASSERT_TRUE(view) << common::to_line(view.error());
  EXPECT_EQ(entry_of(view->key, artifact) + tar_end(), archive);
  ASSERT_TRUE(import(archive, *open()));
  EXPECT_EQ(bytes_of(path_of(view->key)), artifact);
}

TEST(Tar, HasTheBytesOfTheFormat) {
  const std::string header = tar_header("v1/ab/name.so", 1234);
  ASSERT_EQ(header.size(), kTarBlock);
  EXPECT_EQ(header.substr(0, 14), std::string("v1/ab/name.so\0", 14));
  EXPECT_EQ(header.substr(100, 8), std::string("0000644\0", 8));
  EXPECT_EQ(header.substr(108, 16), std::string("0000000\0"
                                                "0000000\0",
                                                16));
  EXPECT_EQ(header.substr(124, 24), std::string("00000002322\0"
                                                "00000000000\0",
                                                24));
  EXPECT_EQ(header.substr(156, 1), "0");
  EXPECT_EQ(header.substr(257, 8), std::string("ustar\00000", 8));
  const auto entry = tar_entry(header);
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ((*entry)->name, "v1/ab/name.so");
  EXPECT_EQ((*entry)->size, 1234U);
  EXPECT_TRUE((*entry)->is_file);
  EXPECT_FALSE(*tar_entry(std::string(kTarBlock, '\0')));
  for (std::size_t at = 0; at < kTarBlock; ++at) {
    std::string damaged = header;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(tar_entry(damaged)) << at;
  }
}

}  // namespace
}  // namespace jitc::cli
