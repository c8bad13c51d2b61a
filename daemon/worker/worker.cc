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
#include <span>
#include <utility>

#include "daemon/worker/host.h"
#include "daemon/worker/job.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/process_tree.h"

namespace jitc::worker {
namespace {

using common::ErrorKind;
using common::Fd;
using common::Result;
using std::chrono::milliseconds;

constexpr int kLastPasses = 25;
constexpr milliseconds kLastPatience{200};
constexpr std::uint32_t kReadable = EPOLLIN;

std::unexpected<common::Error> broken(const char* what) {
  return common::fail_errno(ErrorKind::kInternal, errno, what, "worker");
}

std::size_t processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::size_t>(std::max(1, CPU_COUNT(&set))) : 1;
}

}  // namespace

Worker::Worker(Fd daemon, WorkerOptions options)
    : daemon_(std::move(daemon)),
      options_(options),
      outbox_(daemon_.get()),
      enforcement_(choose_enforcement(options.control_groups)),
      processors_(processors()) {}

Worker::~Worker() {
  // What hangs in the kernel is left to the daemon, or to init.
  for (auto& [pid, member] : members_) kill(pid, SIGSTOP);
  for (int pass = 0; pass < kLastPasses && !members_.empty(); ++pass) {
    for (auto& [pid, member] : members_) await_ends({kill_tree(member)}, kLastPatience);
    std::erase_if(members_, [](const auto& member) { return waitpid(member.first, nullptr, WNOHANG) != 0; });
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
  leave_signals_to_daemon();
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
  make_texts_valid(report);
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
      const auto member = std::ranges::find_if(members_, [fd](auto& m) {
        return m.second.child.channel.get() == fd || (m.second.running && m.second.running->killed_end.get() == fd);
      });
      if (member == members_.end()) continue;
      if (member->second.child.channel.get() != fd) {
        end_more(member->second);
      } else {
        done = hear(member->second);
      }
    }
    if (!done) return done;
  }
  return {};
}

// ---- time ----------------------------------------------------------------------------------------------------------

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
    if (!member.running || member.running->answered) continue;
    if (member.running->ending == Ending::kNone) {
      sample(pid, member);
    } else {
      end_more(member);
    }
  }
  untidy_ = !enforcement_->tidy();
  auto reported = report_usage();
  arm_timer();
  return reported;
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

}  // namespace jitc::worker
