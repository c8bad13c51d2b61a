#include "daemon/worker/delegation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control_groups.h"
#include "common/files.h"

namespace jitc::worker {
namespace {

namespace fs = std::filesystem;
using common::ErrorKind;
using common::Result;

constexpr const char* kLeaf = "jitc-service";

std::string read_text(const std::string& path) { return common::read_file(path).value_or(""); }

bool has_controller(const std::string& file, std::string_view controller) {
  return common::lists(read_text(file), controller, ' ');
}

std::string subtree(const std::string& group) { return group + "/cgroup.subtree_control"; }

bool move_to(const std::string& group, pid_t process) {
  return write_control(group + "/cgroup.procs", std::to_string(process)).has_value();
}

Result<void> hand_down(const std::string& group) {
  if (auto memory = write_control(subtree(group), "+memory"); !memory) return memory;
  static_cast<void>(write_control(subtree(group), "+pids"));  // it may not be delegated; then they are sampled
  return {};
}

GroupPlace place_at(const std::string& group) {
  return {2, group, has_controller(subtree(group), "pids") ? group : std::string()};
}

}  // namespace

Delegation::Delegation(GroupPlace place, std::string leaf)
    : place_(std::move(place)), leaf_(std::move(leaf)), daemon_(getppid()) {}

Delegation::Delegation(Delegation&& other) noexcept
    : place_(std::move(other.place_)), leaf_(std::exchange(other.leaf_, {})), daemon_(other.daemon_) {}

Delegation::~Delegation() {
  if (leaf_.empty()) return;
  static_cast<void>(write_control(subtree(place_.memory), "-memory"));
  static_cast<void>(write_control(subtree(place_.memory), "-pids"));
  if (getppid() == daemon_) move_to(place_.memory, daemon_);
  move_to(place_.memory, getpid());
  rmdir(leaf_.c_str());
}

Result<Delegation> Delegation::find() {
  const std::string groups = read_text("/proc/self/cgroup"), mounts = read_text("/proc/self/mountinfo");
  const auto own = [&](const char* controller) {
    const auto directories = common::cgroup_directories(groups, mounts, controller);
    return directories.empty() ? std::string() : directories.front();
  };
  if (const std::string memory = own("memory"); !memory.empty()) return Delegation({1, memory, own("pids")});
  const std::string unified = own("");
  if (unified.empty()) return common::fail(ErrorKind::kRefused, "is not mounted", "the memory controller");
  return find_v2(unified);
}

Result<Delegation> Delegation::find_v2(const std::string& own) {
  // An earlier worker of this daemon was here.
  const fs::path path(own);
  if (path.filename() == kLeaf && has_controller(subtree(path.parent_path()), "memory")) {
    return Delegation(place_at(path.parent_path()), own);
  }
  if (!has_controller(own + "/cgroup.controllers", "memory")) {
    return common::fail(ErrorKind::kRefused, "does not have the memory controller", own,
                        "give the daemon a systemd unit with Delegate=yes");
  }
  // Only the root of all groups has no type, and may have processes and hand down.
  if (access((own + "/cgroup.type").c_str(), F_OK) == 0) return move_to_leaf(own);
  if (auto handed = hand_down(own); !handed) return std::unexpected(handed.error());
  return Delegation(place_at(own));
}

Result<Delegation> Delegation::move_to_leaf(const std::string& own) {
  const pid_t self = getpid(), daemon = getppid();
  std::istringstream processes(read_text(own + "/cgroup.procs"));
  for (pid_t pid = 0; processes >> pid;) {
    if (pid == self || pid == daemon) continue;
    return common::fail(ErrorKind::kRefused, "has process " + std::to_string(pid) + " beside the daemon", own,
                        "give the daemon a systemd unit with Delegate=yes");
  }
  const std::string leaf = own + "/" + kLeaf;
  if (mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) {
    return common::fail_errno(ErrorKind::kRefused, errno, "cannot be made", leaf);
  }
  Delegation made({2, own, {}}, leaf);  // undone by its end when something fails
  for (const pid_t pid : {daemon, self}) {
    if (move_to(leaf, pid)) continue;
    return common::fail(ErrorKind::kRefused, "does not take in process " + std::to_string(pid), leaf);
  }
  if (auto handed = hand_down(own); !handed) return std::unexpected(handed.error());
  made.place_ = place_at(own);
  return made;
}

}  // namespace jitc::worker
