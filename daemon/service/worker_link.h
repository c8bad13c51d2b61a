// The daemon's end of its worker: starts it, speaks with it, starts it again when it dies. State thread only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/files.h"
#include "daemon/service/asio.h"
#include "daemon/service/work.h"
#include "daemon/worker/channel.h"
#include "jitc/v1/worker.pb.h"

namespace jitc::service {

// In ticks of the daemon's own, so that one that was stopped does not blame its worker.
struct WorkerPatience {
  std::chrono::milliseconds tick{1000};
  unsigned start = 60;    // until a new one is ready
  unsigned silence = 15;  // while it has jobs: it reports ten times a second
};

class WorkerLink {
 public:
  struct Events {
    std::function<void(WorkerEvent)> report;  // never a Finished of a job that was not started
    std::function<void()> lost;               // whatever it ran is lost; a new one is on its way
    std::function<void(const WorkerIdentity&)> restarted;
  };

  WorkerLink(asio::io_context& state, std::string path, std::vector<std::string> arguments,
             WorkerPatience patience = {})
      : state_(state),
        path_(std::move(path)),
        arguments_(std::move(arguments)),
        patience_(patience),
        restart_timer_(state),
        silence_timer_(state) {}
  ~WorkerLink();

  // Starts the worker and waits until it is ready, or until `stopped` says so; meanwhile the state's other handlers
  // run. Call before any thread starts.
  common::Result<WorkerIdentity> start(const std::function<bool()>& stopped);
  // From now on its reports arrive as events.
  void watch(Events events);

  bool up() const { return ready_ && channel_ != nullptr; }
  // After so many early deaths in a row, who waits for a compile gets an error.
  bool hopeless() const { return failures_ >= kHopelessAfter; }

  // Descriptor 0 of a start is the source, 1 the headers. Dropped when the worker is gone: `lost` tells. One that
  // cannot be sent is reported as a job that failed, later.
  void send(const v1::WorkerCommand& command, common::Fd source = {}, common::Fd headers = {});

  // Ends the worker: closing the channel makes it end its children and itself. `ended` is called when nothing that
  // descends from it is left; what does not end in `patience` is killed, and not waited for for ever.
  void stop(std::chrono::seconds patience, std::function<void()> ended);

  // On SIGCHLD: reaps the worker and what was adopted from a dead one.
  void reap();
  std::uint32_t restarts() const { return restarts_; }
  pid_t pid() const { return pid_; }
  const std::string& enforcement() const { return enforcement_; }  // as it said when it was ready

 private:
  static constexpr std::uint32_t kHopelessAfter = 5;
  common::Result<void> spawn();
  void receive();
  void take(worker::Datagram datagram);
  void await_writable();
  void not_sent(std::uint64_t job, const common::Error& error);
  void channel_failed(const common::Error& error);
  void worker_gone();
  void end_adopted();
  void schedule_restart();
  void restart();
  void finish_stop();
  void watch_silence();
  void look_at_silence();

  asio::io_context& state_;
  std::string path_;
  std::vector<std::string> arguments_;  // beyond the channel
  WorkerPatience patience_;
  std::string enforcement_;
  Events events_;
  pid_t pid_ = 0;  // 0: none
  std::unique_ptr<asio::posix::stream_descriptor> channel_;
  struct Queued {
    std::uint64_t job;  // that it starts; 0: none
    std::string bytes;
    common::Fd source, headers;
  };
  std::deque<Queued> outbox_;
  bool writing_ = false;
  bool ready_ = false;
  bool stopping_ = false;
  std::uint32_t failures_ = 0;  // deaths in a row, each before it finished a job, or was ready and grew old
  std::chrono::steady_clock::time_point spawned_;
  std::uint32_t restarts_ = 0;
  asio::steady_timer restart_timer_;  // the next start; while stopping: patience
  std::size_t jobs_ = 0;              // started and not finished
  asio::steady_timer silence_timer_;  // while it has jobs, or is to become ready
  bool watching_silence_ = false;
  unsigned silent_ticks_ = 0;
  std::function<void()> ended_;
};

}  // namespace jitc::service
