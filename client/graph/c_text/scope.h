// What a function's names stand for while its statements are read in order: parameters, local variables, elements of
// the arrays that it writes. An if is followed into both branches; afterwards each variable that one of them changed
// selects between the two values.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/graph/c_text/symbols.h"
#include "client/graph/c_text/value.h"

namespace jitc::graph::c {

struct Parameter {
  Token name;  // no text: unnamed
  Type type = Type::kOther;
  bool is_array = false;
  bool is_const = false;  // an array's elements, a scalar itself
  bool is_restrict = false;
};

// An array argument and what is done with it.
struct Array {
  Parameter parameter;
  ArgumentId argument = 0;
  std::vector<NodeId> loads;  // of the first elements, where they were read
  bool is_read = false;       // as it was when the function was called
  bool is_written = false;
  std::int64_t last = -1;  // element that is read
  // How far it is certainly read in the arms that are open, outermost first; each goes further than the one before.
  struct Reach {
    std::size_t level = 0;  // 0: on every path
    std::int64_t last = -1;
  };
  std::vector<Reach> reaches;
};

class Scope {
 public:
  // `reaches`: by array, the last element that surely exists, as reaches() of a first reading says. What lies beyond it
  // is read under the conditions that the text reads it under: an array may be absent, or shorter, where they do not
  // hold. Empty: nothing is known yet.
  Scope(Graph& graph, Arithmetic& arithmetic, std::span<const Parameter> parameters,
        std::span<const std::int64_t> reaches);

  Symbol find(const Token& identifier) const { return names_.find(identifier); }
  const Array& array(std::uint32_t index) const { return arrays_[index]; }
  std::span<const Array> arrays() const { return arrays_; }
  // The scalar parameters are variables from the first on; the arguments that are their first values.
  ArgumentId argument_of(std::uint32_t parameter) const { return arguments_[parameter]; }

  // ---- variables ----
  void open_block() { blocks_.push_back(hidden_.size()); }
  void close_block();
  Or<std::uint32_t> declare(const Token& name, Type type, bool is_const);
  Or<Value> read(std::uint32_t variable) const;
  Type type_of(std::uint32_t variable) const { return variables_[variable].type; }
  // The first value of a declared variable may be given to a const one.
  Or<void> write(std::uint32_t variable, const Value& value, bool is_first);

  // ---- elements of arrays ----
  Or<Value> read_element(std::uint32_t array, std::int64_t index);
  // The variable that stands for an element from now on.
  Or<std::uint32_t> element(std::uint32_t array, std::int64_t index);
  struct Stored {
    std::uint32_t array = 0;
    std::uint32_t index = 0;
    NodeId value = 0;
  };
  // All elements that were written, in the order of their first assignments.
  Or<std::vector<Stored>> stores() const;

  // ---- what is not always evaluated ----
  void begin_arms(const Value& condition) {
    arms_.push_back({.condition = condition});
    has_arms_ = true;
  }
  bool has_arms() const { return has_arms_; }
  bool is_in_arm() const { return !arms_.empty(); }
  void other_arm();
  void end_arms();
  void begin_if(const Value& condition);
  void begin_else();
  Or<void> end_if();
  // The last elements that surely exist, if some other element is read: then the text is to be read again.
  std::optional<std::vector<std::int64_t>> reaches() const;
  std::size_t work() const { return work_; }
  // Rises whenever a name or an element may stand for something else than before.
  std::size_t changes() const { return changes_; }

 private:
  struct Variable {
    Type type = Type::kDouble;
    bool is_const = false;
    bool is_set = false;
    bool is_element = false;
    std::uint32_t block = 0;  // how many blocks enclose it
    Value value;
  };
  struct State {
    std::uint32_t variable = 0;
    bool is_set = false;
    Value value;
  };
  struct Branches {
    Value condition;
    std::size_t journal = 0;        // where its changes begin
    std::uint32_t first_inner = 0;  // variables from here on are its own
    std::vector<State> when_true;
    bool has_else = false;
  };
  // The two arms of a condition; of && and || there is one.
  struct Arms {
    Value condition;
    bool is_second = false;
    std::vector<std::uint32_t> arrays;  // that this arm certainly reads, further than what encloses it
    std::vector<std::pair<std::uint32_t, std::int64_t>> first;  // what the first arm did
    std::optional<Value> path;                                  // this and all enclosing conditions
  };
  struct Hidden {
    Token name;
    Symbol symbol;
  };
  void note_read(std::uint32_t array, std::int64_t index);
  std::vector<std::pair<std::uint32_t, std::int64_t>> take_reads();
  const Value& path();
  Value both(const Value& outer, const Value& inner);
  void bind(const Token& name, const Symbol& symbol);
  void set(std::uint32_t variable, bool is_set, const Value& value);
  std::vector<State> take_changes(const Branches& branches);

  Graph& graph_;
  Arithmetic& arithmetic_;
  SymbolTable names_;
  std::vector<Array> arrays_;
  std::span<const std::int64_t> reaches_;
  std::vector<ArgumentId> arguments_;
  std::vector<Variable> variables_;
  std::unordered_map<std::uint64_t, std::uint32_t> elements_;
  std::vector<Stored> order_;  // of the elements' first assignments
  std::vector<Hidden> hidden_;
  std::vector<std::size_t> blocks_;
  std::vector<State> journal_;  // values before changes inside of an if
  std::vector<Branches> ifs_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
  std::vector<Arms> arms_;
  bool has_arms_ = false;
  std::size_t work_ = 0;
  bool reads_mutable_ = false;  // an element that may be written
  std::size_t changes_ = 0;
};

}  // namespace jitc::graph::c
