#include "daemon/worker/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/worker/embedded_compiler.h"

namespace jitc::worker {

v1::WorkerReport::Ready describe_host() {
  v1::WorkerReport::Ready ready;
  ready.set_embedded_identity(embedded_identity());
  ready.set_target_triple(llvm::sys::getDefaultTargetTriple());
  ready.set_host_cpu(llvm::sys::getHostCPUName().str());
  std::vector<std::string> features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    if (feature.getValue()) features.push_back(feature.getKey().str());
  }
  std::ranges::sort(features);
  for (const std::string& feature : features) {
    *ready.mutable_host_features() += (ready.host_features().empty() ? "" : ",") + feature;
  }
  return ready;
}

}  // namespace jitc::worker
