#include "daemon/service/daemon.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "common/identity.h"
#include "common/metrics.h"
#include "common/runtime_dir.h"
#include "daemon/observe/log.h"
#include "daemon/observe/metrics_file.h"

namespace jitc::service {
namespace {

using common::ErrorKind;
using observe::log_info;
using observe::log_warning;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kMachinePeriod{3};
constexpr std::chrono::seconds kMetricsPeriod{15};
constexpr std::chrono::milliseconds kCallPatience{500};  // for clients to take their last words
constexpr std::chrono::seconds kWorkerPatience{5};
constexpr std::chrono::seconds kDrainPatience{60};  // for slow readers of what was compiled
constexpr std::chrono::seconds kEndPatience{10};    // for all of the end; longer than the patience with each part
constexpr unsigned kFewestIoThreads = 2, kMostIoThreads = 4;

std::vector<std::string> worker_arguments(const common::Settings& settings) {
  if (settings.text("cgroup") == "0") return {"--control-groups", "0"};
  return {};
}

unsigned io_threads(std::uint32_t cores) { return std::clamp<unsigned>(cores, kFewestIoThreads, kMostIoThreads); }

}  // namespace

Daemon::Daemon(const Options& options, DaemonLock lock, common::Fd socket)
    : options_(options),
      lock_(std::move(lock)),
      socket_(std::move(socket)),
      installation_(options.settings.list("compilers"), options.settings.list("include_roots")),
      reader_(state_, installation_, [this](Reading reading) { refresh_installation(std::move(reading)); }),
      worker_(state_, options.worker, worker_arguments(options.settings)),
      listener_(state_,
                [this](common::Fd fd, const common::Peer& peer) {
                  peers_.accepted(fd.get(), peer);
                  server_->add_connection(std::move(fd));
                }),
      hits_(state_,
            [this](const common::Digest& key) {
              ++own_.direct_hits;
              engine_->trace_hit(key);
              last_used_ = steady_clock::now();
              asio::post(*io_, [this, key] { artifacts_->used(key); });
            }),
      signals_(state_),
      child_signal_(state_),
      machine_timer_(state_),
      idle_timer_(state_),
      metrics_timer_(state_),
      drain_timer_(state_) {}

// What the threads use goes before the threads do, by the order of members: they end first.
Daemon::~Daemon() { join(); }

// ---- coming up ----------------------------------------------------------------------------------------------------

common::Result<void> Daemon::start() {
  watch_signals();
  auto worker = worker_.start([this] { return !ended_early_.empty(); });
  if (!worker) return ended_early_.empty() ? std::unexpected(worker.error()) : ended_early();
  embedded_ = std::move(*worker);
  if (auto enough = check_thread_limit(); !enough) return enough;
  command_io_.emplace(1);
  io_.emplace(io_threads(measure({}).slots));
  if (auto read = read_include_roots(); !read) return read;
  if (auto opened = open_store(); !opened) return opened;
  watch_children();

  engine_.emplace(state_, *io_, *artifacts_, worker_, engine_options());
  services_.emplace(services());
  server_.emplace(*services_);
  if (auto started = server_->start(); !started) return started;
  watch_worker();
  // The identity file first: who finds the socket finds it too.
  {
    const std::lock_guard lock(describing_);
    if (auto described = describe(); !described) return described;
  }
  return open_sockets();
}

bool Daemon::wait_for(const bool& done) {
  while (!done && ended_early_.empty()) state_.run_one();
  return ended_early_.empty();
}

std::unexpected<common::Error> Daemon::ended_early() const {
  return common::fail(ErrorKind::kCancelled, "ended by " + ended_early_ + " before it served", "jitcd");
}

// Include roots are in every key: read before the first is made. External compilers take most of a second and are read
// when the first request names one; until then no identity file has them, and clients ask.
common::Result<void> Daemon::read_include_roots() {
  if (options_.settings.list("include_roots").empty()) return {};
  bool done = false;
  reader_.read({.fresh = steady_clock::now(),
                .beat = [] {},
                .ready = [&done] { done = true; },
                .failed = [](const common::Error&) {}});
  if (!wait_for(done)) return ended_early();
  return {};
}

// On an I/O thread, so that a signal is heard while a shared store hangs.
common::Result<void> Daemon::open_store() {
  bool done = false;
  std::optional<common::Error> failure;
  asio::post(*io_, [this, &done, &failure] {
    auto opened = Artifacts::open(options_.settings, options_.store);
    if (opened) {
      artifacts_ = std::move(*opened);
    } else {
      failure = opened.error();
    }
    asio::post(state_, [&done] { done = true; });
  });
  if (!wait_for(done)) {
    io_->join();  // it writes here; end_within() bounds the wait
    return ended_early();
  }
  if (failure) return std::unexpected(*failure);
  return {};
}

common::Result<void> Daemon::describe() {
  if (!lock_.guards()) return {};  // the file there is another daemon's, or will be
  common::Identity identity;
  identity.version = common::build_version();
  identity.pid = getpid();
  identity.compilers.push_back({"clang", {}, embedded_.embedded_identity});
  identity.compilers.insert(identity.compilers.end(), installed_.compilers.begin(), installed_.compilers.end());
  identity.triple = embedded_.triple;
  identity.native_isa = embedded_.cpu + " " + embedded_.features;
  identity.include_roots = installed_.include_roots;
  const auto& layers = artifacts_->layers();
  identity.store = layers.back().path;
  identity.store_is_shared = layers.back().trust == common::Trust::kEverybody;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    identity.read_only_stores.push_back(layers[i].path);
    if (layers[i].owner) identity.store_owners[layers[i].path] = *layers[i].owner;
  }
  auto written = common::write_identity(options_.runtime_dir, identity);
  if (!written) log_warning("identity file not written", {{"error", common::to_line(written.error())}});
  identity_.set(std::move(identity));
  return written;
}

