// One rank's gate over a real communicator, with a store and a compiler of the test's own. Every module computes a
// number of its own (tests/support/numbered_artifact.h).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <jitc/mpi.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/gate/gate.h"
#include "tests/mpi/check.h"
#include "tests/support/gate_sources.h"
#include "tests/support/numbered_artifact.h"

namespace jitc::testing {

// What this rank would see in a store that all share; only the root's look counts.
class NumberedStore : public gate::StoreLookup {
 public:
  std::optional<gate::Obtained> look_up(const common::Request& request) override {
    ++lookups;
    if (before_look) before_look();
    if (!has_it) return std::nullopt;
    return gate::Obtained{numbered_artifact(key_of(request), isa_needed), key_of(request), gate::Origin::kStore};
  }
  std::atomic<int> lookups = 0;
  bool has_it = false;
  common::IsaMask isa_needed = 1;
  std::function<void()> before_look;
};

inline common::Result<gate::Obtained> compile_numbered(const common::Request& request, const gate::Report&) {
  return gate::Obtained{numbered_artifact(key_of(request)), key_of(request), gate::Origin::kCompiled};
}

struct Rank {
  gate::ModuleTable own_modules;
  gate::ModuleTable& modules;
  NumberedStore store;
  FakeCompiler compiler;
  std::atomic<int> beats = 0;  // heard while the root was at work
  std::optional<gate::Gate> gate;
  int rank = 0;
  int size = 1;

  // Collective over `comm`. `shared`: a table of modules that this process's other gates use too.
  explicit Rank(gate::GateOptions options = {}, MPI_Comm comm = MPI_COMM_WORLD, gate::ModuleTable* shared = nullptr)
      : modules(shared ? *shared : own_modules) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (!options.host_isa) options.host_isa = 0xf;
    // Each look takes MPICH's collectives one round further: sleeps of the usual length would make hundreds of calls
    // slow.
    options.pacing.longest_sleep = std::chrono::microseconds(200);
    compiler.work = compile_numbered;
    const std::shared_ptr<void> nobody;
    gate.emplace(mpi::communicator(comm).release(), std::move(options),
                 gate::GateServices{modules, {nobody, &store}, {nobody, &compiler}},
                 [this](const std::string&, const rpc::Progress& progress) { hear(progress.phase); });
  }

  gate::Outcome<gate::Delivery> compile(const std::string& source, const std::string& manifest = "") {
    return gate->compile({request_for(source), manifest});
  }
  // On a helper thread: until this rank has heard two more beats.
  void await_beats() {
    const int enough = beats + 2;
    for (int heard = beats; heard < enough; heard = beats) beats.wait(heard);
  }
  // The module of this source, which then stands in this rank's table as long as somebody keeps it.
  std::shared_ptr<loader::Module> hold(const common::Request& request) {
    const common::Digest digest = common::request_digest(request);
    const auto held = loader::Module::load(numbered_artifact(digest), nullptr, {0xf, ""});
    CHECK(held.has_value());
    modules.insert(digest, *held);
    return *held;
  }

 private:
  void hear(rpc::Progress::Phase phase) {
    if (phase == rpc::Progress::Phase::kArriving || phase == rpc::Progress::Phase::kLoading) return;
    ++beats;
    beats.notify_all();
  }
};

// What jitc says to a communicator.
inline jitc_kind kind_of(MPI_Comm comm) {
  try {
    mpi::communicator(comm);
  } catch (const jitc::Error& error) {
    return error.kind;
  }
  return JITC_OK;
}

inline double answer(const gate::Delivery& delivery) {
  const auto address = delivery.module->symbol("answer");
  CHECK(address.has_value());
  return reinterpret_cast<double (*)(double)>(*address)(2.0);
}

// This rank has the module of this source, and all have it from the same place.
inline void check_delivered(const gate::Outcome<gate::Delivery>& outcome, const std::string& source,
                            gate::Origin origin) {
  if (!outcome) fail_check(__FILE__, __LINE__, common::to_line(outcome.error().error));
  CHECK_EQ(static_cast<int>(outcome->origin), static_cast<int>(origin));
  CHECK_EQ(answer(*outcome), number_of(key_of(request_for(source))));
}

inline std::string source(const std::string& name, int round) { return "int " + name + std::to_string(round) + ";\n"; }

}  // namespace jitc::testing
