// Runs the gate's protocol (or a machine with its face) on a few ranks over an abstract communicator, through every
// interleaving and every choice that the world has, and says what went wrong.
//
// The communicator promises no more than MPI does: operations match in the order in which each rank starts them; a
// reduction completes when all ranks have started it, a broadcast for a receiver when its root has, and for the root at
// once or, as with an MPI that buffers nothing, when all have started it.
//
// A rank's state follows from what happened to it alone. So each such history is run once, through the machine itself,
// and kept as a node of a tree; a state of the world is one node per rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "client/gate/protocol.h"

namespace jitc::testing {

// What a rank brings to the call and what befalls it.
struct Behaviour {
  std::string name;
  std::vector<bool> holds = {false};  // by module of the call
  bool has_request = true;
  int call = 0;              // ranks with other numbers differ
  bool is_adoptable = true;  // the difference is one of text or manifest, not a skipped call
  bool is_strict = true;
  bool can_load = true;
  bool has_memory = true;  // for the artifact
  bool may_stop = false;   // for good, at any point
  std::uint64_t node = 1;
};

struct Exploration {
  std::size_t states = 0;
  std::size_t ends = 0;
  std::size_t successes = 0;  // ends in which the ranks have their modules
  std::string violation;      // empty: none
};

template <class Machine>
class GateExplorer {
 public:
  static constexpr std::size_t kMostRanks = 4;

  // `beats`: so many may occur in a call.
  GateExplorer(std::vector<Behaviour> behaviours, int beats) : behaviours_(std::move(behaviours)), beats_(beats) {}

  // Rank i behaves like behaviours[ranks[i]].
  Exploration explore(const std::vector<std::size_t>& ranks, bool is_buffered) {
    size_ = ranks.size();
    is_buffered_ = is_buffered;
    result_ = {};
    seen_.clear();
    World start{};
    for (std::size_t rank = 0; rank < size_; ++rank) start.nodes[rank] = first_node(rank, ranks[rank]);
    visit(start, 0);
    while (!open_.empty() && result_.violation.empty()) {
      const World world = open_.back();
      open_.pop_back();
      step(world);
    }
    open_.clear();
    result_.states = seen_.size();
    return result_;
  }

 private:
  struct Operation {
    enum class Kind { kReduce, kBroadcast, kSized };
    Kind kind;
    int from;
    std::size_t size;
    gate::Words words;
    std::string bytes;
    bool matches(const Operation& other) const {
      return kind == other.kind && from == other.from && size == other.size;
    }
  };
  // A rank after a history of its own.
  struct Node {
    std::size_t rank;
    const Behaviour* behaviour;
    Machine machine;
    gate::Action action;
    std::vector<Operation> started;
    int beats = 0;
    gate::Work work = gate::Work::kLookUpOrCompile;
    std::vector<std::size_t> begun;
    std::vector<std::size_t> compiled;  // modules
    std::string modules;                // what was loaded, in order
    std::optional<std::string> outcome;
    bool is_success = false;
    std::vector<std::pair<std::string, std::uint32_t>> next;  // by what happens
  };
  struct World {
    std::array<std::uint32_t, kMostRanks> nodes{};
    std::uint32_t stopped = 0;  // bit by bit
    bool operator==(const World&) const = default;
  };
  struct Hash {
    std::size_t operator()(const World& world) const {
      std::uint64_t hash = world.stopped;
      for (const std::uint32_t node : world.nodes) hash = (hash ^ node) * 0x9e3779b97f4a7c15U ^ hash >> 29;
      return hash;
    }
  };

  const Node& node(const World& world, std::size_t rank) const { return nodes_[world.nodes[rank]]; }
  static bool has_stopped(const World& world, std::size_t rank) { return world.stopped >> rank & 1; }

  // ---- one rank ----------------------------------------------------------------------------------------------------

  static gate::View view_of(const Behaviour& behaviour, int call) {
    gate::View view;
    view.is_strict = behaviour.is_strict;
    view.isa = 1;
    if (!behaviour.has_request) {
      view.error = common::Error{common::ErrorKind::kUsage, "no request on " + behaviour.name, {}, {}};
      return view;
    }
    view.call.bytes[0] = static_cast<std::uint8_t>(call + 1);
    for (std::size_t i = 0; i < behaviour.holds.size(); ++i)
      view.modules.push_back({"module" + std::to_string(i), behaviour.holds[i]});
    return view;
  }

