// jitc warm: builds what a run has recorded, before the next one asks for it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "client/api/sharing.h"
#include "client/cli/compile.h"
#include "client/cli/context.h"
#include "client/cli/input.h"
#include "client/cli/json_text.h"
#include "client/cli/start.h"
#include "client/graph/emit.h"
#include "common/isa.h"
#include "common/plan.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::Request;
using common::Result;

constexpr const char* kFooter =
    "A plan is made by running a solver, or 'jitc submit', with JITC_RECORD=PLAN. What is built is kept in the store "
    "of\n"
    "the daemon that runs, else of one that is started; --store says which one it must be. Jobs read that store when\n"
    "JITC_STORE_READONLY names it.\n\n"
    "A request with JITC_ISA=common is built for each name of --isa: a level is what the CPUs of a job have in "
    "common,\n"
    "native is this machine's CPU as JITC_ISA=native takes it. A request for a level of its own, or native, is built\n"
    "once, as it is.\n\n"
    "Exit codes are those of 'jitc submit', of the first request that failed. What was compiled and could not be kept\n"
    "has failed (7).";

constexpr std::string_view kNative = "native";

struct Options {
  std::string plan;
  std::vector<std::string> isas;
  bool json = false;
  std::size_t at_once = kMostAtOnce;
  double timeout = 0;
  SettingFlags settings;
};

struct Tally {
  std::size_t compiled = 0, hits = 0, failed = 0;
  int code = 0;  // of the first that failed
};

std::string isa_name(const std::string& name) {
  if (name == kNative || common::isa_mask_of(name)) return "";
  std::string all(kNative);
  for (const auto level : common::isa_levels()) all += ", " + std::string(level);
  return "'" + name + "' is not an instruction set: give " + all;
}

Result<common::Plan> read_plan(const Options& options, const Deadline& deadline) {
  const std::string name = options.plan == "-" ? "<stdin>" : options.plan;
  const auto text = read_input(options.plan, deadline);
  if (!text) return std::unexpected(text.error());
  auto plan = common::plan_from_text(*text, name);
  if (!plan) return plan;
  for (const std::size_t line : plan->cut_lines)
    say("jitc: warning: " + name + ":" + std::to_string(line) + ": cut short: left out\n");
  if (plan->requests.empty()) return fail(ErrorKind::kUsage, "holds no request", name, "record a run (JITC_RECORD)");
  return plan;
}

// What a run of this build would ask for. A problem's code was printed under its request's digest: neither may change.
Result<Request> asked_for(Request request, const std::string& isa) {
  if (request.code.empty()) {
    request.emitter_version = api::sharing_version(request);
  } else if (request.emitter_version != graph::kEmitterVersion) {
    return fail(ErrorKind::kVersionSkew,
                "another version of jitc has printed it, and this one would ask for another text", request.name,
                "record the run again with this version");
  }
  if (request.isa_wish == "common" && isa != kNative) request.isa_level = isa;
  if (request.isa_wish == "common" && isa == kNative) {
    if (!request.code.empty())
      return fail(ErrorKind::kUsage, "a problem's text that was printed for JITC_ISA=common", request.name,
                  "record the run with JITC_ISA=native");
    request.isa_wish = kNative;
  }
  if (auto checked = common::check_request(request); !checked) return std::unexpected(std::move(checked.error()));
  return request;
}

// The sources for one name of --isa, each with its outcome, which has an error where it cannot be asked for.
std::vector<Source> sources_for(const common::Plan& plan, const std::string& isa, bool is_first,
                                std::vector<Outcome>& outcomes) {
  std::vector<Source> sources;
  for (const Request& request : plan.requests) {
    const bool is_common = request.isa_wish == "common";
    if (!is_common && !is_first) continue;
    Outcome& outcome = outcomes.emplace_back();
    outcome.name = request.name + " (" + (is_common ? isa : request.isa_wish) + ")";
    Source source{.name = outcome.name, .request = {}, .copy_to = {}, .as_it_is = !request.code.empty()};
    if (auto asked = asked_for(request, isa)) {
      source.request = std::move(*asked);
    } else {
      outcome.error = std::move(asked.error());
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

void count(std::vector<Outcome>& outcomes, bool json, Tally& tally) {
  for (Outcome& outcome : outcomes) {
    if (outcome.error && outcome.error->kind == ErrorKind::kStoreUnavailable)
      outcome.error->remedy = "mend what is said here and warm the plan again: 'jitc status' names the daemon's store";
    const int code = tell(outcome);
    if (tally.code == 0) tally.code = code;
    ++(outcome.error ? tally.failed : outcome.hit ? tally.hits : tally.compiled);
    if (json) std::printf("%s\n", to_json(outcome).c_str());
  }
}

// A daemon serves when this returns, with the store that is asked for.
Result<void> ensure_store(const Context& context, const Deadline& deadline) {
  const auto& wanted = context.settings.value("store");
  // A daemon that is started reads its settings itself.
  if (wanted.origin == "--store") ::setenv("JITC_STORE", wanted.text.c_str(), 1);
  if (auto serves = ensure_daemon(context, context.settings.text("autostart") != "0", deadline); !serves) return serves;
  const auto other = other_store(context);
  if (!other) return {};
  return fail(ErrorKind::kUsage,
              "the daemon of " + context.runtime_dir + " uses the store " + *other + ", not the one that " +
                  wanted.origin + " names",
              wanted.text, "stop it ('jitc daemon stop'), or give another JITC_RUNTIME_DIR");
}

void print(const Tally& tally, bool json) {
  if (json) {
    const nlohmann::ordered_json object = {
        {"compiled", tally.compiled}, {"hits", tally.hits}, {"failed", tally.failed}};
    std::printf("%s\n", one_line(object).c_str());
  } else {
    std::printf("%zu compiled, %zu already there, %zu failed\n", tally.compiled, tally.hits, tally.failed);
  }
}

int run(const Options& options) {
  const Deadline deadline(options.timeout);
  watch_interrupts();
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto plan = read_plan(options, deadline);
  if (!plan) return report(plan.error());
  if (auto ready = ensure_store(*context, deadline); !ready) return report(ready.error());
  std::vector<std::string> isas = options.isas;
  if (isas.empty()) isas.emplace_back(common::isa_level_of(common::host_isa()));
  Tally tally;
  for (std::size_t at = 0; at < isas.size(); ++at) {
    std::vector<Outcome> outcomes;
    const auto sources = sources_for(*plan, isas[at], at == 0, outcomes);
    obtain_all(*context, sources, deadline, outcomes, options.json, options.at_once);
    count(outcomes, options.json, tally);
  }
  print(tally, options.json);
  return tally.code;
}

}  // namespace

void add_warm(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* warm = app.add_subcommand("warm", "build what a run has recorded (JITC_RECORD), for the next ones");
  warm->footer(
      common::help_footer(kFooter, {"jitc warm plan.jsonl", "jitc warm plan.jsonl --isa x86-64-v2,native -j 2"}));
  warm->add_option("PLAN", options->plan, "the recorded file; - is standard input")->required();
  warm->add_option("--isa", options->isas,
                   "levels such as x86-64-v3, and native, ',' between (default: this machine's)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(isa_name)
      ->type_name("LIST");
  options->settings.add(*warm, {"runtime_dir", "store"});
  warm->add_flag("--json", options->json, "one JSON object per request and instruction set, then one of their numbers");
  warm->add_option("-j,--jobs", options->at_once, "requests that are with the daemon at once")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, kMostAtOnce))
      ->type_name("N");
  add_timeout(*warm, options->timeout, "seconds that everything may take; 0: no end");
  warm->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