void Daemon::refresh_installation(Reading reading) {
  const std::lock_guard lock(describing_);
  installed_ = std::move(reading);
  if (identity_.get()) static_cast<void>(describe());  // it logs; requests go on with the new keys
}

// Anything may have been read in between once the identity is another, even if this one's contents are back.
bool Daemon::is_current(const Prepared& prepared) const {
  const auto now = identity_.get();
  if (now == prepared.identity) return true;
  if (!common::is_self_contained(prepared.request, *prepared.identity)) return false;
  const auto resolved = common::resolve(prepared.request, *now);
  return resolved && resolved->key == prepared.resolved.key;  // the worker may have been upgraded
}

void Daemon::confirm(const std::shared_ptr<const Prepared>& prepared, std::function<void(bool)> then) {
  if (prepared->command) {
    asio::post(*command_io_, [this, prepared, then = std::move(then)] {
      const bool is = command_compilers_.is_current(*prepared->command, prepared->resolved.compiler.identity);
      asio::post(state_, [then, is] { then(is); });
    });
    return;
  }
  if (common::is_self_contained(prepared->request, *prepared->identity)) return then(is_current(*prepared));
  reader_.read({.fresh = steady_clock::now(),
                .beat = [] {},
                .ready = [this, prepared, then] { then(is_current(*prepared)); },
                .failed = [then](const common::Error&) { then(false); }});
}

void Daemon::refresh_embedded(const WorkerIdentity& worker) {
  const std::lock_guard lock(describing_);
  if (worker == embedded_) return;  // what compiles under this identity may still be kept
  embedded_ = worker;
  static_cast<void>(describe());
}

common::Result<void> Daemon::open_sockets() {
  auto bound = socket_ ? listener_.adopt(std::move(socket_)) : listener_.bind(options_.runtime_dir);
  if (!bound) return bound;
  if (auto hits = hits_.bind(options_.runtime_dir); !hits) return hits;
  listener_.start();
  hits_.start();
  return {};
}