  std::uint32_t first_node(std::size_t rank, std::size_t behaviour) {
    const auto key = std::tuple(size_, rank, behaviour);
    if (const auto known = first_.find(key); known != first_.end()) return known->second;
    const Behaviour& how = behaviours_[behaviour];
    const gate::Ranks ranks{static_cast<int>(rank), static_cast<int>(size_), how.node};
    Machine machine(ranks, view_of(how, how.call));
    gate::Action action = machine.begin();
    const std::uint32_t made =
        add({.rank = rank, .behaviour = &how, .machine = std::move(machine), .action = {}}, std::move(action));
    first_.emplace(key, made);
    return made;
  }

  // What the action does at once: operations start, work begins, a result is there.
  std::uint32_t add(Node node, gate::Action action) {
    node.action = std::move(action);
    node.next.clear();
    using Kind = typename Operation::Kind;
    if (const auto* reduce = std::get_if<gate::action::Reduce>(&node.action)) {
      node.started.push_back({Kind::kReduce, 0, reduce->words.size(), reduce->words, {}});
    } else if (const auto* cast = std::get_if<gate::action::Broadcast>(&node.action)) {
      node.started.push_back({cast->is_sized ? Kind::kSized : Kind::kBroadcast,
                              cast->from,
                              cast->is_sized ? 0 : cast->bytes.size(),
                              {},
                              cast->bytes});
    } else if (const auto* receive = std::get_if<gate::action::Receive>(&node.action)) {
      node.started.push_back({Kind::kBroadcast, receive->from, receive->size, {}, {}});
    } else if (const auto* post = std::get_if<gate::action::Post>(&node.action)) {
      node.started.push_back({Kind::kBroadcast, static_cast<int>(node.rank), post->bytes.size(), {}, post->bytes});
    } else if (const auto* begin = std::get_if<gate::action::Begin>(&node.action)) {
      node.work = begin->work;
      node.begun = begin->modules;
    } else if (const auto* finish = std::get_if<gate::action::Finish>(&node.action)) {
      node.is_success = !finish->failure;
      node.outcome = "modules " + node.modules;
      if (finish->failure) {
        node.outcome = common::to_json(finish->failure->error);
        for (const int rank : finish->failure->ranks) *node.outcome += " " + std::to_string(rank);
      }
    }
    nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  // The node after `event`, which `happen(node)` makes out of a copy; it gives the next action.
  template <class Happen>
  std::uint32_t after(std::uint32_t from, const std::string& event, const Happen& happen) {
    for (const auto& [known, next] : nodes_[from].next)
      if (known == event) return next;
    Node copy = nodes_[from];
    gate::Action action = happen(copy);
    const std::uint32_t made = add(std::move(copy), std::move(action));
    nodes_[from].next.emplace_back(event, made);
    return made;
  }

  static gate::Obtained artifact(gate::Origin origin, std::size_t module, std::size_t leader) {
    gate::Obtained obtained;
    obtained.origin = origin;
    obtained.key.bytes[0] = static_cast<std::uint8_t>(module + 1);
    obtained.key.bytes[1] = static_cast<std::uint8_t>(leader + 1);
    obtained.key.bytes[2] = static_cast<std::uint8_t>(origin);
    obtained.bytes = "artifact";
    return obtained;
  }

  // ---- the communicator --------------------------------------------------------------------------------------------

  bool have_all_started(const World& world, std::size_t index) const {
    for (std::size_t rank = 0; rank < size_; ++rank)
      if (node(world, rank).started.size() <= index) return false;
    return true;
  }

  bool is_complete(const World& world, std::size_t rank, std::size_t index) const {
    const Operation& operation = node(world, rank).started[index];
    const auto from = static_cast<std::size_t>(operation.from);
    if (operation.kind == Operation::Kind::kReduce || (from == rank && !is_buffered_))
      return have_all_started(world, index);
    return node(world, from).started.size() > index;
  }

  // ---- the world ---------------------------------------------------------------------------------------------------

  void violate(const World& world, const std::string& what) {
    result_.violation = what;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Node& self = node(world, rank);
      result_.violation += "\n  rank " + std::to_string(rank) + " (" + self.behaviour->name + "): ";
      if (self.outcome) {
        result_.violation += "ended with " + *self.outcome;
      } else {
        result_.violation += (has_stopped(world, rank) ? "stopped; it waited " : "waits ") + self.machine.waits_for() +
                             " its call, operation " + std::to_string(self.started.size());
      }
    }
  }

