// libjitc as a program sees it, alone in its process: through the daemon's client, from the store without it, and every
// failure as an exception.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <jitc/jitc.hpp>

#include "common/identity.h"
#include "common/runtime_dir.h"
#include "common/store_reader.h"
#include "tests/integration/client_fixture.h"

namespace jitc {
namespace {

using testing::Client;
using testing::FakeDaemon;
using ::testing::HasSubstr;
using testing::kSource;

bool is_rpc_library_open() {
  void* library = dlopen(JITC_LIB_DIR "/libjitc-rpc.so", RTLD_NOW | RTLD_NOLOAD);
  if (library) dlclose(library);
  return library != nullptr;
}

TEST_F(Client, CompilesThroughTheDaemonOnceAndThenHoldsIt) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  const Module cold = context.compile(request());
  EXPECT_EQ(cold.origin(), JITC_COMPILED);
  EXPECT_EQ(cold.key(), common::sha256(kSource).hex());
  EXPECT_EQ(cold.manifest(), "rho eta");
  EXPECT_EQ(cold.symbol<double(double)>("answer")(2.0), 84.0);
  EXPECT_EQ(cold.symbol<double>("table")[0], 42.0);
  EXPECT_EQ(context.stats().compilers_started, 1U);
  EXPECT_EQ(context.stats().last_peak_bytes, 123456U);

  // Also for another context of the same process.
  Context other(options());
  const Module warm = other.compile(request());
  EXPECT_EQ(warm.origin(), JITC_FROM_MEMORY);
  EXPECT_EQ(warm.symbol<double(double)>("answer"), cold.symbol<double(double)>("answer"));
  EXPECT_EQ(other.stats().memory_hits, 1U);
  EXPECT_EQ(daemon.compiles(), 1);
}

TEST_F(Client, CompilesSeveralTogether) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  const std::vector<Item> items{request(), request("double answer(double y);\n"), request()};
  const std::vector<Module> cold = context.compile_all(items);
  ASSERT_EQ(cold.size(), 3U);
  for (const Module& module : cold) {
    EXPECT_EQ(module.origin(), JITC_COMPILED);
    EXPECT_EQ(module.symbol<double(double)>("answer")(2.0), 84.0);
    EXPECT_EQ(module.manifest(), "rho eta");
  }
  EXPECT_EQ(cold[0].key(), cold[2].key());
  EXPECT_NE(cold[0].key(), cold[1].key());
  EXPECT_EQ(daemon.compiles(), 2);
  EXPECT_EQ(context.stats().calls, 1U);
  EXPECT_EQ(context.stats().compilers_started, 2U);
  EXPECT_EQ(context.compile_all(items)[1].origin(), JITC_FROM_MEMORY);
  EXPECT_EQ(context.stats().memory_hits, 2U);
  EXPECT_EQ(daemon.compiles(), 2);
}

TEST_F(Client, SeveralFailAsAWhole) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  Request wrong = request();
  wrong.name = "wrong.c";
  wrong.make_source = []() -> std::string { throw std::runtime_error("no such viscosity"); };
  wrong.source.clear();
  try {
    context.compile_all({request(), wrong});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, JITC_USAGE);
    EXPECT_THAT(error.what(), HasSubstr("no such viscosity"));
  }
  EXPECT_THROW(context.compile_all({}), Error);
  EXPECT_EQ(daemon.compiles(), 0);

  // The C face gives no module then, whatever was in its place, and takes items of an older program.
  const jitc_request asked = {.size = sizeof asked, .source = kSource};
  struct OldItem {
    size_t size;
    const jitc_request* request;
  };
  const OldItem old[2] = {{sizeof(OldItem), &asked}, {sizeof(OldItem), nullptr}};
  const auto* items = reinterpret_cast<const jitc_item*>(old);
  jitc_module* modules[2] = {reinterpret_cast<jitc_module*>(1), reinterpret_cast<jitc_module*>(1)};
  EXPECT_EQ(jitc_compile_all(context.get(), items, 2, modules, nullptr), JITC_USAGE);
  EXPECT_EQ(modules[0], nullptr);
  EXPECT_EQ(modules[1], nullptr);
  EXPECT_EQ(jitc_compile_all(context.get(), nullptr, 1, modules, nullptr), JITC_USAGE);
  ASSERT_EQ(jitc_compile_all(context.get(), items, 1, modules, nullptr), JITC_OK);
  jitc_module_release(modules[0]);
}

TEST_F(Client, ReleasedModuleIsGone) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  {
    const Module module = context.compile(request());
  }
  EXPECT_EQ(context.compile(request()).origin(), JITC_COMPILED);
  EXPECT_EQ(daemon.compiles(), 2);
}

