// Two daemons, as on two nodes, over one store: one compiles, the other waits for it.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/daemon_fixture.h"

namespace jitc::testing {
namespace {

// A compile call that is read event by event.
class Call {
 public:
  Call(const TestDaemon& daemon, const std::string& source) : stub_(daemon.stub()) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    reader_ = stub_->Compile(&context_, request_for(source));
  }
  // Until such an event; false: there was none.
  template <class Wanted>
  bool read_until(Wanted wanted) {
    while (reader_->Read(&event_)) {
      if (event_.has_accepted()) flight_ = event_.accepted().flight();
      if (wanted(event_)) return true;
    }
    return false;
  }
  bool is_started() {
    return read_until([](const auto& event) { return event.has_started(); });
  }
  bool is_elsewhere() {
    return read_until([](const auto& event) { return event.heartbeat().elsewhere(); });
  }
  const v1::CompileEvent::Finished& finished() {
    EXPECT_TRUE(read_until([](const auto& event) { return event.has_finished(); }));
    return event_.finished();
  }
  std::uint64_t flight() const { return flight_; }
  void leave() { context_.TryCancel(); }

 private:
  std::unique_ptr<v1::Compiler::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::CompileEvent>> reader_;
  v1::CompileEvent event_;
  std::uint64_t flight_ = 0;
};

class Nodes : public ::testing::Test {
 protected:
  Nodes() { start(first_), start(second_); }
  void start(std::unique_ptr<TestDaemon>& daemon, std::vector<std::string> environment = {}) {
    daemon = std::make_unique<TestDaemon>(StartOptions{.arguments = {"--max-compilers", "1"},
                                                       .environment = std::move(environment),
                                                       .store = directory_.path() + "/store"});
  }
  void cancel(const TestDaemon& daemon, std::uint64_t flight) {
    grpc::ClientContext context;
    v1::CancelRequest request;
    v1::CancelReply reply;
    request.set_flight(flight);
    EXPECT_TRUE(daemon.stub()->Cancel(&context, request, &reply).ok());
    EXPECT_TRUE(reply.found());
  }
  static std::string phase(const TestDaemon& daemon) {
    grpc::ClientContext context;
    v1::JobsReply jobs;
    EXPECT_TRUE(daemon.stub()->Jobs(&context, {}, &jobs).ok());
    return jobs.jobs_size() == 1 ? jobs.jobs(0).phase() : std::to_string(jobs.jobs_size()) + " jobs";
  }
  static std::ptrdiff_t spans_elsewhere(const TestDaemon& daemon) {
    grpc::ClientContext context;
    v1::TraceReply trace;
    EXPECT_TRUE(daemon.stub()->Trace(&context, {}, &trace).ok());
    return std::ranges::count_if(trace.spans(),
                                 [](const auto& span) { return span.kind() == v1::TraceReply::Span::ELSEWHERE; });
  }
  std::ptrdiff_t leases() const {
    using Walk = std::filesystem::recursive_directory_iterator;
    return std::ranges::count_if(Walk(directory_.path() + "/store/v1"),
                                 [](const auto& entry) { return entry.path().extension() == ".lease"; });
  }

