// What a running daemon tells of itself, and whom it tells nothing.
#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/identity.h"
#include "common/runtime_dir.h"
#include "tests/support/daemon_fixture.h"

namespace jitc::testing {
namespace {

using ::testing::HasSubstr;

TEST(Daemon, LookupFindsWithoutCompiling) {
  TestDaemon daemon;
  const auto made = compile(*daemon.stub(), request_for("int f;\n"));
  const auto stub = daemon.stub();
  v1::LookupRequest request;
  v1::LookupReply reply;
  grpc::ClientContext first, second, third;
  request.set_key(made.artifact().key());
  ASSERT_TRUE(stub->Lookup(&first, request, &reply).ok());
  EXPECT_TRUE(reply.found());
  EXPECT_EQ(reply.artifact().path(), made.artifact().path());
  request.set_key(std::string(64, '0'));
  ASSERT_TRUE(stub->Lookup(&second, request, &reply).ok());
  EXPECT_FALSE(reply.found());
  request.set_key("no key");
  EXPECT_EQ(stub->Lookup(&third, request, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(daemon.stats().at("compiles_started"), 1u);
  EXPECT_EQ(daemon.stats().at("hits"), 1u);
}

v1::HelloReply hello_of(const TestDaemon& daemon) {
  v1::HelloRequest request;
  request.mutable_protocol()->set_oldest(1);
  request.mutable_protocol()->set_newest(1);
  v1::HelloReply reply;
  grpc::ClientContext context;
  EXPECT_TRUE(daemon.stub()->Hello(&context, request, &reply).ok());
  return reply;
}

// The heartbeats of a compile that is held are the clock.
TEST(Daemon, SlotsFollowTheAffinityWhileItRuns) {
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one processor only";
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  TestDaemon daemon;
  Gate gate(daemon.directory() + "/gate");
  const auto stub = daemon.stub();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto reader = stub->Compile(&context, request_for(gate.line()));
  const auto before = hello_of(daemon).max_compilers();
  ASSERT_EQ(sched_setaffinity(daemon.pid(), sizeof one, &one), 0);
  auto now = before;
  for (v1::CompileEvent event; now == before && reader->Read(&event);) now = hello_of(daemon).max_compilers();
  EXPECT_EQ(now, 1u);
  gate.open();
  for (v1::CompileEvent event; reader->Read(&event);) EXPECT_FALSE(event.finished().has_failure());
  EXPECT_TRUE(reader->Finish().ok());
}

TEST(Daemon, HelloSaysWhoAndWhat) {
  TestDaemon daemon({.arguments = {"--max-compilers", "3", "--memory-budget", "400M"}});
  v1::HelloReply reply = hello_of(daemon);
  EXPECT_EQ(reply.pid(), daemon.pid());
  EXPECT_EQ(reply.store(), daemon.store());
  EXPECT_EQ(reply.max_compilers(), 3u);
  EXPECT_EQ(reply.memory_budget_bytes(), 400u << 20);
  EXPECT_EQ(reply.compilers(0).identity(), "stand-in 1");
  std::map<std::string, v1::Figure> binding;
  for (const auto& figure : reply.limits()) {
    if (!figure.binding()) continue;
    EXPECT_TRUE(binding.emplace(figure.bounds(), figure).second) << figure.bounds();
  }
  EXPECT_EQ(binding.at("slots").source(), "--max-compilers");
  EXPECT_EQ(binding.at("slots").value(), 3);
  EXPECT_EQ(binding.at("budget").source(), "--memory-budget");
  EXPECT_EQ(binding.at("budget").value(), 400 << 20);
  v1::HelloRequest request;
  grpc::ClientContext context;
  request.mutable_protocol()->set_oldest(90);
  request.mutable_protocol()->set_newest(91);
  EXPECT_EQ(daemon.stub()->Hello(&context, request, &reply).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

// One message there and one back, of services whose message code this test does not have.
std::string raw_call(const TestDaemon& daemon, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(connect_channel(daemon.runtime_dir()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&] { return queue.Next(&tag, &ok) && ok; };
  call->StartCall(nullptr);
  if (!next()) return "not started";
  const grpc::Slice slice(request);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  if (!next()) return "not written";
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  if (!next()) return "no reply";
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  grpc::Slice whole;
  if (!reply.DumpToSingleSlice(&whole).ok()) return "no bytes";
  return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
}

TEST(Daemon, HealthAnswers) {
  TestDaemon daemon;
  const std::string serving("\x08\x01", 2);  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(raw_call(daemon, "/grpc.health.v1.Health/Check", ""), serving);
  EXPECT_EQ(raw_call(daemon, "/grpc.health.v1.Health/Check", "\x0a\x10jitc.v1.Compiler"), serving);
}

TEST(Daemon, ReflectionNamesTheService) {
  TestDaemon daemon;
  const std::string list_services("\x3a\x00", 2);  // ServerReflectionRequest{list_services: ""}
  EXPECT_THAT(raw_call(daemon, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", list_services),
              HasSubstr("jitc.v1.Compiler"));
}

TEST(Daemon, HitsSocketCounts) {
  TestDaemon daemon;
  const auto made = compile(*daemon.stub(), request_for("int f;\n"));
  const auto key = common::Digest::from_hex(made.artifact().key());
  const auto hits = [&] { return daemon.stats().at("hits"); };
  common::report_hit(daemon.runtime_dir(), "too short");
  common::report_hit(daemon.runtime_dir(), std::string(40, 'x'));
  for (int i = 0; i < 3; ++i) {
    common::report_hit(daemon.runtime_dir(), {reinterpret_cast<const char*>(key->bytes.data()), key->bytes.size()});
  }
  // Datagrams and calls come by different sockets: the count is reached, and then stays.
  while (hits() < 3) {
  }
  EXPECT_EQ(hits(), 3u);
}

TEST(Daemon, ForeignUidIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  TestDaemon daemon;
  // Open the way for the other user: the peer check must do without the directories' modes.
  chmod(daemon.directory().c_str(), 0755);
  chmod(daemon.runtime_dir().c_str(), 0755);
  const std::string path = daemon.runtime_dir() + "/" + common::kSocketName;
  chmod(path.c_str(), 0666);
  const auto address = *common::socket_address(path);
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(65533, 65533, 65533) != 0 || setresuid(65533, 65533, 65533) != 0) _exit(10);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(11);
    char byte;
    _exit(read(fd, &byte, 1) == 0 ? 0 : 12);  // closed without a word: not even gRPC's settings frame
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(daemon.stats().at("refused_peers"), 1u);
}

}  // namespace
}  // namespace jitc::testing
