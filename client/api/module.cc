// jitc_module.
#include "client/api/handles.h"

jitc_kind jitc_module_symbol(const jitc_module* module, const char* name, void** address, jitc_error** error) {
  using jitc::common::ErrorKind;
  if (error) *error = nullptr;
  try {
    if (!module || !name || !address)
      return jitc::api::hand_out({{ErrorKind::kUsage, "a null pointer was given", "jitc_module_symbol"}, {}}, error);
    auto symbol = module->module->symbol(name);
    if (!symbol) return jitc::api::hand_out({std::move(symbol.error()), {}}, error);
    *address = *symbol;
    return JITC_OK;
  } catch (...) {  // the ABI carries no exceptions
    return jitc::api::hand_out(jitc::api::failure_of_exception(), error);
  }
}

const char* jitc_module_key(const jitc_module* module) { return module->module->key_text().c_str(); }
jitc_origin jitc_module_origin(const jitc_module* module) { return module->origin; }

const void* jitc_module_manifest(const jitc_module* module, size_t* length) {
  if (length) *length = module->manifest.size();
  return module->manifest.data();
}

void jitc_module_release(jitc_module* module) { delete module; }