TEST_F(Client, MergedAndHitAreNotCompilersOfOurs) {
  FakeDaemon daemon(socket(), {.compile = [](const v1::CompileRequest& asked, FakeDaemon::Events& events) {
                      const common::Digest key = common::sha256(asked.origin());
                      v1::Artifact artifact;
                      artifact.set_key(key.hex());
                      artifact.set_merged(asked.origin() == "int m;\n");
                      artifact.set_hit(asked.origin() != "int m;\n");
                      FakeDaemon::send_artifact(events, testing::make_artifact("answer", key), artifact);
                      return grpc::Status::OK;
                    }});
  Context context(options());
  EXPECT_EQ(context.compile(request("int m;\n")).origin(), JITC_FROM_DAEMON);
  EXPECT_EQ(context.compile(request("int h;\n")).origin(), JITC_FROM_DAEMON);
  EXPECT_EQ(context.stats().merged, 1U);
  EXPECT_EQ(context.stats().daemon_hits, 1U);
  EXPECT_EQ(context.stats().compilers_started, 0U);
}

TEST_F(Client, StoreHitNeedsNeitherDaemonNorRpcLibrary) {
  const bool was_open = is_rpc_library_open();
  common::Identity identity;
  identity.version = common::build_version();
  identity.compilers = {{"clang", "", "19.1"}};
  identity.triple = "x86_64-pc-linux-gnu";
  identity.store = runtime_dir() + "/store";
  ASSERT_TRUE(common::write_identity(runtime_dir(), identity));

  // The key, as anybody computes it: the default flags and this CPU's level.
  common::Request asked;
  asked.origin = kSource;
  asked.flags = {"-O3", "-g0", "-std=gnu11"};
  asked.isa_level = common::isa_level_of(common::host_isa());
  const auto resolved = common::resolve(asked, identity);
  ASSERT_TRUE(resolved);
  const std::string path = common::artifact_path(identity.store, resolved->key);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << testing::make_artifact("answer", resolved->key);

  Context context(options({{"cflags", "-O3 -g0 -std=gnu11"}}));
  Module module = context.compile(request());
  EXPECT_EQ(module.origin(), JITC_FROM_STORE);
  EXPECT_EQ(module.key(), resolved->key.hex());
  EXPECT_EQ(module.symbol<double(double)>("answer")(2.0), 84.0);
  EXPECT_EQ(context.stats().store_hits, 1U);
  EXPECT_EQ(is_rpc_library_open(), was_open);

  // With include roots the key may be older than the headers: only the daemon knows.
  module = Module();
  common::Identity rooted = identity;
  rooted.include_roots = {{runtime_dir(), "digest"}};
  const auto rooted_key = common::resolve(asked, rooted)->key;
  const std::string rooted_path = common::artifact_path(rooted.store, rooted_key);
  std::filesystem::create_directories(std::filesystem::path(rooted_path).parent_path());
  std::ofstream(rooted_path, std::ios::binary) << testing::make_artifact("answer", rooted_key);
  ASSERT_TRUE(common::write_identity(runtime_dir(), rooted));
  EXPECT_EQ(error_of(context, request()).kind, JITC_UNREACHABLE);

  // A damaged entry is a miss, never loaded.
  ASSERT_TRUE(common::write_identity(runtime_dir(), identity));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_EQ(error_of(context, request()).kind, JITC_UNREACHABLE);
}

// 0 is patience without end, as everywhere.
TEST_F(Client, NoTimeOutMeansNoLimit) {
  FakeDaemon daemon(socket(), script());
  Context context(options({{"timeout", "0"}, {"arrival_timeout", "0"}}));
  EXPECT_EQ(context.compile(request()).origin(), JITC_COMPILED);
}

TEST_F(Client, BrokenContextMakesNoSource) {
  jitc_communicator failing = {};
  failing.size = sizeof failing;
  failing.ranks = 2;
  failing.iallreduce_or = [](void*, const std::uint64_t*, std::uint64_t*, std::size_t, jitc_pending*) { return 1; };
  failing.ibcast = [](void*, void*, std::size_t, int, jitc_pending*) { return 1; };
  failing.test = [](void*, jitc_pending*, int*) { return 1; };
  Context context{Communicator(failing), options()};
  Request asked = request();
  int made = 0;
  asked.make_source = [&made] {
    ++made;
    return std::string(kSource);
  };
  EXPECT_EQ(error_of(context, asked).kind, JITC_BROKEN);
  EXPECT_TRUE(context.is_broken());
  EXPECT_EQ(error_of(context, asked).kind, JITC_BROKEN);
  EXPECT_EQ(made, 1);
}

TEST_F(Client, NoDaemonIsAnErrorNotACompiler) {
  Context context(options());
  const Error error = error_of(context, request());
  EXPECT_EQ(error.kind, JITC_UNREACHABLE);
  EXPECT_EQ(error.kind_name, "UNREACHABLE");
  EXPECT_FALSE(error.remedy.empty());
  EXPECT_FALSE(error.is_broken);
  EXPECT_FALSE(context.is_broken());
  EXPECT_EQ(context.stats().failures, 1U);
}

