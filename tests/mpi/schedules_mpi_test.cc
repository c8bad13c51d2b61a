// Random faults in hundreds of calls over a real MPI: every call ends on all ranks with the one outcome that its faults
// must have, and what is delivered computes the right number.
//
//   schedules_mpi_test SEED CALLS
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/mpi/gate_rank.h"
#include "tests/support/fault_schedule.h"

namespace jitc::gate {
namespace {

using testing::answer;
using testing::CompilerDoes;
using testing::Divergence;
using testing::ExpectedOutcome;
using testing::FaultSchedule;
using testing::number_of;
using testing::Rank;
using testing::RankFaults;
using testing::StoreDoes;

// One instruction set for each rank, which all but this rank have.
common::IsaMask isa_of_all_but(int rank) { return common::IsaMask{1} << (8 + rank); }

GateOptions options_for(Divergence divergence, int rank) {
  GateOptions options;
  options.pacing.silence = std::chrono::minutes(2);
  options.pacing.beat = std::chrono::milliseconds(5);
  options.host_isa = 0xffff0f & ~isa_of_all_but(rank);
  options.adopts_root = divergence == Divergence::kAdopting || (divergence == Divergence::kMixed && rank % 2 == 1);
  return options;
}

common::Request request_of(const FaultSchedule& schedule, const RankFaults& rank) {
  common::Request request = testing::request_for(testing::source("module", schedule.module + rank.ahead));
  if (rank.flags) request.flags = {"-O1"};
  return request;
}

std::string manifest_of(const RankFaults& rank) { return rank.manifest ? "eta rho" : "rho eta"; }

class Schedules {
 public:
  // What is done in one call.
  void call(const FaultSchedule& schedule) {
    Rank& self = ranks_[static_cast<std::size_t>(schedule.divergence)];
    const RankFaults& faults = schedule.ranks[static_cast<std::size_t>(self.rank)];
    const common::Request request = request_of(schedule, faults);
    std::shared_ptr<loader::Module> held;
    if (faults.holds) held = self.hold(request);
    self.beats = 0;
    arrange(schedule, self);
    const int compiles = self.compiler.compiles;
    const int lookups = self.store.lookups;

    Demand demand{request, manifest_of(faults)};
    if (faults.cannot_ask) demand.request = common::fail(*faults.cannot_ask, "this rank cannot");
    const Outcome<Delivery> outcome = self.gate->compile(std::move(demand));

    const ExpectedOutcome expected = testing::expected_outcome(schedule);
    if (outcome) {
      expect_delivery(*outcome, expected, schedule);
      keep(*outcome);
    } else {
      expect_failure(outcome.error(), expected);
    }
    CHECK_EQ(self.compiler.compiles - compiles, self.rank == 0 && expected.compiles ? 1 : 0);
    CHECK_EQ(self.store.lookups - lookups, self.rank == 0 && expected.looks ? 1 : 0);
    if (expected.is_slow) CHECK(self.beats >= 2);
    ++seen_[class_of(schedule, expected)];
  }

  // Every class of outcomes was met.
  void expect_all_classes() const {
    for (const char* name : {"from memory", "from a rank", "from the store", "compiled", "adopted", "slow",
                             "cannot ask", "divergent", "skipped call", "compile failed", "not loaded"})
      if (!seen_.contains(name)) testing::fail_check(__FILE__, __LINE__, std::string("no call was of class ") + name);
  }
  void print(unsigned long seed, std::size_t calls) const {
    std::printf("seed %lu, %zu calls:", seed, calls);
    for (const auto& [name, count] : seen_) std::printf(" %d %s;", count, name.c_str());
    std::printf("\n");
  }

 private:
  static void arrange(const FaultSchedule& schedule, Rank& self) {
    common::IsaMask isa_needed = 1;
    for (int rank = 0; rank < self.size; ++rank)
      if (schedule.ranks[static_cast<std::size_t>(rank)].lacks_instructions) isa_needed |= isa_of_all_but(rank);
    self.store.isa_needed = isa_needed;
    self.store.has_it = schedule.store == StoreDoes::kFinds || schedule.store == StoreDoes::kHangsThenFinds;
    const bool hangs = schedule.store == StoreDoes::kHangsThenFinds || schedule.store == StoreDoes::kHangsThenMisses;
    self.store.before_look = nullptr;
    if (hangs) self.store.before_look = [&self] { self.await_beats(); };
    self.compiler.work = [&schedule, &self, isa_needed](const common::Request& request, const Report& report) {
      return compile(schedule, self, isa_needed, request, report);
    };
  }