EngineOptions Daemon::engine_options() {
  const common::Settings& settings = options_.settings;
  EngineOptions options;
  node_ = measure({});
  options.limits.slots = node_.slots;
  options.most_objects = slots_within(descriptor_limit());
  options.limits.budget_bytes = node_.budget_bytes;
  options.limits.queue_length = static_cast<std::uint32_t>(settings.count("queue_length"));
  options.limits.grace = schedule::Seconds(settings.seconds("grace"));
  options.limits.failure_memory = schedule::Seconds(settings.seconds("failure_memory"));
  options.limits.crash_tries = static_cast<std::uint32_t>(settings.count("tries"));
  options.limits.leases = settings.flag("store_lease");
  options.cpu_seconds = static_cast<std::uint32_t>(std::max(1.0, settings.seconds("cpu_limit")));
  options.store_patience = schedule::Seconds(settings.seconds("timeout"));
  options.include_roots = settings.list("include_roots");
  options.canary = settings.text("canary") != "off";
  options.cpu = embedded_.cpu + " " + embedded_.features;
  options.passed_file = lock_.guards() ? options_.runtime_dir + "/" + kPassedName : std::string();
  options.confirm = [this](const std::shared_ptr<const Prepared>& prepared, std::function<void(bool)> then) {
    confirm(prepared, std::move(then));
  };
  keep_capsules(options);
  return options;
}

// In the runtime directory, which is on the node; a batch job's own goes with its daemon: beside it then.
void Daemon::keep_capsules(EngineOptions& options) {
  const auto most = options_.settings.count("capsules");
  if (most == 0) return;
  const std::filesystem::path runtime(options_.runtime_dir);
  capsules_.emplace((options_.is_jobs ? runtime.parent_path() : runtime) / "capsules", most);
  capsules_io_.emplace(1);
  options.capsule_path = [this](const common::Digest& key) { return capsules_->path_of(key); };
  options.keep_capsule = [this](std::shared_ptr<const Failure> failure, auto then) {
    asio::post(*capsules_io_, [this, failure = std::move(failure), then = std::move(then)]() mutable {
      auto present = capsules_->keep(*failure);
      failure.reset();
      asio::post(state_,
                 [then = std::move(then), present = std::move(present)]() mutable { then(std::move(present)); });
    });
  };
}

Services Daemon::services() {
  return Services{.state = state_,
                  .io = *io_,
                  .engine = *engine_,
                  .artifacts = *artifacts_,
                  .peers = peers_,
                  .identity = identity_,
                  .offered = installation_.offered(),
                  .policy = {options_.settings.bytes("max_source"), options_.settings.list("include_roots")},
                  .command_compilers = command_compilers_,
                  .command_io = *command_io_,
                  .read_installation = [this](ReadingWaiter waiter) { reader_.read(std::move(waiter)); },
                  .calls_changed = [this](int change) { calls_changed(change); },
                  .counters = [this] { return counters(); },
                  .gauges = [this] { return gauges(); },
                  .figures = [this]() -> const std::vector<Figure>& { return node_.figures; },
                  .enforcement = [this]() -> const std::string& { return worker_.enforcement(); },
                  .active = [this] { last_used_ = steady_clock::now(); },
                  .looked_up =
                      [this](const common::Digest& key, bool hit) {
                        ++own_.lookups;
                        own_.lookup_hits += hit ? 1 : 0;
                        if (hit) engine_->trace_hit(key);
                        last_used_ = steady_clock::now();
                      },
                  .draining = [this] { server_->not_serving(); },
                  .drained = [this] { drained(); }};
}

// ---- while it runs ------------------------------------------------------------------------------------------------

void Daemon::run() {
  if (options_.settings.count("max_compilers") > node_.slots) {
    log_warning("fewer compilers than set",
                {{"compilers", std::to_string(node_.slots)}, {"bound_by", node_.source_of(Bounds::kSlots)}});
  }
  log_info("serving", {{"runtime_dir", options_.runtime_dir},
                       {"store", options_.store},
                       {"compilers", std::to_string(engine_->limits().slots)},
                       {"memory", std::to_string(engine_->budget())},
                       {"enforcement", worker_.enforcement()}});
  watch_machine();
  watch_idleness();
  watch_metrics();
  // What compiles took corrects the predictions, as soon as it is read.
  artifacts_->begin_care([this](std::vector<schedule::Experience> experience) {
    asio::post(state_, [this, experience = std::move(experience)] { engine_->recall(experience); });
  });
  serving_ = true;
  state_.run();
  join();
  lock_.release();
  log_info("ended");
}

