// What a daemon bears: clients that die at any moment, compilers and stores that hang, slow readers, few descriptors.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "common/identity.h"
#include "common/runtime_dir.h"
#include "common/store_reader.h"
#include "tests/support/daemon_fixture.h"

namespace jitc::testing {
namespace {

common::Fd connect(const TestDaemon& daemon) {
  auto socket = common::connect_own(daemon.runtime_dir() + "/" + common::kSocketName);
  if (!socket) throw std::runtime_error(common::to_line(socket.error()));
  return std::move(*socket);
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      poll(&writable, 1, -1);
    } else if (size < 0) {
      return;  // the daemon hung up on half a client
    } else {
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
  }
}

// Passes bytes on between a client and the daemon until one of them closes, and keeps what the client said.
std::string relay(int client, int daemon) {
  std::string said;
  std::array<char, 65536> buffer;
  for (;;) {
    std::array<pollfd, 2> ends{pollfd{client, POLLIN, 0}, pollfd{daemon, POLLIN, 0}};
    poll(ends.data(), ends.size(), -1);
    for (const int from : {0, 1}) {
      if (ends[from].revents == 0) continue;
      const ssize_t size = recv(ends[from].fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size < 0 && errno == EAGAIN) continue;
      if (size <= 0) return said;
      if (from == 0) said.append(buffer.data(), static_cast<std::size_t>(size));
      write_all(ends[1 - from].fd, {buffer.data(), static_cast<std::size_t>(size)});
    }
  }
}

// Every byte that a client writes for one whole compile.
std::string conversation(const TestDaemon& daemon, const v1::CompileRequest& request) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  common::Fd ours(ends[0]);
  const common::Fd socket = connect(daemon);
  std::string said;
  std::thread between([&] { said = relay(ours.get(), socket.get()); });
  {
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const auto stub = v1::Compiler::NewStub(grpc::CreateInsecureChannelFromFd("jitcd", ends[1]));
    EXPECT_TRUE(compile(*stub, request).finished().has_artifact());
  }
  shutdown(ours.get(), SHUT_RDWR);
  between.join();
  return said;
}

