#include "client/graph/c_text/print.h"

#include <algorithm>

#include "client/graph/emit.h"

namespace jitc::graph::c {
namespace {

constexpr std::string_view kTemporary = "t";
constexpr std::string_view kResult = "jitc_result";
constexpr std::size_t kLongestTemporary = 64;  // without its number: longer ones would make a longer text of any

class Printer {
 public:
  Printer(const Body& body, const Signature& signature, std::size_t underscores);
  std::optional<Printed> print();

 private:
  struct Spelling {
    bool is_array = false;
    bool is_integer = false;
    bool is_copied = false;  // its elements are read and written
  };
  std::string spell(const Node& leaf) const;
  std::string element(ArgumentId argument, std::uint32_t index) const;
  std::string copy(ArgumentId argument, std::uint32_t index) const;
  void choose_names(std::size_t underscores);
  void write_copies(std::span<const NodeId> values);

  const Body& body_;
  const Signature& signature_;
  const Graph& graph_;
  std::vector<Spelling> spellings_;  // by ArgumentId
  std::string temporary_{kTemporary};
  std::string result_{kResult};
  Printed printed_;
};

Printer::Printer(const Body& body, const Signature& signature, std::size_t underscores)
    : body_(body), signature_(signature), graph_(*body.graph) {
  choose_names(underscores);
  const auto spelling = [this](ArgumentId argument) -> Spelling& {
    if (argument >= spellings_.size()) spellings_.resize(argument + std::size_t{1});
    return spellings_[argument];
  };
  for (const Array& array : body.arrays)
    spelling(array.argument) = {true, array.parameter.type != Type::kDouble, array.is_read && array.is_written};
  std::size_t scalar = 0;
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.is_array) continue;
    const NodeId leaf = body.scalars[scalar++];
    if (!parameter.name.text.empty()) spelling(graph_[leaf].argument).is_integer = parameter.type != Type::kDouble;
  }
}

void Printer::choose_names(std::size_t underscores) {
  for (const Parameter& parameter : signature_.parameters)
    underscores = std::max(underscores, underscores_beside(parameter.name.text));
  temporary_.append(underscores, '_');
  result_.append(underscores, '_');
}

std::string Printer::element(ArgumentId argument, std::uint32_t index) const {
  return std::string(graph_.argument_name(argument)) + "[" + std::to_string(index) + "]";
}

// A name like a temporary's, which no temporary has: t_out_3 has letters between.
std::string Printer::copy(ArgumentId argument, std::uint32_t index) const {
  return temporary_ + "_" + std::string(graph_.argument_name(argument)) + "_" + std::to_string(index);
}

std::string Printer::spell(const Node& leaf) const {
  const Spelling& spelling = spellings_[leaf.argument];
  std::string text = spelling.is_integer ? "(double)" : "";
  if (!spelling.is_array) return text.append(graph_.argument_name(leaf.argument));
  return text + (spelling.is_copied ? copy(leaf.argument, leaf.args[0]) : element(leaf.argument, leaf.args[0]));
}

void Printer::write_copies(std::span<const NodeId> values) {
  if (std::ranges::none_of(spellings_, &Spelling::is_copied)) return;
  const std::vector<bool> needed = reachable(graph_, values);
  for (NodeId id = 0; id < needed.size(); ++id) {
    const Node& node = graph_[id];
    if (!needed[id] || node.op != Op::kLeaf || !spellings_[node.argument].is_copied) continue;
    printed_.text +=
        "  const double " + copy(node.argument, node.args[0]) + " = " + element(node.argument, node.args[0]) + ";\n";
  }
}

std::optional<Printed> Printer::print() {
  std::vector<Output> outputs;
  std::vector<NodeId> values;
  for (const Scope::Stored& store : body_.stores) {
    values.push_back(store.value);
    outputs.push_back({store.value, element(body_.arrays[store.array].argument, store.index)});
  }
  if (body_.result) {
    if (body_.result->form != Value::kDouble) return std::nullopt;
    values.push_back(body_.result->node);
    outputs.push_back({body_.result->node, "const double " + result_});
  }
  if (outputs.empty() || temporary_.size() > kLongestTemporary) return std::nullopt;
  printed_.text = "\n";
  for (std::size_t i = 0; i < body_.voided.size(); ++i)
    printed_.text.append(i == 0 ? "  (void)" : " (void)").append(body_.voided[i]).append(";");
  if (!body_.voided.empty()) printed_.text += "\n";
  write_copies(values);
  BodyOptions options;
  options.temporary = temporary_;
  options.spell = [this](const Node& leaf) { return spell(leaf); };
  EmitStatistics statistics;
  const auto text = emit_body(graph_, outputs, options, &statistics);
  if (!text) return std::nullopt;
  printed_.nodes = statistics.nodes;
  printed_.temporaries = statistics.temporaries;
  printed_.text += *text;
  if (body_.result) printed_.text.append("  return ").append(result_).append(";\n");
  return std::move(printed_);
}

}  // namespace

std::size_t underscores_beside(std::string_view name) {
  for (const std::string_view own : {kTemporary, kResult}) {
    if (!name.starts_with(own)) continue;
    const std::size_t rest = std::min(name.find_first_not_of('_', own.size()), name.size());
    const bool is_own = name.find_first_not_of("0123456789", rest) == std::string_view::npos;
    return rest - own.size() + (is_own ? 1 : 0);
  }
  return 0;
}

std::optional<Printed> print(const Body& body, const Signature& signature, std::size_t underscores) {
  return Printer(body, signature, underscores).print();
}

}  // namespace jitc::graph::c
