#include "daemon/service/worker_link.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "daemon/observe/log.h"
#include "daemon/service/children.h"
#include "daemon/service/marshal.h"

extern char** environ;

namespace jitc::service {
namespace {

using common::ErrorKind;
using common::Fd;
using observe::log_error;
using observe::log_info;
using observe::log_warning;

constexpr int kWorkerChannel = 3;  // where jitc-worker expects it
constexpr std::chrono::seconds kStartPatience{60};
constexpr std::chrono::seconds kKilledPatience{2};
constexpr std::chrono::seconds kOldAge{10};  // a worker that dies later did not die of its start
constexpr std::array<std::chrono::milliseconds, 4> kBackoff{
    std::chrono::milliseconds{0}, std::chrono::milliseconds{100}, std::chrono::milliseconds{1000},
    std::chrono::milliseconds{5000}};

// The worker in its own process group (a terminal's Ctrl-C is the daemon's to handle), with nothing of ours but the
// standard streams and the channel.
int spawn_worker(const std::string& path, std::vector<std::string> extra, int channel, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, channel, kWorkerChannel);  // clears close-on-exec
  posix_spawn_file_actions_addclosefrom_np(&actions, kWorkerChannel + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string name = path, flag = "--fd", number = std::to_string(kWorkerChannel);
  std::vector<char*> arguments = {name.data(), flag.data(), number.data()};
  for (std::string& word : extra) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = posix_spawn(&pid, path.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

WorkerLink::~WorkerLink() {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

common::Result<void> WorkerLink::spawn() {
  auto ends = worker::make_channel();
  if (!ends) return std::unexpected(ends.error());
  pid_t pid = 0;
  if (const int error = spawn_worker(path_, arguments_, ends->second.get(), pid); error != 0) {
    return common::fail_errno(ErrorKind::kInternal, error, "the worker cannot be started", path_,
                              "install jitcd and jitc-worker of one build");
  }
  pid_ = pid;
  spawned_ = std::chrono::steady_clock::now();
  channel_ = std::make_unique<asio::posix::stream_descriptor>(state_, ends->first.release());
  channel_->native_non_blocking(true);
  outbox_.clear();
  writing_ = false;
  return {};
}

common::Result<WorkerIdentity> WorkerLink::start(const std::function<bool()>& stopped) {
  if (auto spawned = spawn(); !spawned) return std::unexpected(spawned.error());
  const auto failed = [this](std::string message) {
    return common::fail(
        ErrorKind::kInternal, std::move(message), path_,
        "see what it wrote to standard error: jitcd.log in the runtime directory, or run with --foreground");
  };
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  for (;;) {
    // The handler does nothing: that it ran ends run_one.
    channel_->async_wait(asio::posix::stream_descriptor::wait_read, [](const boost::system::error_code&) {});
    const bool in_time = state_.run_one_until(deadline) > 0;
    if (stopped()) return common::fail(ErrorKind::kCancelled, "stopped before the worker was ready", path_);
    if (!in_time) return failed("the worker was not ready within a minute");
    auto datagram = worker::receive_datagram(channel_->native_handle());
    if (!datagram) return std::unexpected(datagram.error());
    if (datagram->state == worker::Datagram::State::kNothingYet) continue;
    if (datagram->state == worker::Datagram::State::kClosed) return failed("the worker ended before it was ready");
    v1::WorkerReport report;
    if (!report.ParseFromString(datagram->bytes) || !report.has_ready()) continue;
    auto event = from_wire(report, {});
    if (!event) return std::unexpected(event.error());
    ready_ = true;
    auto identity = std::get<WorkerIdentity>(std::move(*event));
    enforcement_ = identity.enforcement;
    return identity;
  }
}

void WorkerLink::watch(Events events) {
  events_ = std::move(events);
  receive();
}

void WorkerLink::receive() {
  // The handler may run after this channel was given up for a new one: it must not read from the new one twice.
  auto* channel = channel_.get();
  channel->async_wait(asio::posix::stream_descriptor::wait_read,
                      [this, channel](const boost::system::error_code& error) {
                        if (error || channel != channel_.get()) return;
                        for (;;) {
                          auto datagram = worker::receive_datagram(channel->native_handle());
                          if (!datagram) return channel_failed(datagram.error());
                          if (datagram->state == worker::Datagram::State::kNothingYet) return receive();
                          if (datagram->state == worker::Datagram::State::kClosed) {
                            return channel_failed({ErrorKind::kUnreachable, "closed its channel", "worker"});
                          }
                          take(std::move(*datagram));
                          if (channel != channel_.get()) return;
                        }
                      });
}

void WorkerLink::take(worker::Datagram datagram) {
  silent_ticks_ = 0;
  v1::WorkerReport report;
  auto event = report.ParseFromString(datagram.bytes)
                   ? from_wire(report, std::move(datagram.descriptors))
                   : common::fail(ErrorKind::kInternal, "a report that cannot be read", "worker");
  if (!event) {
    // Whose end it told of is not known: only a new worker leaves nobody waiting for ever.
    log_error("worker replaced", {{"error", common::to_line(event.error())}});
    kill(pid_, SIGKILL);
    channel_.reset();  // nothing else that it says is believed
    return;
  }
  if (const auto* identity = std::get_if<WorkerIdentity>(&*event)) {
    ready_ = true;
    enforcement_ = identity->enforcement;
    log_info("worker ready", {{"pid", std::to_string(pid_)}, {"enforcement", enforcement_}});
    return events_.restarted(*identity);
  }
  if (std::holds_alternative<WorkerFinished>(*event)) {
    failures_ = 0;
    jobs_ -= std::min<std::size_t>(jobs_, 1);
  }
  events_.report(std::move(*event));
}

void WorkerLink::send(const v1::WorkerCommand& command, Fd source, Fd headers) {
  if (!channel_) return;
  if (command.has_start()) {
    if (jobs_++ == 0) silent_ticks_ = 0;
    watch_silence();
  }
  outbox_.push_back({command.start().job(), command.SerializeAsString(), std::move(source), std::move(headers)});
  if (!writing_) await_writable();
}

// Sends what the socket takes now and waits for room for the rest.
void WorkerLink::await_writable() {
  writing_ = false;
  while (!outbox_.empty()) {
    const Queued& next = outbox_.front();
    std::vector<int> descriptors;
    for (const Fd* fd : {&next.source, &next.headers}) {
      if (*fd) descriptors.push_back(fd->get());
    }
    const auto sent = worker::send_datagram(channel_->native_handle(), next.bytes, descriptors);
    if (!sent && sent.error().kind == ErrorKind::kUnreachable) return outbox_.clear();  // the reader sees the end
    if (!sent) not_sent(next.job, sent.error());
    if (sent && !*sent) break;
    outbox_.pop_front();
  }
  if (outbox_.empty()) return;
  writing_ = true;
  auto* channel = channel_.get();
  channel->async_wait(asio::posix::stream_descriptor::wait_write,
                      [this, channel](const boost::system::error_code& error) {
                        if (!error && channel == channel_.get()) await_writable();
                      });
}

// Nobody else's command is the worse for it.
void WorkerLink::not_sent(std::uint64_t job, const common::Error& error) {
  log_warning("command not sent", {{"error", common::to_line(error)}});
  if (job == 0) return;
  --jobs_;
  WorkerFinished finished;
  finished.job = job;
  finished.outcome = WorkerFinished::Outcome::kRefused;
  finished.error = error;
  asio::post(state_, [this, finished = std::move(finished)]() mutable { events_.report(std::move(finished)); });
}

// A worker that is stopped, or hangs, has an open channel and lives: only its silence tells.
void WorkerLink::watch_silence() {
  if (std::exchange(watching_silence_, true)) return;
  silence_timer_.expires_after(patience_.tick);
  silence_timer_.async_wait([this](const boost::system::error_code& error) {
    watching_silence_ = false;
    if (!error && !stopping_) look_at_silence();
  });
}

void WorkerLink::look_at_silence() {
  if (pid_ == 0 || (ready_ && jobs_ == 0)) return;
  if (++silent_ticks_ > (ready_ ? patience_.silence : patience_.start)) {
    silent_ticks_ = 0;
    log_warning("worker killed", {{"why", ready_ ? "it reports nothing of its jobs" : "it does not become ready"}});
    kill(pid_, SIGKILL);
  }
  watch_silence();
}

void WorkerLink::channel_failed(const common::Error& error) {
  if (!stopping_) log_warning("worker lost", {{"error", common::to_line(error)}});
  // It may live on without its channel: SIGCHLD brings the rest. While stopping it is ending its children now.
  if (pid_ > 0 && !stopping_) kill(pid_, SIGKILL);
  channel_.reset();
}

void WorkerLink::reap() {
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    if (!stopping_) log_warning("worker ended", {{"how", how_it_ended(status)}});
    pid_ = 0;
    end_adopted();  // before a new one starts: they hold memory
    worker_gone();
  } else {
    end_adopted();
  }
  if (stopping_) finish_stop();
}

void WorkerLink::worker_gone() {
  channel_.reset();
  outbox_.clear();
  jobs_ = 0;
  const bool old = ready_ && std::chrono::steady_clock::now() - spawned_ > kOldAge;
  failures_ = old ? 0 : failures_ + 1;
  ready_ = false;
  if (stopping_) return;
  events_.lost();
  schedule_restart();
}

// The worker adopts its own orphans while it lives, so that ours came from a dead one. Their children come to us when
// they die, with another SIGCHLD.
void WorkerLink::end_adopted() {
  for (const pid_t child : adopted_children(pid_)) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, WNOHANG);  // those that are not dead yet are reaped at their own SIGCHLD
  }
}

void WorkerLink::schedule_restart() {
  restart_timer_.expires_after(kBackoff[std::min<std::size_t>(std::max(failures_, 1u) - 1, kBackoff.size() - 1)]);
  restart_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopping_) restart();
  });
}

