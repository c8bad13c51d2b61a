// The protocol of one rank in one collective call, as a state machine: what happened goes in, what is to be done next
// comes out. Pure and copyable: no I/O, no threads, no clock. Gate performs the actions;
// tests/unit/gate_explorer_test.cc runs this same code through every interleaving of a few ranks. docs/gate.md draws
// it.
//
// A call is over one or more modules and has the same steps on every rank, whatever that rank saw:
//   1  certificate: one OR over a few words, after which all ranks take the same branch by construction
//      - a rank could not make its request: the failing ranks' errors become everybody's failure
//      - the requests differ: everybody gets the root's; differing ranks say how, or adopt it and step 1 is repeated
//      - nobody needs a module, and all hold the same code: done
//      - some need some modules: one more OR tells whether all hold the same code for the rest
//   2  turns: the leader of the turn gets something while it sends a beat each second; then the bytes. One
//      module is one turn, the root's. Several begin with the root's look into the store; then each module has its
//      turn, led by the root if it was found or its code depends on the node, else by the first rank of some node,
//      dealt round robin: leaders compile at the same time. What falls to a node without a daemon, or is refused there,
//      is the root's, in a further turn
//   3  in each turn every rank that does not hold the module verifies it and loads it from memory
//   4  second certificate: all have loaded, or have heard what failed; or everybody gets the failing ranks' errors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/gate/certificate.h"
#include "client/gate/failure.h"
#include "client/gate/sources.h"
#include "client/gate/wire.h"

namespace jitc::gate {

using Words = std::vector<std::uint64_t>;

struct Ranks {
  int rank = 0;
  int size = 1;
  std::uint64_t node = 0;                 // which ranks share a daemon: equal on those
  std::chrono::milliseconds patience{0};  // after which this rank gives up what is silent; 0: never
};

// What this rank brings to the certificate.
struct View {
  struct Wanted {
    std::string name;
    bool is_held = false;
    bool is_of_a_node = false;  // its code depends on the node that makes it
    common::Digest key;         // of the artifact, if it is held
  };
  std::optional<common::Error> error;  // it could not make its request; the next two are empty then
  std::vector<Wanted> modules;         // at least one, each once
  common::Digest call;                 // over all that must be equal on all ranks
  bool is_strict = true;
  common::IsaMask isa = 0;
};

// What the leader of a turn starts for itself, not to be waited for: see Await.
enum class Work { kLookUp, kCompile, kLookUpOrCompile };

// What a rank does next, and by which event it tells the protocol that it has.
namespace action {
struct Reduce {  // reduced
  Words words;   // replaced by their OR over all ranks
  bool is_arrival = false;
};
struct Broadcast {  // broadcast
  int from = 0;
  std::string bytes;      // of its size on all ranks, replaced by those of rank `from`
  bool is_sized = false;  // only `from` knows the size
};
struct Receive {  // received: a broadcast of another rank's that there may be no memory for
  int from = 0;
  std::size_t size = 0;
};
struct Post {  // done: start a broadcast from this rank and do not wait for it
  std::string bytes;
};
struct Settle {};  // done: all that was posted is complete
struct Tell {      // done: progress, for people
  std::size_t module = 0;
  Beat beat;
};
struct Pack {};   // packed: the root's call, for the others
struct Compare {  // compared: this rank's call with the root's
  std::string roots;
  bool is_strict = true;  // else this rank adopts it
};
struct Begin {  // done
  Work work = Work::kLookUpOrCompile;
  std::vector<std::size_t> modules;
  common::IsaMask common_isa = 0;
};
struct Await {  // beat_due; in the end looked_up or obtained
  std::size_t module = 0;
  bool is_look_up = false;
  std::chrono::milliseconds patience{0};  // the least of all ranks, who must hear of this one; 0: none has a limit
};
struct Load {  // loaded: unless this rank holds this very module
  std::size_t module = 0;
  Beat last;
  std::optional<std::string> bytes;  // none: there was no memory for them
};
struct Finish {  // nothing: the call has ended
  std::optional<Failure> failure;
};
}  // namespace action

using Action =
    std::variant<action::Reduce, action::Broadcast, action::Receive, action::Post, action::Settle, action::Tell,
                 action::Pack, action::Compare, action::Begin, action::Await, action::Load, action::Finish>;

class Protocol {
 public:
  // `leaders`: as an earlier call on this communicator has learnt them; empty: not known.
  Protocol(const Ranks& ranks, View view, std::vector<int> leaders = {})
      : ranks_(ranks), view_(std::move(view)), leaders_(std::move(leaders)) {}

