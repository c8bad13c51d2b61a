#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "client/cli/key_fields.h"
#include "client/cli/replay_text.h"

namespace jitc::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

common::Request request() {
  common::Request request;
  request.origin = "int f(void);\n";
  request.flags = {"-O2", "-g0"};
  request.abi_tag = "petsc";
  request.headers = {{"a.h", "a"}, {"b.h", "b"}};
  return request;
}
KeyTerms terms() { return {.compiler_identity = "clang 19", .triple = "x86_64", .isa = "x86-64-v3", .includes = ""}; }

// As the daemon writes it.
common::Manifest manifest_of(const common::Request& request, const KeyTerms& terms) {
  common::Manifest manifest;
  manifest.origin_digest = common::text_digest(request.origin).hex();
  manifest.origin_bytes = request.origin.size();
  manifest.compiler = manifest.compiler_wish = request.compiler;
  manifest.flags = request.flags;
  manifest.abi_tag = request.abi_tag;
  manifest.share = request.share;
  manifest.cse = request.cse;
  manifest.emitter_version = request.emitter_version;
  manifest.isa_wish = request.isa_wish;
  manifest.exact_flags = request.exact_flags;
  for (const auto& header : request.headers)
    manifest.headers.push_back({header.name, common::text_digest(header.text).hex()});
  manifest.compiler_identity = *terms.compiler_identity;
  manifest.triple = *terms.triple;
  manifest.isa = *terms.isa;
  manifest.includes = *terms.includes;
  return manifest;
}

std::vector<std::string> names(const std::vector<FieldDifference>& differences) {
  std::vector<std::string> all;
  for (const auto& difference : differences) all.push_back(difference.name);
  return all;
}

TEST(KeyFields, ARequestAndItsArtifactHaveTheSame) {
  const auto here = fields_of(request(), terms());
  const auto there = fields_of(manifest_of(request(), terms()));
  EXPECT_THAT(differences(here, there), IsEmpty());
  EXPECT_EQ(distance(here, there), 0u);
}

TEST(KeyFields, EachFieldThatDiffersIsNamed) {
  struct Change {
    std::string name;
    std::function<void(common::Request&, KeyTerms&)> make;
  };
  const std::vector<Change> changes = {
      {"text", [](auto& r, auto&) { r.origin += " "; }},
      {"flags", [](auto& r, auto&) { r.flags[0] = "-O3"; }},
      {"compiler", [](auto& r, auto&) { r.compiler = "gcc"; }},
      {"abi_tag", [](auto& r, auto&) { r.abi_tag = "other"; }},
      {"share", [](auto& r, auto&) { r.share = "0"; }},
      {"cse", [](auto& r, auto&) { r.cse = "0"; }},
      {"emitter_version", [](auto& r, auto&) { r.emitter_version = 9; }},
      {"isa_wish", [](auto& r, auto&) { r.isa_wish = "native"; }},
      {"headers", [](auto& r, auto&) { r.headers[1].text = "c"; }},
      {"headers", [](auto& r, auto&) { r.headers.pop_back(); }},
      {"exact_flags", [](auto& r, auto&) { r.exact_flags = true; }},
      {"compiler_identity", [](auto&, auto& t) { t.compiler_identity = "clang 20"; }},
      {"triple", [](auto&, auto& t) { t.triple = "aarch64"; }},
      {"isa", [](auto&, auto& t) { t.isa = "x86-64"; }},
      {"includes", [](auto&, auto& t) { t.includes = std::string(64, 'a'); }},
  };
  const auto here = fields_of(request(), terms());
  for (const auto& change : changes) {
    auto other = request();
    auto its_terms = terms();
    change.make(other, its_terms);
    const auto there = fields_of(manifest_of(other, its_terms));
    EXPECT_THAT(names(differences(here, there)), ElementsAre(change.name));
    EXPECT_EQ(distance(here, there), 1u) << change.name;
  }
  EXPECT_EQ(changes.size(), here.size() + 1) << "every field";
}

TEST(KeyFields, LineEndsMakeNoDifference) {
  auto other = request();
  other.origin = "int f(void);\r\n";
  EXPECT_THAT(differences(fields_of(request(), terms()), fields_of(other, terms())), IsEmpty());
}

TEST(KeyFields, OfListsOnlyWhatDiffersIsShown) {
  auto other = request();
  other.flags = {"-g0", "-O3", "-w"};
  const auto found = differences(fields_of(request(), terms()), fields_of(other, terms()));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].here, "-O2");
  EXPECT_EQ(found[0].there, "-O3 -w");
  other.flags = {"-g0", "-O2"};
  const auto order = differences(fields_of(request(), terms()), fields_of(other, terms()));
  ASSERT_EQ(order.size(), 1u);
  EXPECT_EQ(order[0].here, "-O2 -g0");
  EXPECT_EQ(order[0].there, "-g0 -O2");
  other.flags = {"-O2", "-g0", "-g0"};
  EXPECT_EQ(differences(fields_of(request(), terms()), fields_of(other, terms()))[0].there, "-g0");
}

TEST(KeyFields, WhatFollowsFromAnotherDifferenceIsNotCounted) {
  auto other = request();
  auto its_terms = terms();
  other.compiler = "gcc";
  its_terms.compiler_identity = "digest of gcc";
  const auto here = fields_of(request(), terms()), there = fields_of(other, its_terms);
  EXPECT_THAT(names(differences(here, there)), ElementsAre("compiler", "compiler_identity"));
  EXPECT_EQ(distance(here, there), 1u);
}

