// A running daemon over its socket, with a worker that compiles what the source says
// (tests/support/stand_in_worker.cc).
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "common/artifact.h"
#include "common/identity.h"
#include "common/runtime_dir.h"
#include "common/store_reader.h"
#include "tests/support/daemon_fixture.h"

namespace jitc::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Many compile calls at once; each is accepted before the constructor returns.
class Herd {
 public:
  Herd(const TestDaemon& daemon, const std::vector<v1::CompileRequest>& requests) : outcomes_(requests.size()) {
    const auto channel = connect_channel(daemon.runtime_dir());
    std::atomic<std::size_t> accepted = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      threads_.emplace_back([this, i, channel, request = requests[i], &accepted] {
        const auto stub = v1::Compiler::NewStub(channel);
        grpc::ClientContext context;
        const auto reader = stub->Compile(&context, request);
        for (v1::CompileEvent event; reader->Read(&event);) {
          outcomes_[i].events.push_back(event);
          if (event.has_accepted()) {
            ++accepted;
            accepted.notify_one();
          }
        }
        outcomes_[i].status = reader->Finish();
      });
    }
    for (std::size_t now = accepted; now < requests.size(); now = accepted) accepted.wait(now);
  }
  const std::vector<Outcome>& join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    return outcomes_;
  }

 private:
  std::vector<Outcome> outcomes_;
  std::vector<std::thread> threads_;
};

std::vector<v1::CompileEvent::EventCase> kinds(const Outcome& outcome) {
  std::vector<v1::CompileEvent::EventCase> kinds;
  for (const auto& event : outcome.events) {
    if (!event.has_heartbeat()) kinds.push_back(event.event_case());
  }
  return kinds;
}

TEST(Daemon, FirstCompilesThenHits) {
  TestDaemon daemon;
  const auto stub = daemon.stub();
  const auto first = compile(*stub, request_for("double f(double x) { return x; }\n"));
  ASSERT_TRUE(first.finished().has_artifact()) << first.failure().message();
  EXPECT_FALSE(first.artifact().hit());
  EXPECT_EQ(kinds(first),
            (std::vector{v1::CompileEvent::kAccepted, v1::CompileEvent::kStarted, v1::CompileEvent::kFinished}));

  const auto bytes = common::read_file(first.artifact().path());
  ASSERT_TRUE(bytes);
  const auto view = common::verify_artifact(*bytes);
  ASSERT_TRUE(view) << to_line(view.error());
  EXPECT_EQ(view->key.hex(), first.artifact().key());
  EXPECT_EQ(view->digest.hex(), first.artifact().digest());
  EXPECT_EQ(bytes->size(), first.artifact().size());
  const auto manifest = common::manifest_from_json(view->manifest);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->name, "test.c");
  ASSERT_EQ(manifest->functions.size(), 1u);
  EXPECT_EQ(manifest->functions[0].name, "f");

  const auto second = compile(*stub, request_for("double f(double x) { return x; }\n"));
  EXPECT_TRUE(second.artifact().hit());
  EXPECT_EQ(second.artifact().path(), first.artifact().path());
  const auto stats = daemon.stats();
  EXPECT_EQ(stats.at("requests"), 2u);
  EXPECT_EQ(stats.at("hits"), 1u);
  EXPECT_EQ(stats.at("compiles_started"), 1u);
  EXPECT_EQ(stats.at("published"), 1u);
  EXPECT_GT(stats.at("memory_peak_bytes"), 0u);
  EXPECT_GT(stats.at("daemon_rss_bytes"), 0u);
}

TEST(Daemon, IdentityFileGivesTheSameKeyAndPlace) {
  TestDaemon daemon;
  const auto outcome = compile(*daemon.stub(), request_for("int one(void) { return 1; }\n"));
  const auto identity = common::read_identity(daemon.runtime_dir());
  ASSERT_TRUE(identity);
  common::Request request;
  request.origin = "int one(void) { return 1; }\n";
  request.flags = {"-O3"};
  request.share = request.cse = "0";
  const auto resolved = common::resolve(request, *identity);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->key.hex(), outcome.artifact().key());
  EXPECT_EQ(common::artifact_path(identity->store, resolved->key), outcome.artifact().path());
  EXPECT_EQ(identity->pid, daemon.pid());
}

