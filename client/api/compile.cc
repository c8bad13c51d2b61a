// jitc_compile and jitc_compile_problem.
#include <cstddef>
#include <memory>
#include <new>

#include "client/api/context.h"
#include "client/api/handles.h"
#include "client/api/problem_request.h"
#include "client/api/request.h"

using namespace jitc;
using common::ErrorKind;

namespace {

const char* name_in(const jitc_request* request) {
  const char* name = request && request->size >= offsetof(jitc_request, flags) ? request->name : nullptr;
  return name && *name ? name : nullptr;
}

// Where the functions of a problem's module are. Fused ones have no table.
void find_functions(jitc_module& handle, const common::Digest& request) {
  handle.prefix = api::symbol_prefix(request);
  if (const auto table = handle.module->symbol(handle.prefix + "table"))
    handle.table = static_cast<const jitc_table*>(*table);
}

jitc_kind compile(jitc_context& context, const jitc_context::MakeDemand& make_demand, bool is_problem, const char* name,
                  jitc_module** module, jitc_error** error) {
  // Before the ranks agree: what this rank alone fails in afterwards nobody else would hear of.
  std::unique_ptr<jitc_module> handle(new (std::nothrow) jitc_module);
  gate::Outcome<gate::Delivery> outcome = context.compile(make_demand, handle != nullptr);
  if (!outcome) return api::hand_out(std::move(outcome.error()), error, name ? name : "source.c");
  handle->module = std::move(outcome->module);
  handle->manifest = std::move(outcome->manifest);
  handle->origin = static_cast<jitc_origin>(outcome->origin);
  if (is_problem) find_functions(*handle, outcome->request);
  *module = handle.release();
  return JITC_OK;
}

}  // namespace

jitc_kind jitc_compile(jitc_context* context, const jitc_request* request, jitc_module** module, jitc_error** error) {
  if (error) *error = nullptr;
  if (module) *module = nullptr;
  try {
    if (!context || !module)
      return api::hand_out({{ErrorKind::kUsage, "a null pointer was given", "jitc_compile"}, {}}, error);
    return compile(
        *context, [request](const auto& defaults) { return api::demand_of(request, defaults); }, false,
        name_in(request), module, error);
  } catch (...) {  // the ABI carries no exceptions
    return api::hand_out(api::failure_of_exception(), error);
  }
}

jitc_kind jitc_compile_problem(jitc_context* context, jitc_problem* problem, const jitc_emit_options* options,
                               const jitc_request* request, jitc_module** module, jitc_error** error) {
  if (error) *error = nullptr;
  if (module) *module = nullptr;
  try {
    if (!context || !module)
      return api::hand_out({{ErrorKind::kUsage, "a null pointer was given", "jitc_compile_problem"}, {}}, error);
    const char* name = name_in(request);
    if (!name && problem) name = problem->problem().name.c_str();
    const jitc_kind status = compile(
        *context, [=](const auto& defaults) { return api::demand_of(problem, options, request, defaults); }, true, name,
        module, error);
    if (problem) problem->take_back();
    return status;
  } catch (...) {  // the ABI carries no exceptions
    return api::hand_out(api::failure_of_exception(), error);
  }
}
