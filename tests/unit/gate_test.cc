// The gate over simulated ranks: whatever each rank sees, all end with the same module or the same failure, and the
// counters say who worked.
#include <algorithm>
#include <array>
#include <random>

#include "tests/support/gate_expect.h"

namespace jitc::gate {
namespace {

using common::Error;
using testing::call_answer;

class GateOfSize : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GateOfSize, ::testing::Values(1, 2, 4, 7));

TEST_P(GateOfSize, ColdCompilesOnceOnTheRootAndLoadsEverywhere) {
  GateWorld world(GetParam());
  const auto outcomes = world.compile(request_for(kSource));
  ASSERT_NO_FATAL_FAILURE(expect_delivered(outcomes, Origin::kCompiled));
  EXPECT_EQ(world.compiles(), 1);
  EXPECT_EQ(world.rank(0).compiler.compiles, 1);
  EXPECT_EQ(world.lookups(), 1);
  EXPECT_EQ(world.rank(0).store.lookups, 1);
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome->peak_bytes, 1000U);
}

TEST_P(GateOfSize, WarmCallIsOneReductionAndNothingElse) {
  GateWorld world(GetParam());
  const auto cold = world.compile(request_for(kSource));
  const std::size_t before = world.world().operations();
  const auto warm = world.compile(request_for(kSource));
  ASSERT_NO_FATAL_FAILURE(expect_delivered(warm, Origin::kMemory));
  EXPECT_EQ(world.world().operations(), before + 1);
  EXPECT_EQ(world.compiles(), 1);
  EXPECT_EQ(world.lookups(), 1);
  for (std::size_t i = 0; i < warm.size(); ++i) EXPECT_EQ(warm[i]->module, cold[i]->module);
}

// Each rank alone had it compiled before, where compilers or CPUs differ: the same request, and another artifact.
TEST_P(GateOfSize, RanksThatHoldUnlikeCodeGetTheRoots) {
  if (GetParam() == 1) GTEST_SKIP() << "one rank has no other to differ from";
  GateWorld world(GetParam());
  const common::Request request = request_for(kSource);
  std::vector<std::shared_ptr<loader::Module>> held;
  for (int rank = 0; rank < GetParam(); ++rank) {
    const common::Digest key = common::sha256("compiled for rank " + std::to_string(rank == 0 ? 0 : 1));
    auto module = loader::Module::load(testing::make_artifact("answer", key), &key, {0xf, {}});
    ASSERT_TRUE(module) << common::to_line(module.error());
    world.rank(rank).modules.insert(common::request_digest(request), held.emplace_back(std::move(*module)));
  }
  const auto outcomes = world.compile(request);
  ASSERT_NO_FATAL_FAILURE(expect_delivered(outcomes, Origin::kRank));
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome->module->key(), held.front()->key());
  EXPECT_EQ(outcomes.front()->module, held.front());
  EXPECT_EQ(world.compiles() + world.lookups(), 0);

  const std::size_t before = world.world().operations();
  ASSERT_NO_FATAL_FAILURE(expect_delivered(world.compile(request), Origin::kMemory));
  EXPECT_EQ(world.world().operations(), before + 1);
}

TEST_P(GateOfSize, StoreHitOnTheRootCompilesNothing) {
  GateWorld world(GetParam());
  world.rank(0).store.has_it = true;
  expect_delivered(world.compile(request_for(kSource)), Origin::kStore);
  EXPECT_EQ(world.compiles(), 0);
  EXPECT_EQ(world.lookups(), 1);
}

