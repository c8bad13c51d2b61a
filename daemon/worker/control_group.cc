#include "daemon/worker/control_group.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <ranges>
#include <utility>

#include "common/files.h"
#include "common/owner.h"
#include "common/text.h"
#include "daemon/worker/process_tree.h"

namespace jitc::worker {
namespace {

namespace fs = std::filesystem;
using common::Result;

constexpr std::string_view kPrefix = "jitc-";
constexpr int kMaxPasses = 5;
constexpr std::chrono::milliseconds kPassPatience{200};

// What the kernel charges at once, on each processor: so far below its limit a group is full.
constexpr std::uint64_t kFullMargin = 1 << 20;

struct Files {
  const char *limit, *swap, *held, *peak, *events, *stat_prefix;
};
constexpr Files kVersion1{"memory.limit_in_bytes",     "memory.memsw.limit_in_bytes", "memory.usage_in_bytes",
                          "memory.max_usage_in_bytes", "memory.oom_control",          "total_"};
constexpr Files kVersion2{"memory.max", "memory.swap.max", "memory.current", "memory.peak", "memory.events", ""};

const Files& files_of(int version) { return version == 1 ? kVersion1 : kVersion2; }

std::string read_control(const std::string& path) { return common::read_file(path).value_or(""); }

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t field(const std::string& path, std::string_view name) {
  return common::field_number(read_control(path), name).value_or(0);
}

bool is_in(const std::vector<pid_t>& processes, pid_t pid) {
  return std::ranges::find(processes, pid) != processes.end();
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// A limit and the highest use so far. "max" is no number, and as good as 0: no limit.
bool is_met(const std::string& limit_file, const std::string& peak_file, std::uint64_t margin) {
  const std::uint64_t limit = number_in(read_control(limit_file));
  return limit > 0 && number_in(read_control(peak_file)) + margin >= limit;
}

// Version 2 counts by itself how often a group's own limit was met; for one with groups below in the .local file.
bool met_memory_limit(int version, const std::string& directory) {
  const Files& files = files_of(version);
  if (version == 1) return is_met(directory + "/" + files.limit, directory + "/" + files.peak, kFullMargin);
  const std::string local = directory + "/memory.events.local";
  return field(exists(local) ? local : directory + "/" + files.events, "oom") > 0;
}

// The directories around `directory`, innermost first, as long as they are groups with the file `limit`.
std::vector<std::string> groups_around(const std::string& directory, const char* limit) {
  std::vector<std::string> groups;
  for (fs::path at = fs::path(directory).parent_path(); exists(at / limit); at = at.parent_path()) groups.push_back(at);
  return groups;
}

std::string first_of(const std::vector<std::string>& groups, const std::function<bool(const std::string&)>& is_full) {
  const auto found = std::ranges::find_if(groups, is_full);
  return found == groups.end() ? std::string() : *found;
}

// For this group's own limit, by kernels that count so.
std::uint64_t forks_refused_by(const std::string& group) { return field(group + "/pids.events.local", "max"); }

}  // namespace

Result<void> write_control(const std::string& path, std::string_view text) {
  const common::Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return common::fail_errno(common::ErrorKind::kRefused, errno, "cannot be written", path);
}

ExhaustionWatch::ExhaustionWatch(const std::string& group) {
  common::Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const common::Fd source(open((group + "/" + kVersion1.events).c_str(), O_RDONLY | O_CLOEXEC));
  const std::string numbers = std::to_string(event.get()) + " " + std::to_string(source.get());
  if (event && source && write_control(group + "/cgroup.event_control", numbers)) event_ = std::move(event);
}

std::optional<std::uint64_t> ExhaustionWatch::count() {
  if (!event_) return std::nullopt;
  std::uint64_t more = 0;
  if (read(event_.get(), &more, sizeof more) == sizeof more) count_ += more;
  return count_;
}

ControlGroup::ControlGroup(const GroupPlace& place, std::string name)
    : version_(place.version),
      memory_(place.memory + "/" + name),
      pids_(place.pids.empty() ? "" : place.pids + "/" + name) {}

std::vector<std::string> ControlGroup::directories() const {
  if (pids_.empty() || pids_ == memory_) return {memory_};
  return {memory_, pids_};
}

Result<ControlGroup> ControlGroup::make(const GroupPlace& place) {
  ControlGroup group(place, std::string(kPrefix) + common::temp_name(common::Owner::this_process()));
  for (const std::string& directory : group.directories()) {
    if (mkdir(directory.c_str(), 0755) == 0) continue;
    const auto failure = common::fail_errno(common::ErrorKind::kRefused, errno, "does not take a group",
                                            fs::path(directory).parent_path());
    group.remove();
    return failure;
  }
  return group;
}

void ControlGroup::remove_left_behind(const GroupPlace& place) {
  const common::Owner self = common::Owner::this_process();
  for (const std::string& base : {place.memory, place.pids}) {
    std::error_code error;
    for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename();
      if (!name.starts_with(kPrefix)) continue;
      const auto owner = common::owner_of(std::string_view(name).substr(kPrefix.size()));
      if (!owner || common::life_of(*owner, self) != common::Life::kDead) continue;
      ControlGroup group({place.version, base, {}}, name);
      group.end();
    }
  }
}

Result<void> ControlGroup::take_in(pid_t process) {
  for (const std::string& directory : directories()) {
    if (auto moved = write_control(directory + "/cgroup.procs", std::to_string(process)); !moved) return moved;
  }
  return {};
}

Result<void> ControlGroup::limit_memory(std::uint64_t bytes) {
  const Files& files = files_of(version_);
  if (version_ == 1) static_cast<void>(write_control(memory_ + "/" + files.peak, "0"));
  const std::string text = std::to_string(bytes);
  if (auto limited = write_control(memory_ + "/" + files.limit, text); !limited) return limited;
  // Version 1 limits the sum, version 2 the swap alone. Kernels without swap accounting have no such file.
  const std::string swap = memory_ + "/" + files.swap;
  return exists(swap) ? write_control(swap, version_ == 1 ? text : "0") : Result<void>();
}

Result<void> ControlGroup::limit_processes(std::uint32_t count) {
  return pids_.empty() ? Result<void>() : write_control(pids_ + "/pids.max", std::to_string(count));
}

std::uint64_t ControlGroup::held_bytes() const {
  return number_in(read_control(memory_ + "/" + files_of(version_).held));
}

std::uint64_t ControlGroup::peak_bytes() const {
  return number_in(read_control(memory_ + "/" + files_of(version_).peak));
}

std::uint64_t ControlGroup::memory_kills() const {
  return field(memory_ + "/" + files_of(version_).events, "oom_kill");
}

std::uint64_t ControlGroup::file_bytes() const {
  const std::string text = read_control(memory_ + "/memory.stat"), prefix = files_of(version_).stat_prefix;
  return common::field_number(text, prefix + "inactive_file").value_or(0) +
         common::field_number(text, prefix + "active_file").value_or(0);
}

bool ControlGroup::met_memory_limit() const { return worker::met_memory_limit(version_, memory_); }

std::string ControlGroup::full_memory_around() const {
  return first_of(groups_around(memory_, files_of(version_).limit),
                  [this](const std::string& group) { return worker::met_memory_limit(version_, group); });
}

std::uint64_t ControlGroup::refused_processes() const {
  return pids_.empty() ? 0 : field(pids_ + "/pids.events", "max");
}

void ControlGroup::watch_around() {
  around_.clear();
  if (pids_.empty()) return;
  for (const std::string& group : groups_around(pids_, "pids.max")) around_.push_back({group, forks_refused_by(group)});
}

std::string ControlGroup::refusing_around() const {
  const auto found = std::ranges::find_if(
      around_, [](const Refused& before) { return forks_refused_by(before.group) > before.forks; });
  return found == around_.end() ? std::string() : found->group;
}

std::optional<std::uint64_t> ControlGroup::peak_processes() const {
  const std::string peak = pids_ + "/pids.peak";
  return pids_.empty() || !exists(peak) ? std::nullopt : std::optional(number_in(read_control(peak)));
}

std::string ControlGroup::full_processes_around() const {
  return first_of(groups_around(pids_, "pids.max"), [](const std::string& group) {
    const std::string peak = group + "/pids.peak";
    return is_met(group + "/pids.max", exists(peak) ? peak : group + "/pids.current", 0);
  });
}

std::string ControlGroup::memory_events() const {
  const Files& files = files_of(version_);
  return std::string(files.events) + ": oom_kill " + std::to_string(memory_kills()) + "; " + files.limit + ": " +
         std::to_string(number_in(read_control(memory_ + "/" + files.limit))) + "; " + files.peak + ": " +
         std::to_string(peak_bytes());
}

std::vector<pid_t> ControlGroup::processes() const {
  std::vector<pid_t> found;
  for (const std::string& directory : directories()) {
    const std::string text = read_control(directory + "/cgroup.procs");
    for (const auto part : std::views::split(std::string_view(text), '\n')) {
      const auto pid = static_cast<pid_t>(number_in(std::string_view(part.begin(), part.end())));
      if (pid > 0) found.push_back(pid);  // 0: of another namespace
    }
  }
  return found;
}

std::vector<pid_t> ControlGroup::kill_processes() {
  static_cast<void>(limit_processes(0));  // nobody answers a kill with a new process
  if (version_ == 2) static_cast<void>(write_control(memory_ + "/cgroup.kill", "1"));  // not in every kernel
  std::vector<pid_t> living = processes();
  for (const pid_t pid : living) {
    signal_if(pid, SIGKILL, [&] { return is_in(processes(), pid); });
  }
  return living;
}

bool ControlGroup::end() {
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const std::vector<pid_t> killed = kill_processes();
    if (killed.empty()) break;
    await_ends(killed, kPassPatience);
  }
  return remove();
}

bool ControlGroup::remove() {
  bool removed = true;
  for (const std::string& directory : directories()) {
    removed = (rmdir(directory.c_str()) == 0 || errno == ENOENT) && removed;
  }
  return removed;
}

}  // namespace jitc::worker