TEST_F(Client, FailureCarriesTheDiagnosticsUnderTheRequestsName) {
  FakeDaemon daemon(socket(), {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent event;
                      auto& failure = *event.mutable_finished()->mutable_failure();
                      failure.set_kind(v1::INVALID_SOURCE);
                      failure.set_message("the source does not compile");
                      auto& diagnostic = *failure.add_diagnostics();
                      diagnostic.set_severity("error");
                      diagnostic.set_line(3);
                      diagnostic.set_column(7);
                      diagnostic.set_message("expected ';'");
                      events.Write(event);
                      return grpc::Status::OK;
                    }});
  Context context(options());
  const Error error = error_of(context, request());
  EXPECT_EQ(error.kind, JITC_INVALID_SOURCE);
  EXPECT_THAT(error.what(), HasSubstr("residual.c:3:7: error: expected ';'"));
}

TEST_F(Client, ProgressReachesTheCaller) {
  std::atomic<bool> is_told = false;
  FakeDaemon daemon(socket(), {.compile = [&](const v1::CompileRequest& asked, FakeDaemon::Events& events) {
                      v1::CompileEvent event;
                      event.mutable_heartbeat()->set_memory_bytes(77);
                      events.Write(event);
                      is_told.wait(false);  // nothing but a beat ends this compile
                      const common::Digest key = common::sha256(asked.origin());
                      v1::Artifact artifact;
                      artifact.set_key(key.hex());
                      FakeDaemon::send_artifact(events, testing::make_artifact("answer", key), artifact);
                      return grpc::Status::OK;
                    }});
  Options told = options({{"timeout", "30s"}});
  told.progress = [&](const Progress& progress) {
    if (progress.memory_bytes != 77) return;
    EXPECT_STREQ(progress.name, "residual.c");
    is_told = true;
    is_told.notify_one();
  };
  Context context(std::move(told));
  EXPECT_TRUE(context.compile(request()));
  EXPECT_TRUE(is_told);
}

TEST_F(Client, WrongSettingsAreNamed) {
  for (const auto& [name, value] : {std::pair{"timeout", "soon"}, {"divergent", "maybe"}, {"no_such_setting", "1"}}) {
    Context context(options({{name, value}}));
    const Error error = error_of(context, request());
    EXPECT_EQ(error.kind, JITC_USAGE);
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

TEST_F(Client, SourceThatCannotBeMadeIsTheCallersOwnText) {
  Context context(options());
  Request asked = request();
  asked.make_source = []() -> std::string { throw std::runtime_error("no derivative of floor()"); };
  const Error error = error_of(context, asked);
  EXPECT_EQ(error.kind, JITC_USAGE);
  EXPECT_THAT(error.message, HasSubstr("no derivative of floor()"));
}

TEST_F(Client, MadeSourceIsTheSameAsAGivenOne) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  const Module given = context.compile(request());
  Request asked = request();
  asked.source.clear();
  asked.make_source = [] { return std::string(kSource); };
  EXPECT_EQ(context.compile(asked).origin(), JITC_FROM_MEMORY);
}

TEST_F(Client, UnknownSymbolIsAnError) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  const Module module = context.compile(request());
  EXPECT_THROW(module.symbol<void()>("nothing"), Error);
}

TEST_F(Client, NullPointersAreUsageErrors) {
  jitc_error* error = nullptr;
  EXPECT_EQ(jitc_context_open(nullptr, nullptr, nullptr, &error), JITC_USAGE);
  EXPECT_NE(error, nullptr);
  jitc_error_free(error);
  jitc_context* context = nullptr;
  ASSERT_EQ(jitc_context_open(nullptr, nullptr, &context, nullptr), JITC_OK);
  jitc_module* module = nullptr;
  EXPECT_EQ(jitc_compile(context, nullptr, &module, nullptr), JITC_USAGE);
  const jitc_request empty = {.size = sizeof(jitc_request)};
  EXPECT_EQ(jitc_compile(context, &empty, &module, nullptr), JITC_USAGE);
  jitc_context_close(context);
  jitc_context_close(nullptr);
  jitc_module_release(nullptr);
  jitc_error_free(nullptr);

  jitc_communicator incomplete = {};
  incomplete.size = sizeof incomplete;
  incomplete.ranks = 2;
  EXPECT_EQ(jitc_context_open(&incomplete, nullptr, &context, nullptr), JITC_USAGE);
  EXPECT_EQ(context, nullptr);
}

// A program built against a shorter structure: what it does not know of is the default.
TEST_F(Client, ShorterStructuresOfOldProgramsWork) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  jitc_request old;
  std::memset(&old, 0xee, sizeof old);
  old.size = offsetof(jitc_request, flags);
  old.source = kSource;
  old.source_length = 0;
  old.make_source = nullptr;
  old.name = "old.c";
  jitc_module* module = nullptr;
  ASSERT_EQ(jitc_compile(context.get(), &old, &module, nullptr), JITC_OK);
  jitc_module_release(module);

  jitc_stats stats;
  std::memset(&stats, 0xee, sizeof stats);
  stats.size = offsetof(jitc_stats, memory_hits);
  jitc_context_stats(context.get(), &stats);
  EXPECT_EQ(stats.calls, 1U);
  EXPECT_EQ(stats.memory_hits, 0xeeeeeeeeeeeeeeeeU);
}

}  // namespace
}  // namespace jitc
