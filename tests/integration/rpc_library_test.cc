// libjitc-rpc.so, opened as libjitc opens it, in a program that brought another protobuf along.
#include "client/rpc/library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/identity.h"
#include "tests/support/environment.h"
#include "tests/support/fake_daemon.h"
#include "tests/support/temporary_directory.h"

namespace jitc {
namespace {

using common::ErrorKind;
using testing::FakeDaemon;
using ::testing::HasSubstr;
using testing::ScopedEnvironment;

const char* const kLibrary = JITC_LIB_DIR "/libjitc-rpc.so";

// First, since the library stays loaded. The program's own copy of gRPC and protobuf (the fake daemon's, linked
// statically), the system's protobuf in the global scope, and in front of it one whose parser always fails: the library
// must use its own.
TEST(RpcLibrary, WorksBesideOtherProtobufs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's run time must stay first: no RTLD_DEEPBIND";
#endif
  void* clashing = ::dlopen(JITC_CLASHING_PROTOBUF, RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(clashing, nullptr) << ::dlerror();
  const int* calls = static_cast<const int*>(::dlsym(clashing, "jitc_clashing_calls"));
  ASSERT_NE(calls, nullptr);
  ASSERT_NE(::dlopen("libprotobuf-lite.so.32", RTLD_NOW | RTLD_GLOBAL), nullptr) << ::dlerror();

  const testing::TemporaryDirectory directory;
  const std::string socket = directory.path() + "/jitcd.sock";
  FakeDaemon fake(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                    FakeDaemon::send_artifact(events, FakeDaemon::artifact("bytes"), {});
                    return grpc::Status::OK;
                  }});
  const ScopedEnvironment environment{{"JITC_RPC_LIBRARY", kLibrary}};
  const auto daemon = rpc::open_daemon(socket);
  ASSERT_TRUE(daemon) << common::to_line(daemon.error());
  std::string answer;
  common::Request request;
  request.origin = "int x;";
  (*daemon)->compile(request, {},
                     {.reply = [&](const rpc::Reply& reply) { answer = reply.bytes; },
                      .failure = [&](const common::Error& error) { answer = common::to_line(error); }});
  EXPECT_EQ(answer, FakeDaemon::artifact("bytes"));
  EXPECT_EQ(*calls, 0);
  EXPECT_EQ(fake.compiles(), 1);
}

TEST(RpcLibrary, AMissingLibraryIsATypedError) {
  const ScopedEnvironment environment{{"JITC_RPC_LIBRARY", "/nowhere/libjitc-rpc.so"}};
  const auto daemon = rpc::open_daemon("/nowhere/jitcd.sock");
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(daemon.error().message, HasSubstr("/nowhere/libjitc-rpc.so"));
}

TEST(RpcLibrary, AnotherLibraryIsATypedError) {
  const ScopedEnvironment environment{{"JITC_RPC_LIBRARY", JITC_CLASHING_PROTOBUF}};
  const auto daemon = rpc::open_daemon("/nowhere/jitcd.sock");
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().kind, ErrorKind::kVersionSkew);
}

// The C++ types that cross the border have one layout only within one build.
TEST(RpcLibrary, IsOpenedByItsOwnBuildOnly) {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto open = reinterpret_cast<decltype(&jitc_rpc_open)>(::dlsym(library, "jitc_rpc_open"));
  const auto close = reinterpret_cast<decltype(&jitc_rpc_close)>(::dlsym(library, "jitc_rpc_close"));
  ASSERT_TRUE(open && close);
  EXPECT_EQ(open(rpc::interface_version("0.0.0"), "/nowhere/jitcd.sock"), nullptr);
  EXPECT_EQ(open(1, "/nowhere/jitcd.sock"), nullptr);
  rpc::Daemon* daemon = open(rpc::interface_version(common::build_version()), "/nowhere/jitcd.sock");
  ASSERT_NE(daemon, nullptr);
  close(daemon);
}

TEST(RpcLibrary, NothingOfItReachesTheProgram) {
  const ScopedEnvironment environment{{"JITC_RPC_LIBRARY", kLibrary}};
  const auto daemon = rpc::open_daemon("/nowhere/jitcd.sock");
  ASSERT_TRUE(daemon) << common::to_line(daemon.error());
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "jitc_rpc_open"), nullptr);
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "grpc_init"), nullptr);
}

}  // namespace
}  // namespace jitc