TEST(DaemonStrain, ClientsKilledAtAnyByteLeaveNothing) {
  TestDaemon daemon({.environment = {"JITC_GRACE=0"}});
  const std::string said = conversation(daemon, request_for("int f;\n" + std::string(40'000, ' ')));
  ASSERT_GT(said.size(), 40'000u);
  // Half of them have said everything and go at once, while the daemon has just begun to read: many at a time, so that
  // requests wait for their turn.
  constexpr std::size_t kRounds = 10, kAtOnce = 100;
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<common::Fd> clients;
    for (std::size_t i = 0; i < kAtOnce; ++i) clients.push_back(connect(daemon));
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const std::size_t place = round * kAtOnce + i;
      const std::size_t bytes = i % 2 == 0 ? said.size() : said.size() * place / (kRounds * kAtOnce);
      write_all(clients[i].get(), std::string_view(said).substr(0, bytes));
      clients[i].reset();
    }
    ASSERT_TRUE(compile(*daemon.stub(), request_for("int g;\n")).finished().has_artifact());
  }
  const auto at_rest = [](const auto& stats) {
    return stats.at("running") == 0 && stats.at("memory_reserved_bytes") == 0;
  };
  auto stats = daemon.stats();
  while (!at_rest(stats)) stats = daemon.stats();
  EXPECT_GT(stats.at("requests"), kRounds);
  EXPECT_EQ(stats.at("worker_restarts"), 0u);
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
}

// Calls that nobody reads.
struct Call {
  Call(v1::Compiler::Stub& stub, const std::string& source, const std::string& job) {
    auto request = request_for(source);
    request.set_job(job);
    reader = stub.Compile(&context, request);
  }
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::CompileEvent>> reader;
};

v1::JobsReply jobs_of(v1::Compiler::Stub& stub) {
  grpc::ClientContext context;
  v1::JobsReply jobs;
  EXPECT_TRUE(stub.Jobs(&context, {}, &jobs).ok());
  return jobs;
}

TEST(DaemonStrain, OneBehindAHundredOfAnotherStartsWithinTheLimit) {
  constexpr int kLimit = 2, kMany = 100;
  // Without leases, whose answer comes between having the turn and running.
  TestDaemon daemon({.arguments = {"--max-compilers", std::to_string(kLimit)},
                     .environment = {"JITC_GRACE=0", "JITC_STORE_LEASE=0"}});
  const auto stub = daemon.stub();
  std::vector<std::unique_ptr<Call>> calls;
  std::map<std::string, Gate> gates;  // each key's own: one gate lets all through that stand at it
  const auto submit = [&](int number, const char* job) {
    Gate gate(daemon.directory() + "/gate" + std::to_string(number));
    calls.push_back(std::make_unique<Call>(*stub, gate.line(), job));
    const auto has_come = [&](const v1::JobsReply& jobs) {
      const auto come =
          std::ranges::find_if(jobs.jobs(), [&](const auto& each) { return !gates.contains(each.key()); });
      return come != jobs.jobs().end() && gates.emplace(come->key(), std::move(gate)).second;
    };
    while (!has_come(jobs_of(*stub))) {
    }
  };
  for (int i = 0; i < kMany; ++i) submit(i, "A");
  submit(kMany, "B");
  for (int released = 0;;) {
    const auto jobs = jobs_of(*stub);
    int running = 0, left = 0;
    bool is_turn = false;
    std::string first;
    for (const auto& job : jobs.jobs()) {
      if (job.phase() == "running" && ++running == 1) first = job.key();
      left += job.job() == "A";
      is_turn |= job.job() == "B" && job.phase() == "running";
    }
    EXPECT_LE(running, kLimit);
    if (is_turn) break;
    ASSERT_LT(kMany - left, kLimit) << "completed, and it is not the other's turn";
    // One at a time: who is released need not have ended yet when it is looked at again.
    if (running == kLimit && released == kMany - left) {
      gates.at(first).release();
      ++released;
    }
  }
  for (const auto& call : calls) call->context.TryCancel();
  for (const auto& call : calls) call->reader->Finish();
}

// No lock is coarse enough to keep one of them from its compiler.
TEST(DaemonStrain, AsManySourcesAsTheLimitAreCompiledAtTheSameTime) {
  constexpr int kLimit = 8;
  TestDaemon daemon({.arguments = {"--max-compilers", "8", "--memory-budget", "64G"}});
  Gate gate(daemon.directory() + "/gate");
  const auto stub = daemon.stub();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kLimit; ++i)
    calls.push_back(std::make_unique<Call>(*stub, gate.line() + "int f" + std::to_string(i) + ";\n", ""));
  while (daemon.stats().at("running") < kLimit) {  // none ends before all run
  }
  gate.open();
  for (const auto& call : calls) {
    v1::CompileEvent event;
    while (call->reader->Read(&event)) {
    }
    EXPECT_TRUE(event.finished().has_artifact());
  }
  EXPECT_EQ(daemon.stats().at("running_peak"), kLimit);
}

struct Footprint {
  std::uint64_t resident_bytes;
  std::ptrdiff_t descriptors;
};
Footprint footprint(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  const auto statm = common::read_file(process + "/statm").value_or("0 0");
  const std::uint64_t pages = std::strtoull(statm.c_str() + statm.find(' '), nullptr, 10);
  return {pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)),
          std::distance(std::filesystem::directory_iterator(process + "/fd"), std::filesystem::directory_iterator())};
}

