// jitc_module.
#include <cstring>
#include <numeric>

#include "client/api/handles.h"
#include "client/api/problem_request.h"

using namespace jitc;
using common::ErrorKind;
using common::Result;

namespace {

// NULL for a function that is identically zero.
Result<void*> find_in(const jitc_table& table, const char* name) {
  const int count = std::accumulate(table.counts, table.counts + table.groups, 0);
  for (int i = 0; i < count; ++i)
    if (std::strcmp(table.names[i], name) == 0) return reinterpret_cast<void*>(table.functions[i]);
  return common::fail(ErrorKind::kUsage, "the problem has no such function", name);
}

}  // namespace

jitc_kind jitc_module_symbol(const jitc_module* module, const char* name, void** address, jitc_error** error) {
  return api::attempt(error, [&]() -> Result<void> {
    if (!module || !name || !address) return api::null_pointer("jitc_module_symbol");
    const Result<void*> symbol = module->module->symbol(name);
    if (!symbol) return std::unexpected(symbol.error());
    *address = *symbol;
    return {};
  });
}

jitc_kind jitc_module_function(const jitc_module* module, const char* name, void** address, jitc_error** error) {
  return api::attempt(error, [&]() -> Result<void> {
    if (!module || !name || !address) return api::null_pointer("jitc_module_function");
    if (!module->problem)
      return common::fail(ErrorKind::kUsage, "the module was made from C text", name, "use jitc_module_symbol");
    const Result<void*> found = module->table ? find_in(*module->table, name)
                                              : module->module->symbol(api::symbol_prefix(*module->problem) + name);
    if (!found) return std::unexpected(found.error());
    *address = *found;
    return {};
  });
}

const jitc_table* jitc_module_table(const jitc_module* module) { return module ? module->table : nullptr; }

const char* jitc_module_key(const jitc_module* module) { return module ? module->module->key_text().c_str() : ""; }
const char* jitc_module_path(const jitc_module* module) { return module ? module->module->path().c_str() : ""; }
jitc_origin jitc_module_origin(const jitc_module* module) { return module ? module->origin : JITC_FROM_MEMORY; }

const void* jitc_module_manifest(const jitc_module* module, size_t* length) {
  if (length) *length = module ? module->manifest.size() : 0;
  return module ? module->manifest.data() : "";
}

void jitc_module_release(jitc_module* module) { delete module; }
