#include "client/graph/c_text/scope.h"

#include <algorithm>

namespace jitc::graph::c {
namespace {

constexpr NodeId kNotRead = ~NodeId{0};
constexpr std::int64_t kRemembered = 256;  // elements of an array whose nodes are kept at hand
constexpr std::int64_t kLastIndex = 0x7fffffff;

std::uint64_t element_key(std::uint32_t array, std::int64_t index) {
  return (std::uint64_t{array} << 32) | static_cast<std::uint64_t>(index);
}

}  // namespace

Scope::Scope(Graph& graph, Arithmetic& arithmetic, std::span<const Parameter> parameters,
             std::span<const std::int64_t> reaches)
    : graph_(graph), arithmetic_(arithmetic), reaches_(reaches) {
  blocks_.push_back(0);
  for (const Parameter& parameter : parameters) {
    if (parameter.name.text.empty()) continue;
    if (parameter.is_array) {
      bind(parameter.name, {Symbol::kParameter, parameter.type, static_cast<std::uint32_t>(arrays_.size())});
      arrays_.push_back({.parameter = parameter, .argument = graph_.argument(parameter.name.text), .loads = {}});
      continue;
    }
    const auto index = static_cast<std::uint32_t>(variables_.size());
    arguments_.push_back(graph_.argument(parameter.name.text));
    bind(parameter.name, {Symbol::kVariable, parameter.type, index});
    Variable variable{.type = parameter.type, .is_const = parameter.is_const, .block = 1, .value = {}};
    if (parameter.type != Type::kOther) {
      const NodeId leaf = graph_.leaf(arguments_.back());
      variable.value = parameter.type == Type::kDouble ? arithmetic_.real(leaf)
                                                       : Arithmetic::unknown(leaf, parameter.type == Type::kLong);
      variable.is_set = true;
    }
    variables_.push_back(variable);
  }
}

// ---- variables ----------------------------------------------------------------------------------------------------

void Scope::bind(const Token& name, const Symbol& symbol) {
  ++changes_;
  hidden_.push_back({name, names_.set(name, symbol)});
}

void Scope::close_block() {
  ++changes_;
  for (; hidden_.size() > blocks_.back(); hidden_.pop_back()) names_.set(hidden_.back().name, hidden_.back().symbol);
  blocks_.pop_back();
}

Or<std::uint32_t> Scope::declare(const Token& name, Type type, bool is_const) {
  const Symbol before = names_.find(name);
  const auto depth = static_cast<std::uint32_t>(blocks_.size());
  if ((before.kind == Symbol::kParameter && depth == 1) ||
      (before.kind == Symbol::kVariable && variables_[before.index].block == depth))
    return refused("a name that is declared twice");
  const auto index = static_cast<std::uint32_t>(variables_.size());
  variables_.push_back({.type = type, .is_const = is_const, .block = depth, .value = {}});
  bind(name, {Symbol::kVariable, type, index});
  return index;
}

Or<Value> Scope::read(std::uint32_t variable) const {
  const Variable& known = variables_[variable];
  if (known.type == Type::kOther) return refused("a value whose type is neither double nor int nor long");
  if (!known.is_set) return refused("a variable that may have no value here");
  return known.value;
}

Or<void> Scope::write(std::uint32_t variable, const Value& value, bool is_first) {
  const Variable& known = variables_[variable];
  if (known.is_const && !is_first) return refused("an assignment to what is const");
  Or<Value> converted = arithmetic_.convert(value, known.type);
  if (!converted) return std::unexpected(converted.error());
  converted->is_stored = converted->is_constant;
  set(variable, true, *converted);
  return {};
}

void Scope::set(std::uint32_t variable, bool is_set, const Value& value) {
  Variable& known = variables_[variable];
  if (!known.is_element || reads_mutable_) ++changes_;
  if (!ifs_.empty()) journal_.push_back({variable, known.is_set, known.value});
  known.is_set = is_set;
  known.value = value;
}

// ---- elements of arrays -------------------------------------------------------------------------------------------

Or<Value> Scope::read_element(std::uint32_t index_of_array, std::int64_t index) {
  Array& array = arrays_[index_of_array];
  if (index < 0 || index > kLastIndex) return refused("an index outside of the array");
  reads_mutable_ = reads_mutable_ || !array.parameter.is_const;
  if (array.is_written) {
    if (const auto found = elements_.find(element_key(index_of_array, index)); found != elements_.end())
      return read(found->second);
  }
  const Type type = array.parameter.type;
  if (type != Type::kDouble && type != Type::kInt && type != Type::kLong)
    return refused("an array whose elements are neither double nor int nor long");
  array.is_read = true;
  array.last = std::max(array.last, index);
  note_read(index_of_array, index);
  NodeId node = kNotRead;
  if (index < kRemembered) {
    const auto place = static_cast<std::size_t>(index);
    if (place >= array.loads.size()) array.loads.resize(std::max(place + 1, array.loads.size() * 2), kNotRead);
    if (array.loads[place] == kNotRead)
      array.loads[place] = graph_.leaf(array.argument, static_cast<std::uint32_t>(index));
    node = array.loads[place];
  } else {
    node = graph_.leaf(array.argument, static_cast<std::uint32_t>(index));
  }
  const Value value = type == Type::kDouble ? arithmetic_.real(node) : Arithmetic::unknown(node, type == Type::kLong);
  if (arms_.empty() || reaches_.empty() || index <= reaches_[index_of_array]) return value;
  return arithmetic_.select(path(), value, Arithmetic::integer(0, false));
}

Or<std::uint32_t> Scope::element(std::uint32_t index_of_array, std::int64_t index) {
  Array& array = arrays_[index_of_array];
  if (index < 0 || index > kLastIndex) return refused("an index outside of the array");
  if (array.parameter.is_const) return refused("an assignment to what is const");
  if (array.parameter.type != Type::kDouble) return refused("an assignment to an array of other elements than doubles");
  array.is_written = true;
  const auto next = static_cast<std::uint32_t>(variables_.size());
  const auto [found, is_new] = elements_.try_emplace(element_key(index_of_array, index), next);
  if (is_new) {
    variables_.push_back({.type = Type::kDouble, .is_element = true, .value = {}});
    order_.push_back({index_of_array, static_cast<std::uint32_t>(index), 0});
  }
  return found->second;
}

Or<std::vector<Scope::Stored>> Scope::stores() const {
  std::vector<Stored> result = order_;
  for (Stored& stored : result) {
    const Variable& variable = variables_[elements_.at(element_key(stored.array, stored.index))];
    if (!variable.is_set) return refused("an element is assigned on some paths only");
    stored.value = variable.value.node;
  }
  return result;
}

// ---- arms ---------------------------------------------------------------------------------------------------------

void Scope::note_read(std::uint32_t array, std::int64_t index) {
  auto& reaches = arrays_[array].reaches;
  const std::size_t level = arms_.size();
  if (!reaches.empty() && reaches.back().last >= index) return;
  if (!reaches.empty() && reaches.back().level == level) {
    reaches.back().last = index;
    return;
  }
  reaches.push_back({level, index});
  if (level > 0) arms_.back().arrays.push_back(array);
}

// How far the arm that ends has read which arrays.
std::vector<std::pair<std::uint32_t, std::int64_t>> Scope::take_reads() {
  std::vector<std::pair<std::uint32_t, std::int64_t>> reads;
  for (const std::uint32_t array : arms_.back().arrays) {
    reads.emplace_back(array, arrays_[array].reaches.back().last);
    arrays_[array].reaches.pop_back();
  }
  arms_.back().arrays.clear();
  return reads;
}

void Scope::other_arm() {
  arms_.back().first = take_reads();
  arms_.back().is_second = true;
  arms_.back().path.reset();
}

// What both arms read is read.
void Scope::end_arms() {
  const auto second = take_reads();
  const Arms arms = std::move(arms_.back());
  arms_.pop_back();
  if (!arms.is_second || arms.first.empty() || second.empty()) return;
  std::unordered_map<std::uint32_t, std::int64_t> reads(second.begin(), second.end());
  for (const auto& [array, last] : arms.first)
    if (const auto found = reads.find(array); found != reads.end()) note_read(array, std::min(last, found->second));
}

std::optional<std::vector<std::int64_t>> Scope::reaches() const {
  std::vector<std::int64_t> result(arrays_.size(), -1);
  bool is_beyond = false;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if (!arrays_[i].reaches.empty()) result[i] = arrays_[i].reaches.front().last;
  for (const Stored& stored : order_) result[stored.array] = std::max<std::int64_t>(result[stored.array], stored.index);
  for (std::size_t i = 0; i < arrays_.size(); ++i) is_beyond = is_beyond || arrays_[i].last > result[i];
  return is_beyond ? std::optional(std::move(result)) : std::nullopt;
}

// The conditions under which the present place is reached.
const Value& Scope::path() {
  std::size_t known = arms_.size();
  while (known > 0 && !arms_[known - 1].path) --known;
  for (; known < arms_.size(); ++known) {
    Arms& arms = arms_[known];
    const Value own = arms.is_second ? arithmetic_.negate_truth(arms.condition) : arms.condition;
    arms.path = known == 0 ? own : both(*arms_[known - 1].path, own);
  }
  return *arms_.back().path;
}

// Outer and inner, where one is not part of the other already: then a text that was printed from this graph gives the
// same graph again.
Value Scope::both(const Value& outer, const Value& inner) {
  if (outer.form == Value::kCondition && inner.form == Value::kCondition) {
    if (arithmetic_.implies(inner.node, outer.node)) return inner;
    if (arithmetic_.implies(outer.node, inner.node)) return outer;
  }
  return *arithmetic_.binary(Op::kAnd, outer, inner);
}

// ---- branches -----------------------------------------------------------------------------------------------------

void Scope::begin_if(const Value& condition) {
  ifs_.push_back({condition, journal_.size(), static_cast<std::uint32_t>(variables_.size()), {}});
  begin_arms(condition);
}

void Scope::begin_else() {
  ifs_.back().has_else = true;
  ifs_.back().when_true = take_changes(ifs_.back());
  other_arm();
}

// The variables' values at the end of a branch, each once; they have their values before it again.
std::vector<Scope::State> Scope::take_changes(const Branches& branches) {
  std::vector<State> changes;
  ++changes_;
  seen_.resize(variables_.size());
  ++stamp_;
  for (std::size_t i = branches.journal; i < journal_.size(); ++i) {
    const std::uint32_t index = journal_[i].variable;
    const Variable& variable = variables_[index];
    const bool is_inner = index >= branches.first_inner && !variable.is_element;
    if (is_inner || seen_[index] == stamp_) continue;
    seen_[index] = stamp_;
    changes.push_back({index, variable.is_set, variable.value});
  }
  for (; journal_.size() > branches.journal; journal_.pop_back()) {
    const State& before = journal_.back();
    variables_[before.variable].is_set = before.is_set;
    variables_[before.variable].value = before.value;
  }
  work_ += changes.size();
  return changes;
}

Or<void> Scope::end_if() {
  Branches branches = std::move(ifs_.back());
  std::vector<State> when_false;
  if (branches.has_else) {
    when_false = take_changes(branches);
  } else {
    branches.when_true = take_changes(branches);
  }
  ifs_.pop_back();
  end_arms();
  // Those that only the other branch changed follow, with what they were before in this one.
  seen_.resize(variables_.size());
  ++stamp_;
  for (const State& state : branches.when_true) seen_[state.variable] = stamp_;
  std::vector<State> when_true = std::move(branches.when_true);
  for (const State& state : when_false)
    if (seen_[state.variable] != stamp_)
      when_true.push_back({state.variable, variables_[state.variable].is_set, variables_[state.variable].value});
  std::unordered_map<std::uint32_t, const State*> others;
  for (const State& state : when_false) others.emplace(state.variable, &state);
  for (const State& state : when_true) {
    const Variable& variable = variables_[state.variable];
    const auto found = others.find(state.variable);
    const State other = found != others.end() ? *found->second : State{state.variable, variable.is_set, variable.value};
    if (branches.condition.form == Value::kConstant) {
      const State& taken = branches.condition.low != 0 ? state : other;
      set(state.variable, taken.is_set, taken.value);
    } else if (!state.is_set || !other.is_set) {
      set(state.variable, false, variable.value);
    } else {
      const Value merged = arithmetic_.select(branches.condition, state.value, other.value);
      const Or<Value> converted = arithmetic_.convert(merged, variable.type);
      if (!converted) return std::unexpected(converted.error());
      set(state.variable, true, *converted);
    }
  }
  return {};
}

}  // namespace jitc::graph::c