  // `moved`: the rank that has a new node.
  void visit(const World& world, std::size_t moved) {
    if (!seen_.insert(world).second) return;
    const Node& self = node(world, moved);
    if (!self.started.empty()) {
      const std::size_t last = self.started.size() - 1;
      for (std::size_t rank = 0; rank < size_; ++rank) {
        const Node& other = node(world, rank);
        if (other.started.size() > last && !other.started[last].matches(self.started[last]))
          return violate(world, "mismatch: operation " + std::to_string(last + 1) + " of ranks " +
                                    std::to_string(moved) + " and " + std::to_string(rank));
      }
    }
    open_.push_back(world);
  }

  template <class Happen>
  void go(const World& world, std::size_t rank, const std::string& event, const Happen& happen) {
    World next = world;
    next.nodes[rank] = after(world.nodes[rank], event, happen);
    has_moved_ = true;
    visit(next, rank);
  }

  void step(const World& world) {
    has_moved_ = false;
    for (std::size_t rank = 0; rank < size_ && result_.violation.empty(); ++rank) {
      if (has_stopped(world, rank) || node(world, rank).outcome) continue;
      step(world, rank);
      if (node(world, rank).behaviour->may_stop) {
        World next = world;
        next.stopped |= 1U << rank;
        if (seen_.insert(next).second) open_.push_back(next);
      }
    }
    if (!has_moved_ && result_.violation.empty()) judge_end(world);
  }

  void step(const World& world, std::size_t rank) {
    using namespace gate::action;
    const Node& self = node(world, rank);
    const std::size_t current = self.started.size() - 1;
    if (std::holds_alternative<Reduce>(self.action)) {
      if (!is_complete(world, rank, current)) return;
      gate::Words words(self.started[current].size);
      for (std::size_t other = 0; other < size_; ++other)
        for (std::size_t i = 0; i < words.size(); ++i) words[i] |= node(world, other).started[current].words[i];
      const std::string event(reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]);
      go(world, rank, event, [&](Node& node) { return node.machine.reduced(words); });
    } else if (std::holds_alternative<Broadcast>(self.action)) {
      if (!is_complete(world, rank, current)) return;
      const auto from = static_cast<std::size_t>(self.started[current].from);
      const std::string bytes = node(world, from).started[current].bytes;
      go(world, rank, bytes, [&](Node& node) { return node.machine.broadcast(bytes); });
    } else if (std::holds_alternative<Receive>(self.action)) {
      if (!is_complete(world, rank, current)) return;
      const auto from = static_cast<std::size_t>(self.started[current].from);
      const std::string bytes = node(world, from).started[current].bytes;
      go(world, rank, bytes, [&](Node& node) {
        if (!node.behaviour->has_memory) return node.machine.received({});
        return node.machine.received(bytes);
      });
    } else if (std::holds_alternative<Settle>(self.action)) {
      for (std::size_t i = 0; i <= current; ++i)
        if (!is_complete(world, rank, i)) return;
      go(world, rank, "settled", [](Node& node) { return node.machine.done(); });
    } else if (std::holds_alternative<Await>(self.action)) {
      await(world, rank);
    } else {
      go(world, rank, "local", [](Node& node) { return act_alone(node); });
    }
  }

  // What concerns this rank alone.
  static gate::Action act_alone(Node& node) {
    using namespace gate::action;
    const Behaviour& behaviour = *node.behaviour;
    if (std::holds_alternative<Pack>(node.action)) return node.machine.packed(std::to_string(behaviour.call));
    if (const auto* with = std::get_if<Compare>(&node.action)) {
      const int root = std::stoi(with->roots);
      if (root != behaviour.call && (with->is_strict || !behaviour.is_adoptable))
        return node.machine.compared(common::fail(common::ErrorKind::kDivergent, "differs on " + behaviour.name));
      return node.machine.compared(view_of(behaviour, root));
    }
    if (const auto* load = std::get_if<Load>(&node.action)) {
      const bool is_held = behaviour.holds[load->module];
      if (!is_held && (!behaviour.can_load || !load->bytes))
        return node.machine.loaded(common::Error{common::ErrorKind::kNotLoaded, "cannot load", {}, {}});
      node.modules += load->last.key.hex().substr(0, 6) + " ";
      return node.machine.loaded({});
    }
    return node.machine.done();
  }

