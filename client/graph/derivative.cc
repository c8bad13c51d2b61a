#include "client/graph/derivative.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "client/graph/builder.h"
#include "client/graph/rows.h"
#include "client/graph/slope.h"

namespace jitc::graph {
namespace {

std::string label_of(const TangentOptions& options, std::size_t function) {
  return options.label ? options.label(function) : "function " + std::to_string(function);
}

std::string origin_of(const TangentOptions& options, NodeId id) {
  return options.origin ? options.origin(id) : "node " + std::to_string(id);
}

class Sweep : private Builder {
 public:
  Sweep(Graph& graph, std::span<const NodeId> functions, std::span<const NodeId> directions,
        const TangentOptions& options)
      : Builder(graph),
        functions_(functions),
        directions_(directions),
        options_(options),
        frozen_(options.frozen.begin(), options.frozen.end()),
        end_(functions.empty() ? 0 : *std::ranges::max_element(functions) + 1),
        last_users_(end_),
        rows_(end_) {}

  common::Result<std::vector<NodeId>> run();

 private:
  static constexpr NodeId kUnused = 0;  // node 0 uses nothing
  static constexpr NodeId kFunction = kNone;

  std::span<const NodeId> differentiated(NodeId id) const;
  void find_last_users();
  void start_directions();
  void release_arguments(NodeId id);
  common::Result<void> differentiate(NodeId id);

  // Rows: each decides for every direction by itself, so that one direction alone gives the same nodes.
  void scale(NodeId id, NodeId argument, NodeId factor);
  template <class Combine>
  void merge(NodeId id, NodeId x, NodeId y, Combine combine);
  void unary_row(NodeId id, Op op, NodeId x);
  void binary_row(NodeId id, Op op, NodeId x, NodeId y);
  void quotient_row(NodeId id, NodeId x, NodeId y);
  void power_row(NodeId id, NodeId base, NodeId exponent);
  void absolute_row(NodeId id, NodeId x);
  void extremum_row(NodeId id, bool is_max, NodeId x, NodeId y);
  void extremum_row(NodeId id);
  common::Result<void> call_row(NodeId id);

  // What several arguments contribute, sorted by direction, then by argument.
  struct Part {
    std::uint32_t direction = 0;
    std::uint32_t argument = 0;
    Term term;
  };
  std::vector<Part>& gather(NodeId id);
  template <class Combine>
  void for_each_direction(NodeId id, Combine combine);

  NodeId choose(NodeId condition, NodeId when_true, NodeId when_false);
  std::size_t function_using(NodeId id) const;

  // Of one direction.
  Term scaled(NodeId factor, Term term);
  Term joined(Op op, Term x, Term y);  // x + y or x - y
  NodeId whole(Term term);             // kNone for zero
  NodeId factor_of(Term term) { return term.factor == kNone ? number(1.0) : term.factor; }

  void add(std::uint32_t direction, Term term) {
    if (term.value != kNone && !is_zero(term.value) && !is_zero(term.factor)) rows_.add({direction, term});
  }
  bool is_zero(NodeId id) const { return id != kNone && graph_.is_number(id) && graph_.number_of(id) == 0.0; }
  bool varies(NodeId id) const { return rows_[id].count > 0; }
  bool is_frozen(NodeId id) const { return options_.freeze_all || frozen_.contains(graph_.name(id)); }

  NodeId both(NodeId x, NodeId y) { return graph_.binary(Op::kAnd, x, y); }
  NodeId either(NodeId x, NodeId y) { return x == kNone ? y : graph_.binary(Op::kOr, x, y); }
  // x * dx + y * dy, where dx or dy may be zero; the factors are made only where they are needed.
  template <class X, class Y>
  Term weighted(X x, Term dx, Y y, Term dy) {
    if (dx.value != kNone) dx = scaled(x(), dx);
    if (dy.value != kNone) dy = scaled(y(), dy);
    return joined(Op::kAdd, dx, dy);
  }

