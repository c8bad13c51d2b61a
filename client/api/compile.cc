// jitc_compile, jitc_compile_problem and jitc_compile_all.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "client/api/context.h"
#include "client/api/handles.h"
#include "client/api/problem_request.h"

using namespace jitc;
using common::ErrorKind;

namespace {

const char* name_in(const jitc_request* request) {
  const char* name = request && request->size >= offsetof(jitc_request, flags) ? request->name : nullptr;
  return name && *name ? name : nullptr;
}

// What a rank brings that cannot ask: all ranks get its error, where without it they would wait for this one. The words
// are short enough to need no memory.
gate::Demand no_memory() { return {common::fail(ErrorKind::kInternal, "no memory"), {}}; }

gate::Demand null_pointer_in(const char* call) {
  try {
    return {api::null_pointer(call), {}};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

// After the ranks have agreed: what this rank alone failed in nobody else would hear of, so that nothing here can fail.
void fill(jitc_module& handle, gate::Delivery& delivery, bool is_problem) noexcept {
  handle.module = std::move(delivery.module);
  handle.manifest = std::move(delivery.manifest);
  handle.origin = static_cast<jitc_origin>(delivery.origin);
  if (!is_problem) return;
  handle.problem = delivery.request;
  handle.table = static_cast<const jitc_table*>(handle.module->find(api::table_symbol(delivery.request).data()));
}

// One module; `make_demand()` is what this rank asks for, if it can take a module.
template <class MakeDemand>
jitc_kind compile(jitc_context& context, const char* call, const MakeDemand& make_demand, bool is_problem,
                  const char* name, jitc_module** module, jitc_error** error) {
  std::unique_ptr<jitc_module> handle(new (std::nothrow) jitc_module);
  const bool can_ask = handle && !context.is_broken();  // no source is made for a broken one, which refuses anyway
  gate::Demand demand = !module ? null_pointer_in(call) : can_ask ? make_demand() : no_memory();
  gate::Outcome<std::vector<gate::Delivery>> outcome = context.compile({&demand, 1});
  if (!outcome) return api::hand_out(std::move(outcome.error()), error, name);
  fill(*handle, outcome->front(), is_problem);
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

gate::Demand demand_of(jitc_context& context, const jitc_item& item) {
  return item.problem ? context.demand_of(item.problem, item.options, item.request) : context.demand_of(item.request);
}

jitc_kind compile_all(jitc_context& context, const jitc_item* given, std::size_t count, jitc_module** modules,
                      jitc_error** error) {
  std::vector<jitc_item> items;
  std::vector<std::unique_ptr<jitc_module>> handles;
  std::vector<gate::Demand> demands;
  gate::Demand none = no_memory();
  bool can_ask = !context.is_broken();
  try {
    if (count > 0 && (!given || !modules)) {
      can_ask = false;
      none = null_pointer_in("jitc_compile_all");
    } else if (can_ask) {
      items = items_of(given, count);
      while (handles.size() < count) handles.push_back(std::make_unique<jitc_module>());
      for (const jitc_item& item : items) demands.push_back(demand_of(context, item));
    }
  } catch (const std::bad_alloc&) {
    can_ask = false;
  }
  auto outcome = context.compile(can_ask ? std::span(demands) : std::span(&none, 1));
  for (const jitc_item& item : items)
    if (item.problem) item.problem->take_back();
  if (!outcome) return api::hand_out(std::move(outcome.error()), error);
  for (std::size_t i = 0; i < count; ++i) {
    fill(*handles[i], (*outcome)[i], items[i].problem != nullptr);
    modules[i] = handles[i].release();
  }
  return JITC_OK;
}

}  // namespace

jitc_kind jitc_compile(jitc_context* context, const jitc_request* request, jitc_module** module, jitc_error** error) {
  if (error) *error = nullptr;
  if (module) *module = nullptr;
  try {
    if (!context) return api::hand_out({api::null_pointer("jitc_compile").error(), {}}, error);
    return compile(
        *context, "jitc_compile", [&] { return context->demand_of(request); }, false, name_in(request), module, error);
  } catch (...) {  // the ABI carries no exceptions
    return api::hand_out(api::failure_of_exception(), error);
  }
}

jitc_kind jitc_compile_problem(jitc_context* context, jitc_problem* problem, const jitc_emit_options* options,
                               const jitc_request* request, jitc_module** module, jitc_error** error) {
  if (error) *error = nullptr;
  if (module) *module = nullptr;
  try {
    if (!context) return api::hand_out({api::null_pointer("jitc_compile_problem").error(), {}}, error);
    const char* name = name_in(request);
    if (!name && problem) name = problem->problem().name.c_str();
    const jitc_kind status = compile(
        *context, "jitc_compile_problem", [&] { return context->demand_of(problem, options, request); }, true, name,
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
    if (!context) return api::hand_out({api::null_pointer("jitc_compile_all").error(), {}}, error);
    return compile_all(*context, items, count, modules, error);
  } catch (...) {  // the ABI carries no exceptions
    return api::hand_out(api::failure_of_exception(), error);
  }
}
