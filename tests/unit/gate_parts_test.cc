// The gate's pure parts: certificate, differences between calls, what travels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "client/gate/certificate.h"
#include "client/gate/divergence.h"
#include "client/gate/failure.h"
#include "client/gate/wire.h"

namespace jitc::gate {
namespace {

using common::Error;
using common::ErrorKind;
using ::testing::HasSubstr;

CertificateWords combine(const std::vector<Certificate>& certificates) {
  CertificateWords all{};
  for (const Certificate& certificate : certificates) {
    const CertificateWords words = certificate.words();
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= words[i];
  }
  return all;
}

Certificate certificate(bool needs, const std::string& call, common::IsaMask isa = 0xf) {
  return {needs, true, std::nullopt, isa, common::sha256(call)};
}

TEST(Certificate, AnyNeedIsEverybodysBranch) {
  EXPECT_FALSE(judge(combine({certificate(false, "a"), certificate(false, "a")})).someone_needs);
  EXPECT_TRUE(judge(combine({certificate(false, "a"), certificate(true, "a")})).someone_needs);
}

TEST(Certificate, OneDifferingBitAnywhereIsSeen) {
  for (std::size_t bit = 0; bit < 256; ++bit) {
    Certificate odd = certificate(true, "a");
    odd.call.bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(judge(combine({certificate(true, "a"), odd, certificate(true, "a")})).all_alike) << bit;
  }
  EXPECT_TRUE(judge(combine({certificate(true, "a"), certificate(true, "a")})).all_alike);
}

TEST(Certificate, RequestManifestAndNumberTellCallsApart) {
  const auto call = [](const char* request, const char* manifest, std::uint64_t number) {
    return numbered(call_digest(common::sha256(request), manifest), number);
  };
  std::set<common::Digest> all;
  for (const char* request : {"a", "b"})
    for (const char* manifest : {"", "rho"})
      for (const std::uint64_t number : {1ULL, 2ULL, 256ULL, 1ULL << 63}) all.insert(call(request, manifest, number));
  EXPECT_EQ(all.size(), 16U);
  EXPECT_EQ(call("a", "rho", 7), call("a", "rho", 7));
}

TEST(Certificate, RankWithAnErrorDoesNotMakeOthersDiffer) {
  Certificate failed;
  failed.error = ErrorKind::kUsage;
  failed.isa = 0xf;
  const Verdict verdict = judge(combine({certificate(true, "a"), failed}));
  EXPECT_TRUE(verdict.all_alike);
  EXPECT_TRUE(verdict.someone_failed);
}

// What is held counts on ranks that need nothing.
TEST(Certificate, UnlikeCodeIsNeededByAll) {
  const auto holds = [](const std::vector<std::string>& keys) {
    Certificate one = certificate(false, "a");
    one.needs = 0;
    one.held = 0;
    for (const std::string& key : keys) one.held = held_bits(*one.held, common::sha256(key));
    return one;
  };
  Certificate needs = certificate(true, "a");
  needs.needs = need_bit(1);
  Certificate failed = holds({"c"});
  failed.error = ErrorKind::kUsage;
  EXPECT_EQ(judge(combine({holds({"a", "b"}), holds({"a", "b"})})).someone_needs, 0U);
  EXPECT_EQ(judge(combine({holds({"a", "b"}), needs, holds({"a", "b"})})).someone_needs, need_bit(1));
  EXPECT_EQ(judge(combine({holds({"a", "b"}), failed})).someone_needs, 0U);
  for (const auto& other : {holds({"a", "c"}), holds({"b", "a"}), holds({"c", "b"})})
    EXPECT_EQ(judge(combine({holds({"a", "b"}), needs, other})).someone_needs, ~std::uint64_t{0});
}

TEST(Certificate, LeastPatienceIsToldRoundedDown) {
  using std::chrono::milliseconds;
  const auto least = [](const std::vector<std::int64_t>& all) {
    std::vector<Certificate> certificates;
    for (const std::int64_t patience : all) {
      certificates.push_back(certificate(true, "a"));
      certificates.back().patience = milliseconds(patience);
    }
    const Verdict verdict = judge(combine(certificates));
    EXPECT_FALSE(verdict.someone_failed);
    EXPECT_TRUE(verdict.all_alike);
    return verdict.least_patience;
  };
  EXPECT_EQ(least({0, 0}), milliseconds(0));
  EXPECT_EQ(least({30'000, 0}), milliseconds(16'384));
  EXPECT_EQ(least({30'000, 400, 0, 600}), milliseconds(256));
  EXPECT_EQ(least({1, 30'000}), milliseconds(1));
  EXPECT_EQ(least({std::int64_t{1} << 40}), milliseconds(std::int64_t{1} << 31));
  Certificate failed = certificate(true, "a");
  failed.error = ErrorKind::kInternal;
  failed.patience = milliseconds(1);
  EXPECT_TRUE(judge(combine({certificate(true, "a"), failed})).someone_failed);
}

TEST(Certificate, CommonInstructionSetIsWhatAllHave) {
  EXPECT_EQ(judge(combine({certificate(true, "a", 0xf), certificate(true, "a", 0x3)})).common_isa, 0x3U);
  EXPECT_EQ(judge(combine({certificate(true, "a", 0x7)})).common_isa, 0x7U);
}

Call call_of(const std::string& source) {
  common::Request request;
  request.origin = source;
  request.flags = {"-O2", "-DA=1"};
  request.abi_tag = "petsc 3.18";
  request.headers = {{"a.h", "#define A 1\n"}};
  request.name = "f.c";
  return {5, common::sha256("before"), std::move(request), "rho\neta"};
}

TEST(Wire, CallComesBackWhole) {
  const Call call = call_of(std::string("int a;\n\0rest", 12));
  const auto back = decode_call(encode(call));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back->request, *call.request);
  EXPECT_EQ(back->manifest, call.manifest);
  EXPECT_EQ(back->sequence, call.sequence);
  EXPECT_EQ(back->previous, call.previous);
  EXPECT_FALSE(difference(*back, call));
}

TEST(Wire, CutCallIsAnErrorAtEveryLength) {
  const std::string whole = encode(call_of("int a;\n"));
  for (std::size_t length = 0; length < whole.size(); ++length) EXPECT_FALSE(decode_call(whole.substr(0, length)));
  EXPECT_FALSE(decode_call(whole + "x"));
}

TEST(Wire, ErrorComesBackWholeAndACutOneSaysSo) {
  common::Error error{common::ErrorKind::kOutOfMemory, "too large", "a.c", "split it"};
  error.diagnostics.push_back({"error", 3, 7, "expected ';'", "int a"});
  error.log = "log";
  error.needed_bytes = 12345;
  error.budget_bytes = 678;
  error.tries = 3;
  error.rungs = {"-O2", "-O1"};
  error.retry_after_seconds = 1.5;
  error.capsule = "/run/capsules/a.json";
  const std::string whole = encode(error);
  EXPECT_EQ(decode_error(whole), error);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(decode_error(whole.substr(0, length)).kind, common::ErrorKind::kInternal);
}

TEST(Divergence, NamesTheFirstDifferingLine) {
  EXPECT_EQ(first_difference("a\nb\nc\n", "a\nb\nd\n"), "line 3: 'c' here, 'd' on rank 0");
  EXPECT_EQ(first_difference("a\n", "a\nb\n"), "line 2: '' here, 'b' on rank 0");
  EXPECT_EQ(first_difference("a", "ab"), "line 1: 'a' here, 'ab' on rank 0");
  EXPECT_EQ(first_difference("", "x"), "line 1: '' here, 'x' on rank 0");
}

TEST(Divergence, LongLinesAreShownAroundTheDifference) {
  const std::string same(100'000, 'x');
  const std::string text = first_difference(same + "mine" + same, same + "root" + same);
  EXPECT_LT(text.size(), 400U);
  EXPECT_THAT(text, HasSubstr("mine"));
  EXPECT_THAT(text, HasSubstr("root"));
}

TEST(Divergence, EveryFieldOfTheKeyIsNamed) {
  const Call root = call_of("int a;\n");
  const auto message_of = [&](const Call& mine) {
    const auto error = difference(mine, root);
    return error ? error->thing + ": " + error->message : "no difference";
  };
  const auto message = [&](auto change) {
    common::Request request = *root.request;
    change(request);
    return message_of({root.sequence, root.previous, std::move(request), root.manifest});
  };
  EXPECT_THAT(message([](common::Request& r) { r.flags[0] = "-O1"; }), HasSubstr("flags '-O1 -DA=1'"));
  EXPECT_THAT(message([](common::Request& r) { r.flags = {"-O2 -DA=1"}; }), HasSubstr("split"));
  EXPECT_THAT(message([](common::Request& r) { r.compiler = "gcc"; }), HasSubstr("compiler 'gcc'"));
  EXPECT_THAT(message([](common::Request& r) { r.abi_tag = "petsc 3.19"; }), HasSubstr("ABI tag"));
  EXPECT_THAT(message([](common::Request& r) { r.isa_wish = "native"; }), HasSubstr("instruction set"));
  EXPECT_THAT(message([](common::Request& r) { r.headers[0].text = "#define A 2\n"; }),
              HasSubstr("header a.h: line 1"));
  EXPECT_THAT(message([](common::Request& r) { r.headers.clear(); }), HasSubstr("header a.h"));
  EXPECT_THAT(message([](common::Request& r) { r.emitter_version = 9; }), HasSubstr("emitter"));
  EXPECT_THAT(message_of({5, root.previous, root.request, "eta\nrho"}), HasSubstr("manifest differs, first at line 1"));
  EXPECT_THAT(message_of({6, root.previous, root.request, root.manifest}), HasSubstr("call 6, rank 0 is at call 5"));
  EXPECT_EQ(message_of(root), "no difference");
}

TEST(Divergence, LineEndsAreNoDifference) { EXPECT_FALSE(difference(call_of("int a;\r\n"), call_of("int a;\n"))); }

TEST(Divergence, OnlyTextAndManifestAreAdopted) {
  const Call root = call_of("int a;\n");
  Call mine = call_of("int b;\n");
  mine.manifest = "other";
  EXPECT_TRUE(is_adoptable(mine, root));
  common::Request renamed = *mine.request;
  renamed.name = "another.c";
  mine.request = std::move(renamed);
  EXPECT_FALSE(is_adoptable(mine, root));
}

TEST(Failure, NamesCrowdsShortly) {
  EXPECT_EQ(name_ranks({3}, 8), "rank 3");
  EXPECT_EQ(name_ranks({1, 2}, 8), "ranks 1, 2");
  EXPECT_EQ(name_ranks({0, 1}, 2), "all ranks");
  std::vector<int> many;
  for (int rank = 1; rank <= 20; ++rank) many.push_back(rank);
  EXPECT_EQ(name_ranks(many, 64), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 12 more");
}

TEST(Failure, TravelsWithinBounds) {
  Error error{ErrorKind::kInvalidSource, "no"};
  error.log = std::string(10'000'000, 'x');
  error.diagnostics.resize(5000);
  EXPECT_LT(common::to_json(bounded(error)).size(), 200'000U);
}

}  // namespace
}  // namespace jitc::gate
