#include "daemon/service/marshal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jitc::service {
namespace {

using common::ErrorKind;
using ::testing::HasSubstr;

common::Identity identity() {
  common::Identity identity;
  identity.version = "1";
  identity.pid = 7;
  identity.compilers = {{"clang", "", "embedded 19"}, {"gcc", "/usr/bin/gcc", "abc"}};
  identity.triple = "x86_64-pc-linux-gnu";
  identity.native_isa = "cpu +x";
  identity.store = "/store";
  return identity;
}

v1::CompileRequest wire(const std::string& origin = "double f(double x) { return x; }\n") {
  v1::CompileRequest request;
  request.set_origin(origin);
  request.add_flags("-O2");
  request.set_compiler("clang");
  request.set_isa_wish("x86-64");
  return request;
}

common::Result<Prepared> prepared(v1::CompileRequest request, RequestPolicy policy = {}) {
  return prepare(std::move(request), policy, identity());
}

TEST(Prepare, GivesTheKeysThatAnybodyComputes) {
  const auto result = prepared(wire());
  ASSERT_TRUE(result) << to_line(result.error());
  common::Request request;
  request.origin = wire().origin();
  request.flags = {"-O2"};
  request.isa_wish = "x86-64";
  EXPECT_EQ(result->resolved.request, common::request_digest(request));
  EXPECT_EQ(result->resolved.key, common::resolve(request, identity())->key);
  EXPECT_EQ(result->scan.bytes, request.origin.size());
}

TEST(Prepare, EmptyFieldsAreTheDefaults) {
  v1::CompileRequest bare;
  bare.set_origin("int f(void);\n");
  const auto result = prepared(std::move(bare));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->request.compiler, "clang");
  EXPECT_EQ(result->request.share, "auto");
  EXPECT_EQ(result->request.isa_wish, "common");
}

TEST(Prepare, RefusesWhatIsTooLargeByName) {
  RequestPolicy policy;
  policy.max_source_bytes = 10;
  const auto source = prepared(wire(), policy);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(source.error().message, HasSubstr("at most 10"));
  auto with_header = wire("int f;");
  with_header.add_headers()->set_text("// a long header");
  EXPECT_EQ(prepared(std::move(with_header), policy).error().thing, "headers");
}

TEST(Prepare, RefusesFlagsThatReadOtherFiles) {
  auto request = wire();
  request.add_flags("-fplugin=evil.so");
  const auto result = prepared(std::move(request));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kRefused);
}

TEST(Prepare, KnowsIncludeRoots) {
  auto request = wire();
  request.add_flags("-I/opt/headers");
  EXPECT_FALSE(prepared(v1::CompileRequest(request)));
  RequestPolicy policy;
  policy.include_roots = {"/opt/headers"};
  EXPECT_TRUE(prepared(std::move(request), policy));
}

