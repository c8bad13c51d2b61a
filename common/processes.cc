#include "common/processes.h"

#include <filesystem>
#include <sstream>
#include <string>

#include "common/files.h"

namespace jitc::common {

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;  // the process is gone
  const std::string threads = "/proc/" + std::to_string(pid) + "/task";
  for (std::filesystem::directory_iterator thread(threads, error), end; !error && thread != end;
       thread.increment(error)) {
    std::istringstream listed(read_file(thread->path() / "children").value_or(""));
    for (pid_t child = 0; listed >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace jitc::common
