#include "common/command.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace jitc::common {
namespace {

constexpr auto kDriverVariables =
    std::to_array<std::string_view>({"COMPILER_PATH=", "GCC_EXEC_PREFIX=", "LD_LIBRARY_PATH=", "PATH="});

std::string moment(const timespec& time) { return std::to_string(time.tv_sec) + "." + std::to_string(time.tv_nsec); }

}  // namespace

std::string file_state(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? file_state(status) : "absent";
}

std::string file_state(const struct stat& status) {
  return std::to_string(status.st_dev) + " " + std::to_string(status.st_ino) + " " + std::to_string(status.st_size) +
         " " + moment(status.st_mtim) + " " + moment(status.st_ctim);
}

std::vector<std::string> driver_variables(const std::vector<std::string>& environment) {
  std::vector<std::string> variables;
  for (const std::string& entry : environment) {
    if (std::ranges::any_of(kDriverVariables, [&](std::string_view name) { return entry.starts_with(name); }))
      variables.push_back(entry);
  }
  return variables;
}

Digest command_key(const Command& command, const std::string& compiler, const std::string& cpu) {
  Hasher hasher("jitc command 1");
  hasher.digest("command", command.digest).text("compiler", compiler);
  hasher.text("cpu", command.for_this_cpu ? cpu : std::string());
  return hasher.finish();
}

}  // namespace jitc::common
