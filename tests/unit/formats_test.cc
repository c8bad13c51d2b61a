// The golden files of docs/formats.md: what version 1 wrote is read for ever, to the byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/loader/module.h"
#include "common/artifact.h"
#include "common/capsule.h"
#include "common/files.h"
#include "common/identity.h"
#include "common/plan.h"
#include "common/request.h"
#include "common/store_reader.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using Json = nlohmann::json;

std::string golden(const std::string& name) {
  auto bytes = read_file(std::string(JITC_SOURCE_DIR) + "/tests/data/formats/" + name);
  EXPECT_TRUE(bytes) << to_line(bytes.error());
  return bytes.value_or("");
}

Digest digest_of(const Json& hex) { return Digest::from_hex(hex.get<std::string>()).value(); }

// ---- the artifact file ----------------------------------------------------------------------------------------------

std::uint64_t number_at(const std::string& bytes, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes.at(offset + i))} << (8 * i);
  return value;
}

// `file` ends with the footer that docs/formats.md says.
void expect_footer(const std::string& file, std::size_t elf_size, const std::string& key_hex, std::uint64_t mask) {
  ASSERT_GT(file.size(), elf_size + 104);
  const std::size_t footer = file.size() - 104;
  EXPECT_EQ(file.substr(footer, 8), "JITCART1");
  EXPECT_EQ(number_at(file, footer + 8, 4), 1U);
  EXPECT_EQ(number_at(file, footer + 12, 4), 104U);
  EXPECT_EQ(file.substr(footer + 16, 32),
            std::string(reinterpret_cast<const char*>(digest_of(key_hex).bytes.data()), 32));
  EXPECT_EQ(number_at(file, footer + 48, 8), mask);
  EXPECT_EQ(number_at(file, footer + 56, 8), elf_size);
  EXPECT_EQ(number_at(file, footer + 64, 8), footer - elf_size);
  const Digest digest = sha256(std::string_view(file).substr(0, footer + 72));
  EXPECT_EQ(file.substr(footer + 72), std::string(reinterpret_cast<const char*>(digest.bytes.data()), 32));
}

const std::string kKey = "186f42dc0b0af62217807b7560b08d7405b4ecd7c746da3958a9115f306278f0";
constexpr std::size_t kElfSize = 1464;

TEST(GoldenArtifact, VerifiesAndHasItsParts) {
  const std::string bytes = golden("artifact_v1.so");
  expect_footer(bytes, kElfSize, kKey, 0b11);
  const auto view = verify_artifact(bytes);
  ASSERT_TRUE(view) << to_line(view.error());
  EXPECT_EQ(view->key.hex(), kKey);
  EXPECT_EQ(view->isa_needed, 0b11U);
  EXPECT_EQ(view->elf, bytes.substr(0, kElfSize));
  EXPECT_EQ(view->manifest, golden("manifest_v1.json"));
}

TEST(GoldenArtifact, IsFoundInAStoreListedAndLoaded) {
  const testing::TemporaryDirectory store;
  const Digest key = digest_of(kKey);
  const std::string path = store.path() + "/v1/" + kKey.substr(0, 2) + "/" + kKey + ".so";
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << golden("artifact_v1.so");
  StoredArtifact artifact;
  ASSERT_EQ(StoreReader({{store.path()}}).look_up(key, artifact), LookupOutcome::kFound);
  EXPECT_EQ(artifact.path, path);
  EXPECT_EQ(read_manifest(path)->name, "answer");
#if defined(__x86_64__)
  const auto module = loader::Module::load(artifact.bytes, &key, {.host_isa = 0b11, .stage_dir = ""});
  ASSERT_TRUE(module) << to_line(module.error());
  EXPECT_EQ(reinterpret_cast<double (*)(double)>((*module)->symbol("answer").value())(2.0), 84.0);
#endif
}

TEST(GoldenArtifact, EveryByteOfItCounts) {
  std::string bytes = golden("artifact_v1.so");
  for (char& byte : bytes) {
    const char good = byte;
    byte = static_cast<char>(byte ^ 0x20);
    ASSERT_FALSE(verify_artifact(bytes)) << &byte - bytes.data();
    byte = good;
  }
}

