// Calls for several modules: one certificate, compiles at the same time and spread over nodes, all or nothing.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "common/identity.h"
#include "common/isa.h"
#include "tests/support/failing_threads.h"
#include "tests/support/gate_expect.h"

namespace jitc::gate {
namespace {

using testing::call_answer;
using testing::key_of;
using All = std::vector<Outcome<std::vector<Delivery>>>;

common::Request request_named(const std::string& name) { return request_for("int of_" + name + ";\n", name + ".c"); }

std::vector<Demand> demands_of(const std::vector<std::string>& names) {
  std::vector<Demand> demands;
  for (const std::string& name : names) demands.push_back({request_named(name), "constants of " + name});
  return demands;
}

All compile_all(GateWorld& world, const std::function<std::vector<Demand>(int)>& make) {
  All all(static_cast<std::size_t>(world.size()), std::unexpected(Failure{}));
  testing::on_ranks(world.size(), [&](int rank) {
    std::vector<Demand> demands = make(rank);
    all[static_cast<std::size_t>(rank)] = world.rank(rank).gate->compile_all(demands);
  });
  return all;
}

All compile_all(GateWorld& world, const std::vector<std::string>& names) {
  return compile_all(world, [&](int) { return demands_of(names); });
}

void expect_all(const All& all, const std::vector<std::string>& names, const std::vector<Origin>& origins) {
  for (const auto& deliveries : all) {
    ASSERT_TRUE(deliveries) << common::to_line(deliveries.error().error);
    ASSERT_EQ(deliveries->size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Delivery& one = (*deliveries)[i];
      EXPECT_EQ(one.module->key(), key_of(request_named(names[i])));
      EXPECT_EQ(one.manifest, "constants of " + names[i]);
      EXPECT_EQ(one.origin, origins[i]) << names[i];
      EXPECT_EQ(call_answer(one), 84.0);
    }
  }
}

void expect_failure(const All& all, ErrorKind kind, const std::string& text, const std::vector<int>& ranks = {}) {
  for (const auto& deliveries : all) {
    ASSERT_FALSE(deliveries);
    EXPECT_EQ(deliveries.error().error.kind, kind) << common::to_line(deliveries.error().error);
    EXPECT_THAT(deliveries.error().error.message, HasSubstr(text));
    EXPECT_EQ(deliveries.error().ranks, ranks);
    EXPECT_FALSE(deliveries.error().is_broken);
  }
}

// Ranks 0 and 1 on one node, the others on another.
void on_two_nodes(int rank, GateOptions& options) { options.node = rank < 2 ? 1 : 2; }

// Compiles that go on only when `many` of them have begun.
class Together {
 public:
  explicit Together(int many) : missing_(many) {}
  void join(GateWorld& world) {
    for (int rank = 0; rank < world.size(); ++rank) {
      world.rank(rank).compiler.work = [this](const common::Request& request, const Report&) {
        std::unique_lock lock(mutex_);
        --missing_;
        changed_.notify_all();
        EXPECT_TRUE(changed_.wait_for(lock, 60s, [this] { return missing_ <= 0; }));
        return Obtained{testing::make_artifact("answer", key_of(request)), key_of(request), Origin::kCompiled};
      };
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

// For this rank's thread, as long as it lives.
void limit_threads(int most) {
  thread_local std::optional<testing::FailingThreads> limit;
  limit.emplace(most);
}

constexpr Origin kNew = Origin::kCompiled;
const std::vector<std::string> kFour{"a", "b", "c", "d"};

class GateBatch : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GateBatch, ::testing::Values(1, 2, 4, 7));

TEST_P(GateBatch, ColdCompilesEachOnceAndWarmIsOneReduction) {
  GateWorld world(GetParam());
  const auto cold = compile_all(world, kFour);
  ASSERT_NO_FATAL_FAILURE(expect_all(cold, kFour, {kNew, kNew, kNew, kNew}));
  EXPECT_EQ(world.compiles(), 4);
  EXPECT_EQ(world.rank(0).compiler.compiles, 4);
  EXPECT_EQ(world.lookups(), 4);

  const std::size_t before = world.world().operations();
  const auto warm = compile_all(world, kFour);
  expect_all(warm, kFour, std::vector(4, Origin::kMemory));
  EXPECT_EQ(world.world().operations(), before + 1);
  EXPECT_EQ(world.compiles(), 4);
}

TEST_P(GateBatch, AllAreSubmittedAtOnce) {
  GateWorld world(GetParam());
  Together together(4);
  together.join(world);
  expect_all(compile_all(world, kFour), kFour, {kNew, kNew, kNew, kNew});
}

TEST_P(GateBatch, WhatIsAskedForTwiceIsCompiledOnce) {
  GateWorld world(GetParam());
  const std::vector<std::string> names{"a", "b", "a"};
  const auto all = compile_all(world, names);
  ASSERT_NO_FATAL_FAILURE(expect_all(all, names, {kNew, kNew, kNew}));
  EXPECT_EQ(world.compiles(), 2);
  EXPECT_EQ(all.front()->at(0).module, all.front()->at(2).module);
}

// One module is new; of the other, which all hold, one rank has another artifact.
TEST_P(GateBatch, UnlikeCodeTravelsBesideWhatSomeoneNeeds) {
  if (GetParam() == 1) GTEST_SKIP() << "one rank has no other to differ from";
  GateWorld world(GetParam());
  const auto held = compile_all(world, {"a"});
  const common::Digest key = common::sha256("compiled for the last rank");
  const auto own = loader::Module::load(testing::make_artifact("answer", key), &key, {0xf, {}});
  ASSERT_TRUE(own) << common::to_line(own.error());
  world.rank(GetParam() - 1).modules.insert(key_of(request_named("a")), *own);
  expect_all(compile_all(world, {"a", "b"}), {"a", "b"}, {Origin::kRank, kNew});
  EXPECT_EQ(world.compiles(), 2);
}

TEST_P(GateBatch, OnlyWhatSomeoneNeedsTravels) {
  GateWorld world(GetParam());
  const auto held = compile_all(world, {"b", "c"});
  const int lookups = world.lookups();
  const auto all = compile_all(world, kFour);
  ASSERT_NO_FATAL_FAILURE(expect_all(all, kFour, {kNew, Origin::kMemory, Origin::kMemory, kNew}));
  EXPECT_EQ(world.lookups(), lookups + 2);
  EXPECT_EQ(world.compiles(), 4);
}

TEST_P(GateBatch, WhatTheStoreHasIsNotCompiled) {
  GateWorld world(GetParam());
  world.rank(0).store.has_it = true;
  expect_all(compile_all(world, kFour), kFour, std::vector(4, Origin::kStore));
  EXPECT_EQ(world.compiles(), 0);
}

TEST_P(GateBatch, FailsAsAWholeAndNamesTheModules) {
  GateWorld world(GetParam());
  std::atomic<int> compiled = 0;
  world.rank(0).compiler.work = [&](const common::Request& request, const Report&) -> common::Result<Obtained> {
    ++compiled;
    if (request.name == "b.c") return common::fail(ErrorKind::kInvalidSource, "no ';'", request.name);
    if (request.name == "d.c") return common::fail(ErrorKind::kOutOfMemory, "too large", request.name);
    return Obtained{testing::make_artifact("answer", key_of(request)), key_of(request), Origin::kCompiled};
  };
  const std::string where = world.size() > 1 ? "rank 0 on " + testing::host_name() + ": " : "";
  expect_failure(compile_all(world, kFour), ErrorKind::kInvalidSource,
                 "module 'b.c': no ';'; module 'd.c': OUT_OF_MEMORY: " + where + "too large");
  EXPECT_EQ(compiled, 4);
  world.rank(0).compiler.work = nullptr;
  expect_all(compile_all(world, kFour), kFour, {kNew, kNew, kNew, kNew});
}

TEST_P(GateBatch, WithoutModulesIsAMistakeOfAllRanks) {
  GateWorld world(GetParam());
  std::vector<int> all_ranks;
  for (int rank = 0; rank < world.size(); ++rank) all_ranks.push_back(rank);
  expect_failure(compile_all(world, std::vector<std::string>()), ErrorKind::kUsage, "no module is asked for",
                 all_ranks);
  expect_all(compile_all(world, kFour), kFour, {kNew, kNew, kNew, kNew});
}

// More than a certificate has bits for, and more than are compiled at once.
TEST(GateBatches, ManyModulesAreAllDelivered) {
  GateWorld world(2);
  std::vector<std::string> names;
  for (int i = 0; i < 150; ++i) names.push_back("m" + std::to_string(i));
  const auto held = compile_all(world, {"m100"});
  expect_all(compile_all(world, names), names, [] {
    std::vector<Origin> origins(150, kNew);
    origins[100] = Origin::kRank;  // shares its bit with others
    return origins;
  }());
  EXPECT_EQ(world.compiles(), 150);
}

TEST(GateBatches, MissesAreDealtToOneRankOfEachNode) {
  GateWorld world(4, on_two_nodes);
  Together together(4);
  together.join(world);
  const auto all = compile_all(world, kFour);
  ASSERT_NO_FATAL_FAILURE(expect_all(all, kFour, {kNew, kNew, kNew, kNew}));
  EXPECT_EQ(world.rank(0).compiler.compiles, 2);
  EXPECT_EQ(world.rank(1).compiler.compiles, 0);
  EXPECT_EQ(world.rank(2).compiler.compiles, 2);
  EXPECT_EQ(world.rank(3).compiler.compiles, 0);
  EXPECT_EQ(world.lookups(), world.rank(0).store.lookups);

  // Where ranks are is learnt once.
  const auto operations_of = [&](const std::vector<std::string>& names) {
    const std::size_t before = world.world().operations();
    EXPECT_TRUE(compile_all(world, names).front());
    return world.world().operations() - before;
  };
  GateWorld other(4, on_two_nodes);
  EXPECT_TRUE(compile_all(other, {"e", "f"}).front());
  EXPECT_EQ(operations_of({"e", "f"}) + 1, other.world().operations());
}

// On two nodes of unlike CPUs, one native by its wish and one by a flag.
class GateBatchOfMixedCpus : public ::testing::Test {
 protected:
  static constexpr common::IsaMask kOld = 0x3, kNew = 0xf;

  // Code is for the common CPUs of all, or for that of the rank that compiles it.
  static void make_for(GateWorld& world, int rank, common::IsaMask isa) {
    world.rank(rank).compiler.work = [isa](const common::Request& request, const Report&) {
      const common::IsaMask needed = common::wants_native(request) ? isa : 1;
      return Obtained{testing::make_artifact("answer", key_of(request), needed), key_of(request), Origin::kCompiled};
    };
  }

  static All compile(bool is_root_old, const std::vector<common::Request>& requests, std::vector<int>& compiles) {
    const auto isa_of = [&](int rank) { return (rank < 2) == is_root_old ? kOld : kNew; };
    GateWorld world(4, [&](int rank, GateOptions& options) {
      on_two_nodes(rank, options);
      options.host_isa = isa_of(rank);
    });
    for (int rank = 0; rank < world.size(); ++rank) make_for(world, rank, isa_of(rank));
    All all = compile_all(world, [&](int) {
      std::vector<Demand> demands;
      for (const common::Request& request : requests) demands.push_back({request, "constants"});
      return demands;
    });
    for (int rank = 0; rank < world.size(); ++rank) compiles.push_back(world.rank(rank).compiler.compiles);
    return all;
  }

  static common::Request request_for_isa(const std::string& name, const std::string& wish,
                                         const std::vector<std::string>& flags = {}) {
    common::Request request = request_named(name);
    request.isa_wish = wish;
    request.flags = flags;
    return request;
  }
};

TEST_F(GateBatchOfMixedCpus, NativeCodeIsTheRootsAndOtherCodeIsDealt) {
  const std::string level(common::isa_levels().front());
  const std::vector<common::Request> requests{
      request_for_isa("a", "native"), request_for_isa("b", "common"),
      request_for_isa("c", "common"), request_for_isa("d", "common", {"-O3", "-march=native"}),
      request_for_isa("e", level),    request_for_isa("f", level)};
  std::vector<int> compiles;
  const All all = compile(true, requests, compiles);
  EXPECT_EQ(compiles, (std::vector{4, 0, 2, 0}));
  for (const auto& deliveries : all) {
    ASSERT_TRUE(deliveries) << common::to_line(deliveries.error().error);
    for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ((*deliveries)[i].module->key(), key_of(requests[i]));
  }
}

// As with one module: the root's CPU decides, and who cannot run its code says so.
TEST_F(GateBatchOfMixedCpus, NativeCodeOfANewerRootIsRefusedByTheOthers) {
  std::vector<int> compiles;
  const All all = compile(false, {request_for_isa("a", "native"), request_for_isa("b", "native")}, compiles);
  EXPECT_EQ(compiles, (std::vector{2, 0, 0, 0}));
  expect_failure(all, ErrorKind::kRefused, "this CPU has", {2, 3});
}

TEST(GateBatches, OneMissIsTheRootsOwn) {
  GateWorld world(4, on_two_nodes);
  const auto held = compile_all(world, {"a", "b", "c"});
  EXPECT_TRUE(compile_all(world, kFour).front());
  EXPECT_EQ(world.rank(0).compiler.compiles, 3);
  EXPECT_EQ(world.rank(2).compiler.compiles, 1);
}

TEST(GateBatches, FailureOfALeaderIsEverybodys) {
  GateWorld world(4, on_two_nodes);
  world.rank(2).compiler.work = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
    return common::fail(ErrorKind::kTimedOut, "it does not answer", request.name);
  };
  expect_failure(compile_all(world, {"a", "b"}), ErrorKind::kTimedOut,
                 "module 'b.c': rank 2 on " + testing::host_name() + ": it does not answer");
  world.rank(2).compiler.work = nullptr;
  expect_all(compile_all(world, {"a", "b"}), {"a", "b"}, {kNew, kNew});
}

// Whatever may go wrong on one node and not on another.
TEST(GateBatches, FailureOfEachKindSaysOnWhichNodeUnlessItIsTheRequests) {
  constexpr std::array kOfTheRequest{ErrorKind::kInvalidSource, ErrorKind::kUsage, ErrorKind::kDivergent};
  const std::string where = "rank 2 on " + testing::host_name() + ": ";
  for (int number = static_cast<int>(ErrorKind::kInvalidSource); number <= static_cast<int>(ErrorKind::kInternal);
       ++number) {
    const auto kind = static_cast<ErrorKind>(number);
    if (kind == ErrorKind::kRefused || kind == ErrorKind::kUnreachable) continue;  // falls to the root
    if (kind == ErrorKind::kBroken) continue;                                      // no compiler's
    SCOPED_TRACE(common::name_of(kind));
    GateWorld world(4, on_two_nodes);
    world.rank(2).compiler.work = [kind](const common::Request& request, const Report&) -> common::Result<Obtained> {
      return common::fail(kind, "it fails", request.name);
    };
    const bool is_of_the_request = std::ranges::find(kOfTheRequest, kind) != kOfTheRequest.end();
    expect_failure(compile_all(world, {"a", "b"}), kind,
                   "module 'b.c': " + (is_of_the_request ? "" : where) + "it fails");
  }
}

// The root's daemon may have what another node's has not, or room.
TEST(GateBatches, WhatAnotherNodeRefusesIsForTheRootToAnswer) {
  GateWorld world(4, on_two_nodes);
  const auto refuse = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
    return common::fail(ErrorKind::kRefused, "not here", request.name);
  };
  world.rank(2).compiler.work = refuse;
  expect_all(compile_all(world, kFour), kFour, {kNew, kNew, kNew, kNew});
  EXPECT_EQ(world.rank(0).compiler.compiles, 4);
  EXPECT_EQ(world.rank(2).compiler.compiles, 2);

