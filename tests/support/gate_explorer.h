// Runs the gate's protocol (or a machine with its face) on a few ranks over an abstract communicator, through every
// interleaving and every choice that the world has, and says what went wrong.
//
// The communicator promises no more than MPI does: operations match in the order in which each rank starts them; a
// reduction completes when all ranks have started it; a broadcast completes as Broadcasts says.
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
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "client/gate/protocol.h"
#include "tests/support/explored_rank.h"

namespace jitc::testing {

enum class Broadcasts {
  kBuffered,       // the root leaves at once, and each other rank when the root has started
  kSynchronising,  // the root leaves when all have started
  kChain,  // the root leaves at once, and each other rank when the rank before it has left: the deepest of trees
};

enum class Orders {
  kAll,
  // What a rank may do next depends on no step of another that has not been taken, and such steps commute: so one rank
  // after the other takes all that it can. The ends are the same.
  kOne,
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

  explicit GateExplorer(std::vector<Behaviour> behaviours, Setting setting = {})
      : behaviours_(std::move(behaviours)), setting_(std::move(setting)) {}

  // Rank i behaves like behaviours[ranks[i]].
  Exploration explore(const std::vector<std::size_t>& ranks, Broadcasts broadcasts, Orders orders) {
    size_ = ranks.size();
    broadcasts_ = broadcasts;
    orders_ = orders;
    result_ = {};
    seen_.clear();
    learn_leaders(ranks);
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
  // A rank after a history of its own, and what may follow.
  struct Node : ExploredRank<Machine> {
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

  // ---- histories ---------------------------------------------------------------------------------------------------

  void learn_leaders(const std::vector<std::size_t>& ranks) {
    leaders_.clear();
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const auto is_before = [&](int leader) {
        return behaviours_[ranks[static_cast<std::size_t>(leader)]].node == behaviours_[ranks[rank]].node;
      };
      if (std::ranges::none_of(leaders_, is_before)) leaders_.push_back(static_cast<int>(rank));
    }
  }

  std::uint32_t first_node(std::size_t rank, std::size_t behaviour) {
    const std::vector<int> known = setting_.knows_leaders ? leaders_ : std::vector<int>();
    const auto key = std::tuple(size_, rank, behaviour, known);
    if (const auto first = first_.find(key); first != first_.end()) return first->second;
    const Behaviour& how = behaviours_[behaviour];
    const gate::Ranks ranks{static_cast<int>(rank), static_cast<int>(size_), how.node};
    Machine machine(ranks, ExploredRank<Machine>::view_of(how, setting_, how.call), known);
    gate::Action action = machine.begin();
    Node first{{.rank = rank, .behaviour = &how, .setting = &setting_, .machine = std::move(machine), .action = {}},
               {}};
    first.take_held();
    const std::uint32_t made = add(std::move(first), std::move(action));
    first_.emplace(key, made);
    return made;
  }

  std::uint32_t add(Node node, gate::Action action) {
    node.take(std::move(action));
    node.next.clear();
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

  // ---- the communicator --------------------------------------------------------------------------------------------

  bool have_all_started(const World& world, std::size_t index) const {
    for (std::size_t rank = 0; rank < size_; ++rank)
      if (node(world, rank).started.size() <= index) return false;
    return true;
  }

  bool has_left(const Node& self, std::size_t index) const {
    return self.started.size() > index + 1 || (self.started.size() == index + 1 && !self.is_receiving());
  }

  bool is_complete(const World& world, std::size_t rank, std::size_t index) const {
    const StartedOperation& operation = node(world, rank).started[index];
    const auto from = static_cast<std::size_t>(operation.from);
    if (operation.kind == StartedOperation::Kind::kReduce) return have_all_started(world, index);
    if (from == rank) return broadcasts_ != Broadcasts::kSynchronising || have_all_started(world, index);
    if (node(world, from).started.size() <= index) return false;
    const std::size_t before = (rank + size_ - 1) % size_;
    return broadcasts_ != Broadcasts::kChain || before == from || has_left(node(world, before), index);
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
    if (!self.fault.empty()) return violate(world, "rank " + std::to_string(moved) + " " + self.fault);
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
      if (has_moved_ && orders_ == Orders::kOne) break;
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
    } else if (self.is_receiving()) {
      if (!is_complete(world, rank, current)) return;
      const auto from = static_cast<std::size_t>(self.started[current].from);
      const std::string bytes = node(world, from).started[current].bytes;
      go(world, rank, bytes, [&](Node& node) {
        if (std::holds_alternative<Broadcast>(node.action)) return node.machine.broadcast(bytes);
        if (!node.behaviour->has_memory) return node.machine.received({});
        return node.machine.received(bytes);
      });
    } else if (std::holds_alternative<Settle>(self.action)) {
      for (std::size_t i = 0; i <= current; ++i)
        if (!is_complete(world, rank, i)) return;
      go(world, rank, "settled", [](Node& node) { return node.machine.done(); });
    } else if (std::holds_alternative<Await>(self.action)) {
      for (const auto& choice : self.choices()) go(world, rank, choice.event, choice.happen);
    } else {
      go(world, rank, "local", [](Node& node) { return node.act_alone(); });
    }
  }

  // Nothing moves any more.
  void judge_end(const World& world) {
    ++result_.ends;
    std::optional<std::size_t> ended;
    std::vector<std::size_t> ordered;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Node& self = node(world, rank);
      ordered.insert(ordered.end(), self.ordered.begin(), self.ordered.end());
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
      const std::vector<int> leaders = leaders_after(self);
      if (ended && leaders_after(node(world, *ended)) != leaders)
        return violate(world, "ranks " + std::to_string(*ended) + " and " + std::to_string(rank) +
                                  " know different leaders for the next call");
      if (!leaders.empty() && leaders != leaders_with_daemons(world))
        return violate(world, "rank " + std::to_string(rank) + " takes others for the leaders of their nodes");
      ended = rank;
    }
    std::ranges::sort(ordered);
    if (std::ranges::adjacent_find(ordered) != ordered.end()) return violate(world, "a module is compiled twice");
    if (ended && node(world, *ended).is_success) ++result_.successes;
    if (is_warm(world) && node(world, 0).started.size() > 1) violate(world, "a warm call is more than one reduction");
  }

