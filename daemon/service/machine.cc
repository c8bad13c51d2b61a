#include "daemon/service/machine.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "common/control_groups.h"
#include "common/text.h"

namespace jitc::service {
namespace {

using common::field_number;
using common::mebibytes;
using common::split;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallestReserve = 256 * kMiB, kLargestReserve = 2048 * kMiB;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostMebibytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kOwnTasks = 32;        // threads and processes of daemon and worker, at the least
constexpr std::uint64_t kTasksPerCompile = 8;  // a supervisor, a driver, its passes

constexpr const char* kJobId = "SLURM_JOB_ID";
constexpr const char* kCpusOnNode = "SLURM_CPUS_ON_NODE";
constexpr const char* kCpusPerTask = "SLURM_CPUS_PER_TASK";
constexpr const char* kTasksPerNode = "SLURM_NTASKS_PER_NODE";
constexpr const char* kTaskList = "SLURM_TASKS_PER_NODE";
constexpr const char* kMemoryPerNode = "SLURM_MEM_PER_NODE";
constexpr const char* kMemoryPerCpu = "SLURM_MEM_PER_CPU";

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

// The rest of the line that begins with `prefix`.
std::optional<std::string_view> line_after(std::string_view text, std::string_view prefix) {
  for (const auto line : split(text, '\n')) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return std::nullopt;
}

// "150000 100000" as people read it.
std::string in_microseconds(std::string_view quota) {
  const auto parts = split(trim(quota), ' ');
  return parts.size() == 2 ? std::string(parts[0]) + " of each " + std::string(parts[1]) + " microseconds" : "";
}

// The soft limit of a line of /proc/self/limits ("Max open files  1024  4096  files"); nothing for "unlimited".
std::optional<std::uint64_t> soft_limit(std::string_view limits, std::string_view name) {
  const auto rest = line_after(limits, name);
  return rest ? number<std::uint64_t>(*rest) : std::nullopt;
}

Figure left_of(std::uint64_t limit, std::uint64_t others, std::string source, std::string note) {
  return {Bounds::kBudget, static_cast<double>(limit - std::min(limit, others)), std::move(source),
          std::move(note) + ", " + mebibytes(others) + " used by others"};
}

// Of `limit` tasks, of which there are `now`, our children's too.
std::uint64_t slots_among(std::uint64_t limit, std::uint64_t now, const Holdings& ours) {
  const std::uint64_t others = now - std::min<std::uint64_t>(now, ours.processes);
  return std::max<std::uint64_t>(1, (limit - std::min(limit, others)) / kTasksPerCompile);
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
  return value && *value < std::uint64_t{1} << 50 ? std::optional(*value * 1024) : std::nullopt;
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
  const std::int64_t cores = *quota / *period + (*quota % *period > 0 ? 1 : 0);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(cores, std::numeric_limits<std::uint32_t>::max()));
}

std::optional<double> parse_pressure(std::string_view text) {
  const auto rest = line_after(text, "some avg10=");
  return rest ? number<double>(*rest) : std::nullopt;
}

std::string Machine::read(const std::string& path) const {
  std::ifstream file(root_ + path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> Machine::directories(std::string_view controller) const {
  return common::cgroup_directories(read("/proc/self/cgroup"), read("/proc/self/mountinfo"), controller);
}

Variables batch_variables() {
  Variables variables;
  for (const char* name :
       {kJobId, kCpusOnNode, kCpusPerTask, kTasksPerNode, kTaskList, kMemoryPerNode, kMemoryPerCpu}) {
    if (const char* value = std::getenv(name)) variables.emplace(name, value);
  }
  return variables;
}

// Only inside a job: a variable that was left over means nothing.
std::optional<std::uint64_t> Machine::variable(std::string_view name) const {
  const auto found = variables_.contains(kJobId) ? variables_.find(name) : variables_.end();
  return found == variables_.end() ? std::nullopt : number<std::uint64_t>(found->second);
}

// ---- cores ----------------------------------------------------------------------------------------------------------

std::vector<Figure> Machine::cores() const {
  std::vector<Figure> figures;
  const auto add = [&figures](std::optional<std::uint32_t> cores, std::string source, std::string note) {
    if (cores.value_or(0) > 0)
      figures.push_back({Bounds::kSlots, static_cast<double>(*cores), std::move(source), std::move(note)});
  };
  const std::string status = read("/proc/self/status");
  if (const auto allowed = line_after(status, "Cpus_allowed_list:")) {
    add(count_cpu_list(*allowed), "/proc/self/status", "affinity: " + std::string(trim(*allowed)));
  }
  for (const auto& directory : directories("")) {
    const std::string quota = read(directory + "/cpu.max");
    add(parse_cpu_max(quota), directory + "/cpu.max", in_microseconds(quota));
  }
  for (const auto& directory : directories("cpu")) {
    const std::string quota = std::string(trim(read(directory + "/cpu.cfs_quota_us"))) + " " +
                              std::string(trim(read(directory + "/cpu.cfs_period_us")));
    add(parse_cpu_max(quota), directory + "/cpu.cfs_quota_us", in_microseconds(quota));
  }
  if (auto job = job_cores()) figures.push_back(std::move(*job));
  if (figures.empty()) figures.push_back({Bounds::kSlots, 1, "assumed", "nothing says what there is"});
  return figures;
}

// The job's (or step's) share of this node. The variable with the whole of it is there in every job; the product stands
// in where a site's wrapper left that one out.
std::optional<Figure> Machine::job_cores() const {
  if (const auto cores = variable(kCpusOnNode).value_or(0); cores > 0) {
    return Figure{Bounds::kSlots, static_cast<double>(cores), kCpusOnNode, {}};
  }
  // "4(x2),1": of the job's first nodes; only where the other one is not there.
  const auto each = variable(kCpusPerTask).value_or(0);
  const auto tasks = variable(kTasksPerNode).value_or(variable(kTaskList).value_or(1));
  if (each == 0 || tasks == 0) return std::nullopt;
  return Figure{Bounds::kSlots, static_cast<double>(each) * static_cast<double>(tasks), kCpusPerTask,
                std::to_string(tasks) + " tasks on the node"};
}

// ---- processes and descriptors --------------------------------------------------------------------------------------

std::vector<Figure> Machine::processes(const Holdings& ours) const {
  std::vector<Figure> figures;
  const std::string limits = read("/proc/self/limits");
  if (const auto descriptors = soft_limit(limits, "Max open files")) {
    figures.push_back({Bounds::kSlots, static_cast<double>(slots_within(*descriptors)), "RLIMIT_NOFILE",
                       std::to_string(*descriptors) + " descriptors"});
  }
  // The superuser's processes are not counted by it.
  const std::string status = read("/proc/self/status");
  const auto uid = line_after(status, "Uid:");
  if (const auto most = soft_limit(limits, "Max processes"); most && uid && number<std::uint32_t>(*uid) != 0u) {
    const std::uint64_t now = std::max(own_tasks(), kOwnTasks + ours.processes);
    figures.push_back(
        {Bounds::kSlots, static_cast<double>(slots_among(*most, now, ours)), "RLIMIT_NPROC",
         std::to_string(*most) + " processes and threads of this user, " + std::to_string(now) + " seen"});
  }
  for (const char* controller : {"", "pids"}) {
    for (const auto& directory : directories(controller)) {
      const auto most = parse_limit(read(directory + "/pids.max"));
      const auto now = number<std::uint64_t>(read(directory + "/pids.current"));
      if (!most || !now) continue;
      figures.push_back({Bounds::kSlots, static_cast<double>(slots_among(*most, *now, ours)), directory + "/pids.max",
                         std::to_string(*most) + " processes and threads, " + std::to_string(*now) + " there"});
    }
  }
  return figures;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

std::vector<Figure> Machine::memory(const Holdings& ours) const {
  std::vector<Figure> figures;
  // `used`: by everybody, our children too.
  const auto add = [&](std::uint64_t limit, std::uint64_t used, std::string source, std::string note) {
    figures.push_back(left_of(limit, used - std::min(used, ours.anonymous_bytes), std::move(source), std::move(note)));
  };
  const std::string meminfo = read("/proc/meminfo");
  const auto total = field_kb(meminfo, "MemTotal"), available = field_kb(meminfo, "MemAvailable");
  if (total && available) {
    const std::uint64_t reserve = std::clamp(*total / 20, kSmallestReserve, kLargestReserve);
    add(*total - std::min(*total, reserve), *total - std::min(*total, *available), "/proc/meminfo",
        mebibytes(*total) + " less a reserve of " + mebibytes(reserve));
  }
  std::uint64_t narrowest_group = kNoLimit;
  const auto add_group = [&](const std::string& limit_file, const std::string& use_file, const std::string& stat_file,
                             const std::string& prefix) {
    const auto limit = parse_limit(read(limit_file));
    const auto use = number<std::uint64_t>(read(use_file));
    if (!limit || !use) return;
    const std::string stat = read(stat_file);
    const std::uint64_t droppable = field_number(stat, prefix + "inactive_file").value_or(0) +
                                    field_number(stat, prefix + "active_file").value_or(0);
    add(*limit, *use - std::min(*use, droppable), limit_file, mebibytes(*limit));
    narrowest_group = std::min(narrowest_group, *limit);
  };
  for (const auto& directory : directories("")) {
    for (const char* limit : {"/memory.max", "/memory.high"}) {  // above `high` a group is slowed down without end
      add_group(directory + limit, directory + "/memory.current", directory + "/memory.stat", "");
    }
  }
  for (const auto& directory : directories("memory")) {
    add_group(directory + "/memory.limit_in_bytes", directory + "/memory.usage_in_bytes", directory + "/memory.stat",
              "total_");
  }
  if (auto job = job_memory(narrowest_group)) figures.push_back(std::move(*job));
  return figures;
}

// What the job asked for, in MiB; 0 is all that the node has. Where a group stands for it, the group's accounting is
// the better one: memory that ranks share counts there once.
std::optional<Figure> Machine::job_memory(std::uint64_t narrowest_group) const {
  const std::uint64_t per_node = variable(kMemoryPerNode).value_or(0), per_cpu = variable(kMemoryPerCpu).value_or(0);
  const auto has_group = [&](std::uint64_t limit) { return narrowest_group <= limit + limit / 8; };
  if (per_node > 0 && per_node < kMostMebibytes) {
    if (has_group(per_node * kMiB)) return std::nullopt;
    return left_of(per_node * kMiB, memory_of_job(), kMemoryPerNode, mebibytes(per_node * kMiB));
  }
  const auto cores = job_cores();
  if (per_cpu == 0 || per_cpu >= kMostMebibytes || !cores) return std::nullopt;
  const auto cpus = std::min(static_cast<std::uint64_t>(cores->value), kMostMebibytes / per_cpu);
  if (has_group(per_cpu * cpus * kMiB)) return std::nullopt;
  return left_of(per_cpu * cpus * kMiB, memory_of_job(), kMemoryPerCpu,
                 mebibytes(per_cpu * kMiB) + " for each of " + std::to_string(cpus) + " CPUs");
}

// Resident memory of the job's processes on this node, as its accounting sums it: those of our user that have the job's
// number in their environment, and the worker. Our compilers have an environment of their own. Environments are read
// last, and of few: a process may be stuck with the lock that this takes.
std::uint64_t Machine::memory_of_job() const {
  const std::string mark = '\0' + std::string(kJobId) + "=" + variables_.find(kJobId)->second + '\0';
  const std::string own_status = read("/proc/self/status");
  const std::string self(trim(line_after(own_status, "Pid:").value_or("")));
  std::uint64_t bytes = 0;
  for (const std::string& process : own_processes()) {
    const std::string status = read(process + "/status");
    const auto resident = field_kb(status, "VmRSS");
    if (!resident) continue;
    const bool is_worker = trim(line_after(status, "PPid:").value_or("")) == self;
    if (is_worker || ('\0' + read(process + "/environ")).find(mark) != std::string::npos) bytes += *resident;
  }
  return bytes;
}

std::vector<std::string> Machine::own_processes() const {
  std::vector<std::string> processes;
  const auto owner = [this](const std::string& process) -> std::optional<uid_t> {
    struct stat status{};
    return ::stat((root_ + process).c_str(), &status) == 0 ? std::optional(status.st_uid) : std::nullopt;
  };
  const auto self = owner("/proc/self");
  std::error_code ended;  // processes come and go
  for (std::filesystem::directory_iterator entry(root_ + "/proc", ended), last; !ended && entry != last;
       entry.increment(ended)) {
    const std::string name = entry->path().filename().string();
    if (!number<std::uint32_t>(name) || !self || owner("/proc/" + name) != self) continue;
    processes.push_back("/proc/" + name);
  }
  return processes;
}

std::uint64_t Machine::own_tasks() const {
  std::uint64_t tasks = 0;
  for (const std::string& process : own_processes()) {
    const std::string status = read(process + "/status");
    const auto threads = line_after(status, "Threads:");
    tasks += threads ? number<std::uint64_t>(*threads).value_or(1) : 1;
  }
  return tasks;
}

std::vector<Figure> Machine::pressure() const {
  std::vector<Figure> figures;
  const auto add = [&](const std::string& file) {
    const auto percent = parse_pressure(read(file));
    if (percent) figures.push_back({Bounds::kPressure, *percent, file, {}});
  };
  add("/proc/pressure/memory");
  // Compilers may be in groups beside the daemon's: those around it see them too.
  for (const auto& directory : directories("")) add(directory + "/memory.pressure");
  return figures;
}

std::uint32_t slots_within(std::uint64_t descriptors) {
  constexpr std::uint64_t kReserve = 40, kPerSlot = 4;
  const std::uint64_t slots = (descriptors - std::min(descriptors, kReserve)) / kPerSlot;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(slots, 1, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace jitc::service