// Every tenth is compiled, the others hit or merge; a new connection for every hundred.
TEST(DaemonStrain, TenThousandSubmitsLeaveMemoryAndDescriptorsAsTheyWere) {
  constexpr int kSubmits = 10'000, kThreads = 4, kPerConnection = 100;
  TestDaemon daemon;
  const std::string padding(2000, ' ');
  const auto submit = [&](int from, int to) {
    std::atomic<int> done = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::unique_ptr<v1::Compiler::Stub> stub;
        for (int i = from + t; i < to; i += kThreads) {
          if (!stub || i / kThreads % kPerConnection == 0) stub = daemon.stub();
          const std::string source = "int f" + std::to_string(i / 10) + ";" + padding + "\n";
          done += compile(*stub, request_for(source)).finished().has_artifact();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(done, to - from);
    return footprint(daemon.pid());
  };
  const Footprint before = submit(0, kSubmits / 5);
  const Footprint after = submit(kSubmits / 5, kSubmits);
  const auto stats = daemon.stats();
  EXPECT_EQ(stats.at("requests"), kSubmits);
  EXPECT_EQ(stats.at("compiles_started"), kSubmits / 10);
  EXPECT_EQ(stats.at("hits") + stats.at("merged"), kSubmits - kSubmits / 10);
  // Some of the last connections may be closing yet; one that each of the 80 between left behind would be many more.
  EXPECT_LE(after.descriptors, before.descriptors + 4 * kThreads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what is freed
  EXPECT_LE(after.resident_bytes, before.resident_bytes + (8u << 20)) << "the sources alone are 20 MB";
#endif
}

TEST(DaemonStrain, CancelledAtOnceWhileItEnds) {
  TestDaemon daemon;
  const auto channel = connect_channel(daemon.runtime_dir());
  const auto stub = v1::Compiler::NewStub(channel);
  const auto request = request_for("int f;\n" + std::string(400'000, ' '));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 40; ++call) {
        grpc::ClientContext context;
        const auto reader = stub->Compile(&context, request);
        context.TryCancel();
        reader->Finish();
      }
    });
  }
  daemon.signal(SIGTERM);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(daemon.wait(), 0);
}

// A compiler that never answers what it is asked, and a call that names it, known to wait.
struct HangingCompiler {
  explicit HangingCompiler(const std::string& directory) : path(directory + "/hanging-cc"), fifo(directory + "/asked") {
    if (mkfifo(fifo.c_str(), 0600) != 0) throw std::runtime_error("no FIFO");
    std::ofstream(path) << "#!/bin/sh\nread never < " << fifo << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  // Until it runs.
  void wait_until_asked() { kept = common::Fd(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC)); }
  std::string path, fifo;
  common::Fd kept;
};

TEST(DaemonStrain, HangingCompilerKeepsNobodyElseWaiting) {
  TemporaryDirectory directory;
  HangingCompiler hanging(directory.path());
  TestDaemon daemon({.environment = {"JITC_COMPILERS=" + hanging.path}});
  const auto stub = daemon.stub();
  auto request = request_for("int f;\n");
  request.set_compiler(hanging.path);
  constexpr int kCalls = 6;  // more than there are threads for requests
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::CompileEvent>>> readers;
  for (int i = 0; i < kCalls; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub->Compile(contexts.back().get(), request));
  }
  hanging.wait_until_asked();
  EXPECT_TRUE(compile(*stub, request_for("int g;\n")).finished().has_artifact());
  EXPECT_TRUE(compile(*stub, request_for("int g;\n")).artifact().hit());
  v1::CompileEvent event;
  for (auto& reader : readers) {  // they hear that the daemon lives
    for (int beats = 0; beats < 2; ++beats) {
      ASSERT_TRUE(reader->Read(&event));
      EXPECT_TRUE(event.has_heartbeat()) << event.DebugString();
    }
  }
  contexts[0]->TryCancel();
  EXPECT_EQ(readers[0]->Finish().error_code(), grpc::StatusCode::CANCELLED);
  daemon.signal(SIGTERM);
  for (int i = 1; i < kCalls; ++i) {
    while (readers[i]->Read(&event)) {
    }
    EXPECT_EQ(event.finished().failure().kind(), v1::DRAINING);
  }
  EXPECT_EQ(daemon.wait(), 0);
  // In good order: the last resort would have left the lock's file.
  EXPECT_FALSE(std::filesystem::exists(daemon.runtime_dir() + "/" + common::kLockName));
}