void WorkerLink::restart() {
  ++restarts_;
  if (auto spawned = spawn(); !spawned) {
    log_error("worker not restarted", {{"error", common::to_line(spawned.error())}});
    ++failures_;
    events_.lost();
    return schedule_restart();
  }
  receive();
  silent_ticks_ = 0;
  watch_silence();
}

void WorkerLink::stop(std::chrono::seconds patience, std::function<void()> ended) {
  stopping_ = true;
  ended_ = std::move(ended);
  channel_.reset();
  silence_timer_.cancel();
  restart_timer_.expires_after(patience);
  restart_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    if (pid_ > 0) kill(pid_, SIGKILL);
    // Killed does not mean gone: a process may hang in the kernel, on a file system whose server does not answer.
    restart_timer_.expires_after(kKilledPatience);
    restart_timer_.async_wait([this](const boost::system::error_code& called_off) {
      if (called_off || !ended_) return;
      log_warning("ending without the worker's processes: killed, but not gone");
      std::exchange(ended_, nullptr)();
    });
  });
  reap();
}

void WorkerLink::finish_stop() {
  if (!ended_ || pid_ > 0 || !adopted_children(0).empty()) return;
  restart_timer_.cancel();
  std::exchange(ended_, nullptr)();
}

}  // namespace jitc::service