TEST_P(GateOfSize, CodeIsMadeOnceOnTheRootAndOnlyForTheCompiler) {
  GateWorld world(GetParam());
  std::atomic<int> made = 0;
  std::atomic<int> made_elsewhere = 0;
  const auto ask = [&] {
    return world.compile([&](int rank) {
      Demand demand = demand_of(kSource);
      demand.make_code = [&made, &made_elsewhere, rank](const common::Request&) -> common::Result<std::string> {
        ++(rank == 0 ? made : made_elsewhere);
        return "double answer(double x) { return 42 * x; }";
      };
      return demand;
    });
  };
  std::string compiled;
  world.rank(0).compiler.work = [&compiled](const common::Request& request, const Report&) {
    compiled = request.code;
    const common::Digest key = testing::key_of(request);
    return Obtained{testing::make_artifact("answer", key), key, Origin::kCompiled};
  };
  world.rank(0).store.has_it = true;
  {
    const auto stored = ask();
    ASSERT_NO_FATAL_FAILURE(expect_delivered(stored, Origin::kStore));
    EXPECT_EQ(made, 0);
    for (const auto& outcome : stored) EXPECT_FALSE(outcome->has_made_code);
    ASSERT_NO_FATAL_FAILURE(expect_delivered(ask(), Origin::kMemory));
    EXPECT_EQ(made, 0);
  }
  world.rank(0).store.has_it = false;
  const auto cold = ask();
  ASSERT_NO_FATAL_FAILURE(expect_delivered(cold, Origin::kCompiled));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(compiled, "double answer(double x) { return 42 * x; }");
  for (const auto& outcome : cold) {
    EXPECT_TRUE(outcome->has_made_code);
    EXPECT_EQ(outcome->request, common::request_digest(request_for(kSource)));
  }
  EXPECT_EQ(made_elsewhere, 0);
}

TEST_P(GateOfSize, CodeThatCannotBeMadeFailsOnAllRanks) {
  GateWorld world(GetParam());
  const auto outcomes = world.compile([&](int) {
    Demand demand = demand_of(kSource);
    demand.make_code = [](const common::Request&) { return common::fail(ErrorKind::kUsage, "no derivative of h"); };
    return demand;
  });
  expect_same_failure(outcomes, ErrorKind::kUsage, "no derivative of h", {});
  EXPECT_EQ(world.compiles(), 0);
  expect_works_again(world);
}

// What its module must compute travels with the code; a store's entry that was not checked waits for a daemon.
TEST_P(GateOfSize, AsksForTheCheckOfWhatTheStoreHasAndServesItUncheckedWithoutADaemon) {
  GateWorld world(GetParam());
  world.rank(0).store.work = [](const common::Request& request) -> std::optional<Obtained> {
    if (request.checked) return std::nullopt;
    const common::Digest key = testing::key_of(request);
    return Obtained{testing::make_artifact("answer", key), key, Origin::kStore};
  };
  ErrorKind kind = ErrorKind::kUnreachable;
  world.rank(0).compiler.work = [&kind](const common::Request& request, const Report&) -> common::Result<Obtained> {
    EXPECT_EQ(request.code, "made");
    EXPECT_EQ(request.canary, common::Canary{.table = "t"});
    return common::fail(kind, "as it were", request.name);
  };
  const auto compile = [&world](const char* source) {
    return world.compile([source](int) {
      common::Request request = request_for(source);
      request.checked = true;
      return Demand{common::SharedRequest(std::move(request)), {}, [](const common::Request&) {
                      return MadeCode("made", common::Canary{.table = "t"});
                    }};
    });
  };
  expect_delivered(compile(kSource), Origin::kStore);
  EXPECT_EQ(world.rank(0).compiler.compiles, 1);
  kind = ErrorKind::kMiscompiled;
  expect_same_failure(compile("double g;"), kind, "as it were", {});
}

// A text that was shared and does not compile so is compiled as given: it works, or its diagnostics are the caller's.
TEST_P(GateOfSize, CompilesTheOriginWhereWhatWasMadeOfItIsWrong) {
  for (const bool origin_is_source : {true, false}) {
    GateWorld world(GetParam());
    std::vector<std::string> codes;
    world.rank(0).compiler.work = [&codes](const common::Request& request, const Report&) -> common::Result<Obtained> {
      codes.push_back(request.code);
      if (!request.code.empty()) return common::fail(ErrorKind::kInvalidSource, "does not compile", request.name);
      EXPECT_TRUE(request.no_cache);
      const common::Digest key = testing::key_of(request);
      return Obtained{testing::make_artifact("answer", key), key, Origin::kCompiled};
    };
    const auto outcomes = world.compile([&](int) {
      Demand demand = demand_of(kSource);
      demand.make_code = [](const common::Request&) { return std::string("wrong"); };
      demand.origin_is_source = origin_is_source;
      return demand;
    });
    if (origin_is_source) {
      expect_delivered(outcomes, Origin::kCompiled);
      for (const auto& outcome : outcomes) EXPECT_FALSE(outcome->has_made_code);
      EXPECT_EQ(codes, (std::vector<std::string>{"wrong", ""}));
    } else {
      expect_same_failure(outcomes, ErrorKind::kInvalidSource, "does not compile", {});
      EXPECT_EQ(codes, std::vector<std::string>{"wrong"});
    }
  }
}