  // The leader's look-ups and compiles may end in any way, and a beat may be due before.
  void await(const World& world, std::size_t rank) {
    const Node& self = node(world, rank);
    const auto wait = std::get<gate::action::Await>(self.action);
    if (self.beats < beats_) {
      go(world, rank, "beat", [](Node& node) {
        ++node.beats;
        return node.machine.beat_due({});
      });
    }
    const auto failed = [&](const std::string& what) {
      return common::fail(common::ErrorKind::kInternal, what + " of module " + std::to_string(wait.module));
    };
    if (wait.is_look_up) {
      go(world, rank, "hung store", [&](Node& node) { return node.machine.looked_up(failed("look-up"), 0); });
      for (unsigned set = 0; set < 1U << self.begun.size(); ++set) {
        go(world, rank, "found " + std::to_string(set), [&](Node& node) {
          std::vector<bool> found;
          for (std::size_t i = 0; i < node.begun.size(); ++i)
            found.push_back(node.behaviour->holds[node.begun[i]] || (set >> i & 1) != 0);
          return node.machine.looked_up(found, 0);
        });
      }
      return;
    }
    const bool is_begun = std::ranges::find(self.begun, wait.module) != self.begun.end();
    const auto obtain = [&](const std::string& event, gate::Origin origin) {
      go(world, rank, event, [&](Node& node) {
        if (origin == gate::Origin::kCompiled) node.compiled.push_back(wait.module);
        return node.machine.obtained(artifact(origin, wait.module, node.rank), 0);
      });
    };
    if (self.work != gate::Work::kCompile && self.behaviour->holds[wait.module])
      return obtain("held", gate::Origin::kRank);
    if (self.work != gate::Work::kCompile || !is_begun) obtain("stored", gate::Origin::kStore);
    if (self.work == gate::Work::kLookUp || !is_begun) return;
    obtain("compiled", gate::Origin::kCompiled);
    go(world, rank, "failed", [&](Node& node) {
      node.compiled.push_back(wait.module);
      return node.machine.obtained(failed("compile"), 0);
    });
  }

  // Nothing moves any more.
  void judge_end(const World& world) {
    ++result_.ends;
    std::optional<std::size_t> ended;
    std::vector<std::size_t> compiled;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Node& self = node(world, rank);
      compiled.insert(compiled.end(), self.compiled.begin(), self.compiled.end());
      if (has_stopped(world, rank)) continue;
      if (!self.outcome) {
        // Its deadline ends this call as broken: rightly, if it waits for ranks that have stopped, or wait themselves.
        for (std::size_t other = 0; other < size_; ++other)
          if (world.stopped == 0 || (node(world, other).outcome && !is_complete_for(world, rank, other)))
            return violate(world, "deadlock: rank " + std::to_string(rank) + " waits for ever");
        continue;
      }
      if (ended && node(world, *ended).outcome != self.outcome)
        return violate(world, "two outcomes: of ranks " + std::to_string(*ended) + " and " + std::to_string(rank));
      if (ended && node(world, *ended).started.size() != self.started.size())
        return violate(world, "mismatch: ranks " + std::to_string(*ended) + " and " + std::to_string(rank) +
                                  " have not started as many operations");
      ended = rank;
    }
    std::ranges::sort(compiled);
    if (std::ranges::adjacent_find(compiled) != compiled.end()) return violate(world, "a module was compiled twice");
    if (ended && node(world, *ended).is_success) ++result_.successes;
    if (is_warm(world) && node(world, 0).started.size() > 1) violate(world, "a warm call is more than one reduction");
  }

  // Has `other` done its part of what `rank` waits for?
  bool is_complete_for(const World& world, std::size_t rank, std::size_t other) const {
    return node(world, other).started.size() >= node(world, rank).started.size();
  }

  bool is_warm(const World& world) const {
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Node& self = node(world, rank);
      if (!self.is_success || self.behaviour->call != 0 || std::ranges::count(self.behaviour->holds, false) > 0)
        return false;
    }
    return true;
  }

  std::vector<Behaviour> behaviours_;
  int beats_;
  std::size_t size_ = 0;
  bool is_buffered_ = true;
  bool has_moved_ = false;
  std::deque<Node> nodes_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::uint32_t> first_;
  std::unordered_set<World, Hash> seen_;
  std::vector<World> open_;
  Exploration result_;
};

}  // namespace jitc::testing
