// Thousands of calls with random faults over simulated ranks, one after the other without a pause between: each returns
// on all ranks, with one outcome, and what it gives computes its own number. TEST_SEED and TEST_SCHEDULES choose
// others; the seed is printed. Calls that are refused, since an earlier one broke the communicator, do not count.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>

#include "tests/support/gate_expect.h"
#include "tests/support/numbered_artifact.h"

namespace jitc::gate {
namespace {

using testing::SimulatedWorld;
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

// What ends the communicator.
enum class Loss {
  kNone,
  kLeaves,     // a rank is gone before a call, and the others' operations fail
  kStaysAway,  // a rank never comes, and nobody is told: the others' patience ends, and some of the roll call may fail
  kCannotStart,  // one operation of a rank's cannot be started, at any point of a call
};
constexpr std::array kAllLosses{Loss::kNone, Loss::kLeaves, Loss::kStaysAway, Loss::kCannotStart};

struct Scenario {
  int size = 2;
  bool adopts = false;
  int strict_rank = -1;  // though the others adopt
  int clumsy_rank = -1;  // cannot load
  Loss loss = Loss::kNone;
  int lost_rank = -1;
  unsigned lost_call = 0;  // kLeaves, kStaysAway: the first that this rank does not come to
  SimulatedWorld::Start start = SimulatedWorld::Start::kReduce;
  int start_rank = -1;
  int spared = 0;  // operations of this kind and rank before the one that cannot be started
  int nodes = 1;
  std::vector<Plan> plans = std::vector<Plan>(kCallsOfAWorld);
  std::array<std::atomic<unsigned>, 8> calls{};  // by rank: where it is
};

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  bool one_in(int many) { return below(many) == 0; }