  TemporaryDirectory directory_;
  Gate gate_{directory_.path() + "/gate"};
  const std::string source_ = gate_.line() + "double f(double x) { return x; }\n";
  std::unique_ptr<TestDaemon> first_, second_;
};

TEST_F(Nodes, OneCompilesForBoth) {
  Call compiling(*first_, source_);
  ASSERT_TRUE(compiling.is_started());
  Call waiting(*second_, source_);
  ASSERT_TRUE(waiting.is_elsewhere());
  EXPECT_EQ(phase(*second_), "elsewhere");
  EXPECT_EQ(second_->stats().at("running"), 0U);
  EXPECT_EQ(second_->stats().at("memory_reserved_bytes"), 0U);
  // Its one slot is free for another source.
  EXPECT_TRUE(compile(*second_->stub(), request_for("double g;\n")).finished().has_artifact());
  gate_.release();
  const auto made = compiling.finished();
  const auto found = waiting.finished();
  ASSERT_TRUE(made.has_artifact() && found.has_artifact());
  EXPECT_TRUE(found.artifact().hit());
  EXPECT_EQ(found.artifact().path(), made.artifact().path());
  EXPECT_EQ(first_->stats().at("compiles_started"), 1U);
  EXPECT_EQ(second_->stats().at("compiles_started"), 1U);  // the other source
  EXPECT_EQ(second_->stats().at("elsewhere"), 1U);
  EXPECT_EQ(spans_elsewhere(*second_), 1);
  for (auto* daemon : {&first_, &second_}) daemon->reset();
  EXPECT_EQ(leases(), 0);
}

TEST_F(Nodes, TheOtherTakesOverWhenTheOneIsKilled) {
  Call compiling(*first_, source_);
  ASSERT_TRUE(compiling.is_started());
  Call waiting(*second_, source_);
  ASSERT_TRUE(waiting.is_elsewhere());
  first_->signal(SIGKILL);
  first_->wait();
  gate_.open();
  EXPECT_TRUE(waiting.finished().has_artifact());
  EXPECT_EQ(second_->stats().at("compiles_started"), 1U);
}

// A failure is that of one node.
TEST_F(Nodes, TheOtherCompilesItselfWhenTheOneFails) {
  const std::string broken = source_ + "//! invalid\n";
  Call compiling(*first_, broken);
  ASSERT_TRUE(compiling.is_started());
  Call waiting(*second_, broken);
  ASSERT_TRUE(waiting.is_elsewhere());
  gate_.open();
  EXPECT_EQ(compiling.finished().failure().kind(), v1::INVALID_SOURCE);
  EXPECT_EQ(waiting.finished().failure().kind(), v1::INVALID_SOURCE);
  EXPECT_EQ(second_->stats().at("compiles_started"), 1U);
}

TEST_F(Nodes, TheOtherCompilesItselfWhenTheOneIsCancelledOrEnds) {
  for (const bool by_its_end : {false, true}) {
    start(first_);
    const std::string source = source_ + (by_its_end ? "double a;\n" : "double b;\n");
    Call compiling(*first_, source);
    ASSERT_TRUE(compiling.is_started());
    Call waiting(*second_, source);
    ASSERT_TRUE(waiting.is_elsewhere());
    if (by_its_end) {
      first_.reset();
    } else {
      cancel(*first_, compiling.flight());
    }
    ASSERT_TRUE(waiting.is_started());
    gate_.release();
    EXPECT_TRUE(waiting.finished().has_artifact());
  }
}

TEST_F(Nodes, WhoWaitsForTheOtherCanCancelLeaveAndDrain) {
  Call compiling(*first_, source_);
  ASSERT_TRUE(compiling.is_started());
  {
    Call waiting(*second_, source_);
    ASSERT_TRUE(waiting.is_elsewhere());
    cancel(*second_, waiting.flight());
    EXPECT_EQ(waiting.finished().failure().kind(), v1::CANCELLED);
  }
  Call waiting(*second_, source_);
  ASSERT_TRUE(waiting.is_elsewhere());
  grpc::ClientContext context;
  v1::DrainReply drained;
  ASSERT_TRUE(second_->stub()->Drain(&context, {}, &drained).ok());
  EXPECT_EQ(drained.queued(), 1U);
  gate_.release();
  EXPECT_TRUE(waiting.finished().has_artifact());
  EXPECT_EQ(second_->wait(), 0);
  EXPECT_TRUE(compiling.finished().has_artifact());
  EXPECT_EQ(first_->stats().at("compiles_started"), 1U);
}

// The one waits for a lease that goes without an artifact, and has no slot by then: the other, which has one, compiles.
TEST_F(Nodes, WhatWaitsInTheQueueHoldsUpNobodyElse) {
  const std::string wanted = "double h(double x) { return x; }\n";
  const std::filesystem::path artifact = compile(*second_->stub(), request_for(wanted)).finished().artifact().path();
  start(second_);  // with the one before its lease has gone
  ASSERT_TRUE(std::filesystem::remove(artifact));
  const auto lease = std::filesystem::path(artifact).replace_extension(".lease");
  std::ofstream(lease) << "somebody else 0\n";
  Call waiting(*first_, wanted);
  ASSERT_TRUE(waiting.is_elsewhere());
  Call compiling(*first_, source_);
  ASSERT_TRUE(compiling.is_started());
  ASSERT_TRUE(std::filesystem::remove(lease));
  ASSERT_TRUE(waiting.read_until([](const auto& event) { return event.has_queued(); }));
  Call other(*second_, wanted);
  EXPECT_FALSE(other.finished().artifact().hit());
  EXPECT_EQ(second_->stats().at("compiles_started"), 1U);
  gate_.release();
  EXPECT_TRUE(compiling.finished().has_artifact());
  EXPECT_TRUE(waiting.finished().artifact().hit());
  EXPECT_EQ(first_->stats().at("compiles_started"), 1U);
}

TEST_F(Nodes, WithoutLeasesEachCompiles) {
  start(second_, {"JITC_STORE_LEASE=0"});
  Call one(*first_, source_);
  ASSERT_TRUE(one.is_started());
  Call other(*second_, source_);
  ASSERT_TRUE(other.is_started());
  gate_.open();
  EXPECT_TRUE(one.finished().has_artifact());
  EXPECT_TRUE(other.finished().has_artifact());
}

TEST_F(Nodes, WhereNoLeaseCanBeMadeEachCompiles) {
  Call before(*first_, source_);  // says where the lease would be
  ASSERT_TRUE(before.is_started());
  gate_.release();
  const std::filesystem::path artifact = before.finished().artifact().path();
  ASSERT_TRUE(std::filesystem::remove(artifact));
  start(first_);  // with the one before its lease has gone
  ASSERT_TRUE(std::filesystem::create_directory(std::filesystem::path(artifact).replace_extension(".lease")));
  Call one(*first_, source_);
  ASSERT_TRUE(one.is_started());
  Call other(*second_, source_);
  ASSERT_TRUE(other.is_started());
  gate_.open();
  EXPECT_TRUE(one.finished().has_artifact());
  EXPECT_TRUE(other.finished().has_artifact());
  EXPECT_EQ(first_->stats().at("published") + second_->stats().at("published"), 1U);
}

}  // namespace
}  // namespace jitc::testing
