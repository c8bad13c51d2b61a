// How a daemon comes up: by a service manager, beside one, after one that died; what it writes to its log.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/identity.h"
#include "common/owner.h"
#include "common/runtime_dir.h"
#include "tests/support/daemon_fixture.h"

extern char** environ;

namespace jitc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a service manager's socket unit makes.
common::Fd listening_socket(const std::string& path) {
  const auto address = *common::socket_address(path);
  common::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket.get(), SOMAXCONN), 0);
  return socket;
}

bool answers(const std::string& path) { return common::connect_own(path).has_value(); }

// A daemon that does not come to serve: its exit code and what it said.
class FailingStart {
 public:
  FailingStart(const std::string& directory, const std::string& worker) : said_(directory + "/said") {
    std::vector<std::string> words{
        JITC_BIN_DIR "/jitcd", "--foreground", "--runtime-dir", directory + "/run", "--store",
        directory + "/store",  "--worker",     worker};
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, said_.c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT_EQ(posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  void signal(int number) const { kill(pid_, number); }
  int wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string said() const { return common::read_file(said_).value_or(""); }

 private:
  std::string said_;
  pid_t pid_ = 0;
};

TEST(DaemonStart, ServesTheSocketThatAServiceManagerPasses) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/run");
  chmod((directory.path() + "/run").c_str(), 0700);
  const std::string path = directory.path() + "/run/" + common::kSocketName;
  const common::Fd socket = listening_socket(path);
  TestDaemon daemon(
      {.shell = "export LISTEN_FDS=1 LISTEN_PID=$$", .socket = socket.get(), .directory = directory.path()});
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).finished().has_artifact());
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_TRUE(answers(path)) << "the service manager's socket is left to it";
}

TEST(DaemonStart, SocketOfSomebodyWhoListensIsLeftAlone) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/run");
  chmod((directory.path() + "/run").c_str(), 0700);
  const std::string path = directory.path() + "/run/" + common::kSocketName;
  const common::Fd socket = listening_socket(path);
  const FailingStart start(directory.path(), JITC_STAND_IN_WORKER);
  EXPECT_EQ(start.wait(), 4);
  EXPECT_THAT(start.said(), HasSubstr("somebody listens there already"));
  EXPECT_TRUE(answers(path));
}

TEST(DaemonStart, SignalEndsItBeforeTheWorkerIsReady) {
  TemporaryDirectory directory;
  const std::string fifo = directory.path() + "/fifo", worker = directory.path() + "/worker";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(worker) << "#!/bin/sh\nread never < " << fifo << "\n";
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  const FailingStart start(directory.path(), worker);
  const common::Fd worker_runs(open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
  start.signal(SIGTERM);
  EXPECT_EQ(start.wait(), 9);
  EXPECT_THAT(start.said(), HasSubstr("ended by SIGTERM before it served"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/run/" + common::kLockName));
}

// Its worker and the commands that it runs have it from the daemon.
TEST(DaemonStart, TheKernelWouldEndItAndItsWorkerBeforeASolver) {
  const auto score_of = [](const std::string& process) {
    return std::stoi(common::read_file("/proc/" + process + "/oom_score_adj").value_or("0"));
  };
  const TestDaemon daemon;
  const int expected = std::max(score_of("self"), 950);
  EXPECT_EQ(score_of(std::to_string(daemon.pid())), expected);
  EXPECT_EQ(score_of(std::to_string(daemon.children().at(0))), expected);
}

TEST(DaemonStart, IncludeRootsAreReadBeforeItServes) {
  TemporaryDirectory roots;
  std::ofstream(roots.path() + "/one.h") << "int one;\n";
  TestDaemon daemon({.environment = {"JITC_INCLUDE_ROOTS=" + roots.path()}});
  const auto before = common::read_identity(daemon.runtime_dir());
  ASSERT_TRUE(before);
  ASSERT_EQ(before->include_roots.size(), 1u);
  const auto first = compile(*daemon.stub(), request_for("int f;\n"));
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int f;\n")).artifact().hit());
  std::ofstream(roots.path() + "/two.h") << "int two;\n";
  const auto again = compile(*daemon.stub(), request_for("int f;\n"));
  EXPECT_FALSE(again.artifact().hit());
  EXPECT_NE(again.artifact().key(), first.artifact().key());
  EXPECT_NE(common::read_identity(daemon.runtime_dir())->include_roots, before->include_roots);
}

TEST(DaemonStart, RemovesWhatADeadDaemonWasWriting) {
  TemporaryDirectory directory;
  {
    TestDaemon first({.directory = directory.path()});
  }
  auto dead = common::Owner::this_process();
  ++dead.start;  // its process id belongs to another process now
  const std::string temps = directory.path() + "/store/v1/tmp/";
  const std::string stale = temps + common::temp_name(dead);
  const std::string fresh = temps + common::temp_name(common::Owner::this_process());
  for (const auto& path : {stale, fresh}) std::ofstream(path) << "half an artifact";
  TestDaemon second({.directory = directory.path()});
  while (std::filesystem::exists(stale)) second.stats();
  EXPECT_TRUE(std::filesystem::exists(fresh)) << "its writer lives";
}

TEST(DaemonStart, LogAsJson) {
  TemporaryDirectory directory;
  const std::string file = directory.path() + "/log";
  {
    TestDaemon daemon({.arguments = {"--log", "info:" + file, "--log-format", "json"}});
    compile(*daemon.stub(), request_for("int f;\n"));
  }
  std::ifstream log(file);
  std::vector<std::string> messages;
  for (std::string line; std::getline(log, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_EQ(object["level"], "info") << line;
    EXPECT_TRUE(object["time"].is_string());
    messages.push_back(object["message"]);
    if (messages.back() != "compile ended") continue;
    EXPECT_EQ(object["outcome"], "DONE");
  }
  EXPECT_THAT(messages, ElementsAre("serving", "compile ended", "ending", "ended"));
}

}  // namespace
}  // namespace jitc::testing
