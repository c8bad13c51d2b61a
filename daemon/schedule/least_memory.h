// At which optimisation level a compiler needs the least memory: what the ladder lowers to before it gives up.
#pragma once

#include <optional>
#include <string>

namespace jitc::schedule {

// A level at which this compiler needs noticeably less memory than at `level` (0 to 3, as in Features); nullopt: none.
std::optional<int> level_with_less_memory(const std::string& compiler, int level);

}  // namespace jitc::schedule
