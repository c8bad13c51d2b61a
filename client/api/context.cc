#include "client/api/context.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <new>

#include "client/api/handles.h"
#include "client/api/problem_request.h"
#include "client/api/request.h"
#include "client/gate/plan.h"
#include "common/digest.h"
#include "common/files.h"
#include "common/isa.h"
#include "common/runtime_dir.h"

using namespace jitc;
using common::ErrorKind;
using common::Result;
using common::Settings;
using namespace std::chrono_literals;

static_assert(JITC_FROM_MEMORY == static_cast<int>(gate::Origin::kMemory));
static_assert(JITC_FROM_RANK == static_cast<int>(gate::Origin::kRank));
static_assert(JITC_FROM_STORE == static_cast<int>(gate::Origin::kStore));
static_assert(JITC_FROM_DAEMON == static_cast<int>(gate::Origin::kDaemon));
static_assert(JITC_COMPILED == static_cast<int>(gate::Origin::kCompiled));
static_assert(JITC_PHASE_LOADING == static_cast<int>(rpc::Progress::Phase::kLoading));
static_assert(JITC_PHASE_ARRIVING == static_cast<int>(rpc::Progress::Phase::kArriving));
static_assert(JITC_PHASE_RECONNECTING == static_cast<int>(rpc::Progress::Phase::kReconnecting));
static_assert(JITC_PHASE_ELSEWHERE == static_cast<int>(rpc::Progress::Phase::kElsewhere));

namespace {

// The process's modules, for all its contexts. Never destroyed: modules may outlive main().
gate::ModuleTable& modules_of_process() {
  static auto& table = *new gate::ModuleTable;
  return table;
}

Result<Settings> load_settings(const jitc_options& options) {
  std::map<std::string, std::string> given;
  for (std::size_t i = 0; i < options.setting_count; ++i) given[options.settings[i].name] = options.settings[i].value;
  return Settings::load(given, "jitc_options");
}

std::chrono::nanoseconds seconds(double value) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(value));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Ranks with one runtime directory on one machine share a daemon. Containers may have one kernel, and nodes of one
// image one name; both together tell them apart.
std::uint64_t node_of(const std::string& runtime_dir) {
  std::array<char, HOST_NAME_MAX + 1> name{};
  gethostname(name.data(), HOST_NAME_MAX);
  return std::hash<common::Digest>()(common::Hasher("jitc node 1")
                                         .text("boot", common::boot_id())
                                         .text("host", name.data())
                                         .text("socket", runtime_dir + "/" + common::kSocketName)
                                         .finish());
}

gate::GateOptions gate_options(const Result<Settings>& settings, const std::string& runtime_dir) {
  gate::GateOptions options;
  options.host_isa = common::host_isa();
  options.node = node_of(runtime_dir);
  if (!settings) return options;
  options.pacing.silence = seconds(settings->seconds("timeout"));
  options.pacing.arrival = seconds(settings->seconds("arrival_timeout"));
  // Several beats fit into any patience, and 0 is patience without end.
  if (options.pacing.silence.count() > 0) {
    options.pacing.beat = std::clamp<std::chrono::nanoseconds>(options.pacing.silence / 4, 50ms, 1s);
    options.pacing.roll_call = std::min(options.pacing.roll_call, options.pacing.silence);
  }
  options.stage_dir = settings->text("stage_dir");
  options.adopts_root = settings->text("divergent") == "adopt";
  return options;
}

gate::DaemonOptions daemon_options(const Result<Settings>& settings, const std::string& runtime_dir, bool is_root) {
  gate::DaemonOptions options{.runtime_dir = runtime_dir};
  options.on_warning = [](std::string_view text) {
    std::fprintf(stderr, "jitc: %.*s\n", static_cast<int>(text.size()), text.data());
  };
  if (!settings) return options;
  options.silence_seconds = settings->seconds("timeout");
  const bool starts = settings->text("autostart") == "1";  // auto: not in the ranks of a solver
  options.may_start = starts && is_root;
  options.store = settings->text("store");
  options.awaits_daemon = !starts && common::in_batch_job();
  return options;
}

// Null: nothing is recorded.
std::shared_ptr<gate::Recorder> recorder(const Result<Settings>& settings) {
  if (!settings || settings->text("record").empty()) return nullptr;
  std::error_code ignored;  // without a working directory only an absolute path can mean anything
  const std::string path = settings->text("record");
  const auto absolute = std::filesystem::absolute(path, ignored).string();
  return std::make_shared<gate::PlanOfRun>(absolute.empty() ? path : absolute, [](std::string_view text) {
    std::fprintf(stderr, "jitc: %.*s\n", static_cast<int>(text.size()), text.data());
  });
}

const char* missing_in(const jitc_communicator& table) {
  if (table.ranks < 1 || table.rank < 0 || table.rank >= table.ranks) return "the rank is not one of the ranks";
  if (!table.iallreduce_or || !table.ibcast || !table.test) return "iallreduce_or, ibcast and test must all be given";
  return nullptr;
}

}  // namespace

