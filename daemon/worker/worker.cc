#include "daemon/worker/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "daemon/worker/host.h"
#include "daemon/worker/job.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/process_tree.h"
#include "daemon/worker/verdict.h"

namespace jitc::worker {
namespace {

using common::ErrorKind;
using common::Fd;
using common::Result;
using std::chrono::milliseconds;

constexpr milliseconds kSamplePeriod{100};
// What one job takes of this process's descriptors: its own, a directory, the child's channel and log.
constexpr int kJobDescriptors = 8;
constexpr int kChildDescriptors = 2;
constexpr std::uint32_t kReadable = EPOLLIN;
constexpr std::size_t kMaxLogBytes = 64 * 1024;

std::unexpected<common::Error> broken(const char* what) {
  return common::fail_errno(ErrorKind::kInternal, errno, what, "worker");
}

std::size_t processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::size_t>(std::max(1, CPU_COUNT(&set))) : 1;
}

std::string log_of(const Child& child) {
  const std::string text = common::read_all(child.log.get(), "child's log").value_or("");
  return text.size() > kMaxLogBytes ? text.substr(text.size() - kMaxLogBytes) : text;
}

}  // namespace

Worker::Worker(Fd daemon, WorkerOptions options)
    : daemon_(std::move(daemon)),
      options_(options),
      outbox_(daemon_.get()),
      enforcement_(choose_enforcement(options.control_groups)),
      processors_(processors()) {}

Worker::~Worker() {
  for (auto& [pid, member] : members_) {
    end_tree(pid);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<void> Worker::run() {
  if (auto ready = set_up(); !ready) return ready;
  while (!daemon_gone_) {
    if (auto step = wait_once(); !step) {
      // The daemon's end is closed: an end, not a failure.
      if (step.error().kind == ErrorKind::kUnreachable) return {};
      return step;
    }
  }
  return {};
}

Result<void> Worker::set_up() {
  // Orphans of a supervisor that was killed come here, and are ended here.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, nullptr);
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  signals_ = Fd(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  timer_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_ || !signals_ || !timer_) return broken("cannot prepare its event loop");
  if (fcntl(daemon_.get(), F_SETFL, O_NONBLOCK) != 0) return broken("cannot use its channel");
  for (const int fd : {daemon_.get(), signals_.get(), timer_.get()}) {
    if (auto watched = watch(fd, EPOLLIN, EPOLL_CTL_ADD); !watched) return watched;
  }
  return announce();
}

Result<void> Worker::watch(int fd, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), operation, fd, &event) != 0) return broken("cannot watch a descriptor");
  return {};
}

Result<void> Worker::announce() {
  v1::WorkerReport report;
  *report.mutable_ready() = describe_host();
  report.mutable_ready()->set_enforcement(enforcement_->description());
  return outbox_.send(report);
}

Result<void> Worker::wait_once() {
  const std::uint32_t wanted = (deaf_ ? 0U : kReadable) | (outbox_.empty() ? 0U : std::uint32_t{EPOLLOUT});
  if (auto watched = watch(daemon_.get(), wanted, EPOLL_CTL_MOD); !watched) return watched;
  std::array<epoll_event, 16> events;
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
  if (count < 0) return errno == EINTR ? Result<void>() : broken("cannot wait for events");
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
    const int fd = event.data.fd;
    Result<void> done;
    if (fd == daemon_.get()) {
      // A deaf worker cannot read that the channel ends.
      if (deaf_ && (event.events & (EPOLLHUP | EPOLLERR)) != 0) daemon_gone_ = true;
      if ((event.events & EPOLLOUT) != 0) done = outbox_.flush();
      if (done && (event.events & ~EPOLLOUT) != 0) done = take_commands();
    } else if (fd == signals_.get()) {
      done = reap();
    } else if (fd == timer_.get()) {
      done = tick();
    } else {
      // A child may have been buried by an earlier event of this round.
      const auto member = std::ranges::find_if(members_, [fd](auto& m) { return m.second.child.channel.get() == fd; });
      if (member != members_.end()) done = hear(member->second);
    }
    if (!done) return done;
  }
  return {};
}

// ---- commands -------------------------------------------------------------------------------------------------------

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
  return member_for_job();
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
  // A child that died meanwhile is told of by SIGCHLD, and answered for then.
  (void)send_message(member.child.channel.get(), forwarded, numbers);
  if (auto sent = outbox_.send(report); !sent) return sent;
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

Result<void> Worker::set_spares(std::uint32_t count) {
  wanted_spares_ = count;
  spares_released_ = false;
  last_start_ = Clock::now();
  if (count == 0) release_spares();
  keep_spares();
  arm_timer();
  return report_usage();
}

// ---- spares ---------------------------------------------------------------------------------------------------------

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

