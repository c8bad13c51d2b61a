#include "client/graph/graph.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "client/graph/rewrite.h"

namespace jitc::graph {
namespace {

constexpr NodeId kEmpty = ~NodeId{0};
constexpr std::size_t kFirstTable = 1024;
constexpr std::size_t kMostListed = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMostOtherArguments = std::numeric_limits<ArgumentId>::max() - kFirstOther;
constexpr std::array<std::string_view, kFirstOther> kArgumentNames = {"u", "u_t",      "u_x", "a", "a_t",      "a_x",
                                                                      "t", "u_tShift", "x",   "n", "constants"};

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  // The finalizer of splitmix64, over a running state.
  hash += word + 0x9e3779b97f4a7c15U;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31);
}

std::uint64_t mix_text(std::uint64_t hash, std::string_view text) {
  hash = mix(hash, text.size());
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

enum class Shape : std::uint8_t { kInput, kUnary, kBinary, kSelect, kList };

Shape shape_of(Op op) {
  if (op <= Op::kFalse) return Shape::kInput;
  if (op <= Op::kNamed || op == Op::kNot) return Shape::kUnary;
  if (op <= Op::kOr) return Shape::kBinary;
  return op == Op::kSelect ? Shape::kSelect : Shape::kList;
}

}  // namespace

bool is_condition(Op op) { return op == Op::kTrue || op == Op::kFalse || (op >= Op::kLt && op <= Op::kNot); }

bool is_commutative(Op op) {
  return op == Op::kAdd || op == Op::kMul || op == Op::kEq || op == Op::kNe || op == Op::kAnd || op == Op::kOr;
}

std::string_view name_of(Op op) {
  switch (op) {
    case Op::kNumber:
      return "number";
    case Op::kLeaf:
      return "leaf";
    case Op::kTrue:
      return "true";
    case Op::kFalse:
      return "false";
    case Op::kNeg:
      return "neg";
    case Op::kSqrt:
      return "sqrt";
    case Op::kCbrt:
      return "cbrt";
    case Op::kExp:
      return "exp";
    case Op::kExpm1:
      return "expm1";
    case Op::kLog:
      return "log";
    case Op::kLog1p:
      return "log1p";
    case Op::kLog2:
      return "log2";
    case Op::kLog10:
      return "log10";
    case Op::kSin:
      return "sin";
    case Op::kCos:
      return "cos";
    case Op::kTan:
      return "tan";
    case Op::kAsin:
      return "asin";
    case Op::kAcos:
      return "acos";
    case Op::kAtan:
      return "atan";
    case Op::kSinh:
      return "sinh";
    case Op::kCosh:
      return "cosh";
    case Op::kTanh:
      return "tanh";
    case Op::kAsinh:
      return "asinh";
    case Op::kAcosh:
      return "acosh";
    case Op::kAtanh:
      return "atanh";
    case Op::kErf:
      return "erf";
    case Op::kErfc:
      return "erfc";
    case Op::kAbs:
      return "abs";
    case Op::kFloor:
      return "floor";
    case Op::kCeil:
      return "ceil";
    case Op::kSign:
      return "sign";
    case Op::kNamed:
      return "named";
    case Op::kAdd:
      return "add";
    case Op::kSub:
      return "sub";
    case Op::kMul:
      return "mul";
    case Op::kDiv:
      return "div";
    case Op::kPow:
      return "pow";
    case Op::kAtan2:
      return "atan2";
    case Op::kHypot:
      return "hypot";
    case Op::kFmod:
      return "fmod";
    case Op::kHeaviside:
      return "heaviside";
    case Op::kFmax:
      return "fmax";
    case Op::kFmin:
      return "fmin";
    case Op::kLt:
      return "lt";
    case Op::kLe:
      return "le";
    case Op::kGt:
      return "gt";
    case Op::kGe:
      return "ge";
    case Op::kEq:
      return "eq";
    case Op::kNe:
      return "ne";
    case Op::kAnd:
      return "and";
    case Op::kOr:
      return "or";
    case Op::kNot:
      return "not";
    case Op::kSelect:
      return "select";
    case Op::kMax:
      return "max";
    case Op::kMin:
      return "min";
    case Op::kCall:
      return "call";
  }
  return "?";
}

Graph::Graph(std::size_t most_nodes)
    : most_nodes_(std::clamp<std::size_t>(most_nodes, 1, kMostNodes)), table_(kFirstTable, kEmpty) {}

ArgumentId Graph::argument(std::string_view name) {
  if (const auto known = std::ranges::find(kArgumentNames, name); known != kArgumentNames.end()) {
    return static_cast<ArgumentId>(known - kArgumentNames.begin());
  }
  if (const auto known = other_argument_ids_.find(name); known != other_argument_ids_.end()) {
    return static_cast<ArgumentId>(known->second);
  }
  if (other_arguments_.size() == kMostOtherArguments) {
    is_full_ = true;
    return kU;
  }
  const auto id = static_cast<ArgumentId>(kFirstOther + other_arguments_.size());
  other_argument_ids_.emplace(name, id);
  other_arguments_.emplace_back(name);
  return id;
}

