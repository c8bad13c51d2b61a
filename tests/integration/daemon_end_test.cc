// How a daemon starts and ends: one per directory, deaths of its processes, drain, idleness, signals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/identity.h"
#include "common/runtime_dir.h"
#include "tests/support/daemon_fixture.h"

extern char** environ;

namespace jitc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct Ran {
  int code = -1;
  std::string output;
};

// Runs a command to its end; the output is read until nobody holds the pipe any more.
Ran run(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  common::Fd reader(ends[0]), writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 2);
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (error != 0) return {};
  Ran ran;
  char buffer[4096];
  for (ssize_t size; (size = read(reader.get(), buffer, sizeof buffer)) > 0;) ran.output.append(buffer, size);
  int status = 0;
  waitpid(pid, &status, 0);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  return names;
}

// The fixture is a subreaper: whatever the daemon's tree leaves behind is a child of this process.
void expect_no_child_left() {
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// A call that waits at a gate, seen as started.
struct Held {
  grpc::ClientContext context;
  std::unique_ptr<v1::Compiler::Stub> stub;
  std::unique_ptr<grpc::ClientReader<v1::CompileEvent>> reader;
  v1::CompileEvent event;

  Held(const TestDaemon& daemon, const std::string& source) : stub(daemon.stub()) {
    reader = stub->Compile(&context, request_for(source));
    while (reader->Read(&event) && !event.has_started()) {
    }
  }
  const v1::CompileEvent::Finished& finish() {
    while (reader->Read(&event)) {
    }
    return event.finished();
  }
};

TEST(DaemonEnd, SecondDaemonSaysWhoRuns) {
  TestDaemon daemon;
  for (const char* mode : {"--foreground", "--log=info"}) {
    const Ran second =
        run({JITC_BIN_DIR "/jitcd", mode, "--runtime-dir", daemon.runtime_dir(), "--store", daemon.store()});
    EXPECT_EQ(second.code, 0);
    EXPECT_THAT(second.output, HasSubstr("already running, pid " + std::to_string(daemon.pid())));
  }
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).finished().has_artifact());
}

TEST(DaemonEnd, DetachedStartReturnsAndHoldsNothingOfTheCaller) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // the daemon leaves its parent; its end is to be seen here
  TemporaryDirectory directory;
  const std::string runtime = directory.path() + "/run";
  // run() returns only when nobody holds its pipe: a daemon that kept it would hang the test.
  const Ran started = run({JITC_BIN_DIR "/jitcd", "--runtime-dir", runtime, "--store", directory.path() + "/store",
                           "--worker", JITC_STAND_IN_WORKER});
  ASSERT_EQ(started.code, 0) << started.output;
  EXPECT_EQ(started.output, "");
  const auto lock = common::read_file(runtime + "/" + common::kLockName);
  ASSERT_TRUE(lock);
  const pid_t pid = std::atoi(lock->c_str());
  EXPECT_EQ(getsid(pid), pid);
  EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/cwd"), "/");
  EXPECT_TRUE(compile(*connect_stub(runtime), request_for("int f;\n")).finished().has_artifact());
  kill(pid, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(names_in(runtime), UnorderedElementsAre("jitcd.log", common::kIdentityFile));
}

TEST(DaemonEnd, ABatchJobsDirectoryGoesWithItsDaemon) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  TemporaryDirectory directory;
  const std::string runtime = directory.path() + "/jitc/7.n1";
  const auto start = [&](const std::string& log) {
    const Ran started = run({"/usr/bin/env", "SLURM_JOB_ID=7", "SLURMD_NODENAME=n1",
                             "XDG_RUNTIME_DIR=" + directory.path(), JITC_BIN_DIR "/jitcd", "--store",
                             directory.path() + "/store", "--worker", JITC_STAND_IN_WORKER, "--log", "info:" + log});
    ASSERT_EQ(started.code, 0) << started.output;
  };
  const auto end = [&] {
    EXPECT_THAT(names_in(runtime), ::testing::Contains(common::kIdentityFile));
    const pid_t pid = std::atoi(common::read_file(runtime + "/" + common::kLockName).value_or("").c_str());
    ASSERT_GT(pid, 0);
    kill(pid, SIGTERM);
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  };
  start(directory.path() + "/log");
  end();
  EXPECT_THAT(names_in(directory.path() + "/jitc"), IsEmpty());
  start(runtime + "/jitcd.log");
  end();
  EXPECT_THAT(names_in(runtime), ElementsAre("jitcd.log")) << "what a daemon of the background said is kept";
}

TEST(DaemonEnd, DetachedStartTellsWhyItFailed) {
  TemporaryDirectory directory;
  const Ran started = run({JITC_BIN_DIR "/jitcd", "--runtime-dir", directory.path() + "/run", "--store",
                           directory.path() + "/store", "--worker", "/no/such/worker"});
  EXPECT_EQ(started.code, 70);
  EXPECT_THAT(started.output, HasSubstr("/no/such/worker"));
  EXPECT_THAT(names_in(directory.path() + "/run"), ::testing::Not(::testing::Contains(common::kLockName)));
}