void Daemon::watch_worker() {
  worker_.watch({.report = [this](WorkerEvent event) { engine_->on_report(std::move(event)); },
                 .lost = [this] { engine_->on_worker_lost(); },
                 .restarted =
                     [this](const WorkerIdentity& worker) {
                       // It may have been upgraded meanwhile. Not here: it writes a file.
                       asio::post(*io_, [this, worker] { refresh_embedded(worker); });
                       engine_->on_worker_ready();
                     }});
  engine_->on_worker_ready();
}

void Daemon::watch_signals() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) signals_.add(number);
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    const char* name = number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGHUP";
    if (serving_) return shut_down(name);
    ended_early_ = name;
    end_within(kEndPatience);
    reader_.abandon({ErrorKind::kDraining, "the daemon is stopping", "jitcd"});
  });
}

void Daemon::watch_children() {
  child_signal_.add(SIGCHLD);
  // A child's end is told once, and may lie before the handler was there: reap first, then wait, for ever.
  const auto next = [this](const auto& self) -> void {
    worker_.reap();
    child_signal_.async_wait([self](const boost::system::error_code& error, int) {
      if (!error) self(self);
    });
  };
  asio::post(state_, [next] { next(next); });
}

NodeLimits Daemon::measure(const Holdings& ours) const {
  const common::Settings& settings = options_.settings;
  return node_limits(machine_,
                     {.max_compilers = static_cast<std::uint32_t>(settings.count("max_compilers")),
                      .max_compilers_from = settings.value("max_compilers").origin,
                      .memory_budget = settings.bytes("memory_budget"),
                      .memory_budget_from = settings.value("memory_budget").origin},
                     ours);
}

void Daemon::take(NodeLimits node) {
  const std::uint32_t slots = steady_slots(engine_->limits().slots, node_.slots, node.slots);
  node_ = std::move(node);
  if (slots != engine_->limits().slots) {
    log_info("slots change", {{"compilers", std::to_string(slots)}, {"bound_by", node_.source_of(Bounds::kSlots)}});
  }
  const bool pressure = steady_pressure(pressure_, node_.pressure_percent);
  if (pressure != pressure_) log_info(pressure ? "memory pressure begins" : "memory pressure ends");
  pressure_ = pressure;
  engine_->set_machine_limits(slots, steady_budget(engine_->budget(), node_.budget_bytes), pressure_);
  if (engine_->idle()) malloc_trim(0);  // a burst of large sources must not stay with us
}

// Somebody has removed our directory, or what is in it: the next client starts another daemon, and two of them would
// share out the node's memory twice.
void Daemon::check_place() {
  if (engine_->draining() || (lock_.guards() && listener_.is_found())) return;
  log_warning("runtime directory lost", {{"runtime_dir", options_.runtime_dir},
                                         {"then", "finishes what it has and ends; a new daemon may be started"}});
  services_->draining();
  engine_->drain(services_->drained);
}

// On an I/O thread, one reading at a time: what /proc says of a process that is stuck may take for ever.
void Daemon::watch_machine() {
  machine_timer_.expires_after(kMachinePeriod);
  machine_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    check_place();
    asio::post(*io_, [this, ours = engine_->holdings()] {
      asio::post(state_, [this, node = measure(ours)]() mutable {
        if (stopping_) return;
        take(std::move(node));
        watch_machine();
      });
    });
  });
}

void Daemon::watch_idleness() {
  const std::chrono::duration<double> patience(options_.idle_seconds);
  if (patience.count() <= 0) return;
  const auto period = std::chrono::ceil<steady_clock::duration>(patience);
  // While something runs the clock stands at zero.
  const auto now = steady_clock::now();
  const auto since = engine_->idle() && open_calls_ == 0 ? std::max(last_used_, engine_->last_used()) : now;
  if (now - since >= period) return shut_down("idle");
  idle_timer_.expires_at(since + period);
  idle_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) watch_idleness();
  });
}

