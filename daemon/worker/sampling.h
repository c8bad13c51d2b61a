// Bounds that are kept by looking now and then.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "daemon/worker/enforcement.h"

namespace jitc::worker {

class Sampling : public Enforcement {
 public:
  explicit Sampling(std::string reason) : reason_(std::move(reason)) {}
  std::string description() const override { return "sampling: " + reason_; }
  std::unique_ptr<TreeBounds> bounds_of(pid_t child) override;
  bool tidy() override { return true; }

 private:
  std::string reason_;
};

std::unique_ptr<TreeBounds> sampled_bounds();
// More processes than a compile may have?
std::optional<Breach> excess_of_processes(const TreeUse& use);

}  // namespace jitc::worker
