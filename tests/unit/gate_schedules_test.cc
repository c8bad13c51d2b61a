// Thousands of calls with random faults over simulated ranks, one after the other without a pause between: each returns
// on all ranks, with one outcome. TEST_SEED and TEST_SCHEDULES choose others; the seed is printed.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/support/gate_expect.h"

namespace jitc::gate {
namespace {

using Deliveries = Outcome<std::vector<Delivery>>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kSchedules = 1000;
#else
constexpr unsigned kSchedules = 10'000;
#endif
constexpr unsigned kCallsOfAWorld = 25;

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* text = std::getenv(variable);
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

enum class Fault { kNone, kNoRequest, kOtherText, kOtherManifest, kSkippedCall, kFewerModules };

// What happens in one call, as all ranks know beforehand.
struct Plan {
  std::vector<int> modules;   // by number; the same one may be asked for twice
  std::vector<Fault> faults;  // by rank
  std::vector<bool> forgets;  // by rank: it gives back what it holds, before the call
  bool is_stored = false;
  int failing = -1;  // the module that does not compile
  std::array<std::atomic<int>, 8> compiles{};
};

struct Scenario {
  int size = 2;
  bool adopts = false;
  int strict_rank = -1;  // though the others adopt
  int clumsy_rank = -1;  // cannot load
  int lost_rank = -1;    // from `lost_call` on
  unsigned lost_call = 0;
  int nodes = 1;
  std::vector<Plan> plans = std::vector<Plan>(kCallsOfAWorld);
};

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  bool one_in(int many) { return below(many) == 0; }