TEST(DaemonEnd, LongSocketPathIsRefusedClearly) {
  TemporaryDirectory directory;
  const Ran started =
      run({JITC_BIN_DIR "/jitcd", "--foreground", "--runtime-dir", directory.path() + "/" + std::string(100, 'x'),
           "--store", directory.path() + "/store", "--worker", JITC_STAND_IN_WORKER});
  EXPECT_EQ(started.code, 2);
  EXPECT_THAT(started.output, HasSubstr("107"));
}

TEST(DaemonEnd, StaleSocketIsReplaced) {
  TestDaemon daemon;
  daemon.signal(SIGKILL);
  daemon.wait();
  while (waitpid(-1, nullptr, 0) > 0) {  // its worker ends by itself when the channel closes
  }
  EXPECT_TRUE(std::filesystem::exists(daemon.runtime_dir() + "/" + common::kSocketName));
  const Ran again = run({JITC_BIN_DIR "/jitcd", "--runtime-dir", daemon.runtime_dir(), "--store", daemon.store(),
                         "--worker", JITC_STAND_IN_WORKER});
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_TRUE(compile(*connect_stub(daemon.runtime_dir()), request_for("int f;\n")).finished().has_artifact());
  const pid_t pid = std::atoi(common::read_file(daemon.runtime_dir() + "/" + common::kLockName)->c_str());
  kill(pid, SIGTERM);
  waitpid(pid, nullptr, 0);
}

TEST(DaemonEnd, SigtermLeavesNothing) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    TestDaemon daemon;
    Gate never(daemon.directory() + "/never");
    Held held(daemon, never.line());
    daemon.signal(signal);
    EXPECT_EQ(held.finish().failure().kind(), v1::DRAINING);
    EXPECT_EQ(daemon.wait(), 0);
    EXPECT_THAT(names_in(daemon.runtime_dir()), ElementsAre(common::kIdentityFile));
    EXPECT_THAT(names_in(daemon.store() + "/v1/tmp"), IsEmpty());
    expect_no_child_left();
  }
}

TEST(DaemonEnd, WarningsOfABatchSystemEndNothing) {
  TestDaemon daemon;
  Gate gate(daemon.directory() + "/gate");
  Held held(daemon, gate.line());
  for (const int warning : {SIGUSR1, SIGUSR2}) daemon.signal(warning);
  gate.release();
  EXPECT_TRUE(held.finish().has_artifact());
}

TEST(DaemonEnd, DeadWorkerIsReplacedAndItsJobsStartAnew) {
  TestDaemon daemon;
  Gate gate(daemon.directory() + "/gate");
  Held held(daemon, gate.line());
  const auto workers = daemon.children();
  ASSERT_EQ(workers.size(), 1u);
  const auto compilers = children_of(workers[0]);
  kill(workers[0], SIGKILL);
  // Started a second time by the new worker; the first one's compiler was adopted by the daemon and ended.
  while (held.reader->Read(&held.event) && !held.event.has_started()) {
  }
  EXPECT_EQ(held.event.started().attempt(), 2u);
  gate.open();
  EXPECT_TRUE(held.finish().has_artifact());
  EXPECT_NE(daemon.children(), workers);
  EXPECT_EQ(daemon.stats().at("worker_restarts"), 1u);
  for (const pid_t pid : compilers) EXPECT_EQ(kill(pid, 0), -1) << "the dead worker's compiler " << pid << " lives";
}

TEST(DaemonEnd, WorkerThatAlwaysDiesGivesATypedFailure) {
  for (const char* source : {"//! die\n", "//! babble\n"}) {
    TestDaemon daemon;
    const auto outcome = compile(*daemon.stub(), request_for(source));
    ASSERT_TRUE(outcome.finished().has_failure());
    EXPECT_EQ(outcome.failure().kind(), v1::COMPILER_CRASHED);
    EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).finished().has_artifact());
    EXPECT_EQ(daemon.stats().at("worker_restarts"), 2u);
  }
}

// A worker that ends before it is ready, after one that did well, until it is mended.
struct FragileWorker {
  explicit FragileWorker(const std::string& directory)
      : path(directory + "/worker"),
        starts(directory + "/starts"),
        broken(directory + "/broken"),
        up(directory + "/up") {
    if (mkfifo(up.c_str(), 0600) != 0) throw std::runtime_error("no FIFO");
    std::ofstream(path) << "#!/bin/sh\necho start >> " << starts << "\n[ -e " << broken << " ] && exit 1\n"
                        << "[ -e " << starts << ".told ] && echo > " << up << "\nexec " << JITC_STAND_IN_WORKER
                        << " \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  std::size_t count() const {
    const auto text = common::read_file(starts).value_or("");
    return std::ranges::count(text, '\n');
  }
  std::string path, starts, broken, up;
};