std::string_view Graph::argument_name(ArgumentId argument) const {
  return argument < kFirstOther ? kArgumentNames[argument] : other_arguments_[argument - kFirstOther];
}

FunctionId Graph::declare(Function function) {
  const auto [found, is_new] = function_ids_.try_emplace(function.name, functions_.size());
  if (is_new) {
    functions_.push_back(std::move(function));
    return found->second;
  }
  auto& known = functions_[found->second].partials;
  known.resize(std::max(known.size(), function.partials.size()));
  for (std::size_t i = 0; i < function.partials.size(); ++i) {
    if (!known[i]) known[i] = function.partials[i];
  }
  return found->second;
}

void Graph::reserve(std::size_t nodes) {
  nodes = std::min(nodes, most_nodes_);
  nodes_.reserve(nodes);
  contents_.reserve(nodes);
  const std::size_t places = std::bit_ceil(nodes * 3 / 2 + 1);
  if (places > table_.size()) resize_table(places);
}

std::size_t Graph::bytes() const {
  return nodes_.capacity() * sizeof(Node) + contents_.capacity() * sizeof(std::uint64_t) +
         (table_.capacity() + lists_.capacity()) * sizeof(NodeId);
}

// ---- interning ----------------------------------------------------------------------------------------------------

std::span<const NodeId> Graph::arguments(NodeId id) const {
  const Node& node = nodes_[id];
  switch (shape_of(node.op)) {
    case Shape::kInput:
      return {};
    case Shape::kUnary:
      return {node.args.data(), 1};
    case Shape::kBinary:
      return {node.args.data(), 2};
    case Shape::kSelect:
      return {node.args.data(), 3};
    case Shape::kList:
      return {lists_.data() + node.args[0], node.args[1]};
  }
  return {};
}

std::uint64_t Graph::content_of(const Node& node) const {
  std::uint64_t hash = mix(0, static_cast<std::uint64_t>(node.op));
  switch (shape_of(node.op)) {
    case Shape::kInput:
      if (node.op == Op::kLeaf) {
        hash = node.argument < kFirstOther ? mix(hash, node.argument) : mix_text(hash, argument_name(node.argument));
      }
      return mix(hash, node.args[0] | (std::uint64_t{node.args[1]} << 32));
    case Shape::kUnary:
      // A name adds nothing to the content: it must not decide the order of arguments.
      return node.op == Op::kNamed ? contents_[node.args[0]] : mix(hash, contents_[node.args[0]]);
    case Shape::kBinary:
      return mix(mix(hash, contents_[node.args[0]]), contents_[node.args[1]]);
    case Shape::kSelect:
      return mix(mix(mix(hash, contents_[node.args[0]]), contents_[node.args[1]]), contents_[node.args[2]]);
    case Shape::kList:
      if (node.op == Op::kCall) hash = mix_text(hash, functions_[node.args[2]].name);
      for (std::uint32_t i = 0; i < node.args[1]; ++i) hash = mix(hash, contents_[lists_[node.args[0] + i]]);
      return hash;
  }
  return hash;
}

bool Graph::same(NodeId id, const Node& node) const {
  const Node& other = nodes_[id];
  if (shape_of(node.op) != Shape::kList) return other == node;
  return other.op == node.op && other.args[2] == node.args[2] && other.args[1] == node.args[1] &&
         std::equal(lists_.begin() + other.args[0], lists_.begin() + other.args[0] + other.args[1],
                    lists_.begin() + node.args[0]);
}

std::size_t Graph::first_place(const Node& node, std::uint64_t content) const {
  // Names of one body have its content; they are told apart here, or all of them would stand in one row.
  if (node.op == Op::kNamed) content = mix(content, node.args[1]);
  return content & (table_.size() - 1);
}

NodeId Graph::intern(const Node& node) {
  const std::uint64_t content = content_of(node);
  const std::size_t mask = table_.size() - 1;
  std::size_t place = first_place(node, content);
  for (; table_[place] != kEmpty; place = (place + 1) & mask) {
    const NodeId id = table_[place];
    if (contents_[id] == content && same(id, node)) return id;
  }
  if (nodes_.size() == most_nodes_) {
    is_full_ = true;
    return 0;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(node);
  contents_.push_back(content);
  table_[place] = id;
  if (nodes_.size() * 3 > table_.size() * 2) resize_table(table_.size() * 2);
  return id;
}

void Graph::resize_table(std::size_t places) {
  table_.assign(places, kEmpty);
  const std::size_t mask = places - 1;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    std::size_t place = first_place(nodes_[id], contents_[id]);
    while (table_[place] != kEmpty) place = (place + 1) & mask;
    table_[place] = id;
  }
}

// ---- building -----------------------------------------------------------------------------------------------------

NodeId Graph::number(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const Node node{.op = Op::kNumber,
                  .args = {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)}};
  return intern(node);
}

NodeId Graph::leaf(ArgumentId argument, std::uint32_t index) {
  const Node node{.op = Op::kLeaf, .argument = argument, .args = {index}};
  return intern(node);
}

