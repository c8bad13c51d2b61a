// One rank of the gate's explorer: the machine, what it has been told so far, and what the world may do to it next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/gate/protocol.h"

namespace jitc::testing {

// What a rank brings to the call and what befalls it.
struct Behaviour {
  std::string name;
  std::vector<bool> holds = {false};  // by module of the call
  std::uint8_t code = 0;              // ranks with other numbers hold unlike code
  bool has_request = true;
  int call = 0;              // ranks with other numbers differ
  bool is_adoptable = true;  // the difference is one of text or manifest, not a skipped call
  bool is_strict = true;
  bool can_load = true;
  bool has_memory = true;  // for the artifact
  bool may_stop = false;   // for good, at any point
  std::uint64_t node = 1;
  common::IsaMask isa = 0xf;  // what it holds was made for this CPU
};

// What is the same for all ranks.
struct Setting {
  int beats = 1;                          // so many may occur on a rank
  std::vector<bool> is_native = {false};  // by module: made for the CPU that compiles it, not for what all have
  bool knows_leaders = false;             // an earlier call has learnt them
};

// Of the communicator, as one rank starts it.
struct StartedOperation {
  enum class Kind { kReduce, kBroadcast, kSized };
  Kind kind;
  int from;
  std::size_t size;
  gate::Words words;
  std::string bytes;
  bool matches(const StartedOperation& other) const {
    return kind == other.kind && from == other.from && size == other.size;
  }
};

// After a history of its own.
template <class Machine>
struct ExploredRank {
  // What may happen next, and the machine's answer.
  struct Choice {
    std::string event;
    std::function<gate::Action(ExploredRank&)> happen;
  };

  std::size_t rank;
  const Behaviour* behaviour;
  const Setting* setting;
  Machine machine;
  gate::Action action;
  std::vector<StartedOperation> started;
  int beats = 0;
  common::IsaMask common_isa = 0;       // by the last order
  std::vector<std::size_t> looking_up;  // modules that the store is asked for by it
  std::vector<std::size_t> found;       // by an order to look up alone
  std::vector<std::size_t> ordered;     // modules whose compile has begun, or begins when the store has none
  std::vector<common::Digest> modules;  // the keys of what it has
  bool has_no_daemon = false;           // and has said so
  std::optional<std::string> outcome;
  bool is_success = false;
  std::string fault;  // what no rank may do

  static gate::View view_of(const Behaviour& behaviour, const Setting& setting, int call) {
    gate::View view;
    view.is_strict = behaviour.is_strict;
    view.isa = behaviour.isa;
    if (!behaviour.has_request) {
      view.error = common::Error{common::ErrorKind::kUsage, "no request on " + behaviour.name, {}, {}};
      return view;
    }
    view.call.bytes[0] = static_cast<std::uint8_t>(call + 1);
    for (std::size_t i = 0; i < behaviour.holds.size(); ++i)
      view.modules.push_back({"module" + std::to_string(i), behaviour.holds[i], setting.is_native[i],
                              behaviour.holds[i] ? held_key(behaviour, i) : common::Digest()});
    return view;
  }

  static common::Digest held_key(const Behaviour& behaviour, std::size_t module) {
    common::Digest key;
    key.bytes = {static_cast<std::uint8_t>(module + 1), 0, static_cast<std::uint8_t>(gate::Origin::kRank),
                 static_cast<std::uint8_t>(behaviour.isa), behaviour.code};
    return key;
  }

  // As the call begins.
  void take_held() {
    for (std::size_t i = 0; i < behaviour->holds.size(); ++i)
      modules.push_back(behaviour->holds[i] ? held_key(*behaviour, i) : common::Digest());
  }

  // What the action does at once: operations start, work begins, a result is there.
  void take(gate::Action next) {
    action = std::move(next);
    std::visit([this](const auto& todo) { this->start(todo); }, action);
  }

  bool is_receiving() const {
    return std::holds_alternative<gate::action::Broadcast>(action) ||
           std::holds_alternative<gate::action::Receive>(action);
  }

  // What concerns this rank alone, and has one outcome.
  gate::Action act_alone() {
    using namespace gate::action;
    if (std::holds_alternative<Pack>(action)) return machine.packed(std::to_string(behaviour->call));
    if (const auto* compare = std::get_if<Compare>(&action)) {
      const int root = std::stoi(compare->roots);
      if (root != behaviour->call && (compare->is_strict || !behaviour->is_adoptable))
        return machine.compared(common::fail(common::ErrorKind::kDivergent, "differs on " + behaviour->name));
      return machine.compared(view_of(*behaviour, *setting, root));
    }
    if (const auto* todo = std::get_if<Load>(&action)) return machine.loaded(load(*todo));
    return machine.done();
  }

  // The leader's look-ups and compiles may end in any way, and a beat may be due before.
  std::vector<Choice> choices() const {
    const auto& wait = std::get<gate::action::Await>(action);
    std::vector<Choice> all;
    if (beats < setting->beats)
      all.push_back({"beat", [](ExploredRank& self) {
                       ++self.beats;
                       return self.machine.beat_due({});
                     }});
    if (wait.is_look_up)
      add_look_ups(all);
    else
      add_results(all, wait.module);
    return all;
  }

 private:
  using Kind = StartedOperation::Kind;

  static bool is_among(const std::vector<std::size_t>& modules, std::size_t module) {
    return std::ranges::find(modules, module) != modules.end();
  }