  GateWorld other(4, on_two_nodes);
  for (const int leader : {0, 2}) other.rank(leader).compiler.work = refuse;
  expect_failure(compile_all(other, {"a", "b"}), ErrorKind::kRefused,
                 "module 'b.c': REFUSED: rank 0 on " + testing::host_name() + ": not here");
  expect_works_again(other);
}

// Another node may have another gcc, or none, and other files in the same directories.
TEST(GateBatches, WhatDependsOnTheNodeIsTheRoots) {
  GateWorld world(4, on_two_nodes);
  for (int rank = 1; rank < world.size(); ++rank)
    world.rank(rank).compiler.work = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
      return common::fail(ErrorKind::kInternal, "made elsewhere", request.name);
    };
  std::vector<common::Request> requests(4, request_named("a"));
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].name = kFour[i] + ".c";
  requests[0].compiler = "gcc";
  requests[1].compiler = "/opt/llvm/bin/clang";
  requests[2].flags = {"-I/opt/petsc/include"};
  requests[3].flags = {"-I", "/opt/petsc/include"};
  const All all = compile_all(world, [&](int) {
    std::vector<Demand> demands;
    for (const common::Request& request : requests) demands.push_back({request, "constants"});
    return demands;
  });
  for (const auto& deliveries : all) EXPECT_TRUE(deliveries) << common::to_line(deliveries.error().error);
  EXPECT_EQ(world.rank(0).compiler.compiles, 4);
  EXPECT_EQ(world.compiles(), 4);
}

