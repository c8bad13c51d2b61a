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

class WorkerLinkTest : public ::testing::Test {
 protected:
  void begin(const std::string& worker = JITC_STAND_IN_WORKER) {
    link_.emplace(state_, worker, std::vector<std::string>{});
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

}  // namespace
}  // namespace jitc::service
