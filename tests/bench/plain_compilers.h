// Compilers as plain processes, so many at a time: what a node goes through without a service.
#pragma once

#include <string>
#include <vector>

#include "daemon/worker/control_group.h"

namespace jitc::bench {

struct PlainRun {
  double seconds = 0;
  int failed = 0;  // that did not end well
};
// Each command once, at most `parallel` of them at a time; in the group, where one is given.
PlainRun run_plain(const std::vector<std::vector<std::string>>& commands, std::size_t parallel,
                   worker::ControlGroup* group);

}  // namespace jitc::bench
