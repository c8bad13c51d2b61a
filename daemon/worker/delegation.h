// Finds where this process may make control groups below its own, and prepares the place.
//
// With version 1 that is its own group of the memory controller. With version 2 a group whose controllers are handed
// down to others may have no process of its own: the worker and its daemon move to a leaf beside the groups of the
// compiles, if they are alone in their group (as in a systemd unit with Delegate=yes).
#pragma once

#include <sys/types.h>

#include <string>

#include "common/error.h"
#include "daemon/worker/control_group.h"

namespace jitc::worker {

class Delegation {
 public:
  static common::Result<Delegation> find();
  Delegation(Delegation&& other) noexcept;
  ~Delegation();  // leaves the leaf and removes it

  const GroupPlace& place() const { return place_; }

 private:
  explicit Delegation(GroupPlace place, std::string leaf = {});
  static common::Result<Delegation> find_v2(const std::string& own);
  static common::Result<Delegation> move_to_leaf(const std::string& own);

  GroupPlace place_;
  std::string leaf_;  // empty: none
  pid_t daemon_ = 0;
};

}  // namespace jitc::worker
