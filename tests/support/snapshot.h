// What stands in a tree, to see whether something has changed it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace jitc::testing {

// Every name in it with its size and times, in order.
inline std::vector<std::string> snapshot(const std::string& directory) {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat status{};
    EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
    all.push_back(entry.path().string() + " " + std::to_string(status.st_size) + " " +
                  std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec));
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace jitc::testing
