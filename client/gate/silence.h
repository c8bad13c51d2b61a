// How long nothing came.
#pragma once

#include <algorithm>
#include <chrono>

namespace jitc::gate {

// A time in which this process itself was stopped says nothing about the others, so that one step between two looks
// counts at most for a second.
class Silence {
 public:
  std::chrono::nanoseconds so_far() {
    const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
    total_ += std::min<std::chrono::nanoseconds>(now - last_, std::chrono::seconds(1));
    last_ = now;
    return total_;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds total_{0};
};

}  // namespace jitc::gate