 private:
  std::mt19937 random_;
};

void fill(Scenario& scenario, unsigned seed) {
  Dice dice(seed);
  scenario.size = 2 + dice.below(6);
  scenario.adopts = dice.one_in(2);
  scenario.nodes = 1 + dice.below(3);
  if (dice.one_in(4)) scenario.strict_rank = dice.below(scenario.size);
  if (dice.one_in(5)) scenario.clumsy_rank = dice.below(scenario.size);
  if (dice.one_in(6)) scenario.lost_rank = dice.below(scenario.size);
  scenario.lost_call = static_cast<unsigned>(dice.below(kCallsOfAWorld));
  for (Plan& plan : scenario.plans) {
    const int count = dice.one_in(2) ? 1 : 1 + dice.below(4);
    for (int i = 0; i < count; ++i) plan.modules.push_back(dice.below(8));
    plan.is_stored = dice.one_in(4);
    if (dice.one_in(6)) plan.failing = plan.modules.front();
    for (int rank = 0; rank < scenario.size; ++rank) {
      plan.faults.push_back(dice.one_in(4 * scenario.size) ? static_cast<Fault>(1 + dice.below(5)) : Fault::kNone);
      plan.forgets.push_back(dice.one_in(3));
    }
  }
}

common::Request request_of(int module) {
  common::Request request = request_for("int s" + std::to_string(module) + ";\n");
  request.name = "m" + std::to_string(module) + ".c";
  return request;
}

std::vector<Demand> demands_of(const Scenario& scenario, unsigned call, int rank) {
  const Fault fault = scenario.plans[call].faults[static_cast<std::size_t>(rank)];
  const bool is_ahead = fault == Fault::kSkippedCall && call + 1 < kCallsOfAWorld;
  std::vector<Demand> demands;
  for (const int module : scenario.plans[is_ahead ? call + 1 : call].modules) {
    common::Request request = request_of(module);
    if (fault == Fault::kOtherText) request.origin += "int more;\n";
    demands.push_back({std::move(request), "constants"});
  }
  if (fault == Fault::kNoRequest) demands.back().request = common::fail(ErrorKind::kUsage, "no derivative");
  if (fault == Fault::kOtherManifest) demands.back().manifest = "another order";
  if (fault == Fault::kFewerModules) demands.pop_back();  // perhaps none is left
  return demands;
}

void serve(testing::TestRank& self, Plan& plan) {
  self.store.has_it = plan.is_stored;
  self.compiler.work = [&plan](const common::Request& request, const Report& report) -> common::Result<Obtained> {
    report({rpc::Progress::Phase::kCompiling, 0, 0, 0});
    const int module = request.name.at(1) - '0';
    ++plan.compiles.at(static_cast<std::size_t>(module));
    if (module == plan.failing) return common::fail(ErrorKind::kInvalidSource, "does not compile", request.name);
    const common::Digest key = testing::key_of(request);
    return Obtained{testing::make_artifact("answer", key), key, Origin::kCompiled};
  };
}

// All that must be the same on all ranks.
std::string text_of(const Deliveries& deliveries) {
  std::string text;
  if (!deliveries) {
    text = common::to_json(deliveries.error().error);
    for (const int rank : deliveries.error().ranks) text += " " + std::to_string(rank);
    return text;
  }
  for (const Delivery& one : *deliveries)
    text += one.module->key().hex() + " " + one.manifest + " " + std::to_string(static_cast<int>(one.origin)) + "\n";
  return text;
}

struct Told {
  bool is_broken = false;
  bool is_success = false;
  std::string text;
};

using Table = std::vector<std::vector<Told>>;  // by call and rank

void run_rank(GateWorld& world, Scenario& scenario, int rank, Table& table) {
  testing::TestRank& self = world.rank(rank);
  std::vector<Delivery> held;
  for (unsigned call = 0; call < kCallsOfAWorld; ++call) {
    Plan& plan = scenario.plans[call];
    if (rank == scenario.lost_rank && call == scenario.lost_call) return world.world().lose_a_rank();
    if (plan.forgets[static_cast<std::size_t>(rank)]) held.clear();
    serve(self, plan);
    std::vector<Demand> demands = demands_of(scenario, call, rank);
    const Deliveries deliveries = self.gate->compile_all(demands);
    table[call][static_cast<std::size_t>(rank)] = {!deliveries && deliveries.error().is_broken, deliveries.has_value(),
                                                   text_of(deliveries)};
    if (!deliveries) continue;
    for (const Delivery& one : *deliveries) {
      EXPECT_EQ(testing::call_answer(one), 84.0);
      held.push_back(one);
    }
  }
}

struct Count {
  unsigned successes = 0;
  unsigned failures = 0;
  unsigned broken = 0;
};

void judge(const Scenario& scenario, const Table& table, Count& count) {
  for (unsigned call = 0; call < kCallsOfAWorld; ++call) {
    const Told* first = nullptr;
    for (int rank = 0; rank < scenario.size; ++rank) {
      const Told& told = table[call][static_cast<std::size_t>(rank)];
      if (told.is_broken || (rank == scenario.lost_rank && call >= scenario.lost_call)) {
        EXPECT_GE(scenario.lost_rank, 0) << "call " << call << ": " << told.text;
        continue;
      }
      if (first) {
        EXPECT_EQ(told.text, first->text) << "call " << call << ", rank " << rank;
      } else {
        first = &told;
      }
    }
    ++(!first ? count.broken : first->is_success ? count.successes : count.failures);
    for (const auto& compiles : scenario.plans[call].compiles) EXPECT_LE(compiles, 1) << "call " << call;
  }
}

TEST(GateSchedules, EveryCallReturnsOnAllRanksWithOneOutcome) {
  const unsigned seed = number_from("TEST_SEED", 20'250'501);
  const unsigned schedules = number_from("TEST_SCHEDULES", kSchedules);
  Count count;
  for (unsigned world_number = 0; world_number < schedules / kCallsOfAWorld; ++world_number) {
    SCOPED_TRACE("TEST_SEED=" + std::to_string(seed + world_number) + " TEST_SCHEDULES=25");
    Scenario scenario;
    fill(scenario, seed + world_number);
    GateWorld world(scenario.size, [&](int rank, GateOptions& options) {
      options.adopts_root = scenario.adopts && rank != scenario.strict_rank;
      options.node = 1 + static_cast<std::uint64_t>(rank % scenario.nodes);
      if (rank == scenario.clumsy_rank) options.stage_dir = "/dev/null/nowhere";
      options.pacing.silence = 60s;
    });
    Table table(kCallsOfAWorld, std::vector<Told>(static_cast<std::size_t>(scenario.size)));
    testing::on_ranks(scenario.size, [&](int rank) { run_rank(world, scenario, rank, table); });
    judge(scenario, table, count);
    if (::testing::Test::HasFailure()) break;
  }
  std::printf("seed %u: %u calls gave their modules, %u failed alike, %u had a lost rank\n", seed, count.successes,
              count.failures, count.broken);
  EXPECT_GT(count.successes, 0U);
  EXPECT_GT(count.failures, 0U);
}

}  // namespace
}  // namespace jitc::gate