 private:
  std::mt19937 random_;
};

void choose_loss(Scenario& scenario, Dice& dice) {
  using Start = SimulatedWorld::Start;
  if (!dice.one_in(4)) return;
  scenario.loss = kAllLosses.at(1 + static_cast<std::size_t>(dice.below(3)));
  scenario.lost_rank = dice.below(scenario.size);
  if (scenario.loss == Loss::kLeaves) scenario.lost_call = static_cast<unsigned>(dice.below(kCallsOfAWorld));
  if (scenario.loss == Loss::kCannotStart) {
    scenario.start = dice.one_in(2) ? Start::kReduce : Start::kBroadcast;
    scenario.start_rank = scenario.lost_rank;
    scenario.spared = dice.below(2 * kCallsOfAWorld);
  } else if (scenario.loss == Loss::kStaysAway && dice.one_in(2)) {
    scenario.start = dice.one_in(2) ? Start::kSend : Start::kReceive;
    scenario.start_rank = dice.below(scenario.size);
  }
}

void fill(Scenario& scenario, unsigned seed) {
  Dice dice(seed);
  scenario.size = 2 + dice.below(6);
  scenario.adopts = dice.one_in(2);
  scenario.nodes = 1 + dice.below(3);
  if (dice.one_in(4)) scenario.strict_rank = dice.below(scenario.size);
  if (dice.one_in(5)) scenario.clumsy_rank = dice.below(scenario.size);
  choose_loss(scenario, dice);
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

// For all calls, and for helper threads of calls that broke, which may be late.
void serve(testing::TestRank& self, const std::shared_ptr<Scenario>& scenario, std::size_t rank) {
  const auto plan = [scenario, rank]() -> Plan& { return scenario->plans[scenario->calls[rank]]; };
  self.store.work = [plan](const common::Request& request) -> std::optional<Obtained> {
    if (!plan().is_stored) return std::nullopt;
    const common::Digest key = testing::key_of(request);
    return Obtained{testing::numbered_artifact(key), key, Origin::kStore};
  };
  self.compiler.work = [plan](const common::Request& request, const Report& report) -> common::Result<Obtained> {
    report({rpc::Progress::Phase::kCompiling, 0, 0, 0});
    const int module = request.name.at(1) - '0';
    ++plan().compiles.at(static_cast<std::size_t>(module));
    if (module == plan().failing) return common::fail(ErrorKind::kInvalidSource, "does not compile", request.name);
    const common::Digest key = testing::key_of(request);
    return Obtained{testing::numbered_artifact(key), key, Origin::kCompiled};
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
  bool is_present = false;
  bool is_success = false;
  std::optional<ErrorKind> broken;
  bool is_refused = false;  // since an earlier call broke
  std::string text;
};

using Table = std::vector<std::vector<Told>>;  // by call and rank

Told told_of(const Deliveries& deliveries) {
  Told told{true, deliveries.has_value(), {}, false, text_of(deliveries)};
  if (deliveries || !deliveries.error().is_broken) return told;
  told.broken = deliveries.error().error.kind;
  told.is_refused = told.text.contains("is broken since an earlier call");
  return told;
}

void run_rank(GateWorld& world, const std::shared_ptr<Scenario>& shared, int rank, Table& table) {
  testing::TestRank& self = world.rank(rank);
  Scenario& scenario = *shared;
  const auto at = static_cast<std::size_t>(rank);
  serve(self, shared, at);
  std::vector<Delivery> held;
  for (unsigned call = 0; call < kCallsOfAWorld; ++call) {
    scenario.calls[at] = call;
    if (rank == scenario.lost_rank && call == scenario.lost_call) {
      if (scenario.loss == Loss::kLeaves) world.world().lose_a_rank();
      if (scenario.loss != Loss::kCannotStart) return;
    }
    if (scenario.plans[call].forgets[at]) held.clear();
    std::vector<Demand> demands = demands_of(scenario, call, rank);
    const Deliveries deliveries = self.gate->compile_all(demands);
    table[call][at] = told_of(deliveries);
    if (!deliveries) continue;
    const std::vector<Demand> roots = demands_of(scenario, call, 0);
    ASSERT_EQ(deliveries->size(), roots.size());
    for (std::size_t i = 0; i < roots.size(); ++i) {
      EXPECT_EQ(testing::call_answer((*deliveries)[i]), testing::number_of(testing::key_of(**roots[i].request)));
      held.push_back((*deliveries)[i]);
    }
  }
}

struct Count {
  unsigned successes = 0;
  unsigned failures = 0;
  unsigned broken = 0;
  unsigned refused = 0;
  std::array<unsigned, kAllLosses.size()> worlds{};  // that broke, by loss
  unsigned schedules() const { return successes + failures + broken; }
};

// Of the calls that a rank came to, the first that broke, if any did. What follows is refused, and nothing before is.
unsigned breaking_call(const Table& table, std::size_t rank) {
  unsigned breaking = kCallsOfAWorld;
  for (unsigned call = 0; call < kCallsOfAWorld; ++call) {
    const Told& told = table[call][rank];
    if (!told.is_present) break;
    EXPECT_EQ(told.is_refused, call > breaking) << "call " << call << ", rank " << rank << ": " << told.text;
    if (told.is_refused) {
      EXPECT_EQ(told.broken, ErrorKind::kBroken) << "call " << call << ", rank " << rank;
    } else if (told.broken) {
      breaking = std::min(breaking, call);
    }
  }
  return breaking;
}

// Only a loss breaks anything, in its call or where others first wait for that rank; and for its reason.
void judge_loss(const Scenario& scenario, const Table& table, bool has_failed_start) {
  const auto lost = static_cast<std::size_t>(scenario.lost_rank);
  const bool may_break = scenario.loss == Loss::kLeaves || scenario.loss == Loss::kStaysAway ||
                         (scenario.loss == Loss::kCannotStart && has_failed_start);
  unsigned first = may_break ? scenario.lost_call : kCallsOfAWorld;
  unsigned last = first;
  if (scenario.loss == Loss::kCannotStart && has_failed_start) {
    first = breaking_call(table, lost);
    ASSERT_LT(first, kCallsOfAWorld);
    EXPECT_THAT(table[first][lost].text, HasSubstr("code " + std::to_string(SimulatedWorld::kNotStarted)));
    last = std::min(first + 1, kCallsOfAWorld);
    for (const Told& told : table[first]) EXPECT_FALSE(told.is_success) << "call " << first;
  }
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(scenario.size); ++rank) {
    const unsigned breaking = breaking_call(table, rank);
    if (rank == lost && scenario.loss != Loss::kCannotStart) {
      EXPECT_EQ(breaking, kCallsOfAWorld) << "rank " << rank;
      continue;
    }
    EXPECT_GE(breaking, first) << "rank " << rank;
    EXPECT_LE(breaking, last) << "rank " << rank;
    if (breaking < kCallsOfAWorld) {
      // A rank that cannot start an operation tells the others, who hear it where they would have waited for it.
      const bool is_own = scenario.loss == Loss::kLeaves || (scenario.loss == Loss::kCannotStart && rank == lost);
      const ErrorKind kind = is_own ? ErrorKind::kBroken : ErrorKind::kTimedOut;
      EXPECT_EQ(table[breaking][rank].broken, kind) << "rank " << rank << ": " << table[breaking][rank].text;
    }
  }
}

void judge(const Scenario& scenario, const Table& table, bool has_failed_start, Count& count) {
  judge_loss(scenario, table, has_failed_start);
  bool has_broken = false;
  for (unsigned call = 0; call < kCallsOfAWorld; ++call) {
    const Told* first = nullptr;
    bool is_broken = false;
    for (const Told& told : table[call]) {
      is_broken = is_broken || (told.broken && !told.is_refused);
      if (!told.is_present || told.broken) continue;
      if (first)
        EXPECT_EQ(told.text, first->text) << "call " << call << ", rank " << &told - table[call].data();
      else
        first = &told;
    }
    has_broken = has_broken || is_broken;
    ++(is_broken ? count.broken : !first ? count.refused : first->is_success ? count.successes : count.failures);
    for (const auto& compiles : scenario.plans[call].compiles) EXPECT_LE(compiles, 1) << "call " << call;
  }
  if (has_broken) ++count.worlds.at(static_cast<std::size_t>(scenario.loss));
}

void run_world(unsigned seed, Count& count) {
  SCOPED_TRACE("TEST_SEED=" + std::to_string(seed) + " TEST_SCHEDULES=1");
  const auto shared = std::make_shared<Scenario>();
  Scenario& scenario = *shared;
  fill(scenario, seed);
  GateWorld world(scenario.size, [&](int rank, GateOptions& options) {
    options.adopts_root = scenario.adopts && rank != scenario.strict_rank;
    options.node = 1 + static_cast<std::uint64_t>(rank % scenario.nodes);
    if (rank == scenario.clumsy_rank) options.stage_dir = "/dev/null/nowhere";
    options.pacing.silence = 60s;
    // No call before it could be broken by a machine that is slow.
    if (scenario.loss == Loss::kCannotStart) options.pacing.beat = 10ms;
    if (scenario.loss == Loss::kStaysAway) options.pacing = {.arrival = 20ms, .roll_call = 10ms};
  });
  if (scenario.start_rank >= 0) world.world().fail_start(scenario.start_rank, scenario.start, scenario.spared);
  Table table(kCallsOfAWorld, std::vector<Told>(static_cast<std::size_t>(scenario.size)));
  testing::on_ranks(scenario.size, [&](int rank) { run_rank(world, shared, rank, table); });
  judge(scenario, table, world.world().has_failed_start(), count);
}

TEST(GateSchedules, EveryCallReturnsOnAllRanksWithOneOutcome) {
  const unsigned seed = number_from("TEST_SEED", 20'250'501);
  const unsigned schedules = number_from("TEST_SCHEDULES", kSchedules);
  Count count;
  for (unsigned world = 0; count.schedules() < schedules && !::testing::Test::HasFailure(); ++world)
    run_world(seed + world, count);
  std::printf("seed %u: %u calls gave their modules, %u failed alike, %u broke, and %u were refused after that\n", seed,
              count.successes, count.failures, count.broken, count.refused);
  if (schedules < kSchedules) return;  // of a few worlds nothing more can be said
  EXPECT_GT(count.successes, 0U);
  EXPECT_GT(count.failures, 0U);
  EXPECT_GT(count.refused, 0U);
  for (const Loss loss : kAllLosses)
    EXPECT_EQ(count.worlds.at(static_cast<std::size_t>(loss)) > 0, loss != Loss::kNone) << static_cast<int>(loss);
}

}  // namespace
}  // namespace jitc::gate
