// Carries out what the scheduler decides: look-ups and publishing on I/O threads, compiles by the worker, answers to
// the waiters. Everything here runs on the state thread; what comes from elsewhere is posted to it first.
// In six files: engine.cc has waiters, look-ups, answers and time, engine_claims.cc what other nodes compile,
// engine_compiles.cc compiles and what the worker says of them, engine_canary.cc the check of modules before anybody
// gets them, engine_failures.cc what a failure leaves, engine_memory.cc memory, limits and spares.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/trace.h"
#include "daemon/schedule/prediction_error.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/service/artifacts.h"
#include "daemon/service/asio.h"
#include "daemon/service/capsules.h"
#include "daemon/service/claims.h"
#include "daemon/service/figures.h"
#include "daemon/service/passed.h"
#include "daemon/service/work.h"
#include "daemon/service/worker_link.h"

namespace jitc::service {

struct Beat {
  double elapsed_seconds = 0;  // since the compile started; 0 while queued
  std::uint64_t memory_bytes = 0;
  std::uint32_t place = 0;  // 0: running
  std::uint64_t bytes_ahead = 0;
  bool elsewhere = false;  // another node compiles it; `place` says nothing
};

// One waiter's end of the line. Called on the state thread; must not block.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void accepted(const common::Digest& key, schedule::FlightId flight) = 0;
  virtual void queued(std::uint32_t place, std::uint64_t bytes_ahead) = 0;
  virtual void started(std::uint32_t attempt, std::uint64_t limit_bytes) = 0;
  virtual void beat(const Beat& beat) = 0;
  virtual void finished(common::Result<Delivery> result) = 0;  // the last call
};

struct EngineOptions {
  schedule::Limits limits;
  std::uint32_t cpu_seconds = 600;
  std::uint32_t most_objects = 1;                   // that run or wait to be published: each holds descriptors
  std::chrono::duration<double> store_patience{0};  // with a store that answers nothing; 0: no end
  std::vector<std::string> include_roots;
  bool canary = true;       // modules are checked where what they must compute is known
  std::string cpu;          // the model and its features
  std::string passed_file;  // which modules have passed; empty: known by this daemon alone
  // Would this request get the same key now? Headers and compilers are read after it was made, and may have changed
  // while the flight waited and compiled. `then` is called on the state thread, at once or later.
  std::function<void(const std::shared_ptr<const Prepared>& prepared, std::function<void(bool)> then)> confirm;
  // Writes a failure's capsule elsewhere; `then` hears on the state thread which keys have one now. Empty: none are
  // kept.
  std::function<void(std::shared_ptr<const Failure> failure, std::function<void(std::set<common::Digest>)> then)>
      keep_capsule;
  std::function<std::string(const common::Digest& key)> capsule_path;
};

struct CanaryCounts {
  std::uint64_t run = 0;
  std::uint64_t refused = 0;     // of these: the module was wrong
  std::uint64_t unfinished = 0;  // of these: nothing can be said
};

class Engine {
 public:
  Engine(asio::io_context& state, asio::thread_pool& io, Artifacts& artifacts, WorkerLink& worker,
         EngineOptions options);

  schedule::WaiterId submit(std::shared_ptr<Waiter> waiter, std::shared_ptr<const Prepared> prepared,
                            const std::string& client);
  void leave(schedule::WaiterId waiter);
  bool cancel(schedule::FlightId flight);
  // New compiles are refused from now on; `drained` is called when nothing is left to finish.
  DrainView drain(std::function<void()> drained);
  bool draining() const { return scheduler_.draining(); }
  // Answers everybody with this error, now and from now on, and forgets what runs.
  void close(const common::Error& error);
  // After close(): until no call on the store is left of those that no thread of the pool makes.
  void join() { claims_.join(); }

  // From the worker.
  void on_report(WorkerEvent event);
  void on_worker_lost();
  void on_worker_ready();

  // The memory for compiles and spares together, slots, pressure.
  void set_machine_limits(std::uint32_t slots, std::uint64_t budget_bytes, bool pressure);

  // What compiles took before this daemon's time.
  void recall(const std::vector<schedule::Experience>& experience);
  std::size_t recalled() const { return recalled_; }
  const schedule::PredictionError& prediction_error() const { return prediction_error_; }

  bool idle() const { return scheduler_.idle() && waiters_.empty(); }
  // When the last waiter came or went.
  schedule::Time last_used() const { return last_used_; }
  std::vector<JobView> jobs() const;
  const schedule::Counters& counters() const { return scheduler_.counters(); }
  const CanaryCounts& canaries() const { return canaries_; }
  const schedule::Limits& limits() const { return limits_; }
  const Holdings& holdings() const { return holdings_; }  // as the worker said last
  std::uint64_t memory_now() const { return memory_now_; }
  std::uint64_t memory_peak() const { return memory_peak_; }
  std::uint64_t budget() const { return budget_; }
  std::uint32_t cpu_seconds() const { return options_.cpu_seconds; }
  const observe::Trace& trace() const { return trace_; }
  const observe::CommandCounters& commands() const { return commands_; }
  // A hit that no flight was needed for.
  void trace_hit(const common::Digest& key);

