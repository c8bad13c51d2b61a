// `jitc submit` beside a daemon that is killed, ended, drained or told to cancel while somebody waits; and clients that
// leave and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "common/runtime_dir.h"
#include "tests/support/daemon_fixture.h"
#include "tests/support/process.h"

namespace jitc::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience(60);  // what has not come by then does not come

// Asks until the jobs are so: each answer is made by the thread that changes them.
template <class Condition>
v1::JobsReply wait_for_jobs(const TestDaemon& daemon, const std::string& what, Condition condition) {
  const auto stub = daemon.stub();
  const auto end = std::chrono::system_clock::now() + kPatience;
  v1::JobsReply jobs;
  while (std::chrono::system_clock::now() < end) {
    grpc::ClientContext context;
    context.set_deadline(end);
    if (const auto status = stub->Jobs(&context, {}, &jobs); !status.ok())
      throw std::runtime_error("the daemon does not answer: " + status.error_message());
    if (condition(jobs)) return jobs;
  }
  throw std::runtime_error("waited in vain for " + what + "; the daemon has " + jobs.ShortDebugString());
}

// Until the daemon's only flight is in this state.
v1::Job wait_for_flight(const TestDaemon& daemon, const std::string& phase, std::uint32_t waiters) {
  const std::string what = "one flight, " + phase + ", with " + std::to_string(waiters) + " waiting";
  return wait_for_jobs(daemon, what,
                       [&](const v1::JobsReply& jobs) {
                         return jobs.jobs_size() == 1 && jobs.jobs(0).phase() == phase &&
                                jobs.jobs(0).waiters() == waiters;
                       })
      .jobs(0);
}

class DaemonRestart : public ::testing::Test {
 protected:
  std::unique_ptr<TestDaemon> start_daemon(std::vector<std::string> environment = {}) const {
    return std::make_unique<TestDaemon>(
        StartOptions{.environment = std::move(environment), .directory = directory.path()});
  }
  Environment environment() const {
    return {{"JITC_RUNTIME_DIR", directory.path() + "/run"}, {"JITC_AUTOSTART", "0"}, {"JITC_PROGRESS", "1"}};
  }
  std::unique_ptr<Process> start_jitc(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), JITC_BIN_DIR "/jitc");
    return std::make_unique<Process>(arguments, environment());
  }
  Finished jitc(const std::vector<std::string>& arguments) const { return start_jitc(arguments)->wait(); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = directory.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  TemporaryDirectory directory;
  Gate gate{directory.path() + "/gate"};
  const std::string held = write("held.c", gate.line());
};

TEST_F(DaemonRestart, AllThatWaitComeTogetherAgainInOneCompileOfTheNextDaemon) {
  constexpr std::uint32_t kClients = 8;
  for (const int signal : {SIGKILL, SIGTERM}) {
    auto daemon = start_daemon();
    std::vector<std::unique_ptr<Process>> clients;
    for (std::uint32_t i = 0; i < kClients; ++i) clients.push_back(start_jitc({"submit", "--no-cache", held}));
    wait_for_flight(*daemon, "running", kClients);
    daemon->signal(signal);
    daemon->wait();
    EXPECT_TRUE(clients[0]->wait_for_error_text(": reconnecting, "));
    daemon = start_daemon();
    wait_for_flight(*daemon, "running", kClients);
    EXPECT_TRUE(clients[0]->wait_for_error_text("asked again, try 2 of 3")) << "told when it happens";
    gate.release();
    std::string path;
    for (const auto& client : clients) {
      const Finished done = client->wait();
      EXPECT_EQ(done.exit_code, 0) << done.err;
      EXPECT_THAT(done.err, HasSubstr("asked again, try 2 of 3"));
      if (path.empty()) path = done.out;
      EXPECT_EQ(done.out, path) << "one path, and once";
    }
    const auto stats = daemon->stats();
    EXPECT_EQ(stats.at("requests"), kClients);
    EXPECT_EQ(stats.at("compiles_started"), 1u);
    EXPECT_EQ(stats.at("merged"), kClients - 1);
  }
}

