// Private directories for external compilers, one per job, below one directory of this worker's own:
// $TMPDIR/jitc-worker-<uid>-<owner> (common/owner.h). The worker makes and removes them, so a killed compiler leaves
// nothing; what a killed worker left is removed by the next one. Several workers may share a place, of several nodes
// too: what belongs to a living one, or to one of which nothing can be known here, stays.
#pragma once

#include <cstdint>
#include <string>

#include "common/error.h"
#include "common/files.h"

namespace jitc::worker {

class Workspace {
 public:
  Workspace();   // removes what dead workers of this user left
  ~Workspace();  // removes its own
  Workspace(const Workspace&) = delete;

  // A new directory; a descriptor of it goes to the child.
  common::Result<common::Fd> open(std::uint64_t job);
  void remove(std::uint64_t job);

 private:
  std::string path_of(std::uint64_t job) const;

  std::string root_;
  bool made_ = false;
};

}  // namespace jitc::worker