  // Events, each the answer to the action given last.
  Action begin();
  Action done();
  Action reduced(std::span<const std::uint64_t> words);
  Action broadcast(std::optional<std::string> bytes);  // none: there was no memory for what is_sized
  Action received(std::optional<std::string> bytes);
  Action packed(std::string call);
  // The view after the root's call was adopted, or how this rank's differs.
  Action compared(common::Result<View> adopted);
  Action beat_due(const Beat& beat);
  // Of the modules of Begin, in that order: was it found?
  Action looked_up(const common::Result<std::vector<bool>>& found, double seconds);
  Action obtained(common::Result<Obtained> obtained, double seconds);
  Action loaded(std::optional<common::Error> error);

  // What the last action waits for, in words that go before "call 7".
  std::string waits_for() const;
  // Of all ranks, as the certificate told; 0: none has a limit.
  std::chrono::milliseconds least_patience() const { return verdict_.least_patience; }
  // All ranks have this call, as it was given or adopted.
  bool has_agreed() const { return has_agreed_; }
  // They have it, though some rank's differed.
  bool has_adopted() const { return has_agreed_ && has_settled_; }
  // The first rank of each node, ascending, for the next call; empty: not known yet.
  std::vector<int> take_leaders() { return std::move(leaders_); }

 private:
  enum class Step {
    kCertificate,
    kErrors,  // which ranks have one, and then the first few
    kRootsCall,
    kComparing,
    kHeld,
    kNodes,
    kBeginning,
    kAwaiting,
    kBeat,
    kLastBeat,
    kSending,
    kSettling,
    kHearing,
    kTelling,
    kReceiving,
    kLoading,
    kEnded,
  };
  enum class Sharing { kRequests, kDifferences, kFailures, kLoads };
  struct Turn {
    int leader = 0;
    std::size_t module = 0;
    bool is_look_up = false;
  };

  bool is_root() const { return ranks_.rank == 0; }
  const Turn& turn() const { return turns_[turn_]; }

  Action certify(bool is_arrival);
  Action judged();
  Action agreed();
  Action share(Sharing what, std::optional<common::Error> mine);
  Action next_reason();
  Action shared();
  std::uint64_t held_beside(std::uint64_t needs) const;
  Action hand_off();
  Action start_turns();
  Action begin_work(Work work, std::vector<std::size_t> modules);
  bool may_be_dealt(std::size_t place) const;
  Action deal();
  void learn_leaders(std::span<const std::uint64_t> nodes);
  Action assign();
  action::Await await() const;
  Action start_turn();
  Action next_turn();
  Action send(const Beat& last, std::string bytes);
  Action end_turn(std::optional<std::string> bytes);
  Action take_over();
  Action finish(std::optional<Failure> failure);

  Ranks ranks_;
  View view_;
  std::vector<int> leaders_;
  Step step_ = Step::kCertificate;
  Verdict verdict_;
  bool has_settled_ = false;  // a difference: the root's call was adopted
  bool has_agreed_ = false;

  Sharing sharing_ = Sharing::kRequests;
  std::optional<common::Error> mine_;
  std::vector<int> failing_;
  Reasons reasons_;

  std::vector<std::size_t> needed_;
  std::vector<bool> found_;  // of those that are needed
  std::vector<Turn> turns_;
  std::size_t turn_ = 0;
  Beat last_;           // of the turn
  std::string result_;  // the leader's, until all have it
  ModuleErrors failures_;
  std::optional<Failure> failure_;          // out of those
  std::optional<common::Error> own_error_;  // of loading, or of hearing why a turn failed
};

}  // namespace jitc::gate