TEST(Daemon, NoCacheCompilesAgain) {
  TestDaemon daemon;
  auto request = request_for("int f;\n");
  compile(*daemon.stub(), request);
  request.set_no_cache(true);
  const auto again = compile(*daemon.stub(), request);
  EXPECT_FALSE(again.artifact().hit());
  EXPECT_FALSE(again.artifact().path().empty());
  EXPECT_EQ(daemon.stats().at("compiles_started"), 2u);
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(Daemon, NoCacheAnswersWhatItCompiledAndPutsTheOtherAway) {
  TestDaemon daemon;
  const std::string part = daemon.directory() + "/part";
  write(part, "old");
  auto request = request_for("//! file " + part + "\nint f;\n");
  const auto first = compile(*daemon.stub(), request);
  write(part, "new");
  EXPECT_TRUE(compile(*daemon.stub(), request).artifact().hit());
  request.set_no_cache(true);
  request.set_want_bytes(true);
  const auto again = compile(*daemon.stub(), request);
  EXPECT_EQ(again.artifact().key(), first.artifact().key());
  EXPECT_EQ(again.artifact().path(), first.artifact().path());
  EXPECT_EQ(common::read_file(again.artifact().path()), again.bytes);
  EXPECT_TRUE(common::verify_artifact(again.bytes)->elf.ends_with("new"));
  EXPECT_THAT(again.artifact().warnings(), Contains(HasSubstr("differs from what the store had")));
  EXPECT_EQ(daemon.stats().at("quarantined"), 1u);
  // The same once more is no news.
  EXPECT_EQ(compile(*daemon.stub(), request).artifact().warnings_size(), 0);
  EXPECT_EQ(daemon.stats().at("quarantined"), 1u);
}

TEST(Daemon, AHeaderThatChangesDuringTheCompileKeepsItOutOfTheStore) {
  const TemporaryDirectory headers;
  write(headers.path() + "/a.h", "#define A 1\n");
  TestDaemon daemon({.environment = {"JITC_INCLUDE_ROOTS=" + headers.path()}});
  Gate gate(daemon.directory() + "/gate");
  const auto request = request_for(gate.line() + "#include <a.h>\nint f = A;\n");
  Herd herd(daemon, {request});  // accepted: the key is made
  write(headers.path() + "/a.h", "#define A 22\n");
  gate.release();
  const auto outcome = herd.join().at(0);
  ASSERT_TRUE(outcome.finished().has_artifact()) << outcome.failure().message();
  EXPECT_EQ(outcome.artifact().path(), "");
  EXPECT_THAT(outcome.artifact().warnings(), Contains(HasSubstr("changed while it was compiled")));
  EXPECT_EQ(daemon.stats().at("published"), 0u);

  gate.open();
  const auto again = compile(*daemon.stub(), request);
  EXPECT_FALSE(again.artifact().hit());
  EXPECT_NE(again.artifact().key(), outcome.artifact().key());
  EXPECT_NE(again.artifact().path(), "");
}

TEST(Daemon, AnUpgradedCompilerGetsNewKeys) {
  const TemporaryDirectory place;
  const std::string compiler = place.path() + "/cc";
  write(compiler, "#!/bin/sh\n# 1\n");
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  TestDaemon daemon({.environment = {"JITC_COMPILERS=" + compiler}});
  auto request = request_for("int f;\n");
  request.set_compiler(compiler);
  const auto first = compile(*daemon.stub(), request);
  ASSERT_TRUE(first.finished().has_artifact()) << first.failure().message();
  EXPECT_TRUE(compile(*daemon.stub(), request).artifact().hit());
  write(compiler, "#!/bin/sh\n# version 2\n");
  const auto second = compile(*daemon.stub(), request);
  EXPECT_FALSE(second.artifact().hit());
  EXPECT_NE(second.artifact().key(), first.artifact().key());
}

TEST(Daemon, IdenticalRequestsShareOneCompile) {
  TestDaemon daemon;
  Gate gate(daemon.directory() + "/gate");
  Herd herd(daemon, std::vector(64, request_for(gate.line())));
  gate.release();
  int merged = 0;
  for (const auto& outcome : herd.join()) {
    ASSERT_TRUE(outcome.finished().has_artifact()) << outcome.failure().message();
    merged += outcome.artifact().merged() ? 1 : 0;
  }
  EXPECT_EQ(merged, 63);
  const auto stats = daemon.stats();
  EXPECT_EQ(stats.at("compiles_started"), 1u);
  EXPECT_EQ(stats.at("merged"), 63u);
  EXPECT_EQ(stats.at("hits"), 0u);
}

TEST(Daemon, NeverMoreCompilersThanTheLimit) {
  TestDaemon daemon({.arguments = {"--max-compilers", "2", "--memory-budget", "8G"}});
  Gate gate(daemon.directory() + "/gate");
  std::vector<v1::CompileRequest> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(request_for(gate.line() + "int f" + std::to_string(i) + ";\n"));
  Herd herd(daemon, requests);
  gate.release();
  gate.open();
  int queued = 0;
  for (const auto& outcome : herd.join()) {
    EXPECT_TRUE(outcome.finished().has_artifact());
    queued += std::ranges::count_if(outcome.events, [](const auto& event) { return event.has_queued(); }) > 0 ? 1 : 0;
  }
  EXPECT_EQ(queued, 6);
  EXPECT_EQ(daemon.stats().at("running_peak"), 2u);
  EXPECT_EQ(daemon.stats().at("compiles_started"), 8u);
  EXPECT_EQ(daemon.stats().at("running"), 0u);
  EXPECT_EQ(daemon.stats().at("memory_reserved_bytes"), 0u);
}

TEST(Daemon, InvalidSourceHasLineAndColumn) {
  TestDaemon daemon;
  const auto outcome = compile(*daemon.stub(), request_for("//! invalid\n"));
  ASSERT_TRUE(outcome.finished().has_failure());
  EXPECT_EQ(outcome.failure().kind(), v1::INVALID_SOURCE);
  ASSERT_EQ(outcome.failure().diagnostics_size(), 1);
  EXPECT_EQ(outcome.failure().diagnostics(0).line(), 3u);
  EXPECT_EQ(outcome.failure().diagnostics(0).column(), 5u);
  EXPECT_EQ(outcome.failure().diagnostics(0).message(), "expected ';'");
}

TEST(Daemon, PolicyAndLinearScanAnswerWithoutACompiler) {
  TestDaemon daemon;
  auto refused = request_for("int f;\n");
  refused.add_flags("-B/tmp");
  EXPECT_EQ(compile(*daemon.stub(), refused).failure().kind(), v1::REFUSED);
  const auto deep = compile(*daemon.stub(), request_for("int x = " + std::string(20'000, '(') + "1;\n"));
  EXPECT_EQ(deep.failure().kind(), v1::INVALID_SOURCE);
  EXPECT_EQ(daemon.stats().at("compiles_started"), 0u);
}

TEST(Daemon, TooLargeIsATypedRefusal) {
  TestDaemon daemon({.environment = {"JITC_MAX_SOURCE=1M"}});
  const auto outcome = compile(*daemon.stub(), request_for(std::string(2 << 20, ' ')));
  ASSERT_TRUE(outcome.finished().has_failure());
  EXPECT_EQ(outcome.failure().kind(), v1::REFUSED);
}

TEST(Daemon, OutOfMemoryNamesTriesAndBudget) {
  TestDaemon daemon;
  const auto outcome = compile(*daemon.stub(), request_for("//! memory\n"));
  EXPECT_EQ(outcome.failure().kind(), v1::OUT_OF_MEMORY);
  EXPECT_EQ(outcome.failure().tries(), 2u);
  EXPECT_GT(outcome.failure().budget_bytes(), 0u);
  EXPECT_EQ(daemon.stats().at("retries"), 1u);
  EXPECT_EQ(daemon.stats().at("out_of_memory"), 1u);
}

// At -O0, where it may be lowered: what is made then is not what the key says.
TEST(Daemon, WhatIsCompiledOtherwiseThanAskedIsAnsweredAndNeverKept) {
  TestDaemon daemon;
  auto request = request_for("//! memory unless -O1\n");
  request.clear_flags();
  request.add_flags("-O0");
  const auto stub = daemon.stub();
  for (std::uint64_t time = 1; time <= 2; ++time) {  // the second one is no hit
    const auto outcome = compile(*stub, request);
    ASSERT_TRUE(outcome.finished().has_artifact()) << outcome.failure().message();
    EXPECT_TRUE(outcome.artifact().degraded());
    EXPECT_FALSE(outcome.artifact().hit());
    EXPECT_EQ(outcome.artifact().path(), "");
    EXPECT_THAT(outcome.artifact().rungs(), ElementsAre(HasSubstr("again alone"), HasSubstr("-O1 instead of -O0")));
    EXPECT_THAT(outcome.artifact().warnings(),
                ElementsAre(AllOf(HasSubstr("not kept in the store"), HasSubstr("-O1 instead of -O0"),
                                  HasSubstr("out of memory at"))));
    const auto view = common::verify_artifact(outcome.bytes);
    ASSERT_TRUE(view) << to_line(view.error());
    const auto manifest = common::manifest_from_json(view->manifest);
    ASSERT_TRUE(manifest);
    EXPECT_THAT(manifest->flags, ElementsAre("-O0"));
    EXPECT_THAT(manifest->flags_used, ElementsAre("-O0", "-O1"));
    EXPECT_THAT(manifest->rungs, ElementsAreArray(outcome.artifact().rungs()));
    EXPECT_EQ(manifest->attempts, 3u);
    const auto stats = daemon.stats();
    EXPECT_EQ(stats.at("rung_alone"), time);
    EXPECT_EQ(stats.at("rung_degraded"), time);
    EXPECT_EQ(stats.at("degraded"), time);
    EXPECT_EQ(stats.at("retries"), 2 * time);
    EXPECT_EQ(stats.at("published"), 0u);
    EXPECT_EQ(stats.at("publish_failures"), 0u);
  }
  request.set_exact_flags(true);
  const auto exact = compile(*stub, request);
  EXPECT_EQ(exact.failure().kind(), v1::OUT_OF_MEMORY);
  EXPECT_EQ(exact.failure().tries(), 2u);
  EXPECT_THAT(exact.failure().rungs(), ElementsAre(HasSubstr("again alone")));
}

TEST(Daemon, AFullQueueSaysWhenToAskAgain) {
  TestDaemon daemon({.arguments = {"--max-compilers", "1"}, .environment = {"JITC_QUEUE_LENGTH=1"}});
  Gate gate(daemon.directory() + "/gate");
  const auto held = [&](const char* name) { return request_for(gate.line() + name); };
  const auto stub = daemon.stub();
  const auto wait_for = [&](const std::string& phase) {
    for (v1::JobsReply jobs; jobs.jobs_size() == 0 || jobs.jobs(jobs.jobs_size() - 1).phase() != phase;) {
      grpc::ClientContext context;
      ASSERT_TRUE(stub->Jobs(&context, {}, &jobs).ok());
    }
  };
  Herd running(daemon, {held("int a;\n")});
  wait_for("running");
  Herd waiting(daemon, {held("int b;\n")});
  wait_for("queued");
  const auto refused = compile(*stub, held("int c;\n"));
  EXPECT_EQ(refused.failure().kind(), v1::REFUSED);
  EXPECT_GE(refused.failure().retry_after_seconds(), 1);
  EXPECT_THAT(refused.failure().remedy(), HasSubstr("ask again in about "));
  gate.release();
  gate.open();
  EXPECT_TRUE(running.join()[0].finished().has_artifact());
  EXPECT_TRUE(waiting.join()[0].finished().has_artifact());
  EXPECT_EQ(daemon.stats().at("refused_queue_full"), 1u);
}

// Whoever runs beside it is lost with the worker each time, and is not blamed for it.
TEST(Daemon, ASourceThatKillsWorkersIsFoundOut) {
  TestDaemon daemon({.arguments = {"--max-compilers", "2", "--memory-budget", "8G"}});
  Gate gate(daemon.directory() + "/gate");
  Herd innocent(daemon, {request_for(gate.line())});
  Herd guilty(daemon, {request_for("//! die\n")});
  while (daemon.stats().at("worker_restarts") < 2) {
  }
  gate.open();
  const auto outcome = innocent.join()[0];
  EXPECT_TRUE(outcome.finished().has_artifact()) << outcome.failure().message();
  EXPECT_EQ(guilty.join()[0].failure().kind(), v1::COMPILER_CRASHED);
  EXPECT_LE(guilty.join()[0].failure().tries(), 3u);
  EXPECT_LE(daemon.stats().at("worker_restarts"), 3u);
  EXPECT_GT(daemon.stats().at("rung_worker_lost"), 0u);
}

TEST(Daemon, CrashIsTriedTwice) {
  TestDaemon daemon;
  const auto outcome = compile(*daemon.stub(), request_for("//! crash\n"));
  EXPECT_EQ(outcome.failure().kind(), v1::COMPILER_CRASHED);
  EXPECT_EQ(daemon.stats().at("compiles_started"), 2u);
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).finished().has_artifact());
}

TEST(Daemon, FiveMegabytesComeThroughAndBack) {
  TestDaemon daemon;
  std::string source;
  while (source.size() < 5 << 20)
    source += "double f" + std::to_string(source.size()) + "(double x) { return x * x; }\n";
  auto request = request_for(source);
  request.set_want_bytes(true);
  const auto outcome = compile(*daemon.stub(), request);
  ASSERT_TRUE(outcome.finished().has_artifact()) << outcome.failure().message();
  for (const auto& event : outcome.events) EXPECT_LE(event.chunk().size(), std::size_t{1} << 20);
  EXPECT_EQ(outcome.bytes.size(), outcome.artifact().size());
  const auto view = common::verify_artifact(outcome.bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->digest.hex(), outcome.artifact().digest());
}

TEST(Daemon, HeartbeatsArriveWhileACompileRuns) {
  TestDaemon daemon;
  Gate gate(daemon.directory() + "/gate");
  grpc::ClientContext context;
  const auto stub = daemon.stub();
  const auto reader = stub->Compile(&context, request_for(gate.line()));
  v1::CompileEvent event;
  double elapsed = -1;
  for (int beats = 0; beats < 2 && reader->Read(&event);) {
    if (!event.has_heartbeat() || event.heartbeat().place() != 0) continue;
    EXPECT_GT(event.heartbeat().elapsed_seconds(), elapsed);
    elapsed = event.heartbeat().elapsed_seconds();
    EXPECT_EQ(event.heartbeat().memory_bytes(), 10u << 20);
    ++beats;
  }
  EXPECT_GE(elapsed, 0);
  gate.release();
  while (reader->Read(&event)) {
  }
  EXPECT_TRUE(event.has_finished());
}

TEST(Daemon, UnwritableStoreAnswersWithBytes) {
  TestDaemon daemon;
  // Files where directories must be stop root too.
  std::filesystem::remove_all(daemon.store() + "/v1");
  std::ofstream(daemon.store() + "/v1") << "in the way";
  const auto outcome = compile(*daemon.stub(), request_for("int f;\n"));
  ASSERT_TRUE(outcome.finished().has_artifact()) << outcome.failure().message();
  EXPECT_EQ(outcome.artifact().path(), "");
  ASSERT_EQ(outcome.artifact().warnings_size(), 1);
  EXPECT_THAT(outcome.artifact().warnings(0), HasSubstr("not kept"));
  EXPECT_TRUE(common::verify_artifact(outcome.bytes));
  EXPECT_EQ(daemon.stats().at("publish_failures"), 1u);
}

TEST(Daemon, DamagedArtifactIsMovedAwayAndRebuilt) {
  TestDaemon daemon;
  const auto first = compile(*daemon.stub(), request_for("int f;\n"));
  std::filesystem::resize_file(first.artifact().path(), 50);
  const auto second = compile(*daemon.stub(), request_for("int f;\n"));
  EXPECT_FALSE(second.artifact().hit());
  EXPECT_EQ(second.artifact().path(), first.artifact().path());
  EXPECT_TRUE(common::verify_artifact(*common::read_file(second.artifact().path())));
  EXPECT_EQ(daemon.stats().at("quarantined"), 1u);
}

// ---- who waits ----------------------------------------------------------------------------------------------------

TEST(Daemon, ClientThatGoesAwayGivesItsSlotBack) {
  TestDaemon daemon({.arguments = {"--max-compilers", "1"}, .environment = {"JITC_GRACE=0"}});
  Gate never(daemon.directory() + "/never");
  {
    const auto stub = daemon.stub();
    grpc::ClientContext context;
    const auto reader = stub->Compile(&context, request_for(never.line()));
    v1::CompileEvent event;
    while (reader->Read(&event) && !event.has_started()) {
    }
    ASSERT_TRUE(event.has_started());
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).finished().has_artifact());
  EXPECT_EQ(daemon.stats().at("cancelled"), 1u);
  EXPECT_EQ(daemon.stats().at("memory_reserved_bytes"), 0u);
}

// The process that waits is killed: its connection ends, and nothing else tells the daemon.
TEST(Daemon, KilledClientGivesItsSlotBack) {
  TestDaemon daemon({.arguments = {"--max-compilers", "1"}, .environment = {"JITC_GRACE=0"}});
  Gate never(daemon.directory() + "/never");
  const auto socket = common::connect_own(daemon.runtime_dir() + "/" + common::kSocketName);
  ASSERT_TRUE(socket);
  auto channel = grpc::CreateInsecureChannelFromFd("jitcd", dup(socket->get()));
  const auto stub = v1::Compiler::NewStub(channel);
  grpc::ClientContext context;
  const auto reader = stub->Compile(&context, request_for(never.line()));
  v1::CompileEvent event;
  while (reader->Read(&event) && !event.has_started()) {
  }
  ASSERT_EQ(shutdown(socket->get(), SHUT_RDWR), 0);  // as the kernel does for a dead process
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).finished().has_artifact());
  EXPECT_EQ(daemon.stats().at("running"), 0u);
}