TEST(GoldenManifest, HasEveryFieldAsItWasWritten) {
  const auto manifest = manifest_from_json(golden("manifest_v1.json"));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->key, kKey);
  EXPECT_EQ(manifest->request, "8b4bcdcaa344de0a3e8c5552bcbc93d290cf56608da4a9f9e42dc318162981d7");
  EXPECT_EQ(manifest->name, "answer");
  EXPECT_EQ(manifest->origin_digest, text_digest("double answer(double x) {\r\n  return 42.0 * x;\r\n}\r\n").hex());
  EXPECT_EQ(manifest->compiler, "clang");
  EXPECT_EQ(manifest->compiler_wish, "clang");
  EXPECT_EQ(manifest->compiler_identity, "clang 19.1.7");
  EXPECT_EQ(manifest->triple, "x86_64-pc-linux-gnu");
  EXPECT_EQ(manifest->isa, "x86-64-v2");
  EXPECT_EQ(manifest->isa_wish, "x86-64-v2");
  EXPECT_EQ(manifest->abi_tag, "petsc 3.18.6 int32 real64");
  EXPECT_EQ(manifest->share, "auto");
  EXPECT_EQ(manifest->cse, "auto");
  EXPECT_EQ(manifest->emitter_version, 0U);
  EXPECT_FALSE(manifest->exact_flags);
  ASSERT_EQ(manifest->headers.size(), 1U);
  EXPECT_EQ(manifest->headers[0].name, "constants.h");
  EXPECT_EQ(manifest->headers[0].digest, text_digest("#define ANSWER 42.0\n").hex());
  EXPECT_EQ(manifest->includes, "");
  EXPECT_EQ(manifest->origin_bytes, 47U);
  EXPECT_EQ(manifest->code_bytes, 12345678901U);
  EXPECT_EQ(manifest->calls, 3U);
  EXPECT_EQ(manifest->largest_function, 20U);
  EXPECT_EQ(manifest->nesting, 2U);
  const std::vector<std::string> flags{"-O3", "-g0", "-DLABEL=\"a b\""};
  EXPECT_EQ(manifest->flags, flags);
  EXPECT_EQ(manifest->flags_used, (std::vector<std::string>{flags[0], flags[1], flags[2], "-fPIC", "-shared"}));
  EXPECT_EQ(manifest->rungs, std::vector<std::string>{"at -O1"});
  ASSERT_EQ(manifest->functions.size(), 1U);
  EXPECT_EQ(manifest->functions[0].name, "answer");
  EXPECT_EQ(manifest->functions[0].signature, "double answer(double x)");
  EXPECT_EQ(manifest->compile_seconds, 0.125);
  EXPECT_EQ(manifest->peak_bytes, 98765432101U);
  EXPECT_EQ(manifest->predicted_bytes, 104857600U);
  EXPECT_EQ(manifest->attempts, 2U);
  EXPECT_EQ(manifest->log, "answer.c:1:1: warning: über\n");
  EXPECT_EQ(manifest->created, "2024-02-29T23:59:59Z");
}

TEST(GoldenManifest, IsWrittenAgainMemberByMember) {
  const std::string text = golden("manifest_v1.json");
  const Json written = Json::parse(to_json(manifest_from_json(text).value()));
  const Json members = Json::parse(text);
  for (const auto& [name, value] : members.items()) EXPECT_EQ(written.at(name), value) << name;
}

TEST(GoldenManifest, MembersOfLaterVersionsAreIgnoredAbsentAndMistypedOnesAreDefaults) {
  const Json members = Json::parse(golden("manifest_v1.json"));
  const Json defaults = Json::parse(to_json(Manifest{}));
  for (const auto& [name, value] : members.items()) {
    Json without = members;
    without.erase(name);
    without["of_a_later_version"] = {{"any", "thing"}};
    Json expected = Json::parse(to_json(manifest_from_json(members.dump()).value()));
    expected[name] = defaults.at(name);
    EXPECT_EQ(Json::parse(to_json(manifest_from_json(without.dump()).value())), expected) << name;
    for (const Json& other : {Json(nullptr), Json(Json::object()), Json(-1.5)}) {
      if (name == "compile_seconds" && other.is_number()) continue;
      without[name] = other;
      EXPECT_EQ(Json::parse(to_json(manifest_from_json(without.dump()).value())), expected) << name << other;
    }
  }
}

