#include "client/gate/module_table.h"

namespace jitc::gate {

std::shared_ptr<loader::Module> ModuleTable::find(const common::Digest& request) const {
  const std::lock_guard lock(mutex_);
  const auto found = modules_.find(request);
  return found == modules_.end() ? nullptr : found->second.lock();
}

void ModuleTable::insert(const common::Digest& request, const std::shared_ptr<loader::Module>& module) {
  const std::lock_guard lock(mutex_);
  std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  modules_[request] = module;
}

}  // namespace jitc::gate
