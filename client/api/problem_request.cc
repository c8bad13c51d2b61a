#include "client/api/problem_request.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "client/api/problem_text.h"
#include "client/api/request.h"
#include "client/graph/canary.h"
#include "common/flags.h"

namespace jitc::api {
namespace {

using common::ErrorKind;
using common::Result;

// jitc_ begins the helpers' names.
std::array<char, 32> symbol(const common::Digest& request, const char* name) noexcept {
  const std::uint64_t front = std::hash<common::Digest>()(request);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "jitc%016" PRIx64 "_%s", front, name);
  return text;
}

std::string describe(const graph::EmitOptions& options, jitc_layout layout) {
  return std::string("types ") + (options.types == graph::Types::kPetsc ? "petsc" : "plain") + "\nint " +
         std::to_string(options.int_bits) + "\ncomplex " + std::to_string(options.complex_scalar) +
         "\nruntime offsets " + std::to_string(options.runtime_offsets) + "\nlazy arms " +
         std::to_string(options.lazy_arms) + "\nlayout " + std::to_string(layout) +
         (options.skip_zero ? "\n" : "\nkeep zero 1\n");
}

Result<void> check_base(const jitc_request& base) {
  if (!base.source && !base.make_source && !base.manifest) return {};
  return common::fail(ErrorKind::kUsage, "the request has a source or a manifest of its own", "jitc_compile_problem",
                      "leave them empty: the problem is the source");
}

// How the code of a problem is made, and at which constants it is checked.
struct Making {
  graph::EmitOptions options;
  jitc_layout layout = JITC_SEPARATE;
  std::vector<double> constants;  // by slot
};

graph::CanaryOptions canary_options(const Making& making, const std::string& prefix) {
  using Layout = graph::CanaryOptions::Layout;
  return {.layout = making.layout == JITC_BATCH   ? Layout::kBatch
                    : making.layout == JITC_FUSED ? Layout::kFused
                                                  : Layout::kSeparate,
          .prefix = prefix,
          .int_bits = making.options.int_bits,
          .constants = making.constants};
}

// Runs on the root's helper thread, on a miss.
Result<gate::MadeCode> make_code(const graph::Problem& problem, const Making& making, const common::Request& request) {
  const Result<Lowered> lowered = lower_copy(problem);
  if (!lowered) return std::unexpected(lowered.error());
  graph::EmitOptions options = making.options;
  options.prefix = symbol_prefix(common::request_digest(request));
  Result<std::string> text = print(*lowered, options, making.layout);
  if (!text) return std::unexpected(std::move(text.error()));
  if (!request.checked) return std::move(*text);
  return gate::MadeCode(std::move(*text), graph::make_canary(lowered->problem, lowered->functions,
                                                             canary_options(making, options.prefix)));
}

std::vector<double> constants_by_slot(const jitc_problem& problem) {
  const std::vector<std::uint32_t> slots = graph::constant_slots(problem.problem());
  std::vector<double> constants(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) constants[slots[i]] = problem.values()[i];
  return constants;
}

Result<bool> wants_canary(std::string_view setting, const common::Request& request) {
  if (setting == "off") return false;
  if (setting == "on") return true;
  if (setting == "auto") return common::keep_values(request.flags);
  return common::fail(ErrorKind::kUsage, "'" + std::string(setting) + "' is not a value of it", "canary",
                      "use auto, off or on");
}

Result<gate::Demand> make_demand(jitc_problem& problem, const jitc_emit_options& options, jitc_request base,
                                 const Defaults& defaults) {
  if (auto checked = check_base(base); !checked) return std::unexpected(std::move(checked.error()));
  const auto description = problem.description();
  if (!description) return std::unexpected(description.error());
  auto emit_options = emit_options_of(&options, problem.problem());
  if (!emit_options) return std::unexpected(std::move(emit_options.error()));
  emit_options->skip_zero = options.keep_zero == 0;
  emit_options->table = true;
  if (!base.name || !*base.name) base.name = problem.problem().name.c_str();
  common::Request request = request_of(base, defaults.request, **description + describe(*emit_options, options.layout));
  if (options.sharing) request.cse = options.sharing;
  request.share = "0";  // concerns texts that callers give
  request.emitter_version = graph::kEmitterVersion;
  auto sharing = sharing_of(request.cse);
  if (!sharing) return std::unexpected(std::move(sharing.error()));
  emit_options->sharing = *sharing;
  const auto checked = wants_canary(options.canary ? options.canary : defaults.canary, request);
  if (!checked) return std::unexpected(checked.error());
  request.checked = *checked;
  Making making{std::move(*emit_options), options.layout, constants_by_slot(problem)};
  return gate::Demand{problem.asked(std::move(request)), graph::constants_manifest(problem.problem()),
                      [shared = problem.share(), making = std::move(making)](const common::Request& asked) {
                        return make_code(*shared, making, asked);
                      }};
}

}  // namespace

std::string symbol_prefix(const common::Digest& request) { return symbol(request, "").data(); }

std::array<char, 32> table_symbol(const common::Digest& request) noexcept { return symbol(request, "table"); }

gate::Demand demand_of(jitc_problem* problem, const jitc_emit_options* options, const jitc_request* request,
                       const Result<Defaults>& defaults) {
  try {
    if (!defaults) return {std::unexpected(defaults.error()), {}};
    if (!problem) return {common::fail(ErrorKind::kUsage, "no problem was given", "jitc_compile_problem"), {}};
    Result<gate::Demand> demand = make_demand(*problem, from_sized(options), from_sized(request), *defaults);
    if (demand) return std::move(*demand);
    return {std::unexpected(std::move(demand.error())), {}};
  } catch (...) {  // memory: the other ranks must hear of it like of any failure
    return {std::unexpected(failure_of_exception().error), {}};
  }
}

}  // namespace jitc::api