TEST(Manifest, NumbersThatDoNotFitAreNotTaken) {
  const auto manifest = manifest_from_json(
      R"({"attempts": 4294967296, "peak_bytes": -1, "calls": 1e300, "nesting": 2.0, "code_bytes": 18446744073709551616,
          "origin_bytes": 18446744073709551615})");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->attempts, 1U);
  EXPECT_EQ(manifest->peak_bytes, 0U);
  EXPECT_EQ(manifest->calls, 0U);
  EXPECT_EQ(manifest->nesting, 0U);
  EXPECT_EQ(manifest->code_bytes, 0U);
  EXPECT_EQ(manifest->origin_bytes, ~std::uint64_t{0});
}

TEST(MakeTail, WritesTheFooterThatThePageSays) {
  const std::string elf = "\177ELF and what follows";
  const Digest key = sha256("a key");
  const std::string file = elf + make_tail(elf, {.name = "n"}, key, 0xf0000000000000ffULL);
  expect_footer(file, elf.size(), key.hex(), 0xf0000000000000ffULL);
}

// ---- plans
// -----------------------------------------------------------------------------------------------------------

TEST(GoldenPlan, IsReadAndWrittenAgainByteByByte) {
  const std::string text = golden("plan_v1.jsonl");
  const auto plan = plan_from_text(text, "plan_v1.jsonl");
  ASSERT_TRUE(plan) << to_line(plan.error());
  ASSERT_EQ(plan->requests.size(), 2U);
  EXPECT_EQ(plan->requests[0].name, "answer.c");
  EXPECT_EQ(plan->requests[0].headers.size(), 1U);
  EXPECT_EQ(plan->requests[1].code, "int diffusion(void);\n");
  EXPECT_EQ(plan_line(plan->requests[0]).value() + plan_line(plan->requests[1]).value(), text);
}

// ---- digests --------------------------------------------------------------------------------------------------------

Request request_of(const Json& row) {
  Request request;
  request.origin = row.at("origin");
  request.flags = row.at("flags");
  request.compiler = row.at("compiler");
  request.abi_tag = row.at("abi_tag");
  request.share = row.at("share");
  request.cse = row.at("cse");
  request.emitter_version = row.at("emitter_version");
  request.isa_wish = row.at("isa_wish");
  for (const Json& header : row.at("headers")) request.headers.push_back({header.at("name"), header.at("text")});
  request.exact_flags = row.at("exact_flags");
  return request;
}

TEST(GoldenRequests, HaveTheirDigestsAndKeys) {
  const Json rows = Json::parse(golden("requests_v1.json"));
  ASSERT_GE(rows.size(), 10U);
  EXPECT_EQ(rows[0].at("key"), kKey);
  for (const Json& row : rows) {
    SCOPED_TRACE(row.at("what"));
    const Digest digest = request_digest(request_of(row.at("request")));
    EXPECT_EQ(digest, digest_of(row.at("request_digest")));
    // As the service gets there: a node's identity and the request's wish.
    Identity identity;
    const Json& compiler = row.at("compiler");
    identity.compilers = {{compiler.at("name"), "/usr/bin/gcc", compiler.at("identity")}};
    identity.triple = row.at("target").at("triple");
    identity.native_isa = row.at("target").at("isa");
    for (const Json& root : row.at("include_roots")) identity.include_roots.emplace_back("/a/path", root);
    Request request = request_of(row.at("request"));
    if (request.isa_wish == "common") request.isa_level = row.at("target").at("isa");
#if defined(__x86_64__)
    const auto resolved = resolve(request, identity);
    ASSERT_TRUE(resolved) << to_line(resolved.error());
    EXPECT_EQ(resolved->key, digest_of(row.at("key")));
#endif
  }
}