TEST(Daemon, OneOfTwoLeavesAndTheOtherGetsTheArtifact) {
  TestDaemon daemon({.environment = {"JITC_GRACE=0"}});
  Gate gate(daemon.directory() + "/gate");
  const auto stub = daemon.stub();
  grpc::ClientContext leaver, stayer;
  const auto leaving = stub->Compile(&leaver, request_for(gate.line()));
  v1::CompileEvent event;
  while (leaving->Read(&event) && !event.has_started()) {
  }
  const auto staying = stub->Compile(&stayer, request_for(gate.line()));
  ASSERT_TRUE(staying->Read(&event));
  EXPECT_TRUE(event.has_accepted());
  leaver.TryCancel();
  EXPECT_FALSE(leaving->Finish().ok());
  gate.release();
  while (staying->Read(&event)) {
  }
  ASSERT_TRUE(event.has_finished());
  EXPECT_TRUE(event.finished().artifact().merged());
  EXPECT_EQ(daemon.stats().at("compiles_started"), 1u);
}

TEST(Daemon, JobsAreSeenAndCancelled) {
  TestDaemon daemon;
  Gate never(daemon.directory() + "/never");
  auto request = request_for(never.line());
  request.set_job("job 7");
  Herd herd(daemon, {request});
  const auto stub = daemon.stub();
  v1::JobsReply jobs;
  grpc::ClientContext first, second, third;
  ASSERT_TRUE(stub->Jobs(&first, {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).job(), "job 7");
  EXPECT_EQ(jobs.jobs(0).name(), "test.c");
  EXPECT_EQ(jobs.jobs(0).waiters(), 1u);
  v1::CancelRequest cancel;
  v1::CancelReply reply;
  cancel.set_flight(jobs.jobs(0).flight());
  ASSERT_TRUE(stub->Cancel(&second, cancel, &reply).ok());
  EXPECT_TRUE(reply.found());
  EXPECT_EQ(herd.join()[0].failure().kind(), v1::CANCELLED);
  cancel.set_flight(999);
  ASSERT_TRUE(stub->Cancel(&third, cancel, &reply).ok());
  EXPECT_FALSE(reply.found());
}

}  // namespace
}  // namespace jitc::testing
