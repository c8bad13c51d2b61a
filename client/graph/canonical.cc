// The bytes of a problem: typed fields of fixed length or with their length before them, nodes numbered in the order in
// which a walk from the functions leaves them. Labels do not occur: fields and constants are numbers, and so are the
// names of expressions, by their first occurrence.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "client/graph/problem.h"

namespace jitc::graph {
namespace {

constexpr std::string_view kFormat = "jitc-graph-problem-1";
constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};

class Canonical {
 public:
  explicit Canonical(const Problem& problem)
      : problem_(problem), graph_(problem.graph), numbers_(problem.graph.size(), kNoNumber) {}

  std::string bytes() && {
    put(kFormat);
    put(problem_.dim);
    put(static_cast<std::uint32_t>(problem_.ties));
    put(std::bit_cast<std::uint64_t>(problem_.guard));
    put(problem_.fields);
    put(problem_.aux_fields);
    for (const Residual& residual : problem_.residuals) number(residual.entries);
    for (const Block& block : problem_.blocks) number(block.entries);
    put(count_);
    bytes_ += nodes_;
    put_functions();
    put(static_cast<std::uint32_t>(problem_.residuals.size()));
    for (const Residual& residual : problem_.residuals) put(residual);
    put(static_cast<std::uint32_t>(problem_.blocks.size()));
    for (const Block& block : problem_.blocks) put(block);
    return std::move(bytes_);
  }

 private:
  static void append(std::string& to, std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) to += static_cast<char>(value >> (8 * i));
  }
  void put(std::uint32_t value) { append(bytes_, value, 4); }
  void put(std::uint64_t value) { append(bytes_, value, 8); }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    bytes_ += text;
  }
  void put(const std::vector<Field>& fields) {
    put(static_cast<std::uint32_t>(fields.size()));
    for (const Field& field : fields) {
      put(field.components);
      put(field.first);
    }
  }
  void put_entries(const std::vector<NodeId>& entries) {
    put(std::uint64_t{entries.size()});
    for (const NodeId entry : entries) put(numbers_[entry]);
  }
  void put(const Residual& residual) {
    put(residual.name);
    put(static_cast<std::uint32_t>(residual.kind));
    put(residual.field);
    put(static_cast<std::uint32_t>(residual.boundary));
    put_entries(residual.entries);
  }
  void put(const Block& block) {
    put(block.name);
    put(static_cast<std::uint32_t>(block.kind));
    put(block.test);
    put(block.trial);
    put(static_cast<std::uint32_t>(block.boundary));
    put_entries(block.entries);
    put(static_cast<std::uint32_t>(block.tangent));
    put(block.tangent == Tangent::kContinuation ? block.continuation : 0U);
    std::vector<std::uint32_t> frozen;
    for (const std::string& name : block.frozen)
      if (const auto found = names_.find(name); found != names_.end()) frozen.push_back(found->second);
    std::ranges::sort(frozen);
    frozen.erase(std::ranges::unique(frozen).begin(), frozen.end());
    put(static_cast<std::uint32_t>(frozen.size()));
    for (const std::uint32_t name : frozen) put(name);
  }

  // Numbers what the outputs need, arguments before users.
  void number(const std::vector<NodeId>& outputs) {
    std::vector<NodeId> pending;
    for (const NodeId output : outputs) {
      pending.push_back(output);
      while (!pending.empty()) {
        const NodeId id = pending.back();
        const std::size_t before = pending.size();
        if (numbers_[id] == kNoNumber) {
          const auto arguments = graph_.arguments(id);
          for (std::size_t i = arguments.size(); i-- > 0;)
            if (numbers_[arguments[i]] == kNoNumber) pending.push_back(arguments[i]);
        }
        if (pending.size() != before) continue;
        pending.pop_back();
        if (numbers_[id] != kNoNumber) continue;
        append_node(id);
        numbers_[id] = count_++;
      }
    }
  }

  void append_node(NodeId id) {
    const Node& node = graph_[id];
    append(nodes_, static_cast<std::uint64_t>(node.op), 1);
    if (node.op == Op::kNumber) append(nodes_, std::bit_cast<std::uint64_t>(graph_.number_of(id)), 8);
    if (node.op == Op::kLeaf) {
      append(nodes_, node.argument, 2);
      append(nodes_, node.args[0], 4);
    }
    if (node.op == Op::kNamed) append(nodes_, first_occurrence(names_, std::string(graph_.name(id))), 4);
    if (node.op == Op::kCall) append(nodes_, function_number(node.args[2]), 4);
    const auto arguments = graph_.arguments(id);
    if (node.op == Op::kMax || node.op == Op::kMin || node.op == Op::kCall) append(nodes_, arguments.size(), 4);
    for (const NodeId argument : arguments) append(nodes_, numbers_[argument], 4);
  }

  template <class Key>
  static std::uint32_t first_occurrence(std::unordered_map<Key, std::uint32_t>& seen, Key key) {
    return seen.try_emplace(std::move(key), static_cast<std::uint32_t>(seen.size())).first->second;
  }

  std::uint32_t function_number(FunctionId id) {
    const std::uint32_t number = first_occurrence(function_numbers_, id);
    if (number == functions_.size()) functions_.push_back(id);
    return number;
  }

  // Functions are what they are called; their partial derivatives follow them into the list.
  void put_functions() {
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const Function& function = graph_.function(functions_[i]);
      put(std::uint32_t{1});
      put(function.name);
      put(function.arity);
      put(static_cast<std::uint32_t>(function.partials.size()));
      for (const auto& partial : function.partials) put(partial ? function_number(*partial) : kNoNumber);
    }
    put(std::uint32_t{0});
  }

  const Problem& problem_;
  const Graph& graph_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t count_ = 0;
  std::string bytes_;
  std::string nodes_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<FunctionId, std::uint32_t> function_numbers_;
  std::vector<FunctionId> functions_;
};

}  // namespace

std::string canonical_bytes(const Problem& problem) {
  // Slots decide the order of arguments, too: first everything is put into that order.
  if (std::ranges::is_sorted(constant_slots(problem))) return Canonical(problem).bytes();
  const Problem sorted = in_slot_order(problem);
  return Canonical(sorted).bytes();
}

}  // namespace jitc::graph
