#include "client/graph/fused.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "client/graph/body.h"
#include "client/graph/helpers.h"
#include "client/graph/plain.h"
#include "client/graph/symbols.h"

namespace jitc::graph {
namespace {

constexpr std::string_view kPoints = "points";
constexpr std::string_view kPoint = "p";

bool is_scalar(ArgumentId argument) { return argument == kT || argument == kUtShift; }

// The arguments in the order of the parameters: PETSc's, then others by name.
std::vector<ArgumentId> arguments_of(const Plain& plain) {
  std::map<std::string_view, ArgumentId> others;
  const Graph& graph = plain.graph();
  const std::vector<bool> needed = reachable(graph, plain.outputs());
  for (NodeId id = 0; id < needed.size(); ++id) {
    if (!needed[id] || graph[id].op != Op::kLeaf || graph[id].argument < kFirstOther) continue;
    others.emplace(graph.argument_name(graph[id].argument), graph[id].argument);
  }
  std::vector<ArgumentId> arguments;
  for (ArgumentId argument = kU; argument < kFirstOther; ++argument) arguments.push_back(argument);
  for (const auto& [name, argument] : others) arguments.push_back(argument);
  return arguments;
}

class Fused {
 public:
  Fused(const Plain& plain, std::string_view name, std::span<const PointwiseFunction> functions,
        const FusedOptions& options)
      : plain_(plain), name_(name), functions_(functions), options_(options), arguments_(arguments_of(plain)) {}

  common::Result<void> check() const;
  common::Result<std::string> write(EmitStatistics& statistics) const;

 private:
  std::string output_name(const PointwiseFunction& function) const { return "out_" + function.name; }
  std::string element(std::string_view array, std::uint32_t index) const;
  std::string spell(const Node& leaf) const;
  std::string head() const;
  std::string unused(std::span<const NodeId> order) const;

  const Plain& plain_;
  std::string_view name_;
  std::span<const PointwiseFunction> functions_;
  const FusedOptions& options_;
  std::vector<ArgumentId> arguments_;
};

common::Result<void> Fused::check() const {
  Symbols symbols;
  if (auto known = symbols.define(std::string(name_), {}); !known) return known;
  if (options_.batch) {
    symbols.reserve(std::string(kPoints));
    symbols.reserve(std::string(kPoint));
  }
  for (const ArgumentId argument : arguments_) {
    if (auto known = symbols.declare(std::string(plain_.graph().argument_name(argument))); !known) return known;
  }
  for (const PointwiseFunction& function : functions_) {
    if (auto known = symbols.declare(output_name(function)); !known) return known;
  }
  return symbols.declare_opaque(plain_);
}

std::string Fused::element(std::string_view array, std::uint32_t index) const {
  std::string text(array);
  text += '[';
  if (!options_.batch) return text.append(std::to_string(index)).append("]");
  if (index == 1) text.append(kPoints).append(" + ");
  if (index > 1) text.append(std::to_string(index)).append(" * ").append(kPoints).append(" + ");
  return text.append(kPoint).append("]");
}

std::string Fused::spell(const Node& leaf) const {
  const std::string_view name = plain_.graph().argument_name(leaf.argument);
  if (is_scalar(leaf.argument)) return std::string(name);
  if (leaf.argument == kConstants) return std::string(name) + "[" + std::to_string(leaf.args[0]) + "]";
  return element(name, leaf.args[0]);
}

std::string Fused::head() const {
  std::string text("void ");
  text.append(name_).append("(");
  if (options_.batch) text.append("long ").append(kPoints).append(", ");
  std::string_view separator;
  for (const ArgumentId argument : arguments_) {
    text.append(separator).append(is_scalar(argument) ? "double " : "const double *restrict ");
    text.append(plain_.graph().argument_name(argument));
    separator = ", ";
  }
  for (const PointwiseFunction& function : functions_) {
    text.append(separator).append("double *restrict ").append(output_name(function));
  }
  return text += ") {\n";
}

std::string Fused::unused(std::span<const NodeId> order) const {
  std::set<ArgumentId> used;
  for (const NodeId id : order) {
    if (plain_.graph()[id].op == Op::kLeaf) used.insert(plain_.graph()[id].argument);
  }
  std::string text;
  const auto leave = [&](std::string_view name) {
    text.append(text.empty() ? "  " : " ").append("(void)").append(name).append(";");
  };
  for (const ArgumentId argument : arguments_) {
    if (!used.contains(argument)) leave(plain_.graph().argument_name(argument));
  }
  for (const PointwiseFunction& function : functions_) {
    if (function.outputs.empty()) leave(output_name(function));
  }
  if (!text.empty()) text += '\n';
  return text;
}

common::Result<std::string> Fused::write(EmitStatistics& statistics) const {
  const BodyOptions body{.sharing = options_.sharing,
                         .lazy_arms = options_.lazy_arms,
                         .indent = options_.batch ? "    " : "  ",
                         .spell = [this](const Node& leaf) { return spell(leaf); }};
  std::vector<Output> outputs;
  for (const PointwiseFunction& function : functions_) {
    const std::string array = output_name(function);
    for (std::uint32_t i = 0; i < function.outputs.size(); ++i) {
      outputs.push_back({plain_.outputs()[outputs.size()], element(array, i)});
    }
  }
  BodyWriter writer(plain_, body);
  writer.begin(plain_.outputs());
  std::string text(kContractionGuard);
  text += "#include <math.h>\n\n";
  const std::string used = helpers(plain_);
  if (!used.empty()) text.append(used).append("\n");
  text.append(head()).append(unused(writer.order()));
  if (options_.batch) {
    text.append("  for (long ").append(kPoint).append(" = 0; ").append(kPoint).append(" < ").append(kPoints);
    text.append("; ++").append(kPoint).append(") {\n");
  }
  if (auto written = writer.write(text, outputs); !written) return std::unexpected(written.error());
  if (options_.batch) text += "  }\n";
  text += "}\n";
  statistics.nodes = plain_.nodes();
  writer.add_to(statistics);
  return text;
}

}  // namespace

common::Result<std::string> emit_fused(const Graph& graph, std::string_view name,
                                       std::span<const PointwiseFunction> functions, const FusedOptions& options,
                                       EmitStatistics* statistics) {
  if (auto fits = check_capacity(graph); !fits) return std::unexpected(fits.error());
  std::vector<NodeId> outputs;
  for (const PointwiseFunction& function : functions) {
    outputs.insert(outputs.end(), function.outputs.begin(), function.outputs.end());
  }
  const Plain plain(graph, outputs);
  const Fused fused(plain, name, functions, options);
  if (auto checked = fused.check(); !checked) return std::unexpected(checked.error());
  EmitStatistics found;
  auto text = fused.write(found);
  if (text && statistics != nullptr) *statistics = found;
  return text;
}

}  // namespace jitc::graph
