// The daemon's end of its worker, with the stand-in for one: what cannot be sent, workers that say nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <variant>

#include "common/files.h"
#include "daemon/service/worker_link.h"
#include "tests/support/temporary_directory.h"

namespace jitc::service {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kHangs{120};  // ends a hang, measures nothing
const WorkerPatience kShort{.tick = std::chrono::milliseconds(50), .start = 40, .silence = 20};

class WorkerLinkTest : public ::testing::Test {
 protected:
  void begin(const std::string& worker = JITC_STAND_IN_WORKER, WorkerPatience patience = {}) {
    link_.emplace(state_, worker, std::vector<std::string>{}, patience);
    watch_children();
    ASSERT_TRUE(link_->start([] { return false; }));
    link_->watch({.report =
                      [this](const WorkerEvent& event) {
                        if (const auto* finished = std::get_if<WorkerFinished>(&event)) {
                          outcomes_[finished->job] = {finished->outcome, finished->error};
                        }
                      },
                  .lost = [this] { ++losses_; },
                  .restarted = [this](const WorkerIdentity&) { ++restarts_; }});
  }
  void send(std::uint64_t job, const std::string& source, const std::string& flag = "-O1") {
    v1::WorkerCommand command;
    command.mutable_start()->set_job(job);
    command.mutable_start()->add_flags(flag);
    link_->send(command, *common::sealed_memfd("source", source, false));
  }
  void run_until(const auto& reached) {
    const auto deadline = std::chrono::steady_clock::now() + kHangs;
    while (!reached()) ASSERT_GT(state_.run_one_until(deadline), 0U) << "nothing comes";
  }
  // By this worker, or by one after it.
  void run_until_compiled(std::uint64_t job) {
    for (unsigned lost = losses_; !outcomes_.contains(job); lost = losses_) {
      if (link_->up()) send(job, "int x;");
      const unsigned ready = restarts_;
      run_until([&] { return outcomes_.contains(job) || losses_ != lost || restarts_ != ready; });
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(outcomes_[job].outcome, WorkerFinished::Outcome::kDone);
  }
  void watch_children() {
    children_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      link_->reap();
      watch_children();
    });
  }

  struct Ended {
    WorkerFinished::Outcome outcome;
    common::Error error;
  };
  asio::io_context state_;
  asio::signal_set children_{state_, SIGCHLD};
  std::optional<WorkerLink> link_;
  std::map<std::uint64_t, Ended> outcomes_;
  unsigned losses_ = 0, restarts_ = 0;
};

TEST_F(WorkerLinkTest, WhatCannotBeSentFailsItsOwnJobAlone) {
  begin();
  send(1, "int x;");
  send(2, "int x;", std::string(worker::kMaxMessageBytes, 'D'));
  send(3, "int x;");
  run_until([this] { return outcomes_.size() == 3; });
  EXPECT_EQ(outcomes_[1].outcome, WorkerFinished::Outcome::kDone);
  EXPECT_EQ(outcomes_[2].outcome, WorkerFinished::Outcome::kRefused);
  EXPECT_EQ(outcomes_[2].error.kind, common::ErrorKind::kUsage);
  EXPECT_THAT(outcomes_[2].error.message, HasSubstr("too large"));
  EXPECT_EQ(outcomes_[3].outcome, WorkerFinished::Outcome::kDone);
  EXPECT_EQ(losses_, 0U);
}

// Stopped with a job: killed, and the next one compiles. A killed worker is late now and then on a busy machine: then
// its jobs are given to the next one, as the engine does.
TEST_F(WorkerLinkTest, AWorkerThatSaysNothingOfItsJobsIsReplaced) {
  begin(JITC_STAND_IN_WORKER, kShort);
  send(1, "//! stop\n");
  run_until([this] { return losses_ == 1 && restarts_ == 1; });
  run_until_compiled(2);
  EXPECT_FALSE(outcomes_.contains(1));
}

TEST_F(WorkerLinkTest, AWorkerWithoutJobsMaySayNothing) {
  begin(JITC_STAND_IN_WORKER, kShort);
  send(1, "int x;");
  run_until([this] { return outcomes_.contains(1); });
  bool waited = false;
  asio::steady_timer timer(state_, 3 * kShort.silence * kShort.tick);
  timer.async_wait([&waited](const boost::system::error_code&) { waited = true; });
  kill(link_->pid(), SIGSTOP);
  run_until([&waited] { return waited; });
  EXPECT_EQ(losses_, 0U);
  kill(link_->pid(), SIGCONT);
}

TEST_F(WorkerLinkTest, AWorkerThatDoesNotBecomeReadyIsReplaced) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/worker";
  // The second one hangs.
  std::ofstream(path) << "#!/bin/sh\ncd " << directory.path() << "\nmkdir first 2>/dev/null && exec "
                      << JITC_STAND_IN_WORKER << "\nmkdir second 2>/dev/null && exec sleep 10000\nexec "
                      << JITC_STAND_IN_WORKER << "\n";
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  begin(path, kShort);
  send(1, "//! die\n");
  run_until([this] { return losses_ >= 2 && restarts_ >= 1; });
  run_until_compiled(2);
}

}  // namespace
}  // namespace jitc::service
