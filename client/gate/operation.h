// Operations of the communicator that are under way.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "client/include/jitc/jitc.h"

namespace jitc::gate {

// One operation under way and the memory that it uses, at a fixed address.
struct Operation {
  jitc_pending pending{};
  std::vector<std::uint64_t> send;
  std::vector<std::uint64_t> receive;
  std::string bytes;
};

// An operation is on a list before it starts and until it is complete, whatever is thrown meanwhile.
using Operations = std::list<Operation>;

}  // namespace jitc::gate