 private:
  using Clock = std::chrono::steady_clock;
  using FlightId = schedule::FlightId;
  using WaiterId = schedule::WaiterId;
  struct Waiting {
    std::shared_ptr<Waiter> waiter;
    FlightId flight = 0;
    common::Digest key;
  };
  struct Flight {
    std::shared_ptr<const Prepared> prepared;
    std::unordered_set<WaiterId> waiters;
    std::optional<schedule::Time> at_the_store;  // since when it waits for a look-up or a publish
    std::uint64_t job = 0;                       // of the compile that runs; 0: none
    bool in_caller = false;                      // its compiler runs in its caller, for as long as this waits
    std::uint32_t attempt = 0;
    bool is_lowered = false;  // its attempt is not at the level of optimisation that was asked for
    std::uint64_t memory_bytes = 0;
    bool wants_capsule = false;                 // one of those who asked for it does
    std::shared_ptr<const std::string> canary;  // what the module must compute; null: nobody of the waiters knows
    bool is_checking = false;                   // the job is a check: of `compiled`, else of `product`
    bool is_checked = false;                    // `compiled` has passed
    std::string replaces;                       // why what the store had was refused
    std::optional<WorkerFinished> compiled;
    std::shared_ptr<const Product> product;
  };

  void carry_out(schedule::Actions actions);
  void run(schedule::LookUp& action);
  void run(schedule::Claim& action);
  void run(schedule::Unclaim& action);
  void run(schedule::Compile& action);
  void run(schedule::StopCompile& action);
  void run(schedule::Publish& action);
  void run(schedule::Answer& action);
  void run(schedule::Forget& action);

  bool is_store_silent(const Flight& flight) const;
  void looked_up(FlightId flight, std::shared_ptr<const Product> product);
  void claimed(FlightId flight, schedule::ClaimOutcome outcome);
  void published(FlightId flight, std::shared_ptr<const Product> product);
  void look_up_ended(FlightId flight);
  bool can_start() const { return worker_.up() && jobs_.size() + publishing_ < options_.most_objects; }
  void start_held_back();
  void start_compile(const schedule::Compile& action);
  void end_turn(FlightId flight);
  void compile_ended(FlightId flight, const schedule::CompileOutcome& outcome);
  bool begins_check(FlightId flight);
  common::Result<common::Fd> object_of(const Flight& flight) const;
  void check_ended(FlightId flight, const WorkerFinished& finished);
  void compiled_is_checked(FlightId flight, const WorkerFinished& finished);
  void hit_is_checked(FlightId flight, const WorkerFinished& finished);
  std::size_t hits_in_check() const;
  void start_held_checks();
  void fail_later(FlightId flight, common::Error error);
  std::optional<Failure> failure_of(FlightId flight, const common::Error& error) const;
  void leave_capsule(FlightId flight, Failure failure, schedule::Actions& actions);
  void release_answers(FlightId flight);
  void name_capsule(const common::Digest& key, common::Error& error) const;
  void on(WorkerIdentity&) {}
  void on(WorkerStarted&) {}
  void on(WorkerUsage& usage);
  void on(WorkerFinished& finished);
  void record_prediction(FlightId flight, const schedule::CompileOutcome& outcome);
  void tell_place(FlightId flight);
  void tell_place(FlightId flight, Waiter& waiter);
  void tell_log(FlightId flight);
  void apply_limits(bool at_once);
  void arm_deadline();
  void arm_beat();
  void beat();
  void keep_spares();
  void trace_submission(const schedule::Submission& submission, FlightId flight);
  void trace_refusals(const schedule::Actions& actions, const observe::TraceSubject& subject);
  void trace_memory();

  asio::io_context& state_;
  asio::thread_pool& io_;
  Artifacts& artifacts_;
  WorkerLink& worker_;
  EngineOptions options_;
  schedule::Limits limits_;  // as the scheduler has them
  schedule::Scheduler scheduler_;
  Claims claims_;
  observe::Trace trace_;

  std::unordered_map<WaiterId, Waiting> waiters_;
  std::unordered_map<FlightId, Flight> flights_;
  std::unordered_map<std::uint64_t, FlightId> jobs_;  // the worker's job -> flight
  std::deque<schedule::Compile> held_back_;           // to start when there is a worker, and descriptors, again
  std::deque<FlightId> held_checks_;                  // of hits, while as many are checked as may compile
  std::size_t publishing_ = 0;
  std::unordered_map<FlightId, schedule::Actions> held_answers_;  // until the flight's capsule is written
  std::set<common::Digest> capsules_;                             // which keys have one
  schedule::Time store_answered_;                                 // when an I/O thread last came back
  WaiterId next_waiter_ = 1;
  std::uint64_t next_job_ = 1;

  Passed passed_;
  CanaryCounts canaries_;
  observe::CommandCounters commands_;
  schedule::PredictionError prediction_error_;
  std::size_t recalled_ = 0;
  std::uint64_t budget_ = 0;  // compiles and spares
  std::uint64_t spare_bytes_ = 0;
  Holdings holdings_;
  std::uint64_t memory_now_ = 0;
  std::uint64_t memory_peak_ = 0;
  std::uint32_t spares_wanted_ = 0;
  schedule::Time last_used_ = std::chrono::steady_clock::now();
  schedule::Time last_compile_ = std::chrono::steady_clock::now();

  asio::steady_timer deadline_;
  std::optional<schedule::Time> armed_;
  asio::steady_timer beat_;
  bool beating_ = false;
  std::function<void()> drained_;
  std::optional<common::Error> closed_;
};

}  // namespace jitc::service
