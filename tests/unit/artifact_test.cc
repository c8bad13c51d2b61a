#include "common/artifact.h"

#include <gtest/gtest.h>

namespace jitc::common {
namespace {

struct Sample {
  std::string elf = std::string("\177ELF") + std::string(3000, 'x');
  Digest key = sha256("a key");
  std::string bytes;
  Sample() {
    Manifest manifest;
    manifest.key = key.hex();
    manifest.flags = {"-O3", "-DX=1"};
    manifest.functions = {{"f0_0", "void f0_0(double *out)"}};
    manifest.peak_bytes = 123456789012;
    manifest.calls = 5;
    manifest.largest_function = 600;
    manifest.nesting = 7;
    manifest.log = "bytes that are no UTF-8: \xff";
    bytes = elf + make_tail(elf, manifest, key, 0b11);
  }
};

TEST(Artifact, WhatWasWrittenIsRead) {
  const Sample sample;
  const auto view = verify_artifact(sample.bytes);
  ASSERT_TRUE(view) << to_line(view.error());
  EXPECT_EQ(view->key, sample.key);
  EXPECT_EQ(view->isa_needed, 0b11u);
  EXPECT_EQ(view->elf, sample.elf);
  const auto manifest = manifest_from_json(view->manifest);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->key, sample.key.hex());
  EXPECT_EQ(manifest->flags, (std::vector<std::string>{"-O3", "-DX=1"}));
  ASSERT_EQ(manifest->functions.size(), 1u);
  EXPECT_EQ(manifest->functions[0].signature, "void f0_0(double *out)");
  EXPECT_EQ(manifest->peak_bytes, 123456789012u);
  EXPECT_EQ(manifest->calls, 5u);
  EXPECT_EQ(manifest->largest_function, 600u);
  EXPECT_EQ(manifest->nesting, 7u);
}

TEST(Artifact, WhatACommandLeftNeedBeNoElfImage) {
  Manifest manifest;
  manifest.kind = kCommandKind;
  manifest.exit_status = 4;
  manifest.stderr_bytes = 5;
  const std::string words = "words";
  const std::string bytes = words + make_tail(words, manifest, sha256("a key"), kNotAModule);
  const auto view = verify_artifact(bytes);
  ASSERT_TRUE(view) << to_line(view.error());
  const auto read = manifest_from_json(view->manifest);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, kCommandKind);
  EXPECT_EQ(read->exit_status, 4u);
  EXPECT_EQ(read->stderr_bytes, 5u);
  EXPECT_FALSE(verify_artifact(words + make_tail(words, manifest, sha256("a key"), 0b1)));
}

TEST(Artifact, ModulesHaveNoMembersOfCommands) {
  const std::string text = to_json(Manifest{});
  for (const char* name : {"kind", "exit_status", "output_bytes"})
    EXPECT_EQ(text.find(name), std::string::npos) << name;
}

TEST(Artifact, EveryTruncationIsCorrupt) {
  const Sample sample;
  for (std::size_t size = 0; size < sample.bytes.size(); ++size) {
    const auto view = verify_artifact(std::string_view(sample.bytes).substr(0, size));
    ASSERT_FALSE(view) << size;
    ASSERT_EQ(view.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(Artifact, EveryFlippedBitIsCorrupt) {
  Sample sample;
  for (std::size_t at = 0; at < sample.bytes.size(); ++at) {
    const char flipped = static_cast<char>(1 << (at % 8));
    sample.bytes[at] = static_cast<char>(sample.bytes[at] ^ flipped);
    ASSERT_FALSE(verify_artifact(sample.bytes)) << at;
    sample.bytes[at] = static_cast<char>(sample.bytes[at] ^ flipped);
  }
  EXPECT_TRUE(verify_artifact(sample.bytes));
}

TEST(Artifact, AppendedBytesAreCorrupt) {
  const Sample sample;
  EXPECT_FALSE(verify_artifact(sample.bytes + "x"));
}

TEST(Artifact, AnotherFormatVersionSaysItsNumber) {
  Sample sample;
  sample.bytes[sample.bytes.size() - kFooterSize + 8] = 2;
  const auto view = verify_artifact(sample.bytes);
  ASSERT_FALSE(view);
  EXPECT_NE(view.error().message.find("version is 2"), std::string::npos);
}

TEST(Artifact, ManifestThatIsNotJsonIsAnError) {
  EXPECT_FALSE(manifest_from_json("{"));
  EXPECT_FALSE(manifest_from_json("[]"));
  EXPECT_TRUE(manifest_from_json(R"({"peak_bytes": "many", "flags": [1, "-O1"]})"));
}

}  // namespace
}  // namespace jitc::common
