// The worker's jobs: the daemon's commands, which child takes a job and when, its answer.
#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "daemon/worker/job.h"
#include "daemon/worker/process_tree.h"
#include "daemon/worker/worker.h"

namespace jitc::worker {
namespace {

using common::ErrorKind;
using common::Fd;
using common::Result;

// After so many passes the log says that a killed process does not end.
constexpr int kTellingPasses = 50;
// What one job takes of this process's descriptors: its own, a directory, the child's channel and log.
constexpr int kJobDescriptors = 8;
constexpr int kChildDescriptors = 2;

}  // namespace

Result<void> Worker::take_commands() {
  for (;;) {
    // Descriptors that find no room would be lost; in the socket they can wait. What waits here must leave room for one
    // job to begin, at the latest when all children have ended.
    const int freed_by_ends = kChildDescriptors * static_cast<int>(members_.size());
    deaf_ =
        !members_.empty() && !has_room(std::max(kMaxDescriptors, kMaxDescriptors + kJobDescriptors - freed_by_ends));
    if (deaf_) return {};
    auto datagram = receive_datagram(daemon_.get());
    if (!datagram) return std::unexpected(datagram.error());
    if (datagram->state == Datagram::State::kNothingYet) return {};
    if (datagram->state == Datagram::State::kClosed) {
      daemon_gone_ = true;
      return {};
    }
    v1::WorkerCommand command;
    if (!command.ParseFromString(datagram->bytes)) {
      return common::fail(ErrorKind::kInternal, "cannot read a command", "worker",
                          "use jitcd and jitc-worker of one build");
    }
    Result<void> done;
    if (command.has_start()) done = start(command.start(), std::move(datagram->descriptors));
    if (command.has_cancel()) done = cancel(command.cancel().job());
    if (command.has_set_spares()) done = set_spares(command.set_spares().count());
    if (!done) return done;
  }
}

Result<void> Worker::start(const v1::WorkerCommand::Start& command, std::vector<Fd> descriptors) {
  last_start_ = Clock::now();
  spares_released_ = false;
  waiting_.push_back({command, std::move(descriptors), last_start_});
  return start_waiting();
}

// Lack of descriptors or processes is no failure as long as some child lives: its end frees them.
Result<void> Worker::start_waiting() {
  while (!waiting_.empty()) {
    auto member = member_with_room();
    if (!member && !members_.empty()) {
      release_spares();
      return {};
    }
    Waiting job = std::move(waiting_.front());
    waiting_.pop_front();
    Result<void> done;
    if (member) {
      done = begin(**member, std::move(job));
    } else {
      Running running{std::move(job.start), job.arrived, {}};
      done = answer(running, failed(Finished::CRASHED, common::to_line(member.error())).finished, {});
    }
    if (!done) return done;
  }
  return {};
}

// A child for the job that waits first; its directory is made before.
Result<Worker::Member*> Worker::member_with_room() {
  if (!has_room(kJobDescriptors)) {
    return common::fail_errno(ErrorKind::kInternal, EMFILE, "no child can be made", "compile",
                              "raise the limit of open files (RLIMIT_NOFILE, ulimit -n)");
  }
  Waiting& job = waiting_.front();
  if (!job.start.compiler_path().empty() && !job.has_directory) {
    auto directory = workspace_.open(job.start.job());
    if (!directory) return std::unexpected(directory.error());
    job.descriptors.push_back(std::move(*directory));
    job.has_directory = true;
  }
  // A check needs no compiler: the spares are left to compiles.
  return job.start.check() ? add_member(Warmth::kCold) : member_for_job();
}

bool Worker::has_room(int descriptors) const {
  std::vector<Fd> probes;
  for (int i = 0; i < descriptors; ++i) {
    if (!probes.emplace_back(fcntl(epoll_.get(), F_DUPFD_CLOEXEC, 0))) return false;
  }
  return true;
}

Result<void> Worker::begin(Member& member, Waiting job) {
  const TreeUse use = use_of_tree(member.child.pid);
  member.bounds->limit_memory(job.start.memory_limit_bytes(), use);
  v1::WorkerCommand forwarded;
  *forwarded.mutable_start() = job.start;
  forwarded.mutable_start()->set_memory_kept_by_kernel(member.bounds->kept_by_kernel());
  std::vector<int> numbers;
  for (const Fd& descriptor : job.descriptors) numbers.push_back(descriptor.get());
  v1::WorkerReport report;
  report.mutable_started()->set_job(job.start.job());
  report.mutable_started()->set_pid(member.child.pid);
  member.is_ready = false;
  member.running = Running{std::move(job.start), job.arrived, use};
  const auto forwarded_to_child = send_message(member.child.channel.get(), forwarded, numbers);
  if (auto sent = outbox_.send(report); !sent) return sent;
  // A child that died meanwhile is told of by SIGCHLD, and answered for then.
  if (!forwarded_to_child && forwarded_to_child.error().kind != ErrorKind::kUnreachable) {
    kill(member.child.pid, SIGKILL);
    return answer(*member.running, failed(Finished::REFUSED, common::to_line(forwarded_to_child.error())).finished, {});
  }
  keep_spares();
  arm_timer();
  return {};
}

Result<void> Worker::cancel(std::uint64_t job) {
  for (auto& [pid, member] : members_) {
    if (member.running && member.running->start.job() == job) end_job(member, Ending::kCancelled);
  }
  const auto waits = std::ranges::find_if(waiting_, [job](const Waiting& one) { return one.start.job() == job; });
  if (waits == waiting_.end()) return {};  // running, or unknown: then it has been answered already
  Running running{std::move(waits->start), waits->arrived, {}};
  waiting_.erase(waits);
  return answer(running, failed(Finished::CANCELLED, "cancelled").finished, {});
}

Result<void> Worker::answer(Running& running, Finished finished, Fd elf) {
  running.answered = true;
  if (!running.start.compiler_path().empty()) workspace_.remove(running.start.job());
  v1::WorkerReport report;
  make_texts_valid(finished);
  finished.set_job(running.start.job());
  finished.set_check(running.start.check());
  finished.set_seconds(std::chrono::duration<double>(Clock::now() - running.started).count());
  finished.set_peak_bytes(std::max<std::uint64_t>(finished.peak_bytes(), running.peak_bytes));
  *report.mutable_finished() = std::move(finished);
  auto sent = outbox_.send(report, std::move(elf));
  keep_spares();
  arm_timer();
  return sent;
}

void Worker::end_job(Member& member, Ending ending) {
  if (member.running->answered || member.running->ending != Ending::kNone) return;
  member.running->ending = ending;
  kill(member.child.pid, SIGSTOP);
  end_more(member);
}

// One pass. The root goes last, so that whatever is left stays in its tree, and the job is not answered before. One of
// those that were killed.
pid_t Worker::kill_tree(Member& member) {
  const std::vector<pid_t> killed = kill_descendants(member.child.pid);
  if (!killed.empty()) return killed.back();
  member.bounds->kill_processes();
  kill(member.child.pid, SIGKILL);
  return member.child.pid;
}

// The next pass comes with the end of a process, or with the next tick.
void Worker::end_more(Member& member) {
  Running& running = *member.running;
  const pid_t killed = kill_tree(member);
  if (running.killed_end) (void)watch(running.killed_end.get(), 0, EPOLL_CTL_DEL);
  running.killed_end = end_of(killed);
  if (running.killed_end) (void)watch(running.killed_end.get(), EPOLLIN, EPOLL_CTL_ADD);
  if (++running.kill_passes != kTellingPasses) return;
  std::fprintf(stderr, "jitc-worker: job %llu keeps its slot: process %d was killed but does not end\n",
               static_cast<unsigned long long>(running.start.job()), killed);
}

}  // namespace jitc::worker