// No leader but the root starts a daemon. Where none serves, the root's does the work; and from then on it is not
// asked.
TEST(GateBatches, NodeWithoutADaemonLeavesItsModulesToTheRoot) {
  GateWorld world(4, on_two_nodes);
  world.rank(2).compiler.work = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
    return common::fail(ErrorKind::kUnreachable, "no daemon", request.name);
  };
  expect_all(compile_all(world, kFour), kFour, {kNew, kNew, kNew, kNew});
  EXPECT_EQ(world.rank(0).compiler.compiles, 4);
  EXPECT_EQ(world.rank(2).compiler.compiles, 2);
  expect_all(compile_all(world, {"e", "f"}), {"e", "f"}, {kNew, kNew});
  EXPECT_EQ(world.rank(0).compiler.compiles, 6);
  EXPECT_EQ(world.rank(2).compiler.compiles, 2);
}

TEST(GateBatches, WithoutAnyDaemonTheRootSaysSo) {
  GateWorld world(4, on_two_nodes);
  for (const int leader : {0, 2})
    world.rank(leader).compiler.work = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
      return common::fail(ErrorKind::kUnreachable, "no daemon", request.name);
    };
  expect_failure(compile_all(world, {"a", "b"}), ErrorKind::kUnreachable,
                 "module 'b.c': UNREACHABLE: rank 0 on " + testing::host_name() + ": no daemon");
  expect_works_again(world);
}

