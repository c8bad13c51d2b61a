// The worker's children: spares, what children say, how they end, and the samples of those that run.
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "common/processes.h"
#include "daemon/worker/job.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/process_tree.h"
#include "daemon/worker/verdict.h"
#include "daemon/worker/worker.h"

namespace jitc::worker {
namespace {

using common::Fd;
using common::Result;
using std::chrono::milliseconds;

constexpr std::size_t kMaxLogBytes = 64 * 1024;

std::string log_of(const Child& child) {
  const std::string text = common::read_all(child.log.get(), "child's log").value_or("");
  return text.size() > kMaxLogBytes ? text.substr(text.size() - kMaxLogBytes) : text;
}

// A command's driver tells by its exit code of a program that was killed under it.
Finished::Outcome told(const Finished& finished) {
  const bool is_command_that_failed = finished.outcome() == Finished::DONE && finished.exit_status() != 0;
  return is_command_that_failed ? Finished::CRASHED : finished.outcome();
}

}  // namespace

// ---- spares --------------------------------------------------------------------------------------------------------

Result<void> Worker::set_spares(std::uint32_t count) {
  wanted_spares_ = count;
  spares_released_ = false;
  last_start_ = Clock::now();
  if (count == 0) release_spares();
  keep_spares();
  arm_timer();
  return report_usage();
}

Result<Worker::Member*> Worker::add_member(Warmth warmth) {
  auto child = fork_child(warmth);
  if (!child) return std::unexpected(child.error());
  if (auto watched = watch(child->channel.get(), EPOLLIN, EPOLL_CTL_ADD); !watched) {
    kill(child->pid, SIGKILL);
    return std::unexpected(watched.error());
  }
  const pid_t pid = child->pid;
  // It waits for its job, so no compiler was started before it is within its bounds.
  auto bounds = enforcement_->bounds_of(pid);
  return &members_.insert_or_assign(pid, Member{std::move(*child), std::move(bounds), false, {}}).first->second;
}

Result<Worker::Member*> Worker::member_for_job() {
  const auto ready = std::ranges::find_if(members_, [](const auto& member) { return member.second.is_ready; });
  if (ready != members_.end()) return &ready->second;
  return add_member(Warmth::kCold);
}

// One spare warms up at a time, and only while a processor would be idle otherwise.
void Worker::keep_spares() {
  if (spares_released_ || !waiting_.empty() || running_count() >= processors_ || spare_count() >= wanted_spares_)
    return;
  const bool warming =
      std::ranges::any_of(members_, [](const auto& m) { return !m.second.running && !m.second.is_ready; });
  // A fork that fails now is tried again at the next event; jobs fork on demand meanwhile and say what is wrong.
  if (!warming) (void)add_member(Warmth::kExercised);
}

void Worker::release_spares() {
  for (auto& [pid, member] : members_) {
    if (member.running) continue;
    member.is_ready = false;
    kill(pid, SIGKILL);
  }
}

std::size_t Worker::running_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      members_, [](const auto& member) { return member.second.running && !member.second.running->answered; }));
}

std::size_t Worker::spare_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(members_, [](const auto& member) { return !member.second.running; }));
}

// ---- reports and ends ----------------------------------------------------------------------------------------------

// The next message in the child's channel, if there is one; `closed` tells a channel that brings no more.
Result<void> Worker::take_report(Member& member, bool& closed) {
  auto datagram = receive_datagram(member.child.channel.get());
  if (datagram && datagram->state == Datagram::State::kNothingYet) return {};
  v1::WorkerReport report;
  closed = !datagram || datagram->state == Datagram::State::kClosed;
  if (!closed && !report.ParseFromString(datagram->bytes)) {
    closed = true;
    if (member.running) end_job(member, Ending::kUnreadable);
  }
  if (closed) return {};
  if (report.has_ready()) {
    member.is_ready = true;
    keep_spares();
    return report_usage();
  }
  if (!report.has_finished() || !member.running || member.running->ending != Ending::kNone) return {};
  Fd elf = datagram->descriptors.empty() ? Fd() : std::move(datagram->descriptors.front());
  note_end(member);
  if (explains(member.running->breach, told(report.finished()))) {
    Outcome breached = outcome_of(*member.running->breach);
    breached.finished.set_log(report.finished().log());
    *breached.finished.mutable_command() = report.finished().command();
    breached.finished.set_exit_status(report.finished().exit_status());
    breached.finished.set_signal(report.finished().signal());
    return answer(*member.running, std::move(breached.finished), {});
  }
  return answer(*member.running, std::move(*report.mutable_finished()), std::move(elf));
}

