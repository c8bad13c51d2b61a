#include "common/request.h"

#include <gtest/gtest.h>

namespace jitc::common {
namespace {

Request sample() {
  Request request;
  request.origin = "int f(void) { return 1; }\n";
  request.flags = {"-O3", "-g0"};
  request.headers = {{"a.h", "int a;\n"}};
  return request;
}

Digest with(auto change) {
  Request request = sample();
  change(request);
  return request_digest(request);
}

TEST(RequestDigest, EverythingThatMattersChangesIt) {
  const Digest base = request_digest(sample());
  EXPECT_NE(base, with([](Request& r) { r.origin += " "; }));
  EXPECT_NE(base, with([](Request& r) { r.flags = {"-g0", "-O3"}; }));
  EXPECT_NE(base, with([](Request& r) { r.flags = {"-O3-g0"}; }));
  EXPECT_NE(base, with([](Request& r) { r.compiler = "gcc"; }));
  EXPECT_NE(base, with([](Request& r) { r.abi_tag = "petsc 3.18 int64"; }));
  EXPECT_NE(base, with([](Request& r) { r.share = "0"; }));
  EXPECT_NE(base, with([](Request& r) { r.cse = "0"; }));
  EXPECT_NE(base, with([](Request& r) { r.emitter_version = 1; }));
  EXPECT_NE(base, with([](Request& r) { r.isa_wish = "native"; }));
  EXPECT_NE(base, with([](Request& r) { r.headers[0].text = "int b;\n"; }));
  EXPECT_NE(base, with([](Request& r) { r.headers[0].name = "b.h"; }));
  EXPECT_NE(base, with([](Request& r) { r.exact_flags = true; }));
}

TEST(Request, FallsBackToTheOriginOnceAndOnlyWhenWhatWasMadeOfItIsRefused) {
  Request request = sample();
  request.code = "int f(void) { return 0 + 1; }";
  const Request before = request;
  EXPECT_FALSE(fall_back_to_origin(request, Error{ErrorKind::kTimedOut}));
  EXPECT_EQ(request, before);
  EXPECT_TRUE(fall_back_to_origin(request, Error{ErrorKind::kInvalidSource}));
  EXPECT_EQ(request.text(), request.origin);
  EXPECT_TRUE(request.no_cache);
  EXPECT_FALSE(fall_back_to_origin(request, Error{ErrorKind::kInvalidSource}));
}

TEST(RequestDigest, WhatIsForPeopleOrTheQueueDoesNot) {
  const Digest base = request_digest(sample());
  EXPECT_EQ(base, with([](Request& r) { r.name = "stokes"; }));
  EXPECT_EQ(base, with([](Request& r) { r.job = "42"; }));
  EXPECT_EQ(base, with([](Request& r) { r.prefetch = r.no_cache = r.no_capsule = true; }));
  EXPECT_EQ(base, with([](Request& r) { r.isa_level = "x86-64-v2"; }));
  EXPECT_EQ(base, with([](Request& r) { r.code = "int f(void) { return 0 + 1; }"; }));
}

TEST(RequestDigest, LineEndsAreNormalised) {
  EXPECT_EQ(with([](Request& r) { r.origin = "a\nb\n"; }), with([](Request& r) { r.origin = "a\r\nb\r\n"; }));
  EXPECT_NE(with([](Request& r) { r.origin = "a\nb\n"; }), with([](Request& r) { r.origin = "a\rb\n"; }));
  EXPECT_EQ(request_digest(sample()), with([](Request& r) { r.headers[0].text = "int a;\r\n"; }));
}

TEST(ArtifactKey, CompilerAndTargetCountItsPathDoesNot) {
  const Digest request = request_digest(sample());
  const CompilerIdentity gcc{"gcc", "/usr/bin/gcc", "12.2.0"};
  const Target target{"x86_64-linux-gnu", "x86-64-v3"};
  const Digest base = artifact_key(request, gcc, target);
  EXPECT_EQ(base, artifact_key(request, {"gcc", "/opt/gcc", "12.2.0"}, target));
  EXPECT_NE(base, artifact_key(request, {"gcc", "/usr/bin/gcc", "12.2.1"}, target));
  EXPECT_NE(base, artifact_key(request, gcc, {"x86_64-linux-gnu", "x86-64-v4"}));
  EXPECT_NE(base, artifact_key(request, gcc, target, sha256("headers")));
  EXPECT_NE(base, artifact_key(sha256("another"), gcc, target));
}

TEST(CheckRequest, WrongValuesAreNamed) {
  const auto wrong = [](auto change) {
    Request request = sample();
    change(request);
    const auto checked = check_request(request);
    return checked ? std::string("accepted") : checked.error().thing;
  };
  EXPECT_TRUE(check_request(sample()));
  EXPECT_EQ(wrong([](Request& r) { r.share = "yes"; }), "share");
  EXPECT_EQ(wrong([](Request& r) { r.cse = ""; }), "cse");
  EXPECT_EQ(wrong([](Request& r) { r.isa_wish = "fast"; }), "isa");
  EXPECT_EQ(wrong([](Request& r) { r.isa_level = "fast"; }), "isa level");
  EXPECT_EQ(wrong([](Request& r) { r.headers[0].name = "../a.h"; }), "header '../a.h'");
  EXPECT_EQ(wrong([](Request& r) { r.headers[0].name = "/etc/passwd"; }), "header '/etc/passwd'");
  EXPECT_EQ(wrong([](Request& r) { r.flags = {"-O\n"}; }), "flag '-O\n'");
  EXPECT_EQ(wrong([](Request& r) { r.flags.assign(1001, "-O1"); }), "flags");
  const std::string longest = "-D" + std::string(4094, 'A');
  EXPECT_EQ(wrong([&](Request& r) { r.flags.assign(16, longest); }), "accepted");
  EXPECT_EQ(wrong([&](Request& r) { r.flags.assign(17, longest); }), "flags") << "too long together";
  EXPECT_EQ(wrong([](Request& r) { r.compiler = ""; }), "compiler ''");
}

}  // namespace
}  // namespace jitc::common
