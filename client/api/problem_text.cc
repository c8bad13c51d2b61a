#include "client/api/problem_text.h"

#include <algorithm>
#include <span>

#include "client/graph/evaluate.h"
#include "client/graph/fused.h"

using namespace jitc;
using common::ErrorKind;
using common::Result;

namespace jitc::api {

Result<graph::Sharing> sharing_of(std::string_view text) {
  if (text == "0") return graph::Sharing::kTrees;
  if (text == "1") return graph::Sharing::kShared;
  if (text == "auto") return graph::Sharing::kAuto;
  return common::fail(ErrorKind::kUsage, "'" + std::string(text) + "' is not a value of it", "sharing",
                      "use 0, 1 or auto");
}

Result<graph::EmitOptions> emit_options_of(const jitc_emit_options* options, const graph::Problem& problem) {
  const jitc_emit_options given = from_sized(options);
  graph::EmitOptions made;
  const Result<graph::Sharing> sharing = sharing_of(given.sharing ? given.sharing : "auto");
  if (!sharing) return std::unexpected(sharing.error());
  made.sharing = *sharing;
  const std::string_view types = given.types ? given.types : "petsc";
  if (types != "petsc" && types != "plain")
    return common::fail(ErrorKind::kUsage, "'" + std::string(types) + "' is not a value of it", "types",
                        "use petsc or plain");
  made.types = types == "petsc" ? graph::Types::kPetsc : graph::Types::kPlain;
  if (given.int_bits != 0) made.int_bits = given.int_bits;
  made.complex_scalar = given.complex_scalar != 0;
  made.runtime_offsets = given.runtime_offsets != 0;
  for (const graph::Field& field : problem.fields) made.field_first.push_back(field.first);
  for (const graph::Field& field : problem.aux_fields) made.aux_first.push_back(field.first);
  made.dim = problem.dim;
  made.lazy_arms = given.lazy_arms != 0;
  if (given.prefix) made.prefix = given.prefix;
  made.skip_zero = given.skip_zero != 0;
  made.table = given.table != 0;
  return made;
}

Result<std::string> print(const Lowered& lowered, const graph::EmitOptions& options, jitc_layout layout) {
  const graph::Graph& graph = lowered.problem.graph;
  if (layout == JITC_SEPARATE) return graph::emit(graph, lowered.functions, options);
  if (layout != JITC_FUSED && layout != JITC_BATCH)
    return common::fail(ErrorKind::kUsage, std::to_string(static_cast<int>(layout)) + " is not a value of it",
                        "layout");
  const bool is_batch = layout == JITC_BATCH;
  return graph::emit_fused(graph, options.prefix + (is_batch ? "batch" : "fused"), lowered.functions,
                           {.sharing = options.sharing, .lazy_arms = options.lazy_arms, .batch = is_batch});
}

namespace {

void hand_out_text(std::string text, jitc_text** out) { *out = new jitc_text{std::move(text), {}}; }

Result<const graph::PointwiseFunction*> function_of(const Lowered& lowered, const char* name) {
  for (const graph::PointwiseFunction& function : lowered.functions)
    if (function.name == name) return &function;
  return common::fail(ErrorKind::kUsage, "the problem has no such function", name);
}

// The argument's array, NULL where the caller gives none.
const double* array_of(const jitc_point& point, graph::ArgumentId argument) {
  switch (argument) {
    case graph::kU:
      return point.u;
    case graph::kUt:
      return point.u_t;
    case graph::kUx:
      return point.u_x;
    case graph::kA:
      return point.a;
    case graph::kAt:
      return point.a_t;
    case graph::kAx:
      return point.a_x;
    case graph::kT:
      return &point.t;
    case graph::kUtShift:
      return &point.u_t_shift;
    case graph::kX:
      return point.x;
    case graph::kN:
      return point.n;
    case graph::kConstants:
      return point.constants;
    default:
      return nullptr;
  }
}

Result<void> check_inputs(const graph::Graph& graph, std::span<const graph::NodeId> outputs, const jitc_point& point) {
  const std::vector<bool> used = graph::reachable(graph, outputs);
  for (graph::NodeId id = 0; id < used.size(); ++id) {
    if (!used[id]) continue;
    if (graph[id].op == graph::Op::kCall)
      return common::fail(ErrorKind::kUsage, "it is known by name only and cannot be evaluated",
                          "function '" + graph.function(graph[id].args[2]).name + "'");
    if (graph[id].op == graph::Op::kLeaf && !array_of(point, graph[id].argument))
      return common::fail(ErrorKind::kUsage, "the point has no values of it, which the function needs",
                          std::string(graph.argument_name(graph[id].argument)));
  }
  return {};
}

Result<void> evaluate(const jitc_problem& problem, const char* name, jitc_point point, std::span<double> values) {
  const auto lowered = problem.lowered();
  if (!lowered) return std::unexpected(lowered.error());
  const auto function = function_of(**lowered, name);
  if (!function) return std::unexpected(function.error());
  const std::vector<graph::NodeId>& outputs = (*function)->outputs;
  if (values.size() != outputs.size())
    return common::fail(ErrorKind::kUsage,
                        "it has " + std::to_string(outputs.size()) + " entries, not " + std::to_string(values.size()),
                        name);
  std::vector<double> constants(jitc_problem_constants(&problem, nullptr, 0));
  jitc_problem_constants(&problem, constants.data(), constants.size());
  if (!point.constants) point.constants = constants.data();
  const graph::Graph& graph = (*lowered)->problem.graph;
  if (auto checked = check_inputs(graph, outputs, point); !checked) return checked;
  const std::vector<double> results = graph::evaluate(
      graph, outputs, [&point](const graph::Node& leaf) { return array_of(point, leaf.argument)[leaf.args[0]]; });
  std::ranges::copy(results, values.begin());
  return {};
}

}  // namespace
}  // namespace jitc::api