// ---- answers --------------------------------------------------------------------------------------------------------

// The next message in the child's channel, if there is one; `closed` tells a channel that brings no more.
Result<void> Worker::take_report(Member& member, bool& closed) {
  auto datagram = receive_datagram(member.child.channel.get());
  if (datagram && datagram->state == Datagram::State::kNothingYet) return {};
  v1::WorkerReport report;
  closed = !datagram || datagram->state == Datagram::State::kClosed || !report.ParseFromString(datagram->bytes);
  if (closed) return {};
  if (report.has_ready()) {
    member.is_ready = true;
    keep_spares();
    return report_usage();
  }
  if (!report.has_finished() || !member.running || member.running->ending != Ending::kNone) return {};
  Fd elf = datagram->descriptors.empty() ? Fd() : std::move(datagram->descriptors.front());
  note_end(member);
  if (explains(member.running->breach, report.finished().outcome())) {
    Outcome breached = outcome_of(*member.running->breach);
    breached.finished.set_log(report.finished().log());
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

Result<void> Worker::answer(Running& running, Finished finished, Fd elf) {
  running.answered = true;
  if (!running.start.compiler_path().empty()) workspace_.remove(running.start.job());
  v1::WorkerReport report;
  finished.set_job(running.start.job());
  finished.set_seconds(std::chrono::duration<double>(Clock::now() - running.started).count());
  finished.set_peak_bytes(std::max<std::uint64_t>(finished.peak_bytes(), running.peak_bytes));
  *report.mutable_finished() = std::move(finished);
  auto sent = outbox_.send(report, std::move(elf));
  keep_spares();
  arm_timer();
  return sent;
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
  for (const pid_t pid : children_of(getpid())) {
    if (!members_.contains(pid)) end_tree(pid);
  }
}

// ---- time -----------------------------------------------------------------------------------------------------------

void Worker::arm_timer() {
  itimerspec when{};
  const auto set = [](timespec& value, milliseconds time) {
    value.tv_sec = time.count() / 1000;
    value.tv_nsec = time.count() % 1000 * 1'000'000;
  };
  if (running_count() > 0 || untidy_) {
    // One that runs goes on: compiles that begin and end faster must not put the next sample off.
    itimerspec now{};
    timerfd_gettime(timer_.get(), &now);
    const milliseconds left = std::chrono::duration_cast<milliseconds>(std::chrono::seconds(now.it_value.tv_sec) +
                                                                       std::chrono::nanoseconds(now.it_value.tv_nsec));
    if (left > milliseconds(0) && left <= kSamplePeriod) return;
    set(when.it_value, kSamplePeriod);
  } else if (spare_count() > 0) {
    const auto idle = std::chrono::duration_cast<milliseconds>(Clock::now() - last_start_);
    set(when.it_value, std::max(milliseconds(1), milliseconds(options_.idle) - idle));
  }
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

Result<void> Worker::tick() {
  std::uint64_t ignored = 0;
  if (read(timer_.get(), &ignored, sizeof ignored) < 0) return {};  // armed anew meanwhile
  if (running_count() == 0 && Clock::now() - last_start_ >= options_.idle) {
    spares_released_ = true;
    release_spares();
  }
  for (auto& [pid, member] : members_) {
    if (member.running && !member.running->answered) sample(pid, member);
  }
  untidy_ = !enforcement_->tidy();
  auto reported = report_usage();
  arm_timer();
  return reported;
}

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

Result<void> Worker::report_usage() {
  v1::WorkerReport report;
  auto& usage = *report.mutable_usage();
  std::uint64_t spare_bytes = 0, anonymous_bytes = 0;
  std::size_t processes = 0;
  for (const auto& [pid, member] : members_) {
    const TreeUse use = member.running ? member.running->use : TreeUse{};
    processes += std::max<std::size_t>(use.processes, 1);  // before the first sample too
    anonymous_bytes += use.anonymous_bytes;
    if (!member.running) {
      const Memory memory = memory_of(pid);
      spare_bytes += memory.resident;
      anonymous_bytes += memory.anonymous;
    } else if (!member.running->answered) {
      auto& one = *usage.add_jobs();
      one.set_job(member.running->start.job());
      one.set_bytes(member.running->use.resident_bytes);
    }
  }
  usage.set_spare_bytes(spare_bytes);
  usage.set_spares(static_cast<std::uint32_t>(spare_count()));
  usage.set_processes(static_cast<std::uint32_t>(processes));
  usage.set_anonymous_bytes(anonymous_bytes);
  return outbox_.send(report);
}

void Worker::end_job(Member& member, Ending ending) {
  if (member.running->answered || member.running->ending != Ending::kNone) return;
  member.running->ending = ending;
  end_tree(member.child.pid);
  member.bounds->end_processes();
}

}  // namespace jitc::worker
