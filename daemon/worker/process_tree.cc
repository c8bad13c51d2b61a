#include "daemon/worker/process_tree.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/files.h"
#include "common/processes.h"

namespace jitc::worker {
namespace {

constexpr int kMaxPasses = 100;
constexpr std::chrono::milliseconds kPassPatience{200};
constexpr std::size_t kDataField = 5;  // of /proc/PID/statm: data + stack

std::vector<std::uint64_t> numbers_in(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::uint64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc()) numbers.push_back(value);
    at = next == at ? at + 1 : next;
  }
  return numbers;
}

std::string read_proc(pid_t pid, std::string_view name) {
  return common::read_file("/proc/" + std::to_string(pid) + "/" + std::string(name)).value_or("");
}

bool is_alive(pid_t pid) {
  const std::string status = read_proc(pid, "stat");
  const std::size_t state = status.rfind(") ");
  return state != std::string::npos && status[state + 2] != 'Z' && status[state + 2] != 'X';
}

// Its own and that of the children that it has reaped.
std::uint64_t cpu_ticks_of(pid_t pid) {
  // pid (name) state ..., where the name may hold anything; then user and system time, own and of reaped children.
  constexpr std::size_t kUserTime = 10;
  constexpr std::size_t kTimes = 4;
  const std::string status = read_proc(pid, "stat");
  const std::size_t end = status.rfind(") ");
  if (end == std::string::npos) return 0;
  const std::vector<std::uint64_t> fields = numbers_in(std::string_view(status).substr(end));
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < kTimes && kUserTime + i < fields.size(); ++i) used += fields[kUserTime + i];
  return used;
}

pid_t parent_of(pid_t pid) {
  const std::string status = read_proc(pid, "stat");
  const std::size_t end = status.rfind(") ");
  const std::vector<std::uint64_t> fields = numbers_in(std::string_view(status).substr(std::min(end, status.size())));
  return fields.empty() ? 0 : static_cast<pid_t>(fields.front());
}

// As between vfork and exec. False also where the kernel does not say.
bool share_memory(pid_t one, pid_t other) { return syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0; }

struct Process {
  pid_t pid, parent;
};

// The living ones.
std::vector<Process> tree_below(pid_t root) {
  std::vector<Process> found;
  const auto add_children = [&found](pid_t parent) {
    for (const pid_t child : common::children_of(parent)) found.push_back({child, parent});
  };
  add_children(root);
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i].pid);
  std::erase_if(found, [](const Process& process) { return !is_alive(process.pid); });
  return found;
}

std::vector<pid_t> ids_of(const std::vector<Process>& processes) {
  std::vector<pid_t> ids;
  for (const Process& process : processes) ids.push_back(process.pid);
  return ids;
}

}  // namespace

Memory memory_of(pid_t pid) {
  const std::vector<std::uint64_t> fields = numbers_in(read_proc(pid, "statm"));
  if (fields.size() <= kDataField) return {};
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return {fields[1] * page, (fields[1] - std::min(fields[1], fields[2])) * page, fields[kDataField] * page};
}

std::vector<pid_t> descendants(pid_t root) { return ids_of(tree_below(root)); }

TreeUse use_of_tree(pid_t root) {
  static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::vector<Process> tree = tree_below(root);
  tree.push_back({root, 0});
  TreeUse use;
  use.processes = tree.size();
  for (const auto& [pid, parent] : tree) {
    use.cpu_seconds += static_cast<double>(cpu_ticks_of(pid)) / ticks;
    if (parent != 0 && share_memory(pid, parent)) continue;
    const Memory memory = memory_of(pid);
    use.resident_bytes += memory.resident;
    use.anonymous_bytes += memory.anonymous;
  }
  return use;
}

std::vector<pid_t> kill_descendants(pid_t root) {
  const std::vector<Process> living = tree_below(root);
  // All are stopped before the first is killed, so that none answers a sibling's death with a new process.
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const Process& process : living) {
      signal_if(process.pid, signal, [&] {
        const pid_t parent = parent_of(process.pid);
        return parent == process.parent || parent == root;  // an orphan's
      });
    }
  }
  return ids_of(living);
}

void signal_if(pid_t pid, int signal, const std::function<bool()>& is_it) {
  const common::Fd process = end_of(pid);
  const bool gone = !process && errno == ESRCH;
  if (gone || !is_it()) return;
  if (process) {
    syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
  } else {
    kill(pid, signal);  // no descriptor is left: better than none
  }
}

common::Fd end_of(pid_t pid) { return common::Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

void await_ends(const std::vector<pid_t>& processes, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const pid_t pid : processes) {
    const common::Fd end = end_of(pid);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ended{end.get(), POLLIN, 0};
    if (end) poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  }
}

void end_descendants(pid_t root) {
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const std::vector<pid_t> killed = kill_descendants(root);
    if (killed.empty()) return;
    await_ends(killed, kPassPatience);
  }
}

}  // namespace jitc::worker