Result<void> Worker::hear(Member& member) {
  bool closed = false;
  auto taken = take_report(member, closed);
  if (!closed) return taken;
  // It is ending, or out of its mind: SIGCHLD brings the rest.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, member.child.channel.get(), nullptr);
  kill(member.child.pid, SIGKILL);
  return {};
}

Result<void> Worker::reap() {
  signalfd_siginfo ignored;
  while (read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = members_.find(pid);
    if (found == members_.end()) continue;  // an orphan that ended
    Member member = std::move(found->second);
    members_.erase(found);
    if (auto buried = bury(std::move(member), status); !buried) return buried;
  }
  end_strays();
  untidy_ = !enforcement_->tidy();
  if (untidy_) arm_timer();
  deaf_ = false;
  return start_waiting();
}

Result<void> Worker::bury(Member member, int status) {
  if (!member.running) {
    keep_spares();
    return report_usage();
  }
  Running& running = *member.running;
  // Its answer may still be in the channel: the two events come in any order.
  if (!running.answered && running.ending == Ending::kNone) {
    bool closed = false;
    if (auto taken = take_report(member, closed); !taken) return taken;
  }
  if (running.answered) return {};
  note_end(member);
  return answer(running,
                verdict({.start = running.start,
                         .ending = running.ending,
                         .breach = running.breach,
                         .cpu_seconds = running.use.cpu_seconds,
                         .stall = options_.stall,
                         .status = status,
                         .log = log_of(member.child)}),
                {});
}

// Children that are not ours came from a supervisor that was killed; nobody waits for them.
void Worker::end_strays() {
  for (const pid_t pid : common::children_of(getpid())) {
    if (members_.contains(pid)) continue;
    kill(pid, SIGSTOP);
    kill_descendants(pid);  // what they left comes here with their ends
    kill(pid, SIGKILL);
  }
}

// ---- samples -------------------------------------------------------------------------------------------------------

void Worker::sample(pid_t pid, Member& member) {
  Running& running = *member.running;
  const double cpu_before = running.use.cpu_seconds;
  running.use = use_of_tree(pid);
  note_breach(member);
  running.ran += kSamplePeriod;
  running.stalled = running.use.cpu_seconds == cpu_before ? running.stalled + kSamplePeriod : milliseconds(0);
  const std::uint32_t cpu_limit = running.start.cpu_seconds();
  // What was ended or refused from outside comes to an end by itself, or well.
  if (running.breach && !running.breach->outside) return end_job(member, Ending::kBreach);
  if (running.stalled >= options_.stall) return end_job(member, Ending::kStalled);
  if (cpu_limit == 0) return;
  if (running.use.cpu_seconds > cpu_limit + kCpuGrace) return end_job(member, Ending::kCpuTime);
  if (running.ran > std::chrono::seconds(cpu_limit) * kTimePerCpuTime) end_job(member, Ending::kTime);
}

void Worker::note_breach(Member& member) {
  Running& running = *member.running;
  running.peak_bytes = std::max(running.peak_bytes, running.use.resident_bytes);
  if (running.breach && !running.breach->outside) return;
  if (auto breach = member.bounds->breach(running.use)) running.breach = std::move(breach);
}

void Worker::note_end(Member& member) {
  note_breach(member);
  member.running->peak_bytes = std::max(member.running->peak_bytes, member.bounds->peak_bytes());
}

}  // namespace jitc::worker
