#include "client/graph/body.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "client/graph/literal.h"

namespace jitc::graph {
namespace {

void append_number(std::string& text, std::uint32_t number) {
  std::array<char, 12> digits{};
  text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

}  // namespace

// ---- expressions --------------------------------------------------------------------------------------------------

bool BodyWriter::is_atom(NodeId id) const {
  const Op op = plain_.graph()[id].op;
  return op == Op::kNumber || op == Op::kLeaf || plan_.is_temporary(id);
}

const std::string& BodyWriter::spelled(NodeId leaf) {
  std::uint32_t& spelling = spelling_of_[leaf];
  if (spelling == 0) {
    spellings_.push_back(options_.spell(plain_.graph()[leaf]));
    spelling = static_cast<std::uint32_t>(spellings_.size());
  }
  return spellings_[spelling - 1];
}

void BodyWriter::write_atom(std::string& text, NodeId id, Binding needed) {
  const Graph& graph = plain_.graph();
  if (plan_.is_temporary(id)) {
    text += options_.temporary;
    append_number(text, plan_.number(id));
  } else if (graph[id].op == Op::kLeaf) {
    text += spelled(id);
  } else {
    const bool has_parentheses = binding_of(graph, id) < needed;
    if (has_parentheses) text += '(';
    append_literal(text, graph.number_of(id));
    if (has_parentheses) text += ')';
  }
}

void BodyWriter::write_expression(std::string& text, NodeId id, Binding needed) {
  stack_.push_back({.id = id, .needed = needed, .is_argument = true});
  write_pieces(text, stack_.size() - 1);
}

// A stack of our own: depth never costs the machine's.
void BodyWriter::write_pieces(std::string& text, std::size_t bottom) {
  while (stack_.size() > bottom) {
    const TextPiece piece = stack_.back();
    stack_.pop_back();
    if (!piece.is_argument) {
      text += piece.text;
    } else if (is_atom(piece.id)) {
      write_atom(text, piece.id, piece.needed);
    } else {
      if (binding_of(plain_.graph(), piece.id) < piece.needed) {
        text += '(';
        stack_.push_back({.text = ")"});
      }
      push_operator(plain_.graph(), piece.id, stack_);
    }
  }
}

void BodyWriter::write_value(std::string& text, NodeId id) {
  const Op op = plain_.graph()[id].op;
  if (op == Op::kNumber || op == Op::kLeaf) return write_expression(text, id, Binding::kSelect);
  const std::size_t bottom = stack_.size();
  push_operator(plain_.graph(), id, stack_);
  write_pieces(text, bottom);
}

// ---- statements ---------------------------------------------------------------------------------------------------

std::string BodyWriter::name(NodeId temporary) const {
  std::string name = options_.temporary;
  append_number(name, plan_.number(temporary));
  return name;
}

void BodyWriter::write_statement(std::string& text, NodeId id, std::string& indent) {
  const Graph& graph = plain_.graph();
  const std::string target = name(id);
  const auto arguments = graph.arguments(id);
  if (const Region arm = plan_.arm(id); arm != 0) {
    text += indent + "double " + target + ";\n" + indent + "if (";
    write_expression(text, arguments[0], Binding::kSelect);
    for (Region side = 0; side < 2; ++side) {
      text += side == 0 ? ") {\n" : indent + "} else {\n";
      indent += options_.indent;
      write_region(text, arm + side, indent);
      text += indent + target + " = ";
      write_expression(text, arguments[1 + side], Binding::kSelect);
      text += ";\n";
      indent.resize(indent.size() - options_.indent.size());
    }
    text += indent + "}\n";
    return;
  }
  if (is_long_extremum(graph, id)) {
    const std::string_view helper = graph[id].op == Op::kMax ? kMaxHelper : kMinHelper;
    text += indent + "double " + target + " = ";
    write_expression(text, arguments[0], Binding::kSelect);
    text += ";\n";
    for (const NodeId argument : arguments.subspan(1)) {
      text.append(indent).append(target).append(" = ").append(helper).append("(").append(target).append(", ");
      write_expression(text, argument, Binding::kSelect);
      text += ");\n";
    }
    return;
  }
  text += indent;
  text += is_condition(graph[id].op) ? "const int " : "const double ";
  text += target;
  text += " = ";
  write_value(text, id);
  text += ";\n";
}

// Recursion is bounded by kMostBlocks.
void BodyWriter::write_region(std::string& text, Region region, std::string& indent) {
  for (const NodeId id : plan_.statements(region)) write_statement(text, id, indent);
}

void BodyWriter::write_chosen(std::string& text, std::span<const Output> outputs) {
  std::string indent = options_.indent;
  write_region(text, 0, indent);
  for (const Output& output : outputs) {
    text += indent;
    text += output.target;
    text += " = ";
    write_expression(text, output.value, Binding::kSelect);
    text += ";\n";
  }
}

// ---- bodies -------------------------------------------------------------------------------------------------------

// Bytes that write_chosen would write for trees, without writing them.
std::uint64_t BodyWriter::measure(std::span<const Output> outputs) {
  const Graph& graph = plain_.graph();
  std::vector<std::uint64_t> sizes(plan_.order().size());
  std::string atom;
  std::uint64_t total = 0;
  const std::uint64_t statement = options_.indent.size() + std::string_view("const double  = ;\n").size();
  for (std::size_t place = 0; place < sizes.size(); ++place) {
    const NodeId id = plan_.order()[place];
    const bool is_temporary = plan_.is_temporary(id);
    std::uint64_t size = 0;
    if (const Op op = graph[id].op; op != Op::kNumber && op != Op::kLeaf) {
      stack_.clear();
      push_operator(graph, id, stack_);
      for (const TextPiece& piece : stack_) {
        size = saturating_add(size, piece.is_argument ? sizes[plan_.place(piece.id)] : piece.text.size());
        if (piece.is_argument && !is_atom(piece.id) && binding_of(graph, piece.id) < piece.needed) {
          size = saturating_add(size, 2);
        }
      }
      if (is_temporary) total = saturating_add(total, saturating_add(size, statement));
    }
    if (is_atom(id)) {
      atom.clear();
      write_atom(atom, id, Binding::kSelect);
      size = atom.size();
      if (is_temporary) total = saturating_add(total, size);
    }
    sizes[place] = size;
  }
  stack_.clear();
  for (const Output& output : outputs) {
    total = saturating_add(total, options_.indent.size() + output.target.size() + std::string_view(" = ;\n").size());
    total = saturating_add(total, sizes[plan_.place(output.value)]);
  }
  return total;
}

common::Result<void> BodyWriter::write(std::string& text, std::span<const Output> outputs) {
  const std::size_t before = text.size();
  if (options_.sharing != Sharing::kTrees) {
    plan_.choose(true, options_.lazy_arms);
    write_chosen(text, outputs);
    if (options_.sharing == Sharing::kShared || plan_.temporaries() == 0) return {};
  }
  const std::uint64_t shared = text.size() - before;
  const std::uint64_t most = shared + shared / 2;
  if (options_.sharing == Sharing::kAuto && plan_.tree_nodes(false) > most) return {};  // each is a byte at least
  plan_.choose(false, options_.lazy_arms);
  const std::uint64_t trees = measure(outputs);
  if (options_.sharing == Sharing::kAuto) {
    if (plan_.levels() <= kMostLevels && trees <= most) {
      text.resize(before);
      write_chosen(text, outputs);
    } else {
      plan_.choose(true, options_.lazy_arms);  // as written
    }
    return {};
  }
  if (trees > kTreeLimit - std::min(before, kTreeLimit)) {
    return common::fail(common::ErrorKind::kUsage,
                        "as trees the expressions need " + std::to_string(saturating_add(trees, before)) +
                            " bytes of C; at most " + std::to_string(kTreeLimit) + " are written",
                        {}, "share common subexpressions");
  }
  write_chosen(text, outputs);
  return {};
}

void BodyWriter::add_to(EmitStatistics& statistics) const {
  statistics.temporaries += plan_.temporaries();
  statistics.tree_nodes = saturating_add(statistics.tree_nodes, plan_.tree_nodes());
}

// ---- for texts with other signatures ------------------------------------------------------------------------------

common::Result<std::string> emit_body(const Graph& graph, std::span<const Output> outputs, const BodyOptions& options,
                                      EmitStatistics* statistics) {
  if (auto fits = check_capacity(graph); !fits) return std::unexpected(fits.error());
  std::vector<NodeId> values;
  for (const Output& output : outputs) values.push_back(output.value);
  const Plain plain(graph, values);
  std::vector<Output> plain_outputs(outputs.begin(), outputs.end());
  for (std::size_t i = 0; i < values.size(); ++i) plain_outputs[i].value = plain.outputs()[i];
  BodyWriter writer(plain, options);
  writer.begin(plain.outputs());
  std::string text;
  if (auto written = writer.write(text, plain_outputs); !written) return std::unexpected(written.error());
  if (statistics != nullptr) {
    writer.add_to(*statistics);
    statistics->nodes += plain.nodes();
  }
  return text;
}

}  // namespace jitc::graph