  void start(const auto&) {}
  void start(const gate::action::Reduce& reduce) {
    started.push_back({Kind::kReduce, 0, reduce.words.size(), reduce.words, {}});
  }
  void start(const gate::action::Broadcast& cast) {
    started.push_back({cast.is_sized ? Kind::kSized : Kind::kBroadcast,
                       cast.from,
                       cast.is_sized ? 0 : cast.bytes.size(),
                       {},
                       cast.bytes});
  }
  void start(const gate::action::Receive& receive) {
    started.push_back({Kind::kBroadcast, receive.from, receive.size, {}, {}});
  }
  void start(const gate::action::Post& post) {
    started.push_back({Kind::kBroadcast, static_cast<int>(rank), post.bytes.size(), {}, post.bytes});
  }
  void start(const gate::action::Begin& begin) {
    common_isa = begin.common_isa;
    looking_up = begin.work == gate::Work::kCompile ? std::vector<std::size_t>() : begin.modules;
    if (begin.work == gate::Work::kLookUp) return;
    ordered.insert(ordered.end(), begin.modules.begin(), begin.modules.end());
    for (const std::size_t module : begin.modules)
      if (rank != 0 && setting->is_native[module]) fault = "makes native code, though it is not the root";
  }
  void start(const gate::action::Await& wait) {
    if (wait.is_look_up ? looking_up.empty() : !is_among(found, wait.module) && !is_among(ordered, wait.module))
      fault = "waits for module " + std::to_string(wait.module) + ", which it has not begun to get";
  }
  void start(const gate::action::Finish& finish) {
    is_success = !finish.failure;
    outcome = "modules";
    for (const common::Digest& key : modules) *outcome += " " + key.hex().substr(0, 10);
    if (!finish.failure) return;
    outcome = common::to_json(finish.failure->error);
    for (const int failing : finish.failure->ranks) *outcome += " " + std::to_string(failing);
  }

  std::optional<common::Error> load(const gate::action::Load& todo) {
    const common::IsaMask needed = todo.last.key.bytes[3];
    if (modules[todo.module] != todo.last.key) {
      if (needed & ~behaviour->isa) {
        if (!setting->is_native[todo.module]) fault = "gets code that its CPU cannot run";
        return common::Error{common::ErrorKind::kRefused, "made for another CPU", {}, {}};
      }
      if (!behaviour->can_load || !todo.bytes)
        return common::Error{common::ErrorKind::kNotLoaded, "cannot load", {}, {}};
    }
    modules[todo.module] = todo.last.key;
    return {};
  }

  // What this rank holds is of use to all others.
  bool serves(std::size_t module) const { return behaviour->holds[module] && !(behaviour->isa & ~common_isa); }

  gate::Obtained artifact(gate::Origin origin, std::size_t module) const {
    gate::Obtained obtained;
    obtained.origin = origin;
    obtained.bytes = "artifact";
    if (origin == gate::Origin::kRank) {
      obtained.key = held_key(*behaviour, module);
      return obtained;
    }
    obtained.key.bytes[0] = static_cast<std::uint8_t>(module + 1);
    obtained.key.bytes[1] = static_cast<std::uint8_t>(rank + 1);
    obtained.key.bytes[2] = static_cast<std::uint8_t>(origin);
    obtained.key.bytes[3] = static_cast<std::uint8_t>(setting->is_native[module] ? behaviour->isa : common_isa);
    return obtained;
  }

  static std::unexpected<common::Error> failed(const std::string& what, std::size_t module) {
    return common::fail(common::ErrorKind::kInternal, what + " of module " + std::to_string(module));
  }

  void add_look_ups(std::vector<Choice>& all) const {
    all.push_back({"hung store", [](ExploredRank& self) {
                     return self.machine.looked_up(failed("look-up", self.looking_up.front()), 0);
                   }});
    for (unsigned set = 0; set < 1U << looking_up.size(); ++set) {
      std::vector<bool> flags;
      for (std::size_t i = 0; i < looking_up.size(); ++i) flags.push_back((set >> i & 1) != 0);
      bool may_be = true;  // what serves is always found
      for (std::size_t i = 0; i < looking_up.size(); ++i) may_be = may_be && (flags[i] || !serves(looking_up[i]));
      if (!may_be) continue;
      all.push_back({"found " + std::to_string(set), [flags = std::move(flags)](ExploredRank& self) {
                       for (std::size_t i = 0; i < flags.size(); ++i)
                         if (flags[i]) self.found.push_back(self.looking_up[i]);
                       return self.machine.looked_up(flags, 0);
                     }});
    }
  }

  void add_results(std::vector<Choice>& all, std::size_t module) const {
    const auto obtain = [&](std::string event, gate::Origin origin) {
      all.push_back({std::move(event), [module, origin](ExploredRank& self) {
                       return self.machine.obtained(self.artifact(origin, module), 0);
                     }});
    };
    const bool is_found = is_among(found, module);
    if (is_found || is_among(looking_up, module)) {
      if (serves(module)) return obtain("held", gate::Origin::kRank);
      obtain("stored", gate::Origin::kStore);
    }
    if (is_found) return;
    obtain("compiled", gate::Origin::kCompiled);
    if (rank != 0)
      all.push_back({"no daemon", [module](ExploredRank& self) {
                       std::erase(self.ordered, module);
                       self.has_no_daemon = true;
                       return self.machine.obtained(common::fail(common::ErrorKind::kUnreachable, "no daemon"), 0);
                     }});
    all.push_back(
        {"failed", [module](ExploredRank& self) { return self.machine.obtained(failed("compile", module), 0); }});
  }
};

}  // namespace jitc::testing
