// Calls for what every rank holds already, and calls that one rank alone cannot make, through the C interface: what is
// said to the other ranks, and what must not be needed any more when they have agreed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <jitc/jitc.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/client_fixture.h"
#include "tests/support/failing_new.h"

namespace jitc {
namespace {

using testing::Client;
using testing::FailingNew;
using testing::FakeDaemon;
using testing::kSource;

using Words = std::vector<std::uint64_t>;

// A communicator of one rank that listens.
class Listener {
 public:
  Communicator communicator() {
    jitc_communicator table = {};
    table.size = sizeof table;
    table.state = this;
    table.ranks = 1;
    table.iallreduce_or = [](void* state, const std::uint64_t* send, std::uint64_t* receive, std::size_t count,
                             jitc_pending*) {
      std::copy_n(send, count, receive);
      static_cast<Listener*>(state)->said.emplace_back(send, send + count);
      return 0;
    };
    table.ibcast = [](void*, void*, std::size_t, int, jitc_pending*) { return 0; };
    table.test = [](void* state, jitc_pending*, int* done) {
      auto& self = *static_cast<Listener*>(state);
      if (self.takes_memory_away) self.no_memory.emplace(0, 0, true);
      *done = 1;
      return 0;
    };
    return Communicator(table);
  }

  std::vector<Words> said;
  bool takes_memory_away = false;  // as soon as the ranks have agreed
  std::optional<FailingNew> no_memory;
};

Problem constant_problem() {
  Problem problem("constant", 2);
  const Field u = problem.field("u", 1);
  problem.residual("f0", JITC_F0, u, {u(0) * problem.constant("rho", 1.5)});
  return problem;
}

TEST_F(Client, NothingNeedsMemoryWhenTheRanksHaveAgreed) {
  FakeDaemon daemon(socket(), script());
  Listener listener;
  Context context(listener.communicator(), options());
  Problem problem = constant_problem();
  const std::string manifest(100, 'm');
  const jitc_request asked = {
      .size = sizeof asked, .source = kSource, .manifest = manifest.data(), .manifest_length = manifest.size()};
  const jitc_item items[2] = {{.size = sizeof(jitc_item), .request = &asked},
                              {.size = sizeof(jitc_item), .problem = problem.get()}};
  jitc_module* held[2] = {};
  ASSERT_EQ(jitc_compile_all(context.get(), items, 2, held, nullptr), JITC_OK);

  const auto expect_served = [&](const char* call, const std::function<jitc_kind(jitc_module**, jitc_error**)>& ask) {
    jitc_module* modules[2] = {};
    jitc_error* error = nullptr;
    const std::size_t reductions = listener.said.size();
    listener.said.reserve(reductions + 1);
    listener.takes_memory_away = true;
    const jitc_kind status = ask(modules, &error);
    listener.takes_memory_away = false;
    ASSERT_TRUE(listener.no_memory) << call;
    EXPECT_FALSE(listener.no_memory->has_failed()) << call;
    listener.no_memory.reset();
    EXPECT_EQ(status, JITC_OK) << call << ": " << (error ? jitc_error_text(error) : "");
    EXPECT_EQ(listener.said.size(), reductions + 1) << call;
    EXPECT_EQ(jitc_module_origin(modules[0]), JITC_FROM_MEMORY) << call;
    for (jitc_module* module : modules) jitc_module_release(module);
    jitc_error_free(error);
  };
  expect_served("text", [&](jitc_module** modules, jitc_error** error) {
    return jitc_compile(context.get(), &asked, modules, error);
  });
  expect_served("problem", [&](jitc_module** modules, jitc_error** error) {
    return jitc_compile_problem(context.get(), problem.get(), nullptr, nullptr, modules, error);
  });
  expect_served("both", [&](jitc_module** modules, jitc_error** error) {
    return jitc_compile_all(context.get(), items, 2, modules, error);
  });
  for (jitc_module* module : held) jitc_module_release(module);
}

// Without that the other ranks would wait for this one.
TEST_F(Client, WrongUseIsSaidToTheOtherRanks) {
  FakeDaemon daemon(socket(), script());
  Listener listener;
  Context context(listener.communicator(), options());
  Problem problem = constant_problem();
  const jitc_request asked = {.size = sizeof asked, .source = kSource};
  const jitc_request without_size = {.size = 0, .source = kSource};
  const jitc_item item = {.size = sizeof item, .request = &asked};
  const jitc_item nothing = {.size = sizeof item};
  const jitc_item item_without_size = {.size = 0, .request = &asked};
  jitc_module* module = nullptr;
  jitc_context* of = context.get();
  const std::vector<std::pair<const char*, std::function<jitc_kind()>>> calls = {
      {"no place", [&] { return jitc_compile(of, &asked, nullptr, nullptr); }},
      {"no request", [&] { return jitc_compile(of, nullptr, &module, nullptr); }},
      {"no size", [&] { return jitc_compile(of, &without_size, &module, nullptr); }},
      {"no place of a problem",
       [&] { return jitc_compile_problem(of, problem.get(), nullptr, nullptr, nullptr, nullptr); }},
      {"no problem", [&] { return jitc_compile_problem(of, nullptr, nullptr, nullptr, &module, nullptr); }},
      {"no items", [&] { return jitc_compile_all(of, nullptr, 1, &module, nullptr); }},
      {"no places", [&] { return jitc_compile_all(of, &item, 1, nullptr, nullptr); }},
      {"none", [&] { return jitc_compile_all(of, &item, 0, &module, nullptr); }},
      {"nothing in an item", [&] { return jitc_compile_all(of, &nothing, 1, &module, nullptr); }},
      {"no size of an item", [&] { return jitc_compile_all(of, &item_without_size, 1, &module, nullptr); }},
  };
  for (const auto& [name, call] : calls) {
    listener.said.clear();
    EXPECT_EQ(call(), JITC_USAGE) << name;
    ASSERT_FALSE(listener.said.empty()) << name;
    EXPECT_NE(listener.said[0][1] >> JITC_USAGE & 1, 0U) << name;
    EXPECT_FALSE(context.is_broken()) << name;
  }
  EXPECT_EQ(daemon.compiles(), 0);
  ASSERT_EQ(jitc_compile(of, &asked, &module, nullptr), JITC_OK);
  jitc_module_release(module);
}

// What is remembered of the calls before is never taken for another request, though it lies in the same memory.
TEST_F(Client, EveryChangeOfARequestIsNoticed) {
  FakeDaemon daemon(socket(), script());
  Context context(options());
  const std::string other_flag = "-DA=2";
  std::string source = "double answer(double x); // 1\n";
  std::string header = "#define B 1\n";
  const char* flags[2] = {"-DA=1", "-DC"};
  jitc_header headers[1] = {{"b.h", header.c_str()}};
  jitc_request asked = {.size = sizeof asked, .source = source.c_str(), .flags = flags, .flag_count = 1};
  asked.headers = headers;
  asked.header_count = 1;

  const auto ask = [&] {
    jitc_module* module = nullptr;
    jitc_error* error = nullptr;
    EXPECT_EQ(jitc_compile(context.get(), &asked, &module, &error), JITC_OK) << jitc_error_text(error);
    return module;
  };
  jitc_module* first = ask();
  int compiled = 1;
  ASSERT_EQ(daemon.compiles(), compiled);
  const auto changed = [&](const char* what, const std::function<void()>& change, const std::function<void()>& back) {
    change();
    jitc_module_release(ask());
    EXPECT_EQ(daemon.compiles(), ++compiled) << what;
    back();
    jitc_module* again = ask();
    EXPECT_EQ(jitc_module_origin(again), JITC_FROM_MEMORY) << what;
    EXPECT_EQ(daemon.compiles(), compiled) << what;
    jitc_module_release(again);
  };
  changed("a byte", [&] { source[28] = '2'; }, [&] { source[28] = '1'; });
  changed("length", [&] { asked.source_length = source.size() - 2; }, [&] { asked.source_length = 0; });
  changed("flag", [&] { flags[0] = other_flag.c_str(); }, [&] { flags[0] = "-DA=1"; });
  changed("flags", [&] { asked.flag_count = 2; }, [&] { asked.flag_count = 1; });
  changed("header", [&] { header[10] = '2'; }, [&] { header[10] = '1'; });
  changed("name of a header", [&] { headers[0].name = "c.h"; }, [&] { headers[0].name = "b.h"; });
  changed("headers", [&] { asked.header_count = 0; }, [&] { asked.header_count = 1; });
  changed("compiler", [&] { asked.compiler = "gcc"; }, [&] { asked.compiler = nullptr; });
  changed("ABI tag", [&] { asked.abi_tag = "petsc"; }, [&] { asked.abi_tag = nullptr; });
  changed("instruction set", [&] { asked.isa = "native"; }, [&] { asked.isa = nullptr; });
  changed("exact flags", [&] { asked.exact_flags = 1; }, [&] { asked.exact_flags = 0; });

  asked.manifest = "rho";
  asked.manifest_length = 3;
  jitc_module* with_manifest = ask();
  EXPECT_EQ(jitc_module_origin(with_manifest), JITC_FROM_MEMORY);
  std::size_t length = 0;
  EXPECT_EQ(std::memcmp(jitc_module_manifest(with_manifest, &length), "rho", 3), 0);
  EXPECT_EQ(length, 3U);
  jitc_module_release(with_manifest);
  jitc_module_release(first);
}

// A rank that cannot copy the source says so, and goes on.
TEST_F(Client, NoMemoryForARequestIsAnError) {
  FakeDaemon daemon(socket(), script());
  Listener listener;
  Context context(listener.communicator(), options());
  const std::string big = std::string(100'000, ' ') + kSource;
  const jitc_request asked = {.size = sizeof asked, .source = big.c_str()};
  jitc_module* module = nullptr;
  {
    const FailingNew failing(0, 50'000, true);
    EXPECT_EQ(jitc_compile(context.get(), &asked, &module, nullptr), JITC_INTERNAL);
  }
  ASSERT_FALSE(listener.said.empty());
  EXPECT_NE(listener.said[0][1] >> JITC_INTERNAL & 1, 0U);
  EXPECT_FALSE(context.is_broken());
  ASSERT_EQ(jitc_compile(context.get(), &asked, &module, nullptr), JITC_OK);
  jitc_module_release(module);
}

}  // namespace
}  // namespace jitc