TEST_P(GateOfSize, AnySubsetMayHoldTheModuleAlready) {
  const int size = GetParam();
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    GateWorld world(size);
    const unsigned holders = random() % (1U << size);
    auto held = world.compile(request_for(kSource));
    for (int rank = 0; rank < size; ++rank)
      if (!(holders >> rank & 1)) held[static_cast<std::size_t>(rank)]->module.reset();

    const auto again = world.compile(request_for(kSource));
    const bool all_hold = holders == (1U << size) - 1;
    const bool root_holds = holders & 1;
    expect_delivered(again, all_hold ? Origin::kMemory : root_holds ? Origin::kRank : Origin::kCompiled);
    EXPECT_EQ(world.compiles(), root_holds ? 1 : 2);
    EXPECT_EQ(world.lookups(), root_holds ? 1 : 2);
    for (std::size_t i = 0; i < again.size(); ++i)
      EXPECT_EQ(again[i]->module == held[i]->module, (holders >> i & 1) != 0) << "rank " << i;
  }
}

TEST_P(GateOfSize, FailureOfTheCompilerIsTheSameEverywhereAndBreaksNothing) {
  GateWorld world(GetParam());
  for (const ErrorKind kind : {ErrorKind::kInvalidSource, ErrorKind::kOutOfMemory, ErrorKind::kTimedOut,
                               ErrorKind::kUnreachable, ErrorKind::kCompilerCrashed, ErrorKind::kMiscompiled}) {
    Error error{kind, "as it were", "residual.c", "mend it"};
    error.diagnostics.push_back({"error", 3, 7, "expected ';'", "int a"});
    error.needed_bytes = 12345;
    world.rank(0).compiler.work = [&](const common::Request&, const Report&) { return std::unexpected(error); };
    const auto outcomes = world.compile(request_for(kSource));
    expect_same_failure(outcomes, kind, "as it were", {});
    common::Error told = outcomes.back().error().error;
    // What is not of the source says on which node it went wrong.
    const bool is_of_the_node = kind != ErrorKind::kInvalidSource;
    if (GetParam() > 1 && is_of_the_node) {
      EXPECT_EQ(told.message, "rank 0 on " + testing::host_name() + ": as it were");
      told.message = error.message;
    }
    EXPECT_EQ(told, error);
  }
  expect_works_again(world);
}

TEST_P(GateOfSize, ExceptionInTheRootsWorkIsAFailureEverywhere) {
  GateWorld world(GetParam());
  world.rank(0).compiler.work = [](const common::Request&, const Report&) -> common::Result<Obtained> {
    throw std::runtime_error("as it were");
  };
  expect_same_failure(world.compile(request_for(kSource)), ErrorKind::kInternal, "as it were", {});
  world.rank(0).compiler.work = [](const common::Request&, const Report&) -> common::Result<Obtained> {
    throw std::bad_alloc();
  };
  expect_same_failure(world.compile(request_for(kSource)), ErrorKind::kNotLoaded, "no memory", {});
  world.rank(0).compiler.work = [](const common::Request&, const Report&) -> common::Result<Obtained> { throw 5; };
  expect_same_failure(world.compile(request_for(kSource)), ErrorKind::kInternal, "not a std::exception", {});
  expect_works_again(world);
}

TEST_P(GateOfSize, RankWithoutARequestFailsAllWithItsOwnWords) {
  const int size = GetParam();
  for (int failing = 0; failing < size; ++failing) {
    GateWorld world(size);
    const auto outcomes = world.compile([&](int rank) {
      if (rank != failing) return Demand{request_for(kSource), ""};
      return Demand{common::fail(ErrorKind::kUsage, "no derivative of floor()", "residual.c"), ""};
    });
    expect_same_failure(outcomes, ErrorKind::kUsage, "no derivative of floor()", {failing});
    EXPECT_EQ(world.compiles(), 0);
    expect_works_again(world);
  }
}