const char* jitc_text_bytes(const jitc_text* text, size_t* length) {
  if (length) *length = text->source.size();
  return text->source.c_str();
}

void jitc_text_free(jitc_text* text) { delete text; }

jitc_kind jitc_problem_emit(const jitc_problem* problem, const jitc_emit_options* options, jitc_text** text,
                            jitc_error** error) {
  if (text) *text = nullptr;
  return api::attempt(error, [&]() -> Result<void> {
    if (!problem || !text) return api::null_pointer("jitc_problem_emit");
    const auto lowered = problem->lowered();
    if (!lowered) return std::unexpected(lowered.error());
    const auto emit_options = api::emit_options_of(options, problem->problem());
    if (!emit_options) return std::unexpected(emit_options.error());
    Result<std::string> emitted = api::print(**lowered, *emit_options, api::from_sized(options).layout);
    if (!emitted) return std::unexpected(std::move(emitted.error()));
    api::hand_out_text(std::move(*emitted), text);
    return {};
  });
}

jitc_kind jitc_problem_manifest(const jitc_problem* problem, jitc_text** text, jitc_error** error) {
  if (text) *text = nullptr;
  return api::attempt(error, [&]() -> Result<void> {
    if (!problem || !text) return api::null_pointer("jitc_problem_manifest");
    if (auto checked = problem->check(); !checked) return checked;
    api::hand_out_text(graph::constants_manifest(problem->problem()), text);
    return {};
  });
}

jitc_kind jitc_problem_evaluate(const jitc_problem* problem, const char* function, const jitc_point* point,
                                double* values, size_t count, jitc_error** error) {
  return api::attempt(error, [&]() -> Result<void> {
    if (!problem || !function || !point || !values) return api::null_pointer("jitc_problem_evaluate");
    return api::evaluate(*problem, function, api::from_sized(point), {values, count});
  });
}
