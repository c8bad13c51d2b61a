#include "common/oom_score.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "common/files.h"

namespace jitc::common {

void raise_oom_score(int score) {
  const Fd file(open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  std::array<char, 16> text{};
  if (!file || read(file.get(), text.data(), text.size() - 1) <= 0 || std::atoi(text.data()) >= score) return;
  const std::string wanted = std::to_string(score);
  [[maybe_unused]] const ssize_t written = pwrite(file.get(), wanted.data(), wanted.size(), 0);
}

}  // namespace jitc::common