TEST_P(GateOfSize, CorruptArtifactIsRefusedEverywhere) {
  GateWorld world(GetParam());
  world.rank(0).compiler.work = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
    std::string bytes = testing::make_artifact("answer", testing::key_of(request));
    bytes[bytes.size() / 2] ^= 1;
    return Obtained{std::move(bytes), testing::key_of(request), Origin::kCompiled};
  };
  std::vector<int> all;
  for (int rank = 0; rank < world.size(); ++rank) all.push_back(rank);
  expect_same_failure(world.compile(request_for(kSource)), ErrorKind::kCorrupt, "", all);
  expect_works_again(world);
}

class GateOfMany : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GateOfMany, ::testing::Values(2, 4, 7));

TEST_P(GateOfMany, DifferingSourceNamesRankAndLine) {
  const int last = GetParam() - 1;
  GateWorld world(GetParam());
  const auto outcomes =
      world.compile([&](int rank) { return demand_of(rank == last ? "int a;\nint c;\n" : "int a;\nint b;\n"); });
  expect_same_failure(outcomes, ErrorKind::kDivergent, "line 2: 'int c;' here, 'int b;' on rank 0", {last});
  EXPECT_THAT(outcomes[0].error().error.message, HasSubstr("rank " + std::to_string(last)));
  EXPECT_EQ(world.compiles(), 0);
  expect_works_again(world);
}

TEST_P(GateOfMany, RootThatDiffersIsReportedByAllOthers) {
  GateWorld world(GetParam());
  std::vector<int> others;
  for (int rank = 1; rank < GetParam(); ++rank) others.push_back(rank);
  const auto outcomes = world.compile([](int rank) { return demand_of(rank == 0 ? "int r;\n" : "int a;\n"); });
  expect_same_failure(outcomes, ErrorKind::kDivergent, "'int a;' here, 'int r;' on rank 0", others);
  expect_works_again(world);
}

TEST_P(GateOfMany, DifferingManifestIsNeverSilent) {
  GateWorld world(GetParam());
  const auto manifest = [](int rank) { return demand_of(kSource, rank == 1 ? "eta\nrho\n" : "rho\neta\n"); };
  expect_same_failure(world.compile(manifest), ErrorKind::kDivergent, "manifest differs, first at line 1", {1});

  // Nor when every rank holds the module.
  auto held = world.compile(request_for(kSource));
  expect_same_failure(world.compile(manifest), ErrorKind::kDivergent, "manifest differs", {1});
  EXPECT_EQ(world.compiles(), 1);
}

TEST_P(GateOfMany, AdoptTakesTheRootsSourceAndManifestTogether) {
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.adopts_root = true; });
  const auto outcomes = world.compile([](int rank) {
    return demand_of(rank == 1 ? "double other(void);\n" : kSource, rank == 1 ? "theirs" : "the root's");
  });
  ASSERT_NO_FATAL_FAILURE(expect_delivered(outcomes, Origin::kCompiled));
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome->manifest, "the root's");
  EXPECT_EQ(world.compiles(), 1);
  const auto warm = world.compile([](int) { return demand_of(kSource, "the root's"); });
  expect_delivered(warm, Origin::kMemory);
}

// What one rank asks for is what another asked for before, and yet no call was skipped.
TEST_P(GateOfMany, AdoptLetsTextsChangePlaces) {
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.adopts_root = true; });
  const std::array<std::string, 2> texts{"double answer(double x);\n", "double answer(double y);\n"};
  for (std::size_t call = 0; call < 4; ++call) {
    const auto outcomes = world.compile([&](int rank) { return demand_of(texts.at((call + (rank == 1)) % 2)); });
    expect_delivered(outcomes, Origin::kCompiled);
  }
}