TEST(KeyFields, ManifestsOfEarlierVersionsSayLess) {
  auto old = manifest_of(request(), terms());
  old.origin_digest = old.compiler_wish = old.isa_wish = old.cse = "";
  old.headers.clear();
  const auto there = fields_of(old);
  EXPECT_THAT(differences(fields_of(request(), terms()), there), IsEmpty());
  // text, cse, emitter_version, isa_wish, headers, exact_flags, includes
  EXPECT_EQ(distance(fields_of(request(), terms()), there), 7u);
  EXPECT_THAT(shown(there[0]), HasSubstr("(not known)"));
}

TEST(KeyFields, WhatNobodyKnowsHereIsNoDifference) {
  const auto there = fields_of(manifest_of(request(), terms()));
  EXPECT_EQ(distance(fields_of(request(), {}), there), 0u);
}

TEST(FirstDifference, IsTheFirstLine) {
  EXPECT_FALSE(first_difference("a\nb\n", "a\r\nb\r\n"));
  const auto changed = first_difference("a\nb\nc\n", "a\nx\ny\n");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->line, 2u);
  EXPECT_EQ(changed->here, "b");
  EXPECT_EQ(changed->there, "x");
  const auto longer = first_difference("a\n", "a\n\n");
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->line, 2u);
  EXPECT_EQ(longer->here, "(the text ends)");
  EXPECT_EQ(longer->there, "");
}

TEST(Replay, ComparesKindsAndTheErrorsOfASource) {
  using common::ErrorKind;
  common::Error invalid{ErrorKind::kInvalidSource, "no"};
  invalid.diagnostics = {{"error", 3, 5, "undeclared 'q'", ""}, {"note", 1, 1, "did you mean", ""}};
  common::Error moved = invalid, reworded = invalid;
  moved.diagnostics[0].line = 4;
  reworded.diagnostics.pop_back();
  const common::Error crash{ErrorKind::kCompilerCrashed, "signal 11"};
  EXPECT_EQ(compare(invalid, std::nullopt), Replayed::kCompiles);
  EXPECT_EQ(compare({ErrorKind::kMiscompiled, ""}, std::nullopt), Replayed::kUnchecked);
  EXPECT_EQ(compare(invalid, common::Error{ErrorKind::kMiscompiled, ""}), Replayed::kOtherFailure);
  EXPECT_EQ(compare(invalid, reworded), Replayed::kSameFailure) << "notes are no errors";
  EXPECT_EQ(compare(invalid, moved), Replayed::kOtherFailure);
  EXPECT_EQ(compare(invalid, crash), Replayed::kOtherFailure);
  EXPECT_EQ(compare(crash, common::Error{ErrorKind::kCompilerCrashed, "signal 6"}), Replayed::kSameFailure);
  EXPECT_EQ(compare(crash, common::Error{ErrorKind::kUnreachable, "no daemon"}), Replayed::kNotRun);
  EXPECT_EQ(compare(crash, common::Error{ErrorKind::kRefused, "no such compiler"}), Replayed::kNotRun);
}

TEST(Replay, SaysWhichVersionsAreOthers) {
  common::Capsule capsule;
  capsule.jitc = "1";
  capsule.compiler = {"gcc", "/usr/bin/gcc", "digest 1"};
  capsule.target = {"x86_64", "x86-64-v3"};
  common::Identity identity;
  identity.version = "2";
  identity.triple = "x86_64";
  common::ResolvedRequest resolved;
  resolved.compiler = {"gcc", "/opt/gcc", "digest 2"};
  resolved.target = {"x86_64", "x86-64-v3"};
  const auto changes = changes_since(capsule, identity, resolved);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].what, "jitc");
  EXPECT_EQ(changes[1].what, "compiler's identity");
  EXPECT_EQ(changes[1].here, "digest 2");
  EXPECT_EQ(changes_since(capsule, identity, std::nullopt).size(), 1u);
}

TEST(Replay, SaysWhichLimitsAndVariablesAreOthers) {
  common::Capsule capsule;
  capsule.cpu_seconds = 600;
  capsule.compilers = 4;
  capsule.budget_bytes = std::uint64_t{300} << 20;
  capsule.environment = {"LANG=C", "CPATH=/opt/a=b", "TMPDIR=/tmp"};
  const Surroundings same{600, 4, std::uint64_t{300} << 20, {"TMPDIR=/tmp", "CPATH=/opt/a=b", "LANG=C"}};
  EXPECT_TRUE(changes_around(capsule, same).empty());
  const auto changes =
      changes_around(capsule, {1, 4, std::uint64_t{500} << 20, {"LANG=C", "CPATH=/opt/a", "SDKROOT="}});
  std::vector<std::string> texts;
  for (const auto& change : changes) texts.push_back(change.what + ": " + change.recorded + ", " + change.here);
  EXPECT_EQ(texts, (std::vector<std::string>{"memory for all compilers: 300 MiB, 500 MiB",
                                             "limit of CPU time: 600 s, 1 s", "variable CPATH: '/opt/a=b', '/opt/a'",
                                             "variable SDKROOT: (unset), ''", "variable TMPDIR: '/tmp', (unset)"}));
}

}  // namespace
}  // namespace jitc::cli
