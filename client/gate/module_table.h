// The modules that this process holds, by request digest, shared by its contexts. It keeps nothing alive: a module that
// everybody has released is gone.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "client/loader/module.h"
#include "common/digest.h"

namespace jitc::gate {

class ModuleTable {
 public:
  std::shared_ptr<loader::Module> find(const common::Digest& request) const;
  void insert(const common::Digest& request, const std::shared_ptr<loader::Module>& module);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<common::Digest, std::weak_ptr<loader::Module>> modules_;
};

}  // namespace jitc::gate