  static std::vector<int> leaders_after(const Node& node) { return Machine(node.machine).take_leaders(); }

  // A leader that has said that it has no daemon is dealt nothing any more.
  std::vector<int> leaders_with_daemons(const World& world) const {
    std::vector<int> leaders = leaders_;
    std::erase_if(leaders, [&](int rank) { return node(world, static_cast<std::size_t>(rank)).has_no_daemon; });
    return leaders;
  }

  // Has `other` done its part of what `rank` waits for?
  bool is_complete_for(const World& world, std::size_t rank, std::size_t other) const {
    return node(world, other).started.size() >= node(world, rank).started.size();
  }

  bool is_warm(const World& world) const {
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const Node& self = node(world, rank);
      if (!self.is_success || self.behaviour->call != 0 || std::ranges::count(self.behaviour->holds, false) > 0 ||
          self.behaviour->code != node(world, 0).behaviour->code)
        return false;
    }
    return true;
  }

  std::vector<Behaviour> behaviours_;
  Setting setting_;
  std::size_t size_ = 0;
  Broadcasts broadcasts_ = Broadcasts::kBuffered;
  Orders orders_ = Orders::kAll;
  std::vector<int> leaders_;  // the first rank of each node
  bool has_moved_ = false;
  std::deque<Node> nodes_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, std::vector<int>>, std::uint32_t> first_;
  std::unordered_set<World, Hash> seen_;
  std::vector<World> open_;
  Exploration result_;
};

}  // namespace jitc::testing
