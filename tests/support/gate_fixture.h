// A world of gates, one per simulated rank, each with its own table of modules and its own counting sources.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/gate/gate.h"
#include "tests/support/gate_sources.h"
#include "tests/support/simulated_world.h"

namespace jitc::testing {

struct TestRank {
  gate::ModuleTable modules;
  FakeStore store;
  FakeCompiler compiler;
  std::atomic<int> beats = 0;
  std::function<void(const rpc::Progress&)> on_progress;
  std::unique_ptr<gate::Gate> gate;
};

class GateWorld {
 public:
  using Outcomes = std::vector<gate::Outcome<gate::Delivery>>;
  using Configure = std::function<void(int rank, gate::GateOptions&)>;

  explicit GateWorld(int size, const Configure& configure = {}) : world_(size) {
    for (int rank = 0; rank < size; ++rank) {
      gate::GateOptions options;
      options.host_isa = 0xf;
      if (configure) configure(rank, options);
      const auto owned = ranks_.emplace_back(std::make_shared<TestRank>());
      TestRank& self = *owned;
      // A helper thread of a call that failed may outlive the gate, and keeps what it uses.
      const gate::GateServices services{self.modules, {owned, &self.store}, {owned, &self.compiler}};
      self.gate = std::make_unique<gate::Gate>(world_.communicator(rank), options, services,
                                               [&self](const std::string&, const rpc::Progress& progress) {
                                                 ++self.beats;
                                                 if (self.on_progress) self.on_progress(progress);
                                               });
    }
  }

  ~GateWorld() {
    for (auto& rank : ranks_) rank->gate.reset();  // it keeps the rank too
  }
  GateWorld(const GateWorld&) = delete;
  GateWorld& operator=(const GateWorld&) = delete;

  int size() const { return world_.size(); }
  TestRank& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  SimulatedWorld& world() { return world_; }

  // All ranks call with `demand(rank)`.
  Outcomes compile(const std::function<gate::Demand(int)>& demand) {
    Outcomes outcomes(static_cast<std::size_t>(size()), std::unexpected(gate::Failure{}));
    on_ranks(size(), [&](int rank) {
      outcomes[static_cast<std::size_t>(rank)] = this->rank(rank).gate->compile(demand(rank));
    });
    return outcomes;
  }
  Outcomes compile(const common::Request& request) {
    return compile([&](int) { return gate::Demand{request, "constants"}; });
  }

  int compiles() {
    int total = 0;
    for (auto& rank : ranks_) total += rank->compiler.compiles;
    return total;
  }
  int lookups() {
    int total = 0;
    for (auto& rank : ranks_) total += rank->store.lookups;
    return total;
  }

 private:
  SimulatedWorld world_;
  std::vector<std::shared_ptr<TestRank>> ranks_;
};

}  // namespace jitc::testing
