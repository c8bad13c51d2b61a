// The daemon's trace of compiles by a real worker: two slots, and sources that compile, fail, run out of memory, hit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/daemon_fixture.h"

namespace jitc::testing {
namespace {

using Span = v1::TraceReply::Span;

constexpr const char* kFakeCompiler = JITC_BIN_DIR "/jitc-fakecc";

v1::TraceReply trace_of(const TestDaemon& daemon) {
  grpc::ClientContext context;
  v1::TraceReply reply;
  const auto status = daemon.stub()->Trace(&context, {}, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return reply;
}

v1::CompileRequest fake(const std::string& name, const std::string& orders) {
  auto request = request_for(orders + "int f_" + name + "(void) { return 1; }\n");
  request.set_compiler(kFakeCompiler);
  request.set_name(name + ".c");
  request.set_job("job of " + name);
  return request;
}

std::vector<Span> of(const v1::TraceReply& trace, Span::Kind kind, const std::string& name = {}) {
  std::vector<Span> spans;
  for (const auto& span : trace.spans())
    if (span.kind() == kind && (name.empty() || span.name() == name)) spans.push_back(span);
  return spans;
}

void expect_lanes_without_overlap(const v1::TraceReply& trace, std::uint32_t slots) {
  std::map<std::uint32_t, std::map<std::uint64_t, std::uint64_t>> lanes;  // begin -> end
  for (const auto& span : of(trace, Span::RUNNING)) {
    EXPECT_GE(span.lane(), 1u);
    EXPECT_LE(span.lane(), slots);
    EXPECT_LE(span.begin_us(), span.end_us());
    EXPECT_TRUE(lanes[span.lane()].emplace(span.begin_us(), span.end_us()).second) << "two begin at once";
  }
  for (const auto& [lane, spans] : lanes) {
    std::uint64_t end = 0;
    for (const auto& [begin, its_end] : spans) {
      EXPECT_GE(begin, end) << "lane " << lane;
      end = its_end;
    }
  }
}

class TraceOfCompilesTest : public ::testing::Test {
 protected:
  TraceOfCompilesTest()
      : daemon({.arguments = {"--max-compilers", "2", "--memory-budget", "1G"},
                .environment = {std::string("JITC_COMPILERS=") + kFakeCompiler},
                .worker = JITC_BIN_DIR "/jitc-worker"}) {}
  TestDaemon daemon;
};

TEST_F(TraceOfCompilesTest, HasASpanForEachAttemptAndTheCountsOfStats) {
  // Two that run side by side, and wait for each other.
  const std::string go = daemon.directory() + "/go", held = daemon.directory() + "/held";
  std::thread first([&] {
    const auto stub = daemon.stub();
    EXPECT_TRUE(compile(*stub, fake("held", "// fakecc: note " + held + "\n// fakecc: hold " + go + "\n"))
                    .finished()
                    .has_artifact());
  });
  const auto stub = daemon.stub();
  EXPECT_TRUE(compile(*stub, fake("beside", "// fakecc: hold " + held + "\n")).finished().has_artifact());
  const auto invalid = compile(*stub, fake("invalid", "int x = ;\n"));
  EXPECT_EQ(invalid.failure().kind(), v1::INVALID_SOURCE);

  // One runs still.
  const auto meanwhile = of(trace_of(daemon), Span::RUNNING, "held.c");
  ASSERT_EQ(meanwhile.size(), 1u);
  EXPECT_TRUE(meanwhile[0].open());
  std::ofstream(go).put('\n');
  first.join();

  const auto large = compile(*stub, fake("large", "// fakecc: allocate 3G\n"));
  EXPECT_EQ(large.failure().kind(), v1::OUT_OF_MEMORY) << large.failure().message();
  EXPECT_TRUE(compile(*stub, fake("beside", "// fakecc: hold " + held + "\n")).artifact().hit());
  // An earlier failure answers at once.
  EXPECT_EQ(compile(*stub, fake("invalid", "int x = ;\n")).failure().kind(), v1::INVALID_SOURCE);

  const auto trace = trace_of(daemon);
  const auto stats = daemon.stats();
  const auto running = of(trace, Span::RUNNING);
  EXPECT_EQ(running.size(), stats.at("compiles_started"));
  EXPECT_EQ(running.size() - stats.at("retries"), 4u);
  std::map<std::string, std::uint64_t> outcomes;
  for (const auto& span : running) {
    EXPECT_FALSE(span.open());
    EXPECT_TRUE(span.compiler().ends_with("/jitc-fakecc")) << span.compiler();
    EXPECT_EQ(span.client(), "job of " + span.name().substr(0, span.name().size() - 2));
    ++outcomes[span.outcome()];
  }
  EXPECT_EQ(outcomes["DONE"], stats.at("published"));
  EXPECT_EQ(outcomes["INVALID_SOURCE"], 1u);
  const auto tries = of(trace, Span::RUNNING, "large.c");
  EXPECT_EQ(tries.size(), large.failure().tries());
  for (std::size_t i = 0; i < tries.size(); ++i) {
    EXPECT_EQ(tries[i].outcome(), "OUT_OF_MEMORY");
    EXPECT_EQ(tries[i].attempt(), i + 1);
    EXPECT_GT(tries[i].limit_bytes(), 0u);
  }
  EXPECT_EQ(of(trace, Span::PUBLISHING).size(), stats.at("published"));
  EXPECT_EQ(of(trace, Span::QUEUED).size(), running.size());  // each start waited before it, if not for long
  std::size_t hits = 0;
  for (const auto& span : of(trace, Span::LOOK_UP)) hits += span.outcome() == "HIT";
  EXPECT_EQ(hits, stats.at("hits"));
  EXPECT_EQ(of(trace, Span::ANSWERED).size(), stats.at("failures_remembered"));
  expect_lanes_without_overlap(trace, 2);
  // The two were beside each other.
  EXPECT_NE(of(trace, Span::RUNNING, "held.c")[0].lane(), of(trace, Span::RUNNING, "beside.c")[0].lane());
  EXPECT_EQ(trace.dropped(), 0u);
}

TEST_F(TraceOfCompilesTest, MemoryStandsBesideItsBudget) {
  const std::string go = daemon.directory() + "/go";
  const auto stub = daemon.stub();
  grpc::ClientContext context;
  const auto events = stub->Compile(&context, fake("held", "// fakecc: allocate 30M\n// fakecc: hold " + go + "\n"));
  v1::TraceReply trace;  // as it was when a heartbeat told of the memory
  for (v1::CompileEvent event; events->Read(&event);) {
    if (!event.has_heartbeat() || event.heartbeat().memory_bytes() < 30U << 20) continue;
    trace = trace_of(daemon);
    std::ofstream(go).put('\n');
  }
  EXPECT_TRUE(events->Finish().ok());
  std::uint64_t most = 0, last = 0;
  for (const auto& sample : trace.samples()) {
    EXPECT_GE(sample.at_us(), last);
    last = sample.at_us();
    most = std::max(most, sample.memory_bytes());
    EXPECT_LE(sample.budget_bytes(), 1U << 30);
    EXPECT_EQ(sample.slots(), 2u);
  }
  EXPECT_GE(most, 30U << 20);
}

TEST_F(TraceOfCompilesTest, JobsTellLimitWaitAndCompiler) {
  const std::string go = daemon.directory() + "/go", held = daemon.directory() + "/held";
  std::thread runs([&] {
    const auto stub = daemon.stub();
    compile(*stub, fake("held", "// fakecc: note " + held + "\n// fakecc: hold " + go + "\n"));
  });
  compile(*daemon.stub(), fake("beside", "// fakecc: hold " + held + "\n"));  // it runs by then
  grpc::ClientContext context;
  v1::JobsReply reply;
  ASSERT_TRUE(daemon.stub()->Jobs(&context, {}, &reply).ok());
  std::ofstream(go).put('\n');
  runs.join();
  ASSERT_EQ(reply.jobs_size(), 1);
  EXPECT_GT(reply.jobs(0).limit_bytes(), 0u);
  EXPECT_GE(reply.jobs(0).waiting_seconds(), reply.jobs(0).elapsed_seconds());
  EXPECT_EQ(reply.jobs(0).compiler(), kFakeCompiler);
}

}  // namespace
}  // namespace jitc::testing
