#include "tests/support/daemon_fixture.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "common/runtime_dir.h"

extern char** environ;

namespace jitc::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // of every call: a hang is a failure

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

std::shared_ptr<grpc::Channel> connect_channel(const std::string& runtime_dir) {
  auto socket = common::connect_own(runtime_dir + "/" + common::kSocketName);
  if (!socket) throw std::runtime_error(common::to_line(socket.error()));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomInsecureChannelFromFd("jitcd", socket->release(), arguments);
}

std::unique_ptr<v1::Compiler::Stub> connect_stub(const std::string& runtime_dir) {
  return v1::Compiler::NewStub(connect_channel(runtime_dir));
}

TestDaemon::TestDaemon(const StartOptions& options)
    : runtime_dir_((options.directory.empty() ? directory_.path() : options.directory) + "/run"),
      store_(!options.store.empty() ? options.store
                                    : (options.directory.empty() ? directory_.path() : options.directory) + "/store") {
  // What the daemon leaves behind comes to the test, which can tell then.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  common::Fd reader(ends[0]), writer(ends[1]);
  constexpr int kReady = 9;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), kReady);
  if (options.socket >= 0) posix_spawn_file_actions_adddup2(&actions, options.socket, 3);
  std::vector<std::string> arguments{JITC_BIN_DIR "/jitcd",
                                     "--foreground",
                                     "--ready-fd",
                                     std::to_string(kReady),
                                     "--runtime-dir",
                                     runtime_dir_,
                                     "--store",
                                     store_,
                                     "--worker",
                                     options.worker.empty() ? JITC_STAND_IN_WORKER : options.worker};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  if (!options.shell.empty()) {
    const std::string commands = options.shell + "; exec \"$0\" \"$@\"";
    arguments.insert(arguments.begin(), {"/bin/sh", "-c", commands});
  }
  std::vector<std::string> environment(options.environment);
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  auto argument_pointers = pointers(arguments);
  auto environment_pointers = pointers(environment);
  const int error = posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr, argument_pointers.data(),
                                environment_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  char byte = 0;
  if (error != 0 || read(reader.get(), &byte, 1) != 1) {
    if (error == 0) wait();
    throw std::runtime_error("jitcd did not become ready");
  }
}

TestDaemon::~TestDaemon() {
  if (pid_ == 0) return;
  signal(SIGTERM);
  wait();
}

void TestDaemon::signal(int number) const { kill(pid_, number); }

int TestDaemon::wait() {
  const common::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended = {process.get(), POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int got = -1;
  while (got < 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    got = poll(&ended, 1, std::max(0, static_cast<int>(left.count())));
    if (got < 0 && errno != EINTR) break;
  }
  if (got == 0) {
    ADD_FAILURE() << "jitcd, pid " << pid_ << ", has not ended in " << kPatience.count() << " s";
    kill(pid_, SIGKILL);
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::map<std::string, std::uint64_t> TestDaemon::stats() const {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::StatsReply reply;
  const auto status = stub()->Stats(&context, {}, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {reply.counters().begin(), reply.counters().end()};
}

std::vector<pid_t> TestDaemon::children() const { return children_of(pid_); }

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto text = common::read_file(entry.path() / "stat");
    const auto end = text ? text->rfind(')') : std::string::npos;
    if (end == std::string::npos || text->size() < end + 4) continue;
    if (std::atoi(text->c_str() + end + 4) == parent) children.push_back(std::atoi(entry.path().filename().c_str()));
  }
  return children;
}

Gate::Gate(std::string path) : path_(std::move(path)) {
  if (mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("no FIFO");
}

void Gate::release() { common::Fd(::open(path_.c_str(), O_WRONLY)); }

void Gate::open() { kept_ = common::Fd(::open(path_.c_str(), O_RDWR)); }

const v1::CompileEvent::Finished& Outcome::finished() const {
  if (events.empty() || !events.back().has_finished()) throw std::runtime_error("no result: " + status.error_message());
  return events.back().finished();
}

v1::CompileRequest request_for(const std::string& source) {
  v1::CompileRequest request;
  request.set_origin(source);
  request.add_flags("-O3");
  request.set_compiler("clang");
  request.set_share("0");
  request.set_cse("0");
  request.set_isa_wish("common");
  request.set_name("test.c");
  return request;
}

Outcome compile(v1::Compiler::Stub& stub, const v1::CompileRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto reader = stub.Compile(&context, request);
  Outcome outcome;
  for (v1::CompileEvent event; reader->Read(&event);) {
    if (event.has_chunk()) outcome.bytes += event.chunk();
    outcome.events.push_back(event);
  }
  outcome.status = reader->Finish();
  return outcome;
}

}  // namespace jitc::testing
