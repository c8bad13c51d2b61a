#include "daemon/schedule/features.h"

#include <string_view>

namespace jitc::schedule {

int optimisation_of(std::span<const std::string> flags) {
  int level = 0;
  for (const std::string& flag : flags) {
    if (!flag.starts_with("-O")) continue;
    const std::string_view text = std::string_view(flag).substr(2);
    if (text.empty() || text == "g" || text == "1") {
      level = 1;
    } else if (text == "0") {
      level = 0;
    } else if (text == "2" || text == "s" || text == "z") {
      level = 2;
    } else {
      level = 3;
    }
  }
  return level;
}

bool math_errno_of(std::span<const std::string> flags) {
  bool sets = true;
  for (const std::string& flag : flags) {
    if (flag == "-fmath-errno") sets = true;
    if (flag == "-fno-math-errno" || flag == "-ffast-math" || flag == "-Ofast") sets = false;
  }
  return sets;
}

}  // namespace jitc::schedule