  std::span<const NodeId> functions_;
  std::span<const NodeId> directions_;
  const TangentOptions& options_;
  std::unordered_set<std::string_view> frozen_;
  NodeId end_;
  std::vector<NodeId> last_users_;  // kUnused where no function needs the node's derivatives
  Rows rows_;
  std::vector<Part> parts_;
  std::vector<NodeId> arguments_;
};

// ---- the sweep ------------------------------------------------------------------------------------------------------

common::Result<std::vector<NodeId>> Sweep::run() {
  find_last_users();
  start_directions();
  for (NodeId id = 0; id < end_; ++id) {
    if (last_users_[id] == kUnused) continue;
    if (auto done = differentiate(id); !done) return std::unexpected(std::move(done).error());
    release_arguments(id);
  }
  if (rows_.is_full()) {
    return common::fail(common::ErrorKind::kUsage, "more derivatives at once than 32 bits can count", {},
                        "differentiate fewer functions or with respect to fewer directions at a time");
  }
  std::vector<NodeId> result(functions_.size() * directions_.size(), number(0.0));
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    const Row row = rows_[functions_[i]];
    for (std::uint32_t k = 0; k < row.count; ++k) {
      const Entry entry = rows_.entry(row, k);
      result[i * directions_.size() + entry.direction] = whole(entry.term);
    }
  }
  return result;
}

// The arguments whose derivatives the node's own are made of.
std::span<const NodeId> Sweep::differentiated(NodeId id) const {
  const Op op = graph_[id].op;
  switch (op) {
    case Op::kFloor:
    case Op::kCeil:
    case Op::kSign:
    case Op::kHeaviside:
      return {};
    case Op::kNamed:
      return is_frozen(id) ? std::span<const NodeId>() : graph_.arguments(id);
    case Op::kSelect:
      return graph_.arguments(id).subspan(1);
    default:
      return is_condition(op) ? std::span<const NodeId>() : graph_.arguments(id);
  }
}

void Sweep::find_last_users() {
  for (const NodeId function : functions_) last_users_[function] = kFunction;
  // Users come after what they use: going down, the first user that is met is the last one.
  for (NodeId id = end_; id-- > 0;) {
    if (last_users_[id] == kUnused) continue;
    for (const NodeId argument : differentiated(id)) {
      if (last_users_[argument] == kUnused) last_users_[argument] = id;
    }
  }
}

void Sweep::start_directions() {
  std::vector<std::pair<NodeId, std::uint32_t>> starts;  // leaf and direction
  for (std::uint32_t j = 0; j < directions_.size(); ++j) {
    if (directions_[j] < end_) starts.emplace_back(directions_[j], j);
  }
  std::ranges::sort(starts);
  const NodeId one = number(1.0);
  for (std::size_t i = 0; i < starts.size();) {
    const NodeId leaf = starts[i].first;
    rows_.begin();
    for (; i < starts.size() && starts[i].first == leaf; ++i) rows_.add({starts[i].second, {one}});
    rows_.end(leaf);
  }
}

void Sweep::release_arguments(NodeId id) {
  for (const NodeId argument : differentiated(id)) {
    if (last_users_[argument] == id) rows_.drop(argument);
  }
}

common::Result<void> Sweep::differentiate(NodeId id) {
  if (differentiated(id).empty()) return {};
  const Node node = graph_[id];
  switch (node.op) {
    case Op::kNamed:
      scale(id, node.args[0], number(1.0));
      return {};
    case Op::kSelect:
      merge(id, node.args[1], node.args[2],
            [&](Term dx, Term dy) { return Term{choose(node.args[0], whole(dx), whole(dy))}; });
      return {};
    case Op::kMax:
    case Op::kMin:
      if (node.args[1] == 2) {
        const auto arguments = graph_.arguments(id);
        extremum_row(id, node.op == Op::kMax, arguments[0], arguments[1]);
      } else {
        extremum_row(id);
      }
      return {};
    case Op::kCall:
      return call_row(id);
    default:
      break;
  }
  if (graph_.arguments(id).size() == 1) {
    unary_row(id, node.op, node.args[0]);
  } else {
    binary_row(id, node.op, node.args[0], node.args[1]);
  }
  return {};
}

// ---- rows -----------------------------------------------------------------------------------------------------------

Term Sweep::scaled(NodeId factor, Term term) {
  if (term.factor != kNone) return {term.value, product(factor, term.factor)};
  if (graph_.is_number(term.value)) return {product(factor, term.value)};
  return graph_.is_number(factor, 1.0) ? term : Term{term.value, factor};
}

Term Sweep::joined(Op op, Term x, Term y) {
  if (y.value == kNone) return x;
  if (x.value == kNone) return op == Op::kSub ? scaled(number(-1.0), y) : y;
  if (x.value == y.value && (x.factor != kNone || y.factor != kNone)) {
    const NodeId left = factor_of(x);
    return {x.value, graph_.binary(op, left, factor_of(y))};
  }
  const NodeId left = whole(x);
  return {graph_.binary(op, left, whole(y))};
}

NodeId Sweep::whole(Term term) { return term.factor == kNone ? term.value : product(term.factor, term.value); }

void Sweep::scale(NodeId id, NodeId argument, NodeId factor) {
  const Row row = rows_[argument];
  rows_.begin();
  for (std::uint32_t i = 0; i < row.count; ++i) {
    const Entry entry = rows_.entry(row, i);
    add(entry.direction, scaled(factor, entry.term));
  }
  rows_.end(id);
}

// combine(dx, dy) gives the derivative.
template <class Combine>
void Sweep::merge(NodeId id, NodeId x, NodeId y, Combine combine) {
  const Row left = rows_[x];
  const Row right = rows_[y];
  rows_.begin();
  for (std::uint32_t i = 0, j = 0; i < left.count || j < right.count;) {
    const Entry a = i < left.count ? rows_.entry(left, i) : Entry{kNone, {}};
    const Entry b = j < right.count ? rows_.entry(right, j) : Entry{kNone, {}};
    const std::uint32_t direction = std::min(a.direction, b.direction);
    const Term dx = a.direction == direction ? a.term : Term{};
    const Term dy = b.direction == direction ? b.term : Term{};
    i += dx.value == kNone ? 0 : 1;
    j += dy.value == kNone ? 0 : 1;
    add(direction, combine(dx, dy));
  }
  rows_.end(id);
}

void Sweep::unary_row(NodeId id, Op op, NodeId x) {
  if (!varies(x)) return;
  if (op == Op::kAbs) return absolute_row(id, x);
  scale(id, x, slope(graph_, op, id, x));
}

void Sweep::binary_row(NodeId id, Op op, NodeId x, NodeId y) {
  if (!varies(x) && !varies(y)) return;
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
      return merge(id, x, y, [&](Term dx, Term dy) { return joined(op, dx, dy); });
    case Op::kMul:
      if (x == y) return scale(id, x, sum(x, x));
      return merge(id, x, y, [&](Term dx, Term dy) { return weighted([&] { return y; }, dx, [&] { return x; }, dy); });
    case Op::kDiv:
      return quotient_row(id, x, y);
    case Op::kPow:
      return power_row(id, x, y);
    case Op::kAtan2:
      return merge(id, x, y, [&](Term dx, Term dy) {
        const NodeId square = sum(product(x, x), product(y, y));
        return weighted([&] { return quotient(y, square); }, dx, [&] { return neg(quotient(x, square)); }, dy);
      });
    case Op::kHypot:
      return merge(id, x, y, [&](Term dx, Term dy) {
        return weighted([&] { return quotient(x, id); }, dx, [&] { return quotient(y, id); }, dy);
      });
    case Op::kFmod:
      // x - n * y, n = (x - fmod(x, y)) / y but for a rounding.
      return merge(id, x, y, [&](Term dx, Term dy) {
        if (dy.value != kNone) dy = scaled(quotient(difference(x, id), y), dy);
        return joined(Op::kSub, dx, dy);
      });
    default:  // kFmax, kFmin
      return extremum_row(id, op == Op::kFmax, x, y);
  }
}

