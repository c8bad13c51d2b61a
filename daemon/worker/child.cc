#include "daemon/worker/child.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "common/flags.h"
#include "daemon/worker/canary.h"
#include "daemon/worker/channel.h"
#include "daemon/worker/command.h"
#include "daemon/worker/embedded_compiler.h"
#include "daemon/worker/external_compiler.h"
#include "daemon/worker/job.h"
#include "daemon/worker/limits.h"

namespace jitc::worker {
namespace {

using common::Fd;
using common::Result;

constexpr int kChannel = STDERR_FILENO + 1;

// Touches what most sources touch: the builtin math.h, calls, a loop to vectorise, straight-line arithmetic.
constexpr const char* kExercise = R"(#include <math.h>
void jitc_exercise(const double *restrict a, double *restrict b, int n) {
  for (int i = 0; i < n; ++i) b[i] = a[i] * a[i] + 0.5 * b[i];
  const double s = sqrt(a[0] * a[0] + a[1] * a[1]), t = pow(s, 1.5) * exp(-s) + sin(s);
  b[0] = t > 1.0 ? t * s : fabs(s - t);
  b[1] = (a[0] < a[1] ? a[0] : a[1]) / (1.0 + t * t);
}
)";

void exercise() {
  Job job;
  job.source = kExercise;
  for (const char* flag :
       {"-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-march=x86-64-v3"}) {
    job.start.add_flags(flag);
  }
  compile_embedded(job, {.last = false});
}

// Deep text recurses deeply; without the stack for it the compiler would die in the middle.
std::optional<Outcome> check_stack(const Job& job) {
  const std::uint64_t stack = stack_bytes();
  const std::uint64_t levels = stack / kStackPerLevel;
  const common::SourceScan scan = common::scan_source(job.source);
  const std::uint64_t needed = scan.nesting + scan.blocks + scan.chain;
  if (stack >= kStackBytes || needed <= levels) return std::nullopt;
  return failed(Finished::INVALID_SOURCE, "the source nests " + std::to_string(needed) +
                                              " levels; the stack limit of this machine (ulimit -H -s, " +
                                              std::to_string(stack >> 10) + " KiB) allows " + std::to_string(levels) +
                                              ": name sub-expressions, or have the limit raised");
}

Outcome compile(const v1::WorkerCommand::Start& start, std::vector<Fd> descriptors) {
  auto job = read_job(start, std::move(descriptors));
  if (!job) return failed(Finished::CRASHED, job.error().thing + ": " + job.error().message);
  if (!start.is_command()) {
    if (auto too_deep = check_stack(*job)) return std::move(*too_deep);
  }
  // The embedded compiler says by itself that an allocation failed; the kernel's limit is behind that.
  const bool embedded = start.compiler_path().empty();
  limit_compile(embedded || !start.memory_kept_by_kernel() ? start.memory_limit_bytes() : 0, start.cpu_seconds());
  if (start.is_command()) return run_command(*job);
  return embedded ? compile_embedded(*job, {.last = true}) : compile_external(*job);
}

Outcome check(const v1::WorkerCommand::Start& start, const std::vector<Fd>& descriptors) {
  limit_compile(start.memory_limit_bytes(), start.cpu_seconds());
  return run_canary(descriptors);
}

void serve_one() {
  auto datagram = receive_datagram(kChannel);
  if (!datagram || datagram->state != Datagram::State::kMessage) return;
  v1::WorkerCommand command;
  if (!command.ParseFromString(datagram->bytes) || !command.has_start()) return;
  const double cpu_before = cpu_seconds_of_self();
  Outcome outcome = command.start().check() ? check(command.start(), datagram->descriptors)
                                            : compile(command.start(), std::move(datagram->descriptors));
  v1::WorkerReport report;
  Finished& finished = *report.mutable_finished();
  finished = std::move(outcome.finished);
  finished.set_job(command.start().job());
  finished.set_cpu_seconds(cpu_seconds_of_self() - cpu_before + cpu_seconds_of_children());
  finished.set_peak_bytes(std::max(peak_bytes_of_self(), peak_bytes_of_children()));
  if (finished.outcome() != Finished::DONE && !command.start().check()) tell_command(finished, command.start());
  fit_into_datagram(finished);
  const int elf = outcome.elf.get();
  const auto sent = send_message(kChannel, report, outcome.elf ? std::span(&elf, 1) : std::span<const int>());
  if (!sent) (void)common::write_all(STDERR_FILENO, common::to_line(sent.error()), "log");
}

// Only the channel and the standard descriptors stay.
void arrange_descriptors(const Fd& channel, const Fd& log) {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), STDIN_FILENO);
  dup2(log.get(), STDOUT_FILENO);
  dup2(log.get(), STDERR_FILENO);
  const int moved = fcntl(channel.get(), F_DUPFD_CLOEXEC, kChannel + 1);
  dup3(moved, kChannel, O_CLOEXEC);
  close_range(kChannel + 1, ~0U, 0);
}

[[noreturn]] void live(Warmth warmth, pid_t parent, const Fd& channel, const Fd& log) {
  become_child(parent);
  arrange_descriptors(channel, log);
  install_failure_handlers();
  if (warmth == Warmth::kExercised) {
    exercise();
    v1::WorkerReport ready;
    ready.mutable_ready();
    (void)send_message(kChannel, ready);
  }
  serve_one();
  // Not exit(): the worker's objects are not this process's to destroy.
  _exit(EXIT_SUCCESS);
}

std::unexpected<common::Error> cannot_fork(int error_number) {
  return common::fail_errno(common::ErrorKind::kInternal, error_number, "cannot be made", "compile child",
                            "raise the limits of processes and open files (RLIMIT_NPROC, ulimit -u; RLIMIT_NOFILE, "
                            "ulimit -n)");
}

}  // namespace

void tell_command(Finished& finished, const v1::WorkerCommand::Start& start) {
  finished.clear_flags_used();
  if (!finished.command().empty() || start.is_command()) return;
  for (const std::string& word : start.compiler_path().empty() ? embedded_command(start) : external_command(start)) {
    finished.add_command(word);
  }
}

Result<Child> fork_child(Warmth warmth) {
  auto ends = make_channel();
  if (!ends) return std::unexpected(ends.error());
  Child child;
  child.log = Fd(memfd_create("child-log", MFD_CLOEXEC));
  if (!child.log) return cannot_fork(errno);
  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid < 0) return cannot_fork(errno);
  if (child.pid == 0) live(warmth, parent, ends->second, child.log);
  child.channel = std::move(ends->first);
  fcntl(child.channel.get(), F_SETFL, O_NONBLOCK);
  return child;
}

}  // namespace jitc::worker