TEST_P(GateOfMany, AdoptedCodeIsTheRoots) {
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.adopts_root = true; });
  std::string compiled;
  world.rank(0).compiler.work = [&compiled](const common::Request& request, const Report&) {
    compiled = request.code;
    const common::Digest key = testing::key_of(request);
    return Obtained{testing::make_artifact("answer", key), key, Origin::kCompiled};
  };
  const auto outcomes = world.compile([](int rank) {
    Demand demand = demand_of("problem of rank " + std::to_string(rank));
    demand.make_code = [rank](const common::Request&) { return "code of rank " + std::to_string(rank); };
    return demand;
  });
  expect_delivered(outcomes, Origin::kCompiled);
  EXPECT_EQ(compiled, "code of rank 0");
  for (const auto& outcome : outcomes)
    EXPECT_EQ(outcome->request, common::request_digest(request_for("problem of rank 0")));
}

TEST_P(GateOfMany, AdoptNeedsEveryRanksConsent) {
  GateWorld world(GetParam(), [](int rank, GateOptions& options) { options.adopts_root = rank != 1; });
  const auto outcomes = world.compile([](int rank) { return demand_of(rank == 1 ? "int a;\n" : "int b;\n"); });
  expect_same_failure(outcomes, ErrorKind::kDivergent, "line 1", {1});
}

TEST_P(GateOfMany, AdoptDoesNotHideOtherFlags) {
  GateWorld world(GetParam(), [](int, GateOptions& options) { options.adopts_root = true; });
  const auto outcomes = world.compile([](int rank) {
    common::Request request = request_for(kSource);
    request.flags = {rank == 1 ? "-O2" : "-O3"};
    return Demand{std::move(request), "constants"};
  });
  expect_same_failure(outcomes, ErrorKind::kDivergent, "flags '-O2' here, '-O3' on rank 0", {1});
}

TEST_P(GateOfMany, SkippedCallIsFoundOutInEitherMode) {
  for (const bool adopts : {false, true}) {
    const int skipper = GetParam() - 1;
    GateWorld world(GetParam(), [&](int, GateOptions& options) { options.adopts_root = adopts; });
    const auto call = [&](const std::string& name) {
      common::Request request = request_for("int " + name + ";\n");
      request.name = name;
      return Demand{std::move(request), "constants"};
    };
    const auto first = world.compile([&](int rank) { return call(rank == skipper ? "b" : "a"); });
    for (const auto& outcome : first) EXPECT_EQ(outcome.error().error.kind, ErrorKind::kDivergent);
    const auto second = world.compile([&](int rank) { return call(rank == skipper ? "c" : "b"); });
    expect_same_failure(second, ErrorKind::kDivergent, "skipped a call", {skipper});
    EXPECT_EQ(world.compiles(), 0);
  }
}

TEST_P(GateOfMany, CodeIsForTheInstructionSetThatAllRanksHave) {
  GateWorld world(GetParam(), [](int rank, GateOptions& options) { options.host_isa = rank == 1 ? 0x3 : 0xf; });
  expect_delivered(world.compile(request_for(kSource)), Origin::kCompiled);
  EXPECT_EQ(world.rank(0).compiler.isa_level, common::isa_level_of(0x3));
}

TEST_P(GateOfMany, CodeForABetterCpuIsRefusedBeforeItIsLoaded) {
  GateWorld world(GetParam(), [](int rank, GateOptions& options) { options.host_isa = rank == 1 ? 0x3 : 0xf; });
  world.rank(0).compiler.work = [](const common::Request& request, const Report&) -> common::Result<Obtained> {
    return Obtained{testing::make_artifact("answer", testing::key_of(request), 0xf), testing::key_of(request),
                    Origin::kCompiled};
  };
  expect_same_failure(world.compile(request_for(kSource)), ErrorKind::kRefused, "this CPU has", {1});
}

TEST_P(GateOfMany, RootDoesNotSendWhatItHoldsForABetterCpu) {
  GateWorld world(GetParam(), [](int rank, GateOptions& options) { options.host_isa = rank == 1 ? 0x3 : 0xf; });
  const auto request = request_for(kSource);
  const auto better =
      loader::Module::load(testing::make_artifact("answer", common::sha256("better"), 0xf), nullptr, {0xf, ""});
  ASSERT_TRUE(better);
  world.rank(0).modules.insert(common::request_digest(request), *better);
  const auto outcomes = world.compile(request);
  ASSERT_NO_FATAL_FAILURE(expect_delivered(outcomes, Origin::kCompiled));
  EXPECT_EQ(world.compiles(), 1);
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome->module->key(), testing::key_of(request));
}

