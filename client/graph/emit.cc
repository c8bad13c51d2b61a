#include "client/graph/emit.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "client/graph/body.h"
#include "client/graph/helpers.h"
#include "client/graph/plain.h"
#include "client/graph/signature.h"
#include "client/graph/symbols.h"

namespace jitc::graph {
namespace {

using common::ErrorKind;

constexpr std::uint32_t kTableVersion = 1;
// A guess at the text's size: growing it costs page faults.
constexpr std::size_t kBytesPerFunction = 1500;
constexpr std::size_t kBytesPerNode = 30;
// Symbols of the table; only the first is exported.
constexpr std::string_view kTable = "table";
constexpr std::string_view kCounts = "counts";
constexpr std::string_view kFunctions = "functions";
constexpr std::string_view kNames = "names";

common::Result<void> check_options(const EmitOptions& options) {
  if (options.complex_scalar) {
    return common::fail(ErrorKind::kUsage, "PetscScalar is complex; the functions are written for real numbers",
                        "complex_scalar", "use a PETSc configured with --with-scalar-type=real");
  }
  if (options.int_bits != 32 && options.int_bits != 64) {
    return common::fail(ErrorKind::kUsage, "integers have 32 or 64 bits, not " + std::to_string(options.int_bits),
                        "int_bits");
  }
  return {};
}

class Module {
 public:
  Module(const Plain& plain, const EmitOptions& options, EmitStatistics* statistics)
      : plain_(plain), options_(options), statistics_(statistics), leaves_(options), writer_(plain, body_) {
    body_.sharing = options.sharing;
    body_.lazy_arms = options.lazy_arms;
    body_.spell = [this](const Node& leaf) { return leaves_.spell(leaf); };
  }

  common::Result<void> write(const PointwiseFunction& function, std::span<const NodeId> outputs);
  void write_table(std::span<const PointwiseFunction> functions, const std::vector<bool>& is_written);

  std::string text;

 private:
  void write_head(const PointwiseFunction& function);
  common::Result<void> write_body(const PointwiseFunction& function, std::span<const NodeId> outputs);
  common::Result<UsedParameters> check_leaves(Signature signature) const;
  void void_unused(Signature signature, const UsedParameters& used);

  const Plain& plain_;
  const EmitOptions& options_;
  EmitStatistics* statistics_;  // may be null
  LeafSpelling leaves_;
  BodyOptions body_;
  BodyWriter writer_;
  std::array<std::string, 4> heads_;  // by signature: what follows the name
};

void Module::write_head(const PointwiseFunction& function) {
  std::string& tail = heads_[static_cast<std::size_t>(function.signature)];
  if (tail.empty()) tail = parameter_list(function.signature, type_names(options_));
  if (options_.table) text += "static ";  // found through the table
  text.append("void ").append(options_.prefix).append(function.name).append(tail).append(" {\n");
}

common::Result<UsedParameters> Module::check_leaves(Signature signature) const {
  UsedParameters used{};
  std::array<bool, kFirstOther> seen{};
  for (const NodeId id : writer_.order()) {
    const Node& node = plain_.graph()[id];
    if (node.op != Op::kLeaf) continue;
    const bool is_new = node.argument >= kFirstOther || !seen[node.argument];
    if (!is_new && !options_.runtime_offsets) continue;
    if (auto known = leaves_.check(plain_.graph(), node, signature); !known) return std::unexpected(known.error());
    leaves_.mark(node, used);
    seen[node.argument] = true;
  }
  return used;
}

void Module::void_unused(Signature signature, const UsedParameters& used) {
  std::string_view separator = "  ";
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] || !has(signature, kParameters[i])) continue;
    text.append(separator).append("(void)").append(kParameters[i].name).append(";");
    separator = " ";
  }
  if (separator == " ") text += '\n';
}

common::Result<void> Module::write_body(const PointwiseFunction& function, std::span<const NodeId> outputs) {
  writer_.begin(outputs);
  auto used = check_leaves(function.signature);
  if (!used) return std::unexpected(std::move(used.error()));
  used->back() = !outputs.empty();
  void_unused(function.signature, *used);
  std::vector<Output> targets;
  targets.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) targets.push_back({outputs[i], "out[" + std::to_string(i) + "]"});
  return writer_.write(text, targets);
}

common::Result<void> Module::write(const PointwiseFunction& function, std::span<const NodeId> outputs) {
  write_head(function);
  if (auto written = write_body(function, outputs); !written) {
    common::Error error = std::move(written.error());
    error.thing = error.thing.empty() ? function.name : function.name + ": " + error.thing;
    return std::unexpected(std::move(error));
  }
  text += "}\n\n";
  if (statistics_ != nullptr) writer_.add_to(*statistics_);
  return {};
}