TEST(DaemonEnd, WorkerThatDiesAtEveryStartIsStartedEverMoreRarelyUntilItIsMended) {
  TemporaryDirectory directory;
  const FragileWorker worker(directory.path());
  TestDaemon daemon({.worker = worker.path});
  std::ofstream(worker.broken).put('\n');
  kill(daemon.children().at(0), SIGKILL);
  // Held back while it may yet come; the error is told once it died five times in a row.
  const auto waited = compile(*daemon.stub(), request_for("int f;\n"));
  EXPECT_EQ(waited.failure().kind(), v1::INTERNAL);
  EXPECT_THAT(waited.failure().message(), HasSubstr("dies at every start"));
  const auto at_once = compile(*daemon.stub(), request_for("int g;\n"));
  EXPECT_EQ(at_once.failure().kind(), v1::INTERNAL);
  EXPECT_THAT(worker.count(), ::testing::AllOf(::testing::Ge(5u), ::testing::Le(7u)));
  std::ofstream(worker.starts + ".told").put('\n');
  std::filesystem::remove(worker.broken);
  EXPECT_TRUE(std::ifstream(worker.up).get() > 0) << "waits for the next start";
  while (!compile(*daemon.stub(), request_for("int h;\n")).finished().has_artifact()) {  // until it is ready
  }
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).finished().has_artifact()) << "not remembered";
  EXPECT_EQ(daemon.stats().at("running"), 0u);
}

TEST(DaemonEnd, KilledCompilerIsStartedAgain) {
  TestDaemon daemon;
  Gate gate(daemon.directory() + "/gate");
  Held held(daemon, gate.line());
  const pid_t worker = daemon.children().at(0);
  for (std::vector<pid_t> compilers; compilers.empty();) {  // `started` is said before the process is there
    compilers = children_of(worker);
    for (const pid_t pid : compilers) kill(pid, SIGKILL);
  }
  while (held.reader->Read(&held.event) && !held.event.has_started()) {
  }
  gate.open();
  EXPECT_TRUE(held.finish().has_artifact());
  EXPECT_EQ(daemon.stats().at("compiles_started"), 2u);
  EXPECT_EQ(daemon.stats().at("worker_restarts"), 0u);
}

TEST(DaemonEnd, DrainFinishesWhatRunsServesHitsAndRefusesTheRest) {
  TestDaemon daemon;
  Gate gate(daemon.directory() + "/gate");
  compile(*daemon.stub(), request_for("int known;\n"));
  Held held(daemon, gate.line());
  const auto stub = daemon.stub();
  grpc::ClientContext context;
  v1::DrainReply reply;
  ASSERT_TRUE(stub->Drain(&context, {}, &reply).ok());
  EXPECT_EQ(reply.running(), 1u);
  EXPECT_TRUE(compile(*stub, request_for("int known;\n")).artifact().hit());
  const auto refused = compile(*stub, request_for("int unknown;\n"));
  EXPECT_EQ(refused.failure().kind(), v1::DRAINING);
  EXPECT_NE(refused.failure().remedy(), "");
  gate.release();
  EXPECT_TRUE(held.finish().has_artifact());
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_THAT(names_in(daemon.runtime_dir()), ElementsAre(common::kIdentityFile));
}

TEST(DaemonEnd, WhoLosesItsDirectoryFinishesAndEndsAndLeavesTheNextOneAlone) {
  const TemporaryDirectory directory;
  const std::string run = directory.path() + "/run";
  for (const std::string& made : {run, directory.path() + "/store"}) {
    std::filesystem::create_directory(made);
    std::filesystem::permissions(made, std::filesystem::perms::owner_all);
  }
  TestDaemon lost({.directory = directory.path()});
  Gate gate(directory.path() + "/gate");
  Held held(lost, gate.line());
  std::filesystem::remove_all(run);
  std::filesystem::create_directory(run);
  std::filesystem::permissions(run, std::filesystem::perms::owner_all);
  const TestDaemon next({.directory = directory.path()});
  const auto files = names_in(run);
  gate.release();
  EXPECT_TRUE(held.finish().has_artifact());
  EXPECT_EQ(lost.wait(), 0);
  EXPECT_THAT(names_in(run), ::testing::UnorderedElementsAreArray(files));
  EXPECT_TRUE(compile(*next.stub(), request_for("int f;\n")).finished().has_artifact());
}

TEST(DaemonEnd, WhoLosesItsSocketEnds) {
  TestDaemon daemon;
  std::filesystem::remove(daemon.runtime_dir() + "/" + common::kSocketName);
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(DaemonEnd, IdleDaemonEndsByItself) {
  TestDaemon daemon({.arguments = {"--idle-exit", "0.2s"}});
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_THAT(names_in(daemon.runtime_dir()), ElementsAre(common::kIdentityFile));
}

TEST(DaemonEnd, IdleClockStandsWhileSomethingRuns) {
  TestDaemon daemon({.arguments = {"--idle-exit", "1s"}});
  Gate gate(daemon.directory() + "/gate");
  Held held(daemon, gate.line());
  for (int beats = 0; beats < 3 && held.reader->Read(&held.event);) beats += held.event.has_heartbeat() ? 1 : 0;
  gate.release();
  EXPECT_TRUE(held.finish().has_artifact());
  EXPECT_EQ(daemon.wait(), 0);
}

}  // namespace
}  // namespace jitc::testing
