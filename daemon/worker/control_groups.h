// Bounds that the kernel keeps: a control group for each tree. Charges go to the group from the child's first moments,
// so what it still shares with its parent is not in the group; limits and peaks are made up for that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "daemon/worker/delegation.h"
#include "daemon/worker/enforcement.h"

namespace jitc::worker {

class ControlGroups : public Enforcement {
 public:
  // Makes, limits, fills, empties and removes a group to see that it can. The error says what cannot be done.
  static common::Result<std::unique_ptr<Enforcement>> make();
  ~ControlGroups() override;

  std::string description() const override;
  std::unique_ptr<TreeBounds> bounds_of(pid_t child) override;
  bool tidy() override;

  // How often a group around had no memory left, if that can and need be counted.
  std::optional<std::uint64_t> exhaustions_around();
  // A group whose tree has ended: what is left in it is killed. Removed now, or by a later tidy().
  void retire(ControlGroup group);

 private:
  explicit ControlGroups(Delegation delegation);

  Delegation delegation_;
  std::optional<ExhaustionWatch> around_;  // version 1
  std::vector<ControlGroup> retired_;
  bool warned_ = false;
};

}  // namespace jitc::worker