TEST_P(GateOfMany, RankThatCannotLoadIsNamedOnAll) {
  GateWorld world(GetParam(), [](int rank, GateOptions& options) {
    if (rank == 1) options.stage_dir = "/dev/null/nowhere";
  });
  const auto outcomes = world.compile(request_for(kSource));
  expect_same_failure(outcomes, ErrorKind::kNotLoaded, "rank 1: ", {1});
  EXPECT_EQ(world.compiles(), 1);
  // The next call is served to the others' satisfaction and fails for the same reason, not for another.
  expect_same_failure(world.compile(request_for(kSource)), ErrorKind::kNotLoaded, "rank 1: ", {1});
}

// Any mixture of what ranks may see or do wrong, one after the other over one communicator.
TEST_P(GateOfMany, ThreeHundredMixedCallsStayInStep) {
  const int size = GetParam();
  GateWorld world(size, [](int, GateOptions& options) { options.pacing.silence = 20s; });
  std::mt19937 random(static_cast<unsigned>(size));
  GateWorld::Outcomes held;
  for (int round = 0; round < 300; ++round) {
    const std::string source = "int s" + std::to_string(random() % 5) + ";\n";
    const int odd = static_cast<int>(random() % static_cast<unsigned>(size));
    const unsigned what = random() % 6;
    const int compiles = world.compiles();
    world.rank(0).store.has_it = what == 1;
    world.rank(0).compiler.work = nullptr;
    if (what == 2)
      world.rank(0).compiler.work = [](const common::Request&, const Report&) -> common::Result<Obtained> {
        return common::fail(ErrorKind::kInvalidSource, "broken");
      };
    const auto outcomes = world.compile([&](int rank) -> Demand {
      if (what == 3 && rank == odd) return {common::fail(ErrorKind::kUsage, "cannot"), ""};
      if (what == 4 && rank == odd) return demand_of("int odd;\n");
      if (what == 5 && rank == odd) return demand_of(source, "another order");
      return demand_of(source);
    });
    for (const auto& outcome : outcomes) {
      ASSERT_EQ(outcome.has_value(), outcomes.front().has_value()) << "round " << round << ", variant " << what;
      if (outcome) {
        EXPECT_EQ(call_answer(*outcome), 84.0);
        EXPECT_EQ(outcome->origin, outcomes.front()->origin);
      } else {
        EXPECT_EQ(outcome.error().error, outcomes.front().error().error);
      }
    }
    EXPECT_EQ(outcomes.front().has_value(), what < 2 || (what == 2 && outcomes.front()));
    EXPECT_LE(world.compiles() - compiles, what < 3 ? 1 : 0);
    // Some ranks forget what they have, each its own.
    if (outcomes.front() && random() % 2) held = outcomes;
    for (auto& outcome : held)
      if (outcome && random() % 3 == 0) outcome->module.reset();
  }
}

TEST(Gate, ManifestTravelsBackToTheCaller) {
  GateWorld world(1);
  const auto outcomes = world.compile([](int) { return demand_of(kSource, "eta rho"); });
  ASSERT_TRUE(outcomes[0]);
  EXPECT_EQ(outcomes[0]->manifest, "eta rho");
}

TEST(Gate, FourFailingRanksSayWhyTheOthersAreCounted) {
  GateWorld world(7);
  const auto outcomes = world.compile([](int rank) -> Demand {
    if (rank == 0) return demand_of(kSource);
    return {common::fail(ErrorKind::kUsage, "reason " + std::to_string(rank)), ""};
  });
  expect_same_failure(
      outcomes, ErrorKind::kUsage,
      "rank 1: reason 1; rank 2: USAGE: reason 2; rank 3: USAGE: reason 3; rank 4: USAGE: reason 4; and "
      "2 more ranks",
      {1, 2, 3, 4, 5, 6});
}

}  // namespace
}  // namespace jitc::gate
