#include "daemon/worker/sampling.h"

namespace jitc::worker {
namespace {

class SampledBounds : public TreeBounds {
 public:
  void limit_memory(std::uint64_t bytes, const TreeUse&) override { limit_ = bytes; }
  bool kept_by_kernel() const override { return false; }
  std::optional<Breach> breach(const TreeUse& use) const override {
    if (limit_ == 0 || use.resident_bytes <= limit_) return excess_of_processes(use);
    return Breach{Breach::Of::kMemory, "sampled: its processes held " + std::to_string(use.resident_bytes) +
                                           " bytes, the limit is " + std::to_string(limit_)};
  }
  std::uint64_t peak_bytes() const override { return 0; }
  // What walks the tree ends it: the worker.
  void kill_processes() override {}

 private:
  std::uint64_t limit_ = 0;
};

}  // namespace

std::unique_ptr<TreeBounds> Sampling::bounds_of(pid_t) { return sampled_bounds(); }

std::unique_ptr<TreeBounds> sampled_bounds() { return std::make_unique<SampledBounds>(); }

std::optional<Breach> excess_of_processes(const TreeUse& use) {
  if (use.processes <= kMostProcesses) return std::nullopt;
  return Breach{Breach::Of::kProcesses, "sampled: " + std::to_string(use.processes) + " processes"};
}

}  // namespace jitc::worker