TEST(Hasher, FeedsTheBytesThatThePageSays) {
  const auto length = [](char n) { return std::string{n, 0, 0, 0, 0, 0, 0, 0}; };
  const Digest inner = sha256("inner");
  const std::string inner_bytes(reinterpret_cast<const char*>(inner.bytes.data()), 32);
  Hasher hasher("a domain");
  hasher.text("t1", "value").number("n", 0x0102).digest("h", inner).list("l", 1).text("t2", "");
  const std::string number{2, 1, 0, 0, 0, 0, 0, 0};
  const std::string bytes = "d" + length(6) + "domain" + length(8) + "a domain" +  //
                            "t" + length(2) + "t1" + length(5) + "value" +         //
                            "n" + length(1) + "n" + length(8) + number +           //
                            "h" + length(1) + "h" + length(32) + inner_bytes +     //
                            "l" + length(1) + "l" + length(8) + length(1) +        //
                            "t" + length(2) + "t2" + length(0);
  EXPECT_EQ(hasher.finish(), sha256(bytes));
}

// ---- the identity file ----------------------------------------------------------------------------------------------

Result<Identity> identity_from(const std::string& text) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path() + "/" + kIdentityFile, std::ios::binary) << text;
  return read_identity(directory.path());
}

TEST(GoldenIdentity, IsReadAndWrittenAgainMemberByMember) {
  const std::string text = golden("identity_v1.json");
  const auto identity = identity_from(text);
  ASSERT_TRUE(identity) << to_line(identity.error());
  EXPECT_EQ(identity->version, "0.1.0");
  EXPECT_EQ(identity->pid, 4711);
  ASSERT_EQ(identity->compilers.size(), 2U);
  EXPECT_EQ(identity->compilers[0].name, "clang");
  EXPECT_EQ(identity->compilers[1].path, "/usr/bin/gcc");
  EXPECT_EQ(identity->compilers[1].identity, sha256("gcc 12").hex());
  EXPECT_EQ(identity->triple, "x86_64-pc-linux-gnu");
  EXPECT_EQ(identity->native_isa, "skylake +avx,+avx2,+fma");
  EXPECT_EQ(identity->store, "/home/user/.cache/jitc");
  EXPECT_FALSE(identity->store_is_shared);  // the file does not say
  EXPECT_EQ(identity->read_only_stores, std::vector<std::string>{"/site/jitc"});
  ASSERT_EQ(identity->include_roots.size(), 1U);
  EXPECT_EQ(identity->include_roots[0], std::pair(std::string("/opt/petsc/include"), sha256("root 1").hex()));

  const testing::TemporaryDirectory directory;
  ASSERT_TRUE(write_identity(directory.path(), *identity));
  const Json written = Json::parse(read_file(directory.path() + "/" + kIdentityFile).value());
  const Json members = Json::parse(text);
  for (const auto& [name, value] : members.items()) EXPECT_EQ(written.at(name), value) << name;
}

TEST(GoldenIdentity, EveryMemberIsNeededAndOthersAreIgnored) {
  const Json members = Json::parse(golden("identity_v1.json"));
  Json later = members;
  later["of_a_later_version"] = 1;
  EXPECT_TRUE(identity_from(later.dump()));
  Json shared = members;
  shared["store_is_shared"] = true;
  EXPECT_TRUE(identity_from(shared.dump())->store_is_shared);
  shared["store_is_shared"] = 1;
  EXPECT_EQ(identity_from(shared.dump()).error().kind, ErrorKind::kVersionSkew);
  for (const auto& [name, value] : members.items()) {
    Json other = members;
    other.erase(name);
    EXPECT_EQ(identity_from(other.dump()).error().kind, ErrorKind::kVersionSkew) << name;
    for (const Json& mistyped : {Json(nullptr), Json(1.5), Json(Json::object())}) {
      other[name] = mistyped;
      EXPECT_EQ(identity_from(other.dump()).error().kind, ErrorKind::kVersionSkew) << name << mistyped;
    }
  }
}

// ---- the capsule ----------------------------------------------------------------------------------------------------

