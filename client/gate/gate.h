// The collective decision and hand-off: all ranks decide together, the root alone asks the store and the daemon, every
// rank ends with the same module or the same failure.
//
// Each call has the same steps on every rank, whatever that rank saw:
//   1  local, communicates nothing: the request and its digest, a look into the process's table of modules
//   2  certificate: one OR over a few words, after which all ranks take the same branch by construction
//      - a rank could not make its request: the failing ranks' errors become everybody's failure
//      - the requests differ: everybody gets the root's; differing ranks say how, or adopt it and step 2 is repeated
//      - nobody needs the module: done
//   3  hand-off: the root gets the artifact while it sends a beat each second; then the bytes
//   4  every rank that does not hold this artifact verifies it and loads it from memory
//   5  second certificate: all have loaded, or everybody gets the failing ranks' errors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/gate/certificate.h"
#include "client/gate/collectives.h"
#include "client/gate/failure.h"
#include "client/gate/module_table.h"
#include "client/gate/root_work.h"
#include "client/gate/sources.h"
#include "client/gate/wire.h"
#include "client/loader/module.h"

namespace jitc::gate {

// What this rank wants. A rank that could not make its request says why instead, and takes part all the same.
struct Demand {
  common::Result<common::Request> request;
  std::string manifest;
  MakeCode make_code;  // empty: the request's origin is what is compiled
  // The origin is C too: it is compiled when what was made of it is refused, or nothing was made (an empty text).
  bool origin_is_source = false;
};

struct Delivery {
  std::shared_ptr<loader::Module> module;
  std::string manifest;    // in force: the caller's, or the root's when that was adopted
  common::Digest request;  // of the request in force, likewise
  // The same on every rank:
  Origin origin = Origin::kMemory;
  bool is_merged = false;
  bool has_made_code = false;
  double compile_seconds = 0;
  std::uint64_t peak_bytes = 0;
};

struct GateOptions {
  Pacing pacing;
  common::IsaMask host_isa = 0;
  std::string stage_dir;
  bool adopts_root = false;  // differing texts: take the root's, if every rank says so
};

// What the gate works with. `modules` outlives the gate. `store` and `compiler` are used on the root only; a helper
// thread that hangs in them may outlive the gate, and keeps them.
struct GateServices {
  ModuleTable& modules;
  std::shared_ptr<StoreLookup> store;
  std::shared_ptr<Compiler> compiler;
};

class Gate {
 public:
  using OnProgress = std::function<void(const std::string& name, const rpc::Progress&)>;
  // Takes the communicator over. `on_progress` may be empty; it is called on the thread that calls compile.
  Gate(const jitc_communicator& communicator, GateOptions options, GateServices services, OnProgress on_progress);

  // Collective. Never throws what another rank does not see, except for memory.
  Outcome<Delivery> compile(Demand demand);

  const std::optional<Failure>& broken() const { return broken_; }
  // This rank cannot keep step any more: the communicator is broken from now on, with this as the cause.
  Failure abandon(Failure cause);
  bool is_root() const { return collectives_.is_root(); }

 private:
  // One call as this rank sees it, and what it holds of it.
  struct Local {
    common::Result<Call> call;
    common::Digest request;  // zeros when there is none, as is the next
    common::Digest digest;   // of the whole call
    std::shared_ptr<loader::Module> module;
    MakeCode make_code;
    bool origin_is_source = false;
  };
  struct Digested {
    common::Request request;
    common::Digest digest;
  };

  Outcome<Delivery> run(Local local);
  Local local_step(Demand demand);
  const common::Digest& digest_of_request(const common::Request& request);
  Local look_into_table(Call call);
  Certificate certify(const Local& local) const;
  Outcome<Verdict> agree(Local& local);
  Outcome<void> settle_divergence(Local& local, const Verdict& verdict);
  Outcome<Delivery> hand_off(Local& local, common::IsaMask common_isa);

  // The last beat and the bytes that follow it.
  struct Received {
    Beat last;
    std::string bytes;
    bool has_bytes = true;  // false: there was no memory for them
  };
  Outcome<Received> send(Local& local, common::IsaMask common_isa);
  Outcome<Received> receive(const std::string& name);
  Outcome<common::Result<Obtained>> obtain(Local& local, common::IsaMask common_isa);
  Outcome<common::Result<Obtained>> wait_for(RootWork& work, const std::string& name);
  common::Result<std::shared_ptr<loader::Module>> load(const Local& local, const Received& received) const;

  // Collective: success when no rank has an error, else the same joint failure on all.
  Outcome<void> share_errors(const common::Error* mine, const std::string& step);
  std::string step(const std::string& what) const;
  void tell(const std::string& name, const rpc::Progress& progress) const;

  std::string name_;  // of the call that is under way, for progress
  Collectives collectives_;
  GateOptions options_;
  GateServices services_;
  OnProgress on_progress_;
  std::uint64_t sequence_ = 0;
  common::Digest previous_;
  std::optional<Digested> last_digested_;
  std::optional<Failure> broken_;
};

}  // namespace jitc::gate
