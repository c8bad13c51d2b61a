// The worker's event loop: takes commands from the daemon, keeps spare children, hands each compile to a child,
// measures and ends process trees, answers. One thread; it blocks nowhere but in epoll.
// In three files: worker.cc has the loop and the clock, worker_jobs.cc commands and jobs, worker_children.cc children.
#pragma once

#include <jitc/v1/worker.pb.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/files.h"
#include "daemon/worker/channel.h"
#include "daemon/worker/child.h"
#include "daemon/worker/enforcement.h"
#include "daemon/worker/verdict.h"
#include "daemon/worker/workspace.h"

namespace jitc::worker {

struct WorkerOptions {
  std::chrono::seconds idle{60};    // without a job: then the spares are released
  std::chrono::seconds stall{120};  // a compile whose processes use no CPU time for so long is ended
  bool control_groups = true;       // where they can be made
};

class Worker {
 public:
  Worker(common::Fd daemon, WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;

  // Until the daemon closes its end; an error when the loop itself cannot go on.
  common::Result<void> run();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSamplePeriod{100};

  struct Running {
    v1::WorkerCommand::Start start;
    Clock::time_point started;
    TreeUse use;  // the last sample
    std::uint64_t peak_bytes = 0;
    // Counted in samples, not by the clock: a batch system may stop this process and its compiles for hours.
    std::chrono::milliseconds ran{0}, stalled{0};
    Ending ending = Ending::kNone;
    std::optional<Breach> breach;
    // What the worker kills may hang in the kernel: passes that found it living, and the end that it waits for.
    int kill_passes = 0;
    common::Fd killed_end;
    bool answered = false;
  };
  struct Member {
    Child child;
    std::unique_ptr<TreeBounds> bounds;
    bool is_ready = false;  // an exercised spare
    std::optional<Running> running;
  };
  using Members = std::map<pid_t, Member>;
  // A job that no child could be made for yet; it is begun when another one ends.
  struct Waiting {
    v1::WorkerCommand::Start start;
    std::vector<common::Fd> descriptors;
    Clock::time_point arrived;
    bool has_directory = false;
  };

  common::Result<void> set_up();
  common::Result<void> wait_once();
  common::Result<void> announce();
  common::Result<void> watch(int fd, std::uint32_t events, int operation);

  common::Result<void> take_commands();
  common::Result<void> start(const v1::WorkerCommand::Start& start, std::vector<common::Fd> descriptors);
  common::Result<void> start_waiting();
  common::Result<void> begin(Member& member, Waiting job);
  common::Result<Member*> member_with_room();
  bool has_room(int descriptors) const;
  common::Result<void> cancel(std::uint64_t job);
  common::Result<void> set_spares(std::uint32_t count);

  common::Result<Member*> member_for_job();
  common::Result<Member*> add_member(Warmth warmth);
  void keep_spares();
  void release_spares();

  common::Result<void> hear(Member& member);
  common::Result<void> take_report(Member& member, bool& closed);
  common::Result<void> reap();
  common::Result<void> bury(Member member, int status);
  common::Result<void> answer(Running& running, v1::WorkerReport::Finished finished, common::Fd elf);
  static void note_breach(Member& member);
  static void note_end(Member& member);
  void end_strays();

  common::Result<void> tick();
  void sample(pid_t pid, Member& member);
  common::Result<void> report_usage();
  void end_job(Member& member, Ending ending);
  pid_t kill_tree(Member& member);
  void end_more(Member& member);
  void arm_timer();
  std::size_t running_count() const;
  std::size_t spare_count() const;

  common::Fd daemon_;
  WorkerOptions options_;
  Outbox outbox_;
  common::Fd epoll_;
  common::Fd signals_;
  common::Fd timer_;
  Workspace workspace_;
  std::unique_ptr<Enforcement> enforcement_;
  Members members_;
  std::deque<Waiting> waiting_;
  bool deaf_ = false;    // no descriptors to take a command with, until a child ends
  bool untidy_ = false;  // a control group is still in use although its tree has ended
  std::uint32_t wanted_spares_ = 0;
  bool spares_released_ = false;  // after idleness, until the next job
  Clock::time_point last_start_ = Clock::now();
  std::size_t processors_ = 1;
  bool daemon_gone_ = false;
};

}  // namespace jitc::worker