TEST(GoldenCapsule, HasEveryMemberAsItWasWritten) {
  const auto capsule = capsule_from_json(golden("capsule_v1.json"), "capsule_v1.json");
  ASSERT_TRUE(capsule) << to_line(capsule.error());
  EXPECT_EQ(capsule->created, "2024-02-29T23:59:59Z");
  EXPECT_EQ(capsule->jitc, "0.1.0");
  EXPECT_EQ(capsule->host, "node7");
  EXPECT_EQ(capsule->command.size(), 6U);
  EXPECT_EQ(capsule->environment, (std::vector<std::string>{"LANG=C", "CPATH=/opt/a=b"}));
  EXPECT_EQ(capsule->compiler.path, "/usr/bin/gcc");
  EXPECT_EQ(capsule->target.isa, "x86-64-v3");
  EXPECT_EQ(capsule->memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(capsule->cpu_seconds, 600U);
  EXPECT_EQ(capsule->compilers, 4U);
  EXPECT_EQ(capsule->budget_bytes, ~std::uint64_t{0} >> 1);
  EXPECT_EQ(capsule->predicted_bytes, 104857600U);
  EXPECT_EQ(capsule->peak_bytes, 98765432U);
  EXPECT_EQ(capsule->seconds, 0.125);
  EXPECT_EQ(capsule->attempts, 2U);
  EXPECT_EQ(capsule->exit_status, 4);
  EXPECT_EQ(capsule->signal, 11);
  const Request& request = capsule->request;
  EXPECT_EQ(request.name, "answer.c");
  EXPECT_EQ(request.text(), "double answer(double x) { return 42.0 * x; }\n");
  EXPECT_EQ(request.isa_level, "x86-64-v3");
  EXPECT_EQ(request.headers, (std::vector<Header>{{"a/b.h", "#define A 42.0\n"}, {"c.h", ""}}));
  EXPECT_EQ(request_digest(request).hex(), capsule->request_digest);
  EXPECT_EQ(artifact_key(request_digest(request), capsule->compiler, capsule->target).hex(), capsule->key);
  const Error& error = capsule->error;
  EXPECT_EQ(error.kind, ErrorKind::kCompilerCrashed);
  ASSERT_EQ(error.diagnostics.size(), 2U);
  EXPECT_EQ(error.diagnostics[0].column, 8U);
  EXPECT_EQ(error.diagnostics[0].message, "über");
  EXPECT_EQ(error.needed_bytes, 12345678901U);
  EXPECT_EQ(error.tries, 2U);
  EXPECT_EQ(error.retry_after_seconds, 1.5);
  EXPECT_EQ(error.rungs.size(), 1U);
}

TEST(GoldenCapsule, IsWrittenAgainAndOthersMembersAreIgnored) {
  const Json members = Json::parse(golden("capsule_v1.json"));
  Json later = members;
  for (const char* part : {"compiler", "target", "limits", "use", "error", "request"})
    later[part]["of_a_later_version"] = later["of_a_later_version"] = {{"any", "thing"}};
  const auto capsule = capsule_from_json(later.dump(), "c");
  ASSERT_TRUE(capsule) << to_line(capsule.error());
  EXPECT_EQ(Json::parse(to_json(*capsule)), members);
}

TEST(GoldenCapsule, WhatIsAbsentHasItsDefaultAndWhatIsMistypedIsNone) {
  const Json members = Json::parse(golden("capsule_v1.json"));
  for (const auto& [name, value] : members.items()) {
    const bool is_needed = name == "format" || name == "version" || name == "request" || name == "error";
    Json other = members;
    other.erase(name);
    EXPECT_EQ(capsule_from_json(other.dump(), "c").has_value(), !is_needed) << name;
    for (const Json& mistyped : {Json(nullptr), Json(-1.5), Json(true)}) {
      other[name] = mistyped;
      EXPECT_FALSE(capsule_from_json(other.dump(), "c")) << name << mistyped;
    }
  }
  const auto least = capsule_from_json(R"({"format": "jitc capsule", "version": 1, "request": {"origin": "int i;"},
                                           "error": {"kind": "TIMED_OUT"}})",
                                       "c");
  ASSERT_TRUE(least) << to_line(least.error());
  Request request;
  request.origin = "int i;";
  EXPECT_EQ(least->request, request);
}

}  // namespace
}  // namespace jitc::common