TEST_F(DaemonRestart, AnInterruptEndsTheWaitForTheNextDaemonAndIsNamed) {
  auto daemon = start_daemon();
  const auto client = start_jitc({"submit", held});
  wait_for_flight(*daemon, "running", 1);
  daemon->signal(SIGTERM);
  EXPECT_TRUE(client->wait_for_error_text(": reconnecting, "));
  client->signal(SIGTERM);
  const Finished done = client->wait();
  EXPECT_EQ(done.exit_code, 9) << done.err;
  EXPECT_THAT(done.err, HasSubstr("interrupted"));
}

// User and system time of a process, in clock ticks.
long cpu_ticks(pid_t pid) {
  const auto stat = common::read_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

TEST_F(DaemonRestart, WhoWaitsCostsNoCpu) {
  const auto daemon = start_daemon();
  const auto client = start_jitc({"submit", held});
  ASSERT_TRUE(client->wait_for_error_text("compiling, 1 s"));
  const long before = cpu_ticks(client->pid()) + cpu_ticks(daemon->pid());
  ASSERT_TRUE(client->wait_for_error_text("compiling, 4 s"));
  const long ticks = cpu_ticks(client->pid()) + cpu_ticks(daemon->pid()) - before;
  EXPECT_LE(ticks, sysconf(_SC_CLK_TCK) * 3 / 10) << "of 3 s at least: who asks again and again takes all of it";
  gate.release();
  EXPECT_EQ(client->wait().exit_code, 0);
}

TEST_F(DaemonRestart, WithoutANextDaemonItIsATypedErrorInTime) {
  auto daemon = start_daemon();
  auto impatient = environment();
  impatient["JITC_TIMEOUT"] = "3s";
  Process client({JITC_BIN_DIR "/jitc", "submit", held}, impatient);
  wait_for_flight(*daemon, "running", 1);
  daemon->signal(SIGKILL);
  daemon->wait();
  const Finished done = client.wait();
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_THAT(done.err, HasSubstr("no other came within 3 s"));
  EXPECT_EQ(done.out, "");
}

TEST_F(DaemonRestart, DrainWaitsForWhatWasTakenOnAndTheNextDaemonTakesTheRest) {
  auto daemon = start_daemon();
  const auto client = start_jitc({"submit", held});
  wait_for_flight(*daemon, "running", 1);
  const auto drain = start_jitc({"drain"});
  EXPECT_TRUE(drain->wait_for_error_text("draining, 1 running, 0 queued"));
  const std::string other = write("other.c", "int g;\n");
  EXPECT_EQ(jitc({"submit", other}).exit_code, 3);
  gate.release();
  EXPECT_EQ(client->wait().exit_code, 0);
  const Finished drained = drain->wait();
  EXPECT_EQ(drained.exit_code, 0);
  EXPECT_THAT(drained.err, HasSubstr("drained, pid " + std::to_string(daemon->pid())));
  EXPECT_EQ(daemon->wait(), 0);
  daemon = start_daemon();
  EXPECT_EQ(jitc({"submit", other}).exit_code, 0);
}

TEST_F(DaemonRestart, DrainNeedNotWaitAndNeedsNoDaemon) {
  auto daemon = start_daemon();
  const auto client = start_jitc({"submit", held});
  wait_for_flight(*daemon, "running", 1);
  EXPECT_EQ(jitc({"drain", "--timeout", "0.2"}).exit_code, 6);
  const Finished told = jitc({"drain", "--no-wait"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.err, HasSubstr("draining, pid "));
  gate.release();
  EXPECT_EQ(client->wait().exit_code, 0);
  EXPECT_EQ(daemon->wait(), 0);
  const Finished nobody = jitc({"drain"});
  EXPECT_EQ(nobody.exit_code, 0);
  EXPECT_THAT(nobody.err, HasSubstr("no daemon runs"));
}

TEST_F(DaemonRestart, CancelEndsItForAllAndSaysWhatWasCancelled) {
  const auto daemon = start_daemon();
  for (const bool by_key : {false, true}) {
    const std::unique_ptr<Process> clients[] = {start_jitc({"submit", held}), start_jitc({"submit", held})};
    const v1::Job job = wait_for_flight(*daemon, "running", 2);
    EXPECT_THAT(jitc({"jobs"}).out, HasSubstr(job.key().substr(0, 12)));
    EXPECT_THAT(jitc({"jobs", "--json"}).out, HasSubstr(job.key()));
    const std::string id = by_key ? job.key().substr(0, 10) : std::to_string(job.flight());
    const Finished done = by_key ? jitc({"cancel", "--json", id}) : jitc({"cancel", id});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const std::string flight = std::to_string(job.flight());
    EXPECT_EQ(done.out, by_key ? R"({"id":")" + id + R"(","flight":)" + flight + R"(,"key":")" + job.key() +
                                     R"(","name":")" + held + R"(","phase":"running","waiters":2})" + "\n"
                               : "cancelled flight " + flight + ", " + held + " (running, 2 waiting)\n");
    for (const auto& client : clients) EXPECT_EQ(client->wait().exit_code, 9);
  }
  const Finished unknown = jitc({"cancel", "4711"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("4711"));
  EXPECT_EQ(daemon->stats().at("cancelled"), 2u);
  EXPECT_EQ(daemon->stats().at("running"), 0u);
}