// (dx - q * dy) / y of the quotient q.
void Sweep::quotient_row(NodeId id, NodeId x, NodeId y) {
  const NodeId reciprocal = inverse(y);
  merge(id, x, y, [&](Term dx, Term dy) {
    if (dx.value != kNone) dx = scaled(reciprocal, dx);
    if (dy.value != kNone) dy = scaled(product(id, reciprocal), dy);
    return joined(Op::kSub, dx, dy);
  });
}

void Sweep::power_row(NodeId id, NodeId base, NodeId exponent) {
  if (graph_.is_number(exponent) && graph_.number_of(exponent) == 0.0) return;
  merge(id, base, exponent, [&](Term dx, Term dy) {
    return weighted([&] { return slope_of_power(graph_, id, base, exponent); }, dx,
                    [&] { return product(id, graph_.unary(Op::kLog, base)); }, dy);
  });
}

void Sweep::absolute_row(NodeId id, NodeId x) {
  merge(id, x, x, [&](Term term, Term) {
    const NodeId dx = whole(term);
    if (graph_.is_number(dx)) return Term{product(graph_.unary(Op::kSign, x), dx)};
    const NodeId zero = number(0.0);
    const NodeId negative = choose(graph_.binary(Op::kLt, x, zero), neg(dx), kNone);
    return Term{choose(graph_.binary(Op::kGt, x, zero), dx, negative)};
  });
}

