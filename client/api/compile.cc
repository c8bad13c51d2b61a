// jitc_compile, jitc_compile_problem and jitc_compile_all.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

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

void fill(jitc_module& handle, gate::Delivery& delivery, bool is_problem) {
  handle.module = std::move(delivery.module);
  handle.manifest = std::move(delivery.manifest);
  handle.origin = static_cast<jitc_origin>(delivery.origin);
  if (is_problem) find_functions(handle, delivery.request);
}

jitc_kind compile(jitc_context& context, const jitc_context::MakeDemand& make_demand, bool is_problem, const char* name,
                  jitc_module** module, jitc_error** error) {
  // Before the ranks agree: what this rank alone fails in afterwards nobody else would hear of.
  std::unique_ptr<jitc_module> handle(new (std::nothrow) jitc_module);
  gate::Outcome<gate::Delivery> outcome = context.compile(make_demand, handle != nullptr);
  if (!outcome) return api::hand_out(std::move(outcome.error()), error, name ? name : "source.c");
  fill(*handle, *outcome, is_problem);
  *module = handle.release();
  return JITC_OK;
}

// The caller's structures may be shorter or longer than this library's, so that their size is the stride.
std::vector<jitc_item> items_of(const jitc_item* items, std::size_t count) {
  std::vector<jitc_item> known;
  for (std::size_t i = 0; i < count; ++i)
    known.push_back(api::from_sized(
        reinterpret_cast<const jitc_item*>(reinterpret_cast<const unsigned char*>(items) + i * items->size)));
  return known;
}

std::vector<gate::Demand> demands_of(const std::vector<jitc_item>& items, const auto& defaults) {
  std::vector<gate::Demand> demands;
  for (const jitc_item& item : items)
    demands.push_back(item.problem ? api::demand_of(item.problem, item.options, item.request, defaults)
                                   : api::demand_of(item.request, defaults));
  return demands;
}

// Diagnostics stand under the name of the source that they are of.
std::string source_in(const common::Error& error) {
  return error.kind == ErrorKind::kInvalidSource && !error.thing.empty() ? error.thing : "source.c";
}

jitc_kind compile_all(jitc_context& context, const jitc_item* given, std::size_t count, jitc_module** modules,
                      jitc_error** error) {
  std::vector<jitc_item> items;
  std::vector<std::unique_ptr<jitc_module>> handles;
  bool has_handles = true;
  try {  // before the ranks agree, as above
    items = items_of(given, count);
    while (handles.size() < count) handles.push_back(std::make_unique<jitc_module>());
  } catch (const std::bad_alloc&) {
    has_handles = false;
  }
  auto outcome = context.compile_all([&](const auto& defaults) { return demands_of(items, defaults); }, has_handles);
  for (const jitc_item& item : items)
    if (item.problem) item.problem->take_back();
  if (!outcome) {
    const std::string name = source_in(outcome.error().error);
    return api::hand_out(std::move(outcome.error()), error, name);
  }
  for (std::size_t i = 0; i < count; ++i) fill(*handles[i], (*outcome)[i], items[i].problem != nullptr);
  for (std::size_t i = 0; i < count; ++i) modules[i] = handles[i].release();
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

jitc_kind jitc_compile_all(jitc_context* context, const jitc_item* items, size_t count, jitc_module** modules,
                           jitc_error** error) {
  if (error) *error = nullptr;
  if (modules) std::fill_n(modules, count, nullptr);
  try {
    if (!context || (count > 0 && (!items || !modules)))
      return api::hand_out({{ErrorKind::kUsage, "a null pointer was given", "jitc_compile_all"}, {}}, error);
    return compile_all(*context, items, count, modules, error);
  } catch (...) {  // the ABI carries no exceptions
    return api::hand_out(api::failure_of_exception(), error);
  }
}