TEST_F(DaemonRestart, BackWithinTheGraceIsTheSameCompile) {
  const auto daemon = start_daemon({"JITC_GRACE=60s"});
  const auto leaves = start_jitc({"submit", held});
  const v1::Job before = wait_for_flight(*daemon, "running", 1);
  leaves->signal(SIGKILL);
  wait_for_flight(*daemon, "running", 0);
  const auto back = start_jitc({"submit", held});
  EXPECT_EQ(wait_for_flight(*daemon, "running", 1).flight(), before.flight());
  gate.release();
  EXPECT_EQ(back->wait().exit_code, 0);
  EXPECT_EQ(daemon->stats().at("compiles_started"), 1u);
  EXPECT_EQ(daemon->stats().at("cancelled"), 0u);
}

TEST_F(DaemonRestart, TheLastOneGoneIsACancelAfterTheGrace) {
  const auto daemon = start_daemon({"JITC_GRACE=200ms"});
  const auto leaves = start_jitc({"submit", held});
  wait_for_flight(*daemon, "running", 1);
  const auto compilers = children_of(daemon->children().at(0));
  leaves->signal(SIGKILL);
  wait_for_jobs(*daemon, "the end of all flights", [](const v1::JobsReply& jobs) { return jobs.jobs_size() == 0; });
  EXPECT_EQ(daemon->stats().at("cancelled"), 1u);
  for (const pid_t pid : compilers) EXPECT_EQ(kill(pid, 0), -1) << "its compiler " << pid << " lives";
}

// The first call's flight was ended for it; only then does its client go, when the key has a flight of others.
TEST_F(DaemonRestart, ADropThatComesLateDoesNotTouchTheNextFlight) {
  const auto daemon = start_daemon({"JITC_GRACE=0"});
  const auto late = daemon->stub();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto reader = late->Compile(&context, request_for(gate.line()));
  const v1::Job first = wait_for_flight(*daemon, "running", 1);
  grpc::ClientContext cancelling;
  v1::CancelRequest cancel;
  v1::CancelReply reply;
  cancel.set_flight(first.flight());
  ASSERT_TRUE(daemon->stub()->Cancel(&cancelling, cancel, &reply).ok());
  const auto other = daemon->stub();
  grpc::ClientContext others;
  others.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto stays = other->Compile(&others, request_for(gate.line()));
  const v1::Job second = wait_for_flight(*daemon, "running", 1);
  EXPECT_NE(second.flight(), first.flight());
  context.TryCancel();
  v1::CompileEvent event;
  while (reader->Read(&event)) {
  }
  reader->Finish();
  EXPECT_EQ(wait_for_flight(*daemon, "running", 1).flight(), second.flight());
  gate.release();
  while (stays->Read(&event)) {
  }
  EXPECT_TRUE(event.finished().has_artifact());
}

}  // namespace
}  // namespace jitc::testing