// As the value is chosen (see emit.h): x where it is larger or y is NaN, else y. A weight of 1 or 1/2 is a factor of
// the whole row; what lost is still replaced by 0, not multiplied.
void Sweep::extremum_row(NodeId id, bool is_max, NodeId x, NodeId y) {
  const auto or_y_is_nan = [&](NodeId condition) {
    return graph_.is_number(y) ? condition : either(condition, graph_.binary(Op::kNe, y, y));
  };
  const NodeId half = number(0.5);
  const NodeId one = number(1.0);
  const NodeId zero = number(0.0);
  const auto alone = [&](NodeId weight, NodeId kept, NodeId slope) {
    return graph_.is_number(slope) ? Term{product(weight, slope)} : Term{kept, weight};
  };
  merge(id, x, y, [&](Term left, Term right) {
    const NodeId dx = whole(left);
    const NodeId dy = whole(right);
    if (dx == dy) return Term{dx};
    const NodeId not_lost = or_y_is_nan(graph_.binary(is_max ? Op::kGe : Op::kLe, x, y));
    if (options_.ties == Ties::kFirst) return Term{choose(not_lost, dx, dy)};
    const NodeId wins = or_y_is_nan(graph_.binary(is_max ? Op::kGt : Op::kLt, x, y));
    const NodeId tied = graph_.binary(Op::kEq, x, y);
    if (dy == kNone) return alone(choose(wins, one, choose(tied, half, zero)), choose(not_lost, dx, kNone), dx);
    if (dx == kNone) return alone(choose(wins, zero, choose(tied, half, one)), choose(wins, kNone, dy), dy);
    return Term{choose(wins, dx, choose(tied, product(sum(dx, dy), half), dy))};
  });
}

// Of three or more arguments. Those equal to the result win; when several do, each counts one half. The same argument
// given twice is one.
void Sweep::extremum_row(NodeId id) {
  const auto list = graph_.arguments(id);
  arguments_.assign(list.begin(), list.end());
  if (std::ranges::none_of(arguments_, [&](NodeId x) { return varies(x); })) return;
  const bool is_first = options_.ties == Ties::kFirst;
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> wins(arguments_.size(), kNone);  // by argument; none where it was given before
  NodeId any = kNone;
  NodeId tied = kNone;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (!seen.insert(arguments_[i]).second) continue;
    const NodeId win = graph_.binary(Op::kEq, arguments_[i], id);
    wins[i] = win;
    if (any != kNone && is_first) wins[i] = both(win, graph_.unary(Op::kNot, any));
    if (any != kNone && !is_first) tied = either(tied, both(any, win));
    any = either(any, win);
  }
  for_each_direction(id, [&](std::span<const Part> parts) {
    NodeId total = kNone;
    for (const Part& part : parts) {
      if (wins[part.argument] == kNone) continue;
      const NodeId term = choose(wins[part.argument], whole(part.term), kNone);
      total = total == kNone ? term : sum(total, term);
    }
    return Term{tied == kNone ? total : choose(tied, product(total, number(0.5)), total)};
  });
}