jitc_context::jitc_context(const jitc_communicator& communicator, const jitc_options& options)
    : settings_(load_settings(options)),
      defaults_(jitc::api::defaults_of(settings_)),
      runtime_dir_(common::runtime_directory(settings_ ? settings_->text("runtime_dir") : std::string())),
      progress_(options.progress),
      progress_state_(options.progress_state),
      line_(settings_ ? settings_->text("progress") : std::string("0")),
      gate_(communicator, gate_options(settings_, runtime_dir_),
            {modules_of_process(), std::make_shared<gate::LocalStore>(runtime_dir_),
             std::make_shared<gate::DaemonCompiler>(daemon_options(settings_, runtime_dir_, communicator.rank == 0)),
             recorder(settings_)},
            [this](const std::string& name, const rpc::Progress& progress) { tell(name, progress); }) {
  stats_.size = sizeof stats_;
}

gate::Demand jitc_context::demand_of(const jitc_request* request) {
  return api::demand_of(request, defaults_, recent_);
}

gate::Demand jitc_context::demand_of(jitc_problem* problem, const jitc_emit_options* options,
                                     const jitc_request* request) {
  return api::demand_of(problem, options, request, defaults_);
}

gate::Outcome<std::vector<gate::Delivery>> jitc_context::compile(std::span<gate::Demand> demands) {
  const auto start = std::chrono::steady_clock::now();
  gate::Outcome<std::vector<gate::Delivery>> outcome = std::unexpected(gate::Failure{});
  try {
    outcome = gate_.compile_all(demands);
  } catch (...) {  // out of memory between two collective steps: this rank is out of step with the others for good
    outcome = std::unexpected(gate_.abandon(api::failure_of_exception()));
  }
  line_.clear();
  count(outcome ? std::span<const gate::Delivery>(*outcome) : std::span<const gate::Delivery>(), seconds_since(start));
  return outcome;
}

void jitc_context::tell(const std::string& name, const rpc::Progress& progress) {
  if (progress_) {
    const jitc_progress told{sizeof told,           static_cast<jitc_phase>(progress.phase),
                             progress.place,        progress.seconds,
                             progress.memory_bytes, name.c_str()};
    progress_(progress_state_, &told);
  } else if (gate_.is_root()) {
    line_.show(name, progress);
  }
}

void jitc_context::count(std::span<const gate::Delivery> deliveries, double seconds_taken) {
  ++stats_.calls;
  stats_.last_seconds = seconds_taken;
  stats_.total_seconds += seconds_taken;
  stats_.last_compile_seconds = 0;
  stats_.last_peak_bytes = 0;
  if (deliveries.empty()) ++stats_.failures;
  // What was asked for twice in a call was had once.
  for (std::size_t i = 0; i < deliveries.size(); ++i)
    if (std::ranges::none_of(deliveries.first(i),
                             [&](const gate::Delivery& before) { return before.request == deliveries[i].request; }))
      count(deliveries[i]);
}

void jitc_context::count(const gate::Delivery& delivery) {
  if (delivery.is_merged) ++stats_.merged;
  if (delivery.has_made_code) ++stats_.codes_made;
  switch (delivery.origin) {
    case gate::Origin::kMemory:
      ++stats_.memory_hits;
      break;
    case gate::Origin::kRank:
      ++stats_.shared_hits;
      break;
    case gate::Origin::kStore:
      ++stats_.store_hits;
      break;
    case gate::Origin::kDaemon:
      if (!delivery.is_merged) ++stats_.daemon_hits;
      break;
    case gate::Origin::kCompiled:
      ++stats_.compilers_started;
      stats_.last_compile_seconds = std::max(stats_.last_compile_seconds, delivery.compile_seconds);
      stats_.last_peak_bytes = std::max(stats_.last_peak_bytes, delivery.peak_bytes);
      break;
  }
}

jitc_kind jitc_context_open(const jitc_communicator* communicator, const jitc_options* options, jitc_context** context,
                            jitc_error** error) {
  if (error) *error = nullptr;
  if (context) *context = nullptr;
  jitc_communicator table{};
  try {
    table = communicator ? api::from_sized(communicator) : gate::serial_communicator();
    const char* wrong = context ? missing_in(table) : "no place for the context was given";
    if (!wrong) {
      *context = new jitc_context(table, api::from_sized(options));
      return JITC_OK;
    }
    if (table.release) table.release(table.state);
    return api::hand_out({{ErrorKind::kUsage, wrong, "jitc_context_open"}, {}}, error);
  } catch (...) {  // the ABI carries no exceptions
    if (table.release) table.release(table.state);
    return api::hand_out(api::failure_of_exception(), error);
  }
}

void jitc_context_close(jitc_context* context) { delete context; }
int jitc_context_is_broken(const jitc_context* context) { return context && context->is_broken(); }

void jitc_context_stats(const jitc_context* context, jitc_stats* stats) {
  if (!stats) return;
  jitc_stats whole = context ? context->stats() : jitc_stats{};
  whole.size = std::min(stats->size, sizeof whole);
  std::copy_n(reinterpret_cast<const unsigned char*>(&whole), whole.size, reinterpret_cast<unsigned char*>(stats));
}