std::map<std::string, std::uint64_t> Daemon::counters() const {
  observe::DaemonCounters own = own_;
  own.refused_peers = listener_.refused();
  const auto kept = artifacts_->counters();
  own.published = kept.published;
  own.evicted = kept.evicted;
  own.quarantined = kept.quarantined;
  own.untrusted = kept.untrusted;
  own.publish_failures = artifacts_->publish_failures();
  own.worker_restarts = worker_.restarts();
  own.canaries_run = engine_->canaries().run;
  own.canaries_refused = engine_->canaries().refused;
  own.canaries_unfinished = engine_->canaries().unfinished;
  own.memory_bytes = engine_->memory_now();
  own.memory_peak_bytes = engine_->memory_peak();
  own.memory_budget_bytes = engine_->budget();
  own.max_compilers = engine_->limits().slots;
  own.peaks_recalled = engine_->recalled();
  own.draining = engine_->draining();
  own.commands = engine_->commands();
  return observe::collect(engine_->counters(), own);
}

std::map<std::string, double> Daemon::gauges() const { return observe::gauges(engine_->prediction_error()); }

std::map<std::string, double> Daemon::values() const {
  std::map<std::string, double> values = gauges();
  for (const auto& [name, value] : counters()) values[name] = static_cast<double>(value);
  return values;
}

void Daemon::watch_metrics() {
  if (options_.metrics_file.empty()) return;
  write_metrics();
  metrics_timer_.expires_after(kMetricsPeriod);
  metrics_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) watch_metrics();
  });
}

void Daemon::write_metrics() {
  if (options_.metrics_file.empty() || std::exchange(metrics_writing_, true)) return;
  asio::post(*io_, [this, text = common::prometheus_text(values(), common::metric_labels(options_.runtime_dir))] {
    auto written = observe::write_metrics_file(options_.metrics_file, text);
    asio::post(state_, [this, written = std::move(written)] {
      metrics_writing_ = false;
      // Once, not every 15 s.
      if (!written && !metrics_failed_)
        log_warning("metrics file not written", {{"error", common::to_line(written.error())}});
      metrics_failed_ = !written;
    });
  });
}

// ---- going down ---------------------------------------------------------------------------------------------------

// Compile calls that are open: their clients may be reading still.
void Daemon::calls_changed(int change) {
  open_calls_ += change;
  last_used_ = steady_clock::now();
  if (drained_ && open_calls_ == 0) shut_down("drained");
}

// Nothing is left to compile. What was compiled is being read, by slow readers too.
void Daemon::drained() {
  drained_ = true;
  if (open_calls_ == 0) return shut_down("drained");
  drain_timer_.expires_after(kDrainPatience);
  drain_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) shut_down("drained");
  });
}

void Daemon::shut_down(const std::string& why) {
  if (stopping_) return;
  stopping_ = true;
  end_within(kEndPatience);
  log_info("ending", {{"why", why}});
  listener_.close();
  hits_.close();
  server_->not_serving();
  machine_timer_.cancel();
  idle_timer_.cancel();
  metrics_timer_.cancel();
  write_metrics();
  drain_timer_.cancel();
  const common::Error error{ErrorKind::kDraining, "the daemon is stopping (" + why + ")", "jitcd",
                            "ask again: a new one may be started"};
  reader_.abandon(error);
  engine_->close(error);

  // Both ends need this thread meanwhile: the calls' last answers are posted to it, the worker's end arrives on it. The
  // calls' end waits on a thread of its own: those for I/O may all hang.
  ends_left_ = 2;
  const auto ended = [this] {
    if (--ends_left_ == 0) state_.stop();
  };
  worker_.stop(kWorkerPatience, ended);
  server_end_.emplace(1);
  asio::post(*server_end_, [this, ended] {
    server_->shut_down(kCallPatience);
    asio::post(state_, ended);
  });
}

void Daemon::join() {
  reader_.join();
  if (io_) io_->join();
  if (command_io_) command_io_->join();
  if (engine_) engine_->join();
  if (artifacts_) artifacts_->end_care();
  if (capsules_io_) capsules_io_->join();
  if (server_end_) server_end_->join();
}

}  // namespace jitc::service