common::Result<void> Sweep::call_row(NodeId id) {
  const FunctionId called = graph_[id].args[2];
  const auto list = graph_.arguments(id);
  arguments_.assign(list.begin(), list.end());
  std::vector<NodeId> factors(arguments_.size(), kNone);
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (!varies(arguments_[i])) continue;
    const Function& function = graph_.function(called);
    const auto partial = i < function.partials.size() ? function.partials[i] : std::nullopt;
    if (!partial || *partial >= graph_.function_count()) {
      return common::fail(common::ErrorKind::kUsage,
                          "call of " + function.name + ": its derivative with respect to argument " +
                              std::to_string(i) + " is not known",
                          label_of(options_, function_using(id)) + ", " + origin_of(options_, id),
                          "declare the partial derivative, or hold the call fixed under a name");
    }
    factors[i] = graph_.call(*partial, arguments_);
  }
  for_each_direction(id, [&](std::span<const Part> parts) {
    Term total;
    for (const Part& part : parts) total = joined(Op::kAdd, total, scaled(factors[part.argument], part.term));
    return total;
  });
  return {};
}

std::vector<Sweep::Part>& Sweep::gather(NodeId id) {
  parts_.clear();
  const auto list = graph_.arguments(id);
  for (std::uint32_t argument = 0; argument < list.size(); ++argument) {
    const Row row = rows_[list[argument]];
    for (std::uint32_t k = 0; k < row.count; ++k) {
      const Entry entry = rows_.entry(row, k);
      parts_.push_back({entry.direction, argument, entry.term});
    }
  }
  std::ranges::sort(parts_, {}, [](const Part& part) { return std::pair(part.direction, part.argument); });
  return parts_;
}

template <class Combine>
void Sweep::for_each_direction(NodeId id, Combine combine) {
  const std::span<const Part> parts = gather(id);
  rows_.begin();
  for (std::size_t first = 0; first < parts.size();) {
    std::size_t last = first;
    while (last < parts.size() && parts[last].direction == parts[first].direction) ++last;
    add(parts[first].direction, combine(parts.subspan(first, last - first)));
    first = last;
  }
  rows_.end(id);
}

NodeId Sweep::choose(NodeId condition, NodeId when_true, NodeId when_false) {
  if (when_true == kNone && when_false == kNone) return kNone;
  if (when_true == kNone) when_true = number(0.0);
  if (when_false == kNone) when_false = number(0.0);
  return when_true == when_false ? when_true : graph_.select(condition, when_true, when_false);
}

// The first function whose derivatives are made of the node's.
std::size_t Sweep::function_using(NodeId id) const {
  std::vector<bool> uses(end_);
  uses[id] = true;
  for (NodeId user = id + 1; user < end_; ++user) {
    uses[user] = std::ranges::any_of(differentiated(user), [&](NodeId argument) { return uses[argument]; });
  }
  const auto found = std::ranges::find_if(functions_, [&](NodeId function) { return uses[function]; });
  return static_cast<std::size_t>(found - functions_.begin());
}

common::Result<void> check(const Graph& graph, std::span<const NodeId> functions, std::span<const NodeId> directions,
                           const TangentOptions& options) {
  if (auto fits = check_capacity(graph); !fits) return fits;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (functions[i] < graph.size() && !is_condition(graph[functions[i]].op)) continue;
    return common::fail(common::ErrorKind::kUsage, "only a value has derivatives, this is a condition or no node",
                        label_of(options, i));
  }
  for (std::size_t j = 0; j < directions.size(); ++j) {
    if (directions[j] < graph.size() && graph[directions[j]].op == Op::kLeaf) continue;
    return common::fail(common::ErrorKind::kUsage, "derivatives are taken with respect to leaves only",
                        "direction " + std::to_string(j));
  }
  return {};
}

}  // namespace

common::Result<std::vector<NodeId>> differentiate(Graph& graph, std::span<const NodeId> functions,
                                                  std::span<const NodeId> directions, const TangentOptions& options) {
  if (auto valid = check(graph, functions, directions, options); !valid)
    return std::unexpected(std::move(valid).error());
  auto result = Sweep(graph, functions, directions, options).run();
  if (auto fits = check_capacity(graph); !fits) return std::unexpected(std::move(fits).error());
  return result;
}

}  // namespace jitc::graph