TEST(Prepare, InvalidSourceHasAPlace) {
  const auto result = prepared(wire(std::string("int a;\nint \0b;", 13)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalidSource);
  ASSERT_FALSE(result.error().diagnostics.empty());
  EXPECT_EQ(result.error().diagnostics[0].line, 2u);
}

TEST(Prepare, UnknownCompilerIsRefused) {
  auto request = wire();
  request.set_compiler("/tmp/evil");
  EXPECT_EQ(prepared(std::move(request)).error().kind, ErrorKind::kRefused);
}

TEST(Failure, CarriesEveryField) {
  common::Error error{ErrorKind::kOutOfMemory, "m", "t", "r", {{"error", 3, 5, "d", "e"}}, "log", 10, 9, 2};
  error.rungs = {"tried alone"};
  error.retry_after_seconds = 7;
  const v1::Failure failure = to_wire(error);
  EXPECT_EQ(failure.kind(), v1::OUT_OF_MEMORY);
  ASSERT_EQ(failure.rungs_size(), 1);
  EXPECT_EQ(failure.rungs(0), "tried alone");
  EXPECT_EQ(failure.retry_after_seconds(), 7);
  EXPECT_EQ(failure.message(), "m");
  EXPECT_EQ(failure.thing(), "t");
  EXPECT_EQ(failure.remedy(), "r");
  EXPECT_EQ(failure.log(), "log");
  EXPECT_EQ(failure.needed_bytes(), 10u);
  EXPECT_EQ(failure.budget_bytes(), 9u);
  EXPECT_EQ(failure.tries(), 2u);
  ASSERT_EQ(failure.diagnostics_size(), 1);
  EXPECT_EQ(failure.diagnostics(0).line(), 3u);
  EXPECT_EQ(failure.diagnostics(0).column(), 5u);
}

TEST(Failure, EveryKindHasItsOwn) {
  const auto kind = [](ErrorKind error) { return to_wire(common::Error{error, "m"}).kind(); };
  EXPECT_EQ(kind(ErrorKind::kInvalidSource), v1::INVALID_SOURCE);
  EXPECT_EQ(kind(ErrorKind::kTimedOut), v1::TIMED_OUT);
  EXPECT_EQ(kind(ErrorKind::kCompilerCrashed), v1::COMPILER_CRASHED);
  EXPECT_EQ(kind(ErrorKind::kStoreFull), v1::STORE_FULL);
  EXPECT_EQ(kind(ErrorKind::kDraining), v1::DRAINING);
  EXPECT_EQ(kind(ErrorKind::kUsage), v1::REFUSED);
  EXPECT_EQ(kind(ErrorKind::kCorrupt), v1::INTERNAL);
}

// Protobuf drops a message with a string that is not UTF-8: every byte sequence must come out as text.
TEST(Failure, TextIsAlwaysUtf8) {
  const auto message = [](std::string text) {
    return to_wire(common::Error{ErrorKind::kInternal, std::move(text)}).message();
  };
  EXPECT_EQ(message("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(message("\xff"
                    "a\xc3"),
            "?a?");
  EXPECT_EQ(message("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(message("\xe0\x80\xaf"), "???");       // overlong
  EXPECT_EQ(message("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(message("\xf4\x90\x80\x80"), "????");  // beyond the last code point
}

TEST(Hello, NeedsAVersionInCommon) {
  v1::HelloRequest request;
  const auto id = identity();
  const std::vector<common::CompilerIdentity> offered{{"gcc", "/usr/bin/gcc", ""}, {"icx", "/opt/icx", ""}};
  request.mutable_protocol()->set_oldest(kNewestProtocol + 1);
  request.mutable_protocol()->set_newest(kNewestProtocol + 3);
  const auto skewed = hello(request, {id, offered, 2, 100});
  ASSERT_FALSE(skewed);
  EXPECT_EQ(skewed.error().kind, ErrorKind::kVersionSkew);
  request.mutable_protocol()->set_oldest(1);
  const auto reply = hello(request, {id, offered, 2, 100, {}, "sampling: no control groups"});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->compilers_size(), 3);  // gcc's identity is known, icx's is not yet
  EXPECT_EQ(reply->compilers(1).identity(), "abc");
  EXPECT_EQ(reply->max_compilers(), 2u);
  EXPECT_EQ(reply->memory_budget_bytes(), 100u);
  EXPECT_EQ(reply->enforcement(), "sampling: no control groups");
  EXPECT_FALSE(reply->draining());
  EXPECT_TRUE(hello(request, {id, offered, 2, 100, {}, "", true})->draining());
  const auto told = hello(request, {id, offered, 2, 100, {}, "", false, 600, {"LANG=C"}});
  EXPECT_EQ(told->cpu_seconds(), 600u);
  ASSERT_EQ(told->environment_size(), 1);
  EXPECT_EQ(told->environment(0), "LANG=C");
}

TEST(Worker, StartOrderNamesLevelOrNative) {
  auto request = wire();
  const auto level = prepared(v1::CompileRequest(request));
  const auto command = start_command(*level, {5, 100, 60, {}});
  EXPECT_EQ(command.start().job(), 5u);
  EXPECT_EQ(command.start().isa_level(), "x86-64");
  EXPECT_EQ(command.start().memory_limit_bytes(), 100u);
  EXPECT_FALSE(command.start().has_headers());
  EXPECT_EQ(command.start().flags_size(), 1);
  const auto lowered = start_command(*level, {.job = 5, .level = 1});
  EXPECT_EQ(lowered.start().flags(lowered.start().flags_size() - 1), "-O1");
  request.set_isa_wish("native");
  EXPECT_EQ(start_command(*prepared(std::move(request)), {}).start().isa_level(), "native");
}

TEST(Worker, DoneWithoutAnObjectIsNotDone) {
  v1::WorkerReport report;
  report.mutable_finished()->set_outcome(v1::WorkerReport::Finished::DONE);
  const auto event = from_wire(report, {});
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().kind, ErrorKind::kInternal);
}

TEST(Worker, UnknownReportsAreRefused) {
  v1::WorkerReport report;
  EXPECT_FALSE(from_wire(report, {}));
  report.mutable_finished()->set_outcome(v1::WorkerReport::Finished::OUTCOME_UNSPECIFIED);
  EXPECT_FALSE(from_wire(report, {}));
}

TEST(Worker, SaysWhatItsChildrenHold) {
  v1::WorkerReport report;
  auto& usage = *report.mutable_usage();
  auto& one = *usage.add_jobs();
  one.set_job(4);
  one.set_bytes(50);
  usage.set_spare_bytes(20);
  usage.set_processes(3);
  usage.set_anonymous_bytes(40);
  const auto event = from_wire(report, {});
  ASSERT_TRUE(event);
  const auto& told = std::get<WorkerUsage>(*event);
  EXPECT_EQ(told.jobs, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{4, 50}}));
  EXPECT_EQ(told.spare_bytes, 20u);
  EXPECT_EQ(told.processes, 3u);
  EXPECT_EQ(told.anonymous_bytes, 40u);
}

TEST(Worker, OutOfMemoryKeepsItsEvidence) {
  v1::WorkerReport report;
  auto& finished = *report.mutable_finished();
  finished.set_job(4);
  finished.set_outcome(v1::WorkerReport::Finished::OUT_OF_MEMORY);
  finished.set_message("cc1 ended");
  finished.set_evidence("cgroup event");
  finished.set_peak_bytes(77);
  const auto event = from_wire(report, {});
  ASSERT_TRUE(event);
  const auto& outcome = std::get<WorkerFinished>(*event);
  EXPECT_EQ(outcome.job, 4u);
  EXPECT_EQ(outcome.outcome, WorkerFinished::Outcome::kOutOfMemory);
  EXPECT_EQ(outcome.error.kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(outcome.error.message, "cc1 ended (cgroup event)");
  EXPECT_EQ(outcome.peak_bytes, 77u);
}

TEST(TraceReply, AtItsLargestFitsIntoOneMessageOfAnyClient) {
  using observe::Trace;
  constexpr std::size_t kUsualLimit = std::size_t{4} << 20;  // of gRPC's receivers
  const auto late = Trace::Time(std::chrono::hours(10 * 365 * 24));
  const observe::TraceSubject subject{std::string(300, 'n'), std::string(300, 'c'), std::string(300, 'p')};
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  Trace trace;
  for (std::size_t i = 0; i < Trace::kMostSpans; ++i) {
    const std::uint64_t flight = kMuch + i;
    trace.begin(flight, subject);
    trace.enter(late, flight, Trace::Kind::kRunning, 99, kMuch);
    trace.leave(late, flight, Trace::Kind::kRunning, "STORE_UNAVAILABLE", kMuch);
  }
  for (std::size_t i = 0; i < Trace::kMostHits; ++i) trace.instant(late, Trace::Kind::kLookUp, subject, "HIT");
  for (std::size_t i = 0; i < Trace::kMostSamples; ++i) trace.sample({late, (i % 2) * kMuch, kMuch, 1000});
  const v1::TraceReply reply = to_wire(trace.snapshot(late));
  EXPECT_EQ(static_cast<std::size_t>(reply.spans_size()), Trace::kMostSpans + Trace::kMostHits);
  EXPECT_EQ(static_cast<std::size_t>(reply.samples_size()), Trace::kMostSamples);
  EXPECT_LT(reply.ByteSizeLong(), kUsualLimit - 64 * 1024);  // some are open besides
}

TEST(TraceReply, TextsAreUtf8) {
  observe::Trace trace;
  trace.instant(observe::Trace::Time(), observe::Trace::Kind::kAnswered, {"a\xff", "b\xff", "c\xff"}, "REFUSED");
  const v1::TraceReply reply = to_wire(trace.snapshot(observe::Trace::Time()));
  EXPECT_EQ(reply.spans(0).name() + reply.spans(0).client() + reply.spans(0).compiler(), "a?b?c?");
}

}  // namespace
}  // namespace jitc::service