// A store that hangs, as one does whose server is gone: opening an artifact waits until release().
class HangingStore {
 public:
  HangingStore() {
    const std::string log = rules() + ".log";
    if (mkfifo(log.c_str(), 0600) != 0 || mkfifo(server().c_str(), 0600) != 0) throw std::runtime_error("no FIFO");
    log_ = common::Fd(::open(log.c_str(), O_RDWR | O_CLOEXEC));
    std::ofstream(rules()) << "hold open */store/*.so " << server() << " program jitcd\n";
  }
  std::string shell() const { return "export LD_PRELOAD=" JITC_FAULT_SHIM " FAULT_RULES=" + rules(); }  // its daemon's
  // More look-ups than there are threads for them; at the end of it the first hang.
  void occupy(const TestDaemon& daemon) {
    stub_ = daemon.stub();
    for (int i = 0; i < 6; ++i) {
      contexts_.push_back(std::make_unique<grpc::ClientContext>());
      readers_.push_back(stub_->Compile(contexts_.back().get(), request_for("int f" + std::to_string(i) + ";\n")));
    }
    for (char byte = 0; byte != '\n';)  // a line for each call that is held
      if (::read(log_.get(), &byte, 1) != 1) throw std::runtime_error("the shim's log cannot be read");
  }
  // Who waits reads the end when the one writer goes; who comes later, that of an empty file.
  void release() {
    const common::Fd writer(::open(server().c_str(), O_RDWR | O_CLOEXEC));
    const std::string empty = directory_.path() + "/empty";
    std::ofstream(empty).flush();
    std::filesystem::rename(empty, server());
  }

 private:
  std::string rules() const { return directory_.path() + "/rules"; }
  std::string server() const { return directory_.path() + "/server"; }
  TemporaryDirectory directory_;
  common::Fd log_;
  std::unique_ptr<v1::Compiler::Stub> stub_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::CompileEvent>>> readers_;
};

TEST(DaemonStrain, HangingStoreDoesNotKeepItFromEnding) {
  HangingStore hanging;
  TestDaemon daemon({.shell = hanging.shell()});
  hanging.occupy(daemon);
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
}

// Their requests wait for a thread while their calls, and what gRPC keeps for them, are long over.
TEST(DaemonStrain, RequestsOutliveTheirCalls) {
  HangingStore hanging;
  TestDaemon daemon({.environment = {"JITC_GRACE=0"}, .shell = hanging.shell()});
  hanging.occupy(daemon);
  const auto request = request_for("int g;\n" + std::string(200'000, ' '));
  for (int round = 0; round < 100; ++round) {
    const auto stub = daemon.stub();
    grpc::ClientContext context, asking;
    const auto reader = stub->Compile(&context, request);
    v1::JobsReply jobs;
    ASSERT_TRUE(stub->Jobs(&asking, {}, &jobs).ok());  // on the same connection: the request has arrived
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  hanging.release();
  EXPECT_TRUE(compile(*daemon.stub(), request_for("int h;\n")).finished().has_artifact());
  EXPECT_EQ(daemon.stats().at("worker_restarts"), 0u);
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(DaemonStrain, DrainWaitsForASlowReader) {
  TestDaemon daemon;
  const auto stub = daemon.stub();
  auto request = request_for("//! bytes 67108864\n");
  request.set_want_bytes(true);
  grpc::ClientContext context, second;
  const auto reader = stub->Compile(&context, request);
  v1::CompileEvent event;
  while (reader->Read(&event) && !event.has_chunk()) {
  }
  std::size_t bytes = event.chunk().size();
  v1::DrainReply reply;
  ASSERT_TRUE(stub->Drain(&second, {}, &reply).ok());
  const common::Fd daemon_end(static_cast<int>(syscall(SYS_pidfd_open, daemon.pid(), 0)));
  pollfd ended{daemon_end.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 1500), 0) << "the daemon ended while its client was reading";
  while (reader->Read(&event)) bytes += event.chunk().size();
  ASSERT_TRUE(event.has_finished());
  EXPECT_EQ(bytes, event.finished().artifact().size());
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(DaemonStrain, FewDescriptorsMeanFewCompilers) {
  TestDaemon daemon({.environment = {"JITC_MAX_COMPILERS=60", "JITC_MEMORY_BUDGET=64G"}, .shell = "ulimit -n 64"});
  EXPECT_THAT(daemon.stats().at("max_compilers"), ::testing::AllOf(::testing::Ge(1u), ::testing::Lt(16u)));
  const auto channel = connect_channel(daemon.runtime_dir());
  std::vector<std::thread> threads;
  std::vector<Outcome> outcomes(60);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    threads.emplace_back([&, i] {
      outcomes[i] = compile(*v1::Compiler::NewStub(channel), request_for("int f" + std::to_string(i) + ";\n"));
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.finished().has_artifact()) << outcome.failure().message();
}

}  // namespace
}  // namespace jitc::testing
