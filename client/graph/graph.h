// Expressions as a hash-consed directed acyclic graph: equal expressions are one node. Pure: no I/O, threads or clocks.
//
// Nodes are 16 bytes in an append-only arena; an id is a node's place in it. Arguments come before their users, so id
// order is a topological order and every walk is a loop: depth never costs stack.
//
// Bits are kept: sums and products are binary, their association is the caller's, and building a node applies only the
// rewrites listed in rewrite.h, each exact for every value (NaN payloads aside). Arguments of commutative operators are
// ordered by content, so what a graph prints depends on the mathematics alone, not on the order in which it was built.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/error.h"

namespace jitc::graph {

using NodeId = std::uint32_t;

enum class Op : std::uint8_t {
  // Inputs.
  kNumber,  // a double
  kLeaf,    // an element of an argument array, or a scalar argument
  kTrue,
  kFalse,
  // Values of one argument.
  kNeg,
  kSqrt,
  kCbrt,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kLog2,
  kLog10,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kErfc,
  kAbs,
  kFloor,
  kCeil,
  kSign,   // -1, 0, 1; 0 for NaN
  kNamed,  // the value of its argument, under a name: see Graph::named
  // Values of two arguments.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kAtan2,  // y, x
  kHypot,
  kFmod,
  kHeaviside,  // x, mid: 0, mid, 1 for x < 0, = 0, > 0; mid for NaN
  kFmax,       // the C library's function, as C text calls it
  kFmin,
  // Conditions.
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,
  kAnd,
  kOr,
  kNot,
  // Values of more arguments.
  kSelect,  // condition, value when true, value when false
  kMax,     // two or more: the largest; a NaN is ignored when another argument is a number; see max in emit.h
  kMin,
  kCall,  // an opaque function: see Graph::declare
};

// What the arguments of an operator are, and whether it commutes.
bool is_condition(Op op);
bool is_commutative(Op op);
std::string_view name_of(Op op);  // "add", "sqrt": as in the problem format where it has the operator

// Pointwise arguments in PETSc's order; further ones (of C text) are registered by name.
using ArgumentId = std::uint16_t;
enum Argument : ArgumentId { kU, kUt, kUx, kA, kAt, kAx, kT, kUtShift, kX, kN, kConstants, kFirstOther };

struct Node {
  Op op;
  std::uint8_t unused = 0;
  std::uint16_t argument = 0;  // of a leaf
  // Arguments. Leaf: {index}. Number: {low, high bits}. Named: {body, name}. Max, min, call: {first place in the
  // list, number of arguments, function}.
  std::array<std::uint32_t, 3> args{};
  bool operator==(const Node&) const = default;
};
static_assert(sizeof(Node) == 16);

using FunctionId = std::uint32_t;

// A function that is known by name only. All arguments and the value are doubles.
struct Function {
  std::string name;
  std::uint32_t arity = 0;
  std::vector<std::optional<FunctionId>> partials;  // by argument, called with the same arguments; none: not known
};

// Names to their places, found by views of them.
struct NameHash : std::hash<std::string_view> {
  using is_transparent = void;
};
using NameIds = std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>>;

class Graph {
 public:
  // Ids have 32 bits. A smaller limit serves those who must bound their memory.
  static constexpr std::size_t kMostNodes = 0xffff'fff0;
  Graph() : Graph(kMostNodes) {}
  explicit Graph(std::size_t most_nodes);

  // ---- building; the same expression gives the same id ----
  NodeId number(double value);
  NodeId leaf(ArgumentId argument, std::uint32_t index = 0);
  NodeId truth(bool value);
  NodeId unary(Op op, NodeId x);
  NodeId binary(Op op, NodeId x, NodeId y);
  NodeId select(NodeId condition, NodeId when_true, NodeId when_false);
  // kMax or kMin; of one argument: that one; of none: the infinity that every number replaces.
  NodeId extremum(Op op, std::span<const NodeId> arguments);
  NodeId call(FunctionId function, std::span<const NodeId> arguments);
  // A value that derivatives may see through or hold fixed (derivative.h); emitted as one temporary. The name never
  // changes what is emitted.
  NodeId named(std::string_view name, NodeId body);
  // The node with the arguments replaced, through the same rewrites: how copies are made. A function of another graph
  // is declared here by name; its partial derivatives do not come along.
  NodeId rebuild(const Graph& from, NodeId id, std::span<const NodeId> arguments);

  ArgumentId argument(std::string_view name);  // registers it at first sight
  // Of one name, the same id: a further declaration adds partial derivatives that were not known, nothing else.
  FunctionId declare(Function function);
  void reserve(std::size_t nodes);
  // More nodes, list elements or arguments were asked for than ids can tell apart. Node 0 stands for what could not be
  // built: the graph can be read, but what it computes means nothing.
  bool is_full() const { return is_full_; }

  // ---- reading ----
  std::size_t size() const { return nodes_.size(); }
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  // Arguments in order; valid until the next node is built.
  std::span<const NodeId> arguments(NodeId id) const;
  bool is_number(NodeId id) const { return nodes_[id].op == Op::kNumber; }
  bool is_number(NodeId id, double value) const;  // of this value and sign
  double number_of(NodeId id) const;
  std::string_view argument_name(ArgumentId argument) const;
  std::string_view name(NodeId named) const { return names_[nodes_[named].args[1]]; }
  const Function& function(FunctionId id) const { return functions_[id]; }
  std::size_t function_count() const { return functions_.size(); }
  // 64 bits of what the node computes: independent of ids, names and addresses.
  std::uint64_t content(NodeId id) const { return contents_[id]; }
  std::size_t bytes() const;  // of memory in use

 private:
  NodeId intern(const Node& node);
  NodeId variadic(Op op, std::span<const NodeId> arguments, std::uint32_t function);
  void append(std::span<const NodeId> list);
  std::uint64_t content_of(const Node& node) const;
  std::size_t first_place(const Node& node, std::uint64_t content) const;
  bool same(NodeId id, const Node& node) const;
  void resize_table(std::size_t places);

  std::size_t most_nodes_;
  bool is_full_ = false;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> contents_;
  std::vector<NodeId> table_;  // open addressing, kEmpty where free
  std::vector<NodeId> lists_;  // arguments of max, min and calls
  std::vector<std::string> other_arguments_;
  std::vector<std::string> names_;
  std::vector<Function> functions_;
  NameIds name_ids_;
  NameIds function_ids_;
  NameIds other_argument_ids_;
};

// Fails (kUsage) when the graph is full: to be asked before anything is made of it.
common::Result<void> check_capacity(const Graph& graph);
// Marks what the outputs need: one flag a node.
std::vector<bool> reachable(const Graph& graph, std::span<const NodeId> outputs);

}  // namespace jitc::graph
