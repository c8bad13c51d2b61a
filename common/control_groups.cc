#include "common/control_groups.h"

#include <algorithm>
#include <optional>

#include "common/text.h"

namespace jitc::common {
namespace {

// This process's group below a hierarchy, as /proc/self/cgroup says ("4:memory:/a/b", "0::/a/b").
std::optional<std::string_view> group_of(std::string_view cgroup, std::string_view controller) {
  for (const auto line : split(cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : lists(controllers, controller, ',')) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string_view root, point;
};

// mountinfo: "id parent major:minor root point options [optional] - type source super-options".
std::optional<Mount> mount_of(std::string_view mountinfo, std::string_view controller) {
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == line.npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool matches =
        controller.empty() ? after[0] == "cgroup2" : after[0] == "cgroup" && lists(after[2], controller, ',');
    if (matches) return Mount{before[3], before[4]};
  }
  return std::nullopt;
}

}  // namespace

bool lists(std::string_view text, std::string_view word, char separator) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const auto words = split(text, separator);
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> cgroup_directories(std::string_view cgroup, std::string_view mountinfo,
                                            std::string_view controller) {
  const auto group = group_of(cgroup, controller);
  const auto mount = mount_of(mountinfo, controller);
  if (!group || !mount) return {};
  // Inside a container the mount shows a part of the hierarchy: the group's path is relative to the mount's root, or
  // not below it at all (then only the mount itself is ours to see).
  std::string_view below = *group;
  if (mount->root != "/") {
    const bool inside =
        below.starts_with(mount->root) && (below.size() == mount->root.size() || below[mount->root.size()] == '/');
    below = inside ? below.substr(mount->root.size()) : std::string_view{};
  }
  std::vector<std::string> directories;
  for (std::string path(below); !path.empty() && path != "/"; path.resize(path.rfind('/'))) {
    directories.push_back(std::string(mount->point) + path);
  }
  directories.emplace_back(mount->point);
  return directories;
}

}  // namespace jitc::common