// Both for look-ups and for compiles; and the twentieth thread has to wait for no other's end but one.
TEST(GateBatches, FewThreadsServeManyModules) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("m" + std::to_string(i));
  for (const int threads : {1, 3}) {
    GateWorld world(2);
    const auto all = compile_all(world, [&](int rank) {
      if (rank == 0) limit_threads(threads);
      return demands_of(names);
    });
    expect_all(all, names, std::vector(20, kNew));
    EXPECT_EQ(world.compiles(), 20);
  }
}

TEST(GateBatches, WithoutAnyThreadAllFail) {
  GateWorld world(2);
  const auto all = compile_all(world, [&](int rank) {
    if (rank == 0) limit_threads(0);
    return demands_of(kFour);
  });
  expect_failure(all, ErrorKind::kInternal, "rank 0 on " + testing::host_name() + ": no helper thread can be started");
  expect_works_again(world);
}

// What one rank is slow in is a beat of its own: those who wait for it hear of it, however long it takes.
TEST(GateBatches, LeadersSendTheirOwnBeats) {
  GateWorld world(4, [](int rank, GateOptions& options) {
    on_two_nodes(rank, options);
    options.pacing = {.silence = 1s, .beat = 20ms};
  });
  std::mutex mutex;
  std::condition_variable heard;
  world.rank(2).compiler.work = [&](const common::Request& request, const Report& report) -> common::Result<Obtained> {
    report({rpc::Progress::Phase::kCompiling, 0, 1.5, 4096});
    std::unique_lock lock(mutex);
    while (world.rank(0).beats < 60) heard.wait_for(lock, 5ms);
    return Obtained{testing::make_artifact("answer", key_of(request)), key_of(request), Origin::kCompiled};
  };
  expect_all(compile_all(world, {"a", "b"}), {"a", "b"}, {kNew, kNew});
}

