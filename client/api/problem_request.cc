#include "client/api/problem_request.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include "client/api/problem_text.h"
#include "client/api/request.h"

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
         std::to_string(options.lazy_arms) + "\nlayout " + std::to_string(layout) + "\n";
}

Result<void> check_base(const jitc_request& base) {
  if (!base.source && !base.make_source && !base.manifest) return {};
  return common::fail(ErrorKind::kUsage, "the request has a source or a manifest of its own", "jitc_compile_problem",
                      "leave them empty: the problem is the source");
}

// Runs on the root's helper thread, on a miss.
Result<std::string> make_code(const graph::Problem& problem, graph::EmitOptions options, jitc_layout layout,
                              const common::Request& request) {
  const Result<Lowered> lowered = lower_copy(problem);
  if (!lowered) return std::unexpected(lowered.error());
  options.prefix = symbol_prefix(common::request_digest(request));
  return print(*lowered, options, layout);
}

Result<gate::Demand> make_demand(jitc_problem& problem, const jitc_emit_options& options, jitc_request base,
                                 const common::Request& defaults) {
  if (auto checked = check_base(base); !checked) return std::unexpected(std::move(checked.error()));
  const auto description = problem.description();
  if (!description) return std::unexpected(description.error());
  auto emit_options = emit_options_of(&options, problem.problem());
  if (!emit_options) return std::unexpected(std::move(emit_options.error()));
  emit_options->skip_zero = true;
  emit_options->table = true;
  if (!base.name || !*base.name) base.name = problem.problem().name.c_str();
  common::Request request = request_of(base, defaults, **description + describe(*emit_options, options.layout));
  if (options.sharing) request.cse = options.sharing;
  request.share = "0";  // concerns texts that callers give
  request.emitter_version = graph::kEmitterVersion;
  auto sharing = sharing_of(request.cse);
  if (!sharing) return std::unexpected(std::move(sharing.error()));
  emit_options->sharing = *sharing;
  return gate::Demand{problem.asked(std::move(request)), graph::constants_manifest(problem.problem()),
                      [shared = problem.share(), emit = std::move(*emit_options), layout = options.layout](
                          const common::Request& asked) { return make_code(*shared, emit, layout, asked); }};
}

}  // namespace

std::string symbol_prefix(const common::Digest& request) { return symbol(request, "").data(); }

std::array<char, 32> table_symbol(const common::Digest& request) noexcept { return symbol(request, "table"); }

gate::Demand demand_of(jitc_problem* problem, const jitc_emit_options* options, const jitc_request* request,
                       const Result<common::Request>& defaults) {
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