  static common::Result<Obtained> compile(const FaultSchedule& schedule, Rank& self, common::IsaMask isa_needed,
                                          const common::Request& request, const Report& report) {
    const common::Digest key = testing::key_of(request);
    Obtained obtained{testing::numbered_artifact(key, isa_needed), key, Origin::kCompiled};
    switch (schedule.compiler) {
      case CompilerDoes::kFailsSlowly:
        report({rpc::Progress::Phase::kQueued, 3, 0, 0});
        self.await_beats();
        [[fallthrough]];
      case CompilerDoes::kFails:
        return common::fail(schedule.compile_error, "the compiler's error", "residual.c", "a remedy");
      case CompilerDoes::kThrows:
        throw std::runtime_error("the compiler's exception");
      case CompilerDoes::kGivesCorrupt:
        obtained.bytes[obtained.bytes.size() / 2] ^= 1;
        break;
      case CompilerDoes::kGivesUnloadable:
        obtained.bytes = testing::make_artifact("undefined", key, isa_needed);
        break;
      case CompilerDoes::kCompilesSlowly:
        report({rpc::Progress::Phase::kCompiling, 0, 0, 4096});
        self.await_beats();
        break;
      case CompilerDoes::kCompiles:
        break;
    }
    return obtained;
  }

  static void expect_delivery(const Delivery& delivery, const ExpectedOutcome& expected,
                              const FaultSchedule& schedule) {
    if (expected.error)
      testing::fail_check(__FILE__, __LINE__, "delivered, not " + std::string(common::name_of(*expected.error)));
    const RankFaults& root = schedule.ranks.front();
    const common::Digest request = common::request_digest(request_of(schedule, root));
    CHECK_EQ(answer(delivery), number_of(request));
    CHECK(delivery.module->key() == request && delivery.request == request);
    CHECK_EQ(delivery.manifest, manifest_of(root));
    CHECK_EQ(static_cast<int>(delivery.origin), static_cast<int>(expected.origin));
    CHECK(testing::same_everywhere(delivery.module->key_text() + delivery.manifest));
  }

  static void expect_failure(const Failure& failure, const ExpectedOutcome& expected) {
    const std::string text = common::to_json(failure.error);
    if (!expected.error) testing::fail_check(__FILE__, __LINE__, text);
    CHECK_EQ(common::name_of(failure.error.kind), common::name_of(*expected.error));
    CHECK(failure.ranks == expected.failing);
    CHECK(!failure.is_broken);
    CHECK_EQ(text.contains("skipped a call"), expected.names_skipped_call);
    CHECK(testing::same_everywhere(text));
  }

  // The last modules stay loaded, and go on computing their own numbers.
  void keep(const Delivery& delivery) {
    constexpr std::size_t kKept = 8;
    for (const Delivery& kept : kept_) CHECK_EQ(answer(kept), number_of(kept.request));
    if (kept_.size() == kKept) kept_.erase(kept_.begin());
    kept_.push_back(delivery);
  }

  static std::string class_of(const FaultSchedule& schedule, const ExpectedOutcome& expected) {
    const RankFaults& root = schedule.ranks.front();
    const bool is_adopted = std::ranges::any_of(schedule.ranks, [&](const RankFaults& rank) {
      return rank.ahead != root.ahead || rank.manifest != root.manifest;
    });
    if (!expected.error && is_adopted) return "adopted";
    if (expected.is_slow) return "slow";
    if (expected.error) {
      if (expected.names_skipped_call) return "skipped call";
      if (*expected.error == common::ErrorKind::kDivergent && !expected.compiles) return "divergent";
      if (expected.compiles && expected.failing.empty()) return "compile failed";
      return expected.looks ? "not loaded" : "cannot ask";
    }
    const std::map<Origin, std::string> names{{Origin::kMemory, "from memory"},
                                              {Origin::kRank, "from a rank"},
                                              {Origin::kStore, "from the store"},
                                              {Origin::kCompiled, "compiled"}};
    return names.at(expected.origin);
  }

  std::array<Rank, 3> ranks_{Rank(options_for(Divergence::kStrict, testing::rank_of_world())),
                             Rank(options_for(Divergence::kAdopting, testing::rank_of_world())),
                             Rank(options_for(Divergence::kMixed, testing::rank_of_world()))};
  std::vector<Delivery> kept_;
  std::map<std::string, int> seen_;
};

}  // namespace

void run(unsigned long seed, int calls) {
  const auto schedules = testing::draw_fault_schedules(seed, testing::size_of_world(), calls);
  Schedules ranks;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    testing::under_way() = "call " + std::to_string(i) + " of seed " + std::to_string(seed);
    ranks.call(schedules[i]);
  }
  testing::under_way() = "seed " + std::to_string(seed);
  if (testing::rank_of_world() == 0) ranks.print(seed, schedules.size());
  if (calls >= 400) ranks.expect_all_classes();
}

}  // namespace jitc::gate

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK_EQ(argc, 3);
  jitc::gate::run(std::strtoul(argv[1], nullptr, 10), std::atoi(argv[2]));
  if (jitc::testing::rank_of_world() == 0) std::puts("all ranks agree");
  MPI_Finalize();
  return 0;
}