TEST(GateBatches, OtherNumberOfModulesIsADifference) {
  GateWorld world(4);
  const auto all = compile_all(world, [](int rank) {
    return demands_of(rank == 2 ? std::vector<std::string>{"a"} : std::vector<std::string>{"a", "b"});
  });
  expect_failure(all, ErrorKind::kDivergent, "asks for 1 modules, rank 0 for 2", {2});
}

TEST(GateBatches, AdoptedModulesAreCompiledByTheRootAlone) {
  GateWorld world(4, [](int rank, GateOptions& options) {
    on_two_nodes(rank, options);
    options.adopts_root = true;
  });
  const auto all = compile_all(world, [](int rank) {
    std::vector<Demand> demands = demands_of({"a", "b"});
    if (rank == 2) {
      common::Request mine = **demands[1].request;
      mine.origin = "int of_mine;\n";
      demands[1].request = std::move(mine);
    }
    return demands;
  });
  ASSERT_NO_FATAL_FAILURE(expect_all(all, {"a", "b"}, {kNew, kNew}));
  EXPECT_EQ(world.rank(0).compiler.compiles, 2);
  EXPECT_EQ(world.compiles(), 2);
}

TEST(GateBatches, SkippedBatchIsTold) {
  GateWorld world(2);
  expect_failure(compile_all(world, [](int rank) { return demands_of({rank ? "c" : "a", rank ? "d" : "b"}); }),
                 ErrorKind::kDivergent, "", {1});
  expect_failure(compile_all(world, [](int rank) { return demands_of({rank ? "e" : "c", rank ? "f" : "d"}); }),
                 ErrorKind::kDivergent, "skipped a call", {1});
}

}  // namespace
}  // namespace jitc::gate
