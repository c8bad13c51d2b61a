#include "daemon/worker/control_groups.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include "daemon/worker/sampling.h"

namespace jitc::worker {
namespace {

using common::Result;

constexpr std::uint64_t kProbeBytes = 64 << 20;
// So many may have come and gone since the last sample.
constexpr std::uint64_t kProcessesUnseen = 16;

class GroupBounds : public TreeBounds {
 public:
  GroupBounds(ControlGroups& owner, ControlGroup group) : owner_(owner), group_(std::move(group)) {}
  ~GroupBounds() override { owner_.retire(std::move(group_)); }

  void limit_memory(std::uint64_t bytes, const TreeUse& use) override {
    const std::uint64_t charged = group_.held_bytes();
    exhaustions_before_ = owner_.exhaustions_around();
    group_.watch_around();
    shared_ = use.resident_bytes - std::min(use.resident_bytes, charged);
    if (bytes == 0) return;
    const std::uint64_t growth = std::max(kLeastGrowth, bytes - std::min(bytes, use.resident_bytes));
    if (const auto limited = group_.limit_memory(charged + growth); !limited) {
      std::fprintf(stderr, "jitc-worker: %s; sampled instead\n", common::to_line(limited.error()).c_str());
      sampled_ = sampled_bounds();
      sampled_->limit_memory(bytes, use);
    }
  }

  bool kept_by_kernel() const override { return sampled_ == nullptr; }

  std::optional<Breach> breach(const TreeUse& use) const override {
    if (const auto breach = memory_breach()) return breach;
    if (const auto breach = processes_breach(use)) return breach;
    return sampled_ ? sampled_->breach(use) : excess_of_processes(use);
  }

  std::uint64_t peak_bytes() const override {
    const std::uint64_t charged = group_.peak_bytes();
    if (charged == 0) return 0;
    return charged - std::min(charged, group_.file_bytes()) + shared_;
  }

  void kill_processes() override { group_.kill_processes(); }

 private:
  // Both counters rise in this group also when one around it is full.
  std::optional<Breach> memory_breach() const {
    if (group_.memory_kills() == 0) return std::nullopt;
    Breach breach{Breach::Of::kMemory, "control group: " + group_.memory_events()};
    breach.outside = !group_.met_memory_limit() || was_exhausted_around();
    if (breach.outside) breach.around = group_.full_memory_around();
    return breach;
  }
  // While a group around it had no memory left, this one may have been full of pages of files only. Where that is not
  // told, whatever the groups around met in their lives counts.
  bool was_exhausted_around() const {
    const auto exhaustions = owner_.exhaustions_around();
    return exhaustions ? exhaustions != exhaustions_before_ : !group_.full_memory_around().empty();
  }
  // Anybody's fork may have been refused there: it matters only if this compile failed.
  std::optional<Breach> processes_breach_around() const {
    const std::string around = group_.refusing_around();
    if (around.empty()) return std::nullopt;
    return Breach{Breach::Of::kProcesses, "control group: " + around + "/pids.events.local: max has risen", true,
                  around};
  }
  std::optional<Breach> processes_breach(const TreeUse& use) const {
    const std::uint64_t refused = group_.refused_processes();
    if (refused == 0) return processes_breach_around();
    const std::uint64_t peak = group_.peak_processes().value_or(use.processes + kProcessesUnseen);
    Breach breach{Breach::Of::kProcesses, "control group: pids.events: max " + std::to_string(refused) +
                                              "; processes and threads at most: " + std::to_string(peak)};
    breach.outside = peak < kMostProcesses;
    if (breach.outside) breach.around = group_.full_processes_around();
    return breach;
  }

  ControlGroups& owner_;
  ControlGroup group_;
  std::uint64_t shared_ = 0;  // resident in the tree, but charged elsewhere
  std::optional<std::uint64_t> exhaustions_before_;
  std::unique_ptr<TreeBounds> sampled_;  // when the kernel refused this group's limit
};

Result<void> fill(ControlGroup& group, pid_t child) {
  if (auto moved = group.take_in(child); !moved) return moved;
  return group.limit_processes(kMostProcesses);
}

// A group with a process, which is killed.
Result<void> try_out(const GroupPlace& place) {
  auto group = ControlGroup::make(place);
  if (!group) return std::unexpected(group.error());
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  if (child < 0) {
    group->remove();
    return common::fail_errno(common::ErrorKind::kInternal, errno, "cannot be forked", "process");
  }
  Result<void> tried = group->limit_memory(kProbeBytes);
  if (tried) tried = fill(*group, child);
  group->kill_processes();
  kill(child, SIGKILL);  // when it was never moved
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!group->remove() && tried) {
    return common::fail(common::ErrorKind::kRefused, "keeps a group in use", place.memory);
  }
  return tried;
}

}  // namespace

Result<std::unique_ptr<Enforcement>> ControlGroups::make() {
  auto delegation = Delegation::find();
  if (!delegation) return std::unexpected(delegation.error());
  ControlGroup::remove_left_behind(delegation->place());
  if (auto tried = try_out(delegation->place()); !tried) return std::unexpected(tried.error());
  return std::unique_ptr<Enforcement>(new ControlGroups(std::move(*delegation)));
}

ControlGroups::ControlGroups(Delegation delegation) : delegation_(std::move(delegation)) {
  if (delegation_.place().version == 1) around_.emplace(delegation_.place().memory);
}

ControlGroups::~ControlGroups() {
  for (ControlGroup& group : retired_) group.end();
}

std::string ControlGroups::description() const {
  const GroupPlace& place = delegation_.place();
  return "control groups v" + std::to_string(place.version) + " below " + place.memory +
         (place.pids.empty() ? "; processes by sampling" : "");
}

std::optional<std::uint64_t> ControlGroups::exhaustions_around() {
  return around_ ? around_->count() : 0;  // version 2 tells a group's own apart
}

std::unique_ptr<TreeBounds> ControlGroups::bounds_of(pid_t child) {
  auto group = ControlGroup::make(delegation_.place());
  Result<void> filled;
  if (group) {
    filled = fill(*group, child);
    if (filled) return std::make_unique<GroupBounds>(*this, std::move(*group));
    retire(std::move(*group));
  }
  if (!std::exchange(warned_, true)) {
    const common::Error& error = group ? filled.error() : group.error();
    std::fprintf(stderr, "jitc-worker: no control group for a compile, sampled instead: %s\n",
                 common::to_line(error).c_str());
  }
  return sampled_bounds();
}

void ControlGroups::retire(ControlGroup group) {
  group.kill_processes();
  if (!group.remove()) retired_.push_back(std::move(group));
}

bool ControlGroups::tidy() {
  std::erase_if(retired_, [](ControlGroup& group) {
    group.kill_processes();
    return group.remove();
  });
  return retired_.empty();
}

std::unique_ptr<Enforcement> choose_enforcement(bool groups_allowed) {
  if (!groups_allowed) return std::make_unique<Sampling>("control groups are switched off (setting cgroup)");
  auto groups = ControlGroups::make();
  if (groups) return std::move(*groups);
  const common::Error& why = groups.error();
  return std::make_unique<Sampling>("no control groups: " + why.thing + " " + why.message +
                                    (why.remedy.empty() ? "" : "; " + why.remedy));
}

}  // namespace jitc::worker
