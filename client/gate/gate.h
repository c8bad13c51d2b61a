// The collective decision and hand-off: all ranks decide together, the root alone asks the store, one rank for each
// module asks the daemon, every rank ends with the same modules or the same failure.
//
// What is done in which order is the protocol's (protocol.h); the gate does it: it drives the communicator, the helper
// threads and the loader, and keeps what lasts from call to call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/gate/certificate.h"
#include "client/gate/collectives.h"
#include "client/gate/failure.h"
#include "client/gate/leader_work.h"
#include "client/gate/module_table.h"
#include "client/gate/protocol.h"
#include "client/gate/silence.h"
#include "client/gate/sources.h"
#include "client/gate/wire.h"
#include "client/loader/module.h"

namespace jitc::gate {

// What this rank wants. A rank that could not make its request says why instead, and takes part all the same.
struct Demand {
  common::Result<common::SharedRequest> request;
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
  std::uint64_t node = 0;    // equal on ranks that share a daemon: modules of one call are dealt over these
};

// What the gate works with. `modules` outlives the gate. `store` is used on the root only, `compiler` there and, in a
// call for several modules, on one rank of each node. Both are used by several helper threads at once; one that hangs
// in them may outlive the gate, and keeps them.
struct GateServices {
  ModuleTable& modules;
  std::shared_ptr<StoreLookup> store;
  std::shared_ptr<Compiler> compiler;
  std::shared_ptr<Recorder> recorder = nullptr;  // used where the store is, and before it; may be empty
};

class Gate {
 public:
  using OnProgress = std::function<void(const std::string& name, const rpc::Progress&)>;
  // Takes the communicator over. `on_progress` may be empty; it is called on the thread that calls compile.
  Gate(const jitc_communicator& communicator, GateOptions options, GateServices services, OnProgress on_progress);

  // Collective. Throws nothing but what `on_progress` does. Where a rank cannot go on for want of memory, the
  // communicator is broken for all.
  Outcome<Delivery> compile(Demand demand);
  // The same for several modules, at least one: one certificate for all, and all or nothing. What is asked for twice is
  // had once. Deliveries are in the order of the demands.
  Outcome<std::vector<Delivery>> compile_all(std::span<Demand> demands);

  const std::optional<Failure>& broken() const { return broken_; }
  // This rank cannot keep step any more: the communicator is broken from now on, with this as the cause.
  Failure abandon(Failure cause);
  bool is_root() const { return collectives_.is_root(); }

 private:
  void break_with(const Failure& cause);
  // One call as this rank sees it, and what it holds of it.
  struct Local {
    // A module that is asked for, once.
    struct Wanted {
      std::size_t first = 0;  // the call that asks for it first
      common::Digest request;
      std::shared_ptr<loader::Module> module;
      Beat last;  // where it came from
    };
    // Of a demand, when the request has been taken out: how its code is made.
    struct Source {
      MakeCode make_code;
      bool origin_is_source = false;
    };
    View view;
    std::vector<Call> calls;
    std::vector<Source> sources;
    std::vector<Wanted> wanted;
    std::vector<std::size_t> places;   // by call: which of these
    std::vector<Delivery> deliveries;  // room for them, by call
  };
  // A request with its manifest, and the digest of both.
  struct Digested {
    common::Digest request;
    std::string manifest;
    common::Digest both;
  };
  // The leader's wait in a turn.
  struct Waiting {
    explicit Waiting(std::chrono::nanoseconds until_beat) : beat(start + until_beat) {}
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point beat;
    Silence silence;
  };
  // One call under way.
  struct Run {
    Local local;  // its view is the protocol's
    Protocol protocol;
    LeaderWork work;
    std::vector<std::size_t> begun;
    std::optional<Waiting> waiting;
  };

  Outcome<std::vector<Delivery>> take_part(std::span<Demand> demands);
  Outcome<void> perform_all(Run& run);
  Local local_step(std::span<Demand> demands);
  Local failed_locally(common::Error error);
  Local look_into_table(std::vector<Call> calls);
  const common::Digest& digest_of(const Call& call, std::size_t place);
  static View take_view(Local& local);
  common::Result<View> adopt(Local& local, const action::Compare& compare);
  static void deliver(Local& local);

  // Each does what the protocol says, and tells it. Fails when the communicator does.
  Outcome<Action> perform(Run& run, action::Reduce& reduce);
  Outcome<Action> perform(Run& run, action::Broadcast& broadcast);
  Outcome<Action> perform(Run& run, action::Receive& receive);
  Outcome<Action> perform(Run& run, action::Post& post);
  Outcome<Action> perform(Run& run, action::Settle&);
  Outcome<Action> perform(Run& run, action::Tell& tell);
  Outcome<Action> perform(Run& run, action::Pack&);
  Outcome<Action> perform(Run& run, action::Compare& compare);
  Outcome<Action> perform(Run& run, action::Begin& begin);
  Outcome<Action> perform(Run& run, action::Await& await);
  Outcome<Action> perform(Run& run, action::Load& load);

  Outcome<bool> wait_for(Run& run, RootWork& work, const std::string& name);
  LeaderWork::Order order_of(const Run& run, std::size_t module, common::IsaMask common_isa) const;
  common::Result<std::vector<bool>> found(const Run& run) const;
  common::Error of_this_rank(common::Error error) const;
  common::Result<std::shared_ptr<loader::Module>> load(const Local::Wanted& wanted, const action::Load& todo) const;

  std::string step(const Run& run) const;
  static const std::string& name_of(const Local& local, std::size_t module);
  void tell(const std::string& name, const rpc::Progress& progress) const;

  std::string name_;  // of the call that is under way, for progress
  Collectives collectives_;
  GateOptions options_;
  GateServices services_;
  OnProgress on_progress_;
  std::uint64_t sequence_ = 0;
  std::vector<common::Digest> previous_;  // what the call before asked for
  std::vector<Digested> last_digested_;   // by place in the call
  std::vector<int> leaders_;              // the first rank of each node; empty: not known yet
  std::optional<Failure> broken_;
};

}  // namespace jitc::gate