NodeId Graph::truth(bool value) {
  const Node node{.op = value ? Op::kTrue : Op::kFalse};
  return intern(node);
}

NodeId Graph::unary(Op op, NodeId x) {
  if (const auto known = rewrite_unary(*this, op, x)) return *known;
  const Node node{.op = op, .args = {x}};
  return intern(node);
}

NodeId Graph::binary(Op op, NodeId x, NodeId y) {
  if (const auto known = rewrite_binary(*this, op, x, y)) return *known;
  if (is_commutative(op) && (contents_[y] != contents_[x] ? contents_[y] < contents_[x] : y < x)) std::swap(x, y);
  const Node node{.op = op, .args = {x, y}};
  return intern(node);
}

NodeId Graph::select(NodeId condition, NodeId when_true, NodeId when_false) {
  const Node node{.op = Op::kSelect, .args = {condition, when_true, when_false}};
  return intern(node);
}

NodeId Graph::variadic(Op op, std::span<const NodeId> arguments, std::uint32_t function) {
  if (lists_.size() + arguments.size() > kMostListed) {
    is_full_ = true;
    return 0;
  }
  // The list is appended first, so that equal lists can be compared in place, and taken back when the node was there.
  const std::size_t first = lists_.size();
  append(arguments);
  const std::size_t before = nodes_.size();
  const NodeId id = intern(
      {.op = op,
       .args = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(lists_.size() - first), function}});
  if (nodes_.size() == before) lists_.resize(first);
  return id;
}

void Graph::append(std::span<const NodeId> list) {
  // It may be part of lists_, which moves when it grows.
  const std::less<> before;
  const bool is_own = !before(list.data(), lists_.data()) && before(list.data(), lists_.data() + lists_.size());
  const std::ptrdiff_t offset = is_own ? list.data() - lists_.data() : 0;
  const std::size_t first = lists_.size();
  lists_.resize(first + list.size());
  std::copy_n(is_own ? lists_.data() + offset : list.data(), list.size(), lists_.data() + first);
}

NodeId Graph::extremum(Op op, std::span<const NodeId> arguments) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (arguments.empty()) return number(op == Op::kMax ? -kInfinity : kInfinity);
  return arguments.size() == 1 ? arguments.front() : variadic(op, arguments, 0);
}

NodeId Graph::call(FunctionId function, std::span<const NodeId> arguments) {
  return variadic(Op::kCall, arguments, function);
}

NodeId Graph::named(std::string_view name, NodeId body) {
  auto known = name_ids_.find(name);
  if (known == name_ids_.end()) {
    known = name_ids_.emplace(name, names_.size()).first;
    names_.emplace_back(name);
  }
  const Node node{.op = Op::kNamed, .args = {body, known->second}};
  return intern(node);
}

NodeId Graph::rebuild(const Graph& from, NodeId id, std::span<const NodeId> arguments) {
  const Node& node = from[id];
  switch (node.op) {
    case Op::kNumber:
      return number(from.number_of(id));
    case Op::kLeaf:
      return leaf(node.argument < kFirstOther ? node.argument : argument(from.argument_name(node.argument)),
                  node.args[0]);
    case Op::kTrue:
      return truth(true);
    case Op::kFalse:
      return truth(false);
    case Op::kNamed:
      return named(from.name(id), arguments[0]);
    case Op::kSelect:
      return select(arguments[0], arguments[1], arguments[2]);
    case Op::kMax:
    case Op::kMin:
      return extremum(node.op, arguments);
    case Op::kCall: {
      const Function& function = from.function(node.args[2]);
      return call(this == &from ? node.args[2] : declare({function.name, function.arity, {}}), arguments);
    }
    default:
      return shape_of(node.op) == Shape::kUnary ? unary(node.op, arguments[0])
                                                : binary(node.op, arguments[0], arguments[1]);
  }
}

// ---- reading ------------------------------------------------------------------------------------------------------

bool Graph::is_number(NodeId id, double value) const {
  return is_number(id) && std::bit_cast<std::uint64_t>(number_of(id)) == std::bit_cast<std::uint64_t>(value);
}

double Graph::number_of(NodeId id) const {
  const Node& node = nodes_[id];
  return std::bit_cast<double>(node.args[0] | (std::uint64_t{node.args[1]} << 32));
}

common::Result<void> check_capacity(const Graph& graph) {
  if (!graph.is_full()) return {};
  return common::fail(common::ErrorKind::kUsage,
                      "the graph is full at " + std::to_string(graph.size()) + " nodes, further ones were not built",
                      {}, "divide the expressions among several graphs");
}

std::vector<bool> reachable(const Graph& graph, std::span<const NodeId> outputs) {
  std::vector<bool> marks(graph.size());
  NodeId end = 0;
  for (const NodeId output : outputs) {
    marks[output] = true;
    end = std::max(end, output + 1);
  }
  // Users come after what they use: one pass down the ids reaches everything.
  for (NodeId id = end; id-- > 0;) {
    if (!marks[id]) continue;
    for (const NodeId argument : graph.arguments(id)) marks[argument] = true;
  }
  return marks;
}

}  // namespace jitc::graph
