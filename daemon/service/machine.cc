#include "daemon/service/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

namespace jitc::service {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallestReserve = 256 * kMiB;

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

template <class T>
std::optional<T> number(std::string_view text) {
  text = trim(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

// The rest of the line that begins with `prefix`.
std::optional<std::string_view> line_after(std::string_view text, std::string_view prefix) {
  for (const auto line : split(text, '\n')) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return std::nullopt;
}

bool lists(std::string_view comma_separated, std::string_view word) {
  const auto words = split(comma_separated, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// This process's group below a hierarchy, as /proc/self/cgroup says ("4:memory:/a/b", "0::/a/b").
std::optional<std::string_view> group_of(std::string_view cgroup, std::string_view controller) {
  for (const auto line : split(cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : lists(controllers, controller)) return line.substr(second + 1);
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
        controller.empty() ? after[0] == "cgroup2" : after[0] == "cgroup" && lists(after[2], controller);
    if (matches) return Mount{before[3], before[4]};
  }
  return std::nullopt;
}

}  // namespace

std::uint32_t count_cpu_list(std::string_view list) {
  std::uint32_t count = 0;
  for (const auto part : split(trim(list), ',')) {
    const auto dash = part.find('-');
    const auto first = number<std::uint32_t>(part.substr(0, dash));
    const auto last = dash == part.npos ? first : number<std::uint32_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first) return 0;
    count += *last - *first + 1;
  }
  return count;
}

std::optional<std::uint64_t> field_kb(std::string_view text, std::string_view name) {
  const auto rest = line_after(text, std::string(name) + ":");
  const auto value = rest ? number<std::uint64_t>(*rest) : std::nullopt;
  return value ? std::optional(*value * 1024) : std::nullopt;
}

std::optional<std::uint64_t> field_number(std::string_view text, std::string_view name) {
  const auto rest = line_after(text, std::string(name) + " ");
  return rest ? number<std::uint64_t>(*rest) : std::nullopt;
}

std::optional<std::uint64_t> parse_limit(std::string_view text) {
  const auto value = number<std::uint64_t>(text);
  if (!value || *value >= std::uint64_t{1} << 60) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> parse_cpu_max(std::string_view text) {
  const auto parts = split(trim(text), ' ');
  if (parts.size() != 2) return std::nullopt;
  const auto quota = number<std::int64_t>(parts[0]);
  const auto period = number<std::int64_t>(parts[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<std::uint32_t>((*quota + *period - 1) / *period);
}

std::optional<double> parse_pressure(std::string_view text) {
  const auto rest = line_after(text, "some avg10=");
  return rest ? number<double>(*rest) : std::nullopt;
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

std::string Machine::read(const std::string& path) const {
  std::ifstream file(root_ + path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> Machine::directories(std::string_view controller) const {
  return cgroup_directories(read("/proc/self/cgroup"), read("/proc/self/mountinfo"), controller);
}

std::uint32_t Machine::cores() const {
  const std::string status = read("/proc/self/status");
  const auto allowed = line_after(status, "Cpus_allowed_list:");
  std::uint32_t cores = std::max(1u, allowed ? count_cpu_list(*allowed) : 0);
  const auto take = [&cores](std::optional<std::uint32_t> quota) { cores = std::min(cores, quota.value_or(cores)); };
  for (const auto& directory : directories("")) take(parse_cpu_max(read(directory + "/cpu.max")));
  for (const auto& directory : directories("cpu")) {
    take(parse_cpu_max(std::string(trim(read(directory + "/cpu.cfs_quota_us"))) + " " +
                       read(directory + "/cpu.cfs_period_us")));
  }
  return cores;
}

std::uint64_t Machine::memory_left() const {
  const std::string meminfo = read("/proc/meminfo");
  const std::uint64_t total = field_kb(meminfo, "MemTotal").value_or(0);
  const std::uint64_t available = field_kb(meminfo, "MemAvailable").value_or(total);
  const std::uint64_t reserve = std::max(kSmallestReserve, total / 20);
  std::uint64_t left = available > reserve ? available - reserve : 0;

  const auto take = [&](const std::string& limit, const std::string& use, const std::string& stat,
                        std::string_view droppable) {
    const auto most = parse_limit(limit);
    if (!most) return;
    const std::uint64_t used = number<std::uint64_t>(use).value_or(0);
    const std::uint64_t held = used - std::min(used, field_number(stat, droppable).value_or(0));
    left = std::min(left, *most - std::min(*most, held));
  };
  for (const auto& directory : directories("")) {
    take(read(directory + "/memory.max"), read(directory + "/memory.current"), read(directory + "/memory.stat"),
         "inactive_file");
  }
  for (const auto& directory : directories("memory")) {
    take(read(directory + "/memory.limit_in_bytes"), read(directory + "/memory.usage_in_bytes"),
         read(directory + "/memory.stat"), "total_inactive_file");
  }
  return left;
}

double Machine::memory_pressure() const {
  double percent = parse_pressure(read("/proc/pressure/memory")).value_or(0);
  const auto groups = directories("");
  if (!groups.empty()) {
    percent = std::max(percent, parse_pressure(read(groups.front() + "/memory.pressure")).value_or(0));
  }
  return percent;
}

std::uint32_t slots_within(std::uint64_t descriptors) {
  constexpr std::uint64_t kReserve = 40, kPerSlot = 4;
  const std::uint64_t slots = (descriptors - std::min(descriptors, kReserve)) / kPerSlot;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(slots, 1, std::numeric_limits<std::uint32_t>::max()));
}

std::uint64_t steady_budget(std::uint64_t current, std::uint64_t measured) {
  const bool lost = measured < current - current / 20;
  const bool gained = measured > current + current / 8;
  return lost || gained ? measured : current;
}

bool steady_pressure(bool current, double percent) { return current ? percent >= 5 : percent > 10; }

}  // namespace jitc::service
