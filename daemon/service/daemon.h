// The daemon's life: what it is made of, in the order in which it comes up and goes down.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/error.h"
#include "daemon/observe/counters.h"
#include "daemon/service/artifacts.h"
#include "daemon/service/asio.h"
#include "daemon/service/capsules.h"
#include "daemon/service/engine.h"
#include "daemon/service/figures.h"
#include "daemon/service/installation.h"
#include "daemon/service/installation_reader.h"
#include "daemon/service/listener.h"
#include "daemon/service/machine.h"
#include "daemon/service/options.h"
#include "daemon/service/peers.h"
#include "daemon/service/process.h"
#include "daemon/service/server.h"
#include "daemon/service/services.h"
#include "daemon/service/worker_link.h"

namespace jitc::service {

class Daemon {
 public:
  // `socket`: a listening socket from a service manager, if any. The lock is held until the daemon has removed its
  // files.
  Daemon(const Options& options, DaemonLock lock, common::Fd socket);
  ~Daemon();

  // Comes up: worker (before any thread), store, identity file, gRPC, sockets.
  common::Result<void> start();
  // Serves on this thread until a signal, Drain or idleness ends it; nothing is left behind.
  void run();

 private:
  // Runs this thread's handlers until then; false when a signal ended the daemon before.
  bool wait_for(const bool& done);
  std::unexpected<common::Error> ended_early() const;
  common::Result<void> read_include_roots();
  common::Result<void> open_store();
  // Identity from what the worker said and what is installed; writes the identity file. `describing_` is held.
  common::Result<void> describe();
  // On the reader's thread: what was installed anew since the last look gets new keys.
  void refresh_installation(Reading reading);
  // Is the key that this was compiled under still the key of what it was compiled from?
  bool is_current(const Prepared& prepared) const;
  // The same after everything that enters the key was looked at again; `then` is called on the state thread.
  void confirm(const std::shared_ptr<const Prepared>& prepared, std::function<void(bool)> then);
  void refresh_embedded(const WorkerIdentity& worker);
  common::Result<void> open_sockets();
  EngineOptions engine_options();
  void keep_capsules(EngineOptions& options);
  Services services();
  std::map<std::string, std::uint64_t> counters() const;
  std::map<std::string, double> gauges() const;
  std::map<std::string, double> values() const;  // both
  void watch_worker();
  void watch_signals();
  void watch_children();
  void watch_machine();
  void watch_idleness();
  void watch_metrics();
  // On an I/O thread, unless one is writing them still: a file system that hangs holds one thread, not all.
  void write_metrics();
  void take(NodeLimits node);
  // Are socket and lock in the runtime directory still ours? Else drains.
  void check_place();
  // Reads what bounds us now, with what our children hold already.
  NodeLimits measure(const Holdings& ours) const;
  void calls_changed(int change);
  void drained();
  // Answers who waits with the error, ends the worker and the calls, then lets run() return.
  void shut_down(const std::string& why);
  // Until no thread of ours runs.
  void join();

  const Options& options_;
  DaemonLock lock_;
  common::Fd socket_;
  Machine machine_;

  asio::io_context state_{1};
  std::optional<asio::thread_pool> io_;  // its threads start after the worker did
  std::optional<Capsules> capsules_;
  std::optional<asio::thread_pool> capsules_io_;  // of its own: the store may hang, and its disk is another
  CommandCompilers command_compilers_;
  std::optional<asio::thread_pool> command_io_;
  std::unique_ptr<Artifacts> artifacts_;
  std::mutex describing_;  // guards the next two and the identity file; never held for long
  WorkerIdentity embedded_;
  Reading installed_;
  Installation installation_;
  InstallationReader reader_;
  IdentityBoard identity_;
  Peers peers_;
  WorkerLink worker_;
  std::optional<Engine> engine_;
  std::optional<Services> services_;
  std::optional<Server> server_;
  std::optional<asio::thread_pool> server_end_;  // waits for the calls at the end
  Listener listener_;
  HitsSocket hits_;

  asio::signal_set signals_;
  asio::signal_set child_signal_;
  asio::steady_timer machine_timer_;
  asio::steady_timer idle_timer_;
  asio::steady_timer metrics_timer_;
  bool metrics_writing_ = false, metrics_failed_ = false;
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
  observe::DaemonCounters own_;
  NodeLimits node_;  // as last measured
  bool pressure_ = false;
  asio::steady_timer drain_timer_;
  int open_calls_ = 0;
  bool drained_ = false;
  bool serving_ = false;
  bool stopping_ = false;
  std::string ended_early_;  // the signal that came before it served
  int ends_left_ = 0;        // the worker and the calls
};

}  // namespace jitc::service
