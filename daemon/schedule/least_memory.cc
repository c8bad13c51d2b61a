#include "daemon/schedule/least_memory.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace jitc::schedule {
namespace {

// Peaks of the whole tree in MiB, -O0 to -O3, of printed pointwise functions:
//                          gcc 12                 embedded clang 19
//    79 KB          135   114   113   113       74    67    67    67
//   141 KB          179   130   133   136       86    74    74    74
//   308 KB          330   167   162   162      123    81    81    81
//   364 KB          285   176   165   169      115    81    81    81
//   907 KB          646   269   260   260      209   109   110   110
//  1435 KB          876   364   374   379      281   139   140   140
// So both need the most without optimisation, where cc1 keeps all that its passes would free and every value has a
// place on the stack; from -O1 on the level changes next to nothing. The rows are the peaks of the largest.
struct Peaks {
  const char* compiler;
  std::array<double, 4> of_level;
};
constexpr std::array kMeasured{Peaks{"gcc", {876, 364, 374, 379}}, Peaks{"clang", {281, 139, 140, 140}}};

constexpr double kNoticeable = 0.9;  // of the peak before: a smaller gain does not save what ran out of memory

// A compiler given by its path is most often another version of gcc.
const Peaks& peaks_of(const std::string& compiler) {
  const auto* const found = std::ranges::find(kMeasured, compiler, &Peaks::compiler);
  return found == kMeasured.end() ? kMeasured.front() : *found;
}

}  // namespace

std::optional<int> level_with_less_memory(const std::string& compiler, int level) {
  const auto& peaks = peaks_of(compiler).of_level;
  const auto* const least = std::ranges::min_element(peaks);
  const double now = peaks[static_cast<std::size_t>(std::clamp(level, 0, 3))];
  if (*least > kNoticeable * now) return std::nullopt;
  return static_cast<int>(least - peaks.begin());
}

}  // namespace jitc::schedule