void Module::write_table(std::span<const PointwiseFunction> functions, const std::vector<bool>& is_written) {
  std::vector<std::string_view> groups;
  for (const PointwiseFunction& function : functions) {
    if (std::ranges::find(groups, function.group) == groups.end()) groups.emplace_back(function.group);
  }
  std::string counts;
  std::string pointers;
  std::string names;
  for (const std::string_view group : groups) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < functions.size(); ++i) {
      if (functions[i].group != group) continue;
      ++count;
      pointers += is_written[i] ? "    (void (*)(void))" + options_.prefix + functions[i].name + ",\n" : "    0,\n";
      names += "    \"" + functions[i].name + "\",\n";
    }
    counts += (counts.empty() ? "" : ", ") + std::to_string(count);
  }
  const auto symbol = [&](std::string_view name) { return options_.prefix + std::string(name); };
  text += "static const int " + symbol(kCounts) + "[] = {" + (counts.empty() ? "0" : counts) + "};\n";
  text += "static void (*const " + symbol(kFunctions) + "[])(void) = {\n" + (pointers.empty() ? "    0,\n" : pointers) +
          "};\n";
  text += "static const char *const " + symbol(kNames) + "[] = {\n" + (names.empty() ? "    0,\n" : names) + "};\n";
  text +=
      "const struct {\n  int version;\n  int groups;\n  const int *counts;\n  void (*const *functions)(void);\n"
      "  const char *const *names;\n} " +
      symbol(kTable) + " = {" + std::to_string(kTableVersion) + ", " + std::to_string(groups.size()) + ", " +
      symbol(kCounts) + ", " + symbol(kFunctions) + ", " + symbol(kNames) + "};\n";
}

common::Result<void> check_names(const Plain& plain, std::span<const PointwiseFunction> functions,
                                 const EmitOptions& options) {
  Symbols symbols;
  if (options.table) {
    for (const std::string_view name : {kTable, kCounts, kFunctions, kNames})
      symbols.reserve(options.prefix + std::string(name));
  }
  for (const PointwiseFunction& function : functions) {
    if (auto defined = symbols.define(function.name, options.prefix); !defined) return defined;
  }
  // Parameters hide functions: an opaque one must not be called as one of them.
  for (const Parameter& parameter : kParameters) symbols.reserve(std::string(parameter.name));
  for (const char* type : {"PetscInt", "PetscReal", "PetscScalar"}) symbols.reserve(type);
  return symbols.declare_opaque(plain);
}

}  // namespace

bool is_zero(const Graph& graph, const PointwiseFunction& function) {
  return std::ranges::all_of(function.outputs,
                             [&](NodeId id) { return graph.is_number(id) && graph.number_of(id) == 0.0; });
}

common::Result<std::string> emit(const Graph& graph, std::span<const PointwiseFunction> functions,
                                 const EmitOptions& options, EmitStatistics* statistics) {
  if (auto fits = check_capacity(graph); !fits) return std::unexpected(fits.error());
  if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
  std::vector<bool> is_written(functions.size());
  std::vector<NodeId> outputs;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    is_written[i] = !(options.skip_zero && is_zero(graph, functions[i]));
    if (is_written[i]) outputs.insert(outputs.end(), functions[i].outputs.begin(), functions[i].outputs.end());
  }
  const Plain plain(graph, outputs);
  if (auto checked = check_names(plain, functions, options); !checked) return std::unexpected(checked.error());
  EmitStatistics found;
  found.nodes = plain.nodes();
  Module module(plain, options, statistics != nullptr ? &found : nullptr);
  module.text.reserve(functions.size() * kBytesPerFunction + plain.nodes() * kBytesPerNode);
  module.text.append(kContractionGuard).append("#include <math.h>\n\n").append(type_definitions(options));
  const std::string used = helpers(plain);
  if (!used.empty()) module.text.append(used).append("\n");
  std::size_t first = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!is_written[i]) continue;
    const std::size_t size = functions[i].outputs.size();
    if (auto written = module.write(functions[i], plain.outputs().subspan(first, size)); !written) {
      return std::unexpected(written.error());
    }
    first += size;
  }
  if (options.table) module.write_table(functions, is_written);
  if (statistics != nullptr) *statistics = found;
  return std::move(module.text);
}

}  // namespace jitc::graph
