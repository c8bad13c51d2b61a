#include "client/cli/compile.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "client/api/sharing.h"
#include "client/cli/parallel.h"
#include "client/cli/progress.h"
#include "client/cli/start.h"
#include "common/runtime_dir.h"
#include "common/store_reader.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;

constexpr double kLeastSeconds = 1e-3;
constexpr unsigned kArtifactMode = 0777;

// Compiled, but there is no file to name. Why is the daemon's last warning.
common::Error not_kept(Outcome& outcome) {
  std::string reason = "not kept in the store";
  if (!outcome.warnings.empty()) {
    reason = std::move(outcome.warnings.back());
    outcome.warnings.pop_back();
  }
  std::string remedy = "take the artifact with -o FILE; or mend what is said here and submit it again";
  if (!outcome.degraded) remedy += ": 'jitc status' names the daemon's store";
  return fail(ErrorKind::kStoreUnavailable, "compiled, but " + reason, outcome.name, std::move(remedy)).error();
}

// Fills the outcome of a daemon's answer.
void take(const rpc::Reply& reply, const Source& source, const Deadline& deadline, Outcome& outcome) {
  outcome.key = reply.key;
  outcome.path = reply.path;
  outcome.hit = reply.hit;
  outcome.merged = reply.merged;
  outcome.seconds = reply.compile_seconds;
  outcome.peak_bytes = reply.peak_bytes;
  outcome.degraded = reply.degraded;
  if (!source.copy_to.empty()) {
    if (auto copied = write_copy(source.copy_to, reply.bytes, deadline, kArtifactMode, source.copy_remedy); !copied)
      outcome.error = std::move(copied.error());
    outcome.path = source.copy_to;
  } else if (outcome.path.empty()) {
    outcome.error = not_kept(outcome);
  }
}

// Of several files, or in a batch job's log, an error must say which file it is about, whatever else it names.
common::Error named(common::Error error, const std::string& name) {
  if (!error.thing.starts_with(name)) error.thing = name + (error.thing.empty() ? "" : ": ") + error.thing;
  return error;
}

}  // namespace

int tell(const Outcome& outcome) {
  const std::string name = shown_name(outcome.name);
  for (const auto& rung : outcome.rungs) say("jitc: " + name + ": note: " + rung + "\n");
  for (const auto& warning : outcome.warnings) say("jitc: " + name + ": warning: " + warning + "\n");
  return outcome.error ? report(named(*outcome.error, outcome.name), outcome.name) : 0;
}

std::optional<Outcome> look_up(const Context& context, const Source& source, const Deadline& deadline,
                               bool with_figures) {
  if (source.request.no_cache) return std::nullopt;
  const auto identity = common::read_identity(context.runtime_dir);
  if (!identity || !common::may_hit_directly(source.request, *identity)) return std::nullopt;
  const auto resolved = common::resolve(source.request, *identity);
  if (!resolved) return std::nullopt;  // the daemon says why
  common::StoredArtifact artifact;
  const common::StoreReader reader(common::store_layers(*identity));
  if (reader.look_up(resolved->key, artifact) != common::LookupOutcome::kFound) return std::nullopt;

  Outcome outcome;
  outcome.name = source.name;
  outcome.key = resolved->key.hex();
  outcome.path = artifact.path;
  outcome.hit = true;
  if (with_figures) {
    if (const auto manifest = common::manifest_from_json(artifact.view.manifest)) {
      outcome.seconds = manifest->compile_seconds;
      outcome.peak_bytes = manifest->peak_bytes;
    }
  }
  if (!source.copy_to.empty()) {
    if (auto copied = write_copy(source.copy_to, artifact.bytes, deadline, kArtifactMode, source.copy_remedy); !copied)
      outcome.error = std::move(copied.error());
    outcome.path = source.copy_to;
  }
  common::touch_artifact(artifact);
  common::report_hit(context.runtime_dir,
                     {reinterpret_cast<const char*>(resolved->key.bytes.data()), resolved->key.bytes.size()});
  return outcome;
}

Outcome compile(const Context& context, rpc::Daemon& daemon, const Source& source, const Deadline& deadline,
                const std::function<bool(const rpc::Progress&)>& progress, const std::function<bool()>& start) {
  Outcome outcome;
  outcome.name = source.name;
  if (auto in_time = deadline.check(); !in_time) {
    outcome.error = std::move(in_time.error());
    return outcome;
  }
  if (interrupted()) {
    outcome.error = fail(ErrorKind::kCancelled, "interrupted").error();
    return outcome;
  }
  const rpc::Daemon::Options options = {
      .want_bytes = !source.copy_to.empty(),
      .silence_seconds = context.settings.seconds("timeout"),
      // Not 0, which is no end, for a deadline that has passed since.
      .total_seconds = deadline.limited() ? std::max(deadline.left(), kLeastSeconds) : 0,
      .awaits_daemon = !start && common::in_batch_job()};
  rpc::Daemon::Events events;
  events.progress = progress;
  events.reply = [&](const rpc::Reply& reply) { take(reply, source, deadline, outcome); };
  events.failure = [&](const common::Error& error) { outcome.error = error; };
  events.warning = [&](std::string_view text) { outcome.warnings.emplace_back(text); };
  // At once where nothing else tells that it takes longer; a terminal has the progress line.
  events.again = [&](std::string_view text) {
    if (::isatty(STDERR_FILENO) == 1) return outcome.warnings.emplace_back(text), void();
    say("jitc: " + shown_name(source.name) + ": warning: " + std::string(text) + "\n");
  };
  events.rung = [&](std::string_view text) { outcome.rungs.emplace_back(text); };
  events.start = start;
  common::Request request = source.request;
  if (!source.as_it_is && api::wants_sharing(request)) request.code = api::shared_text(request);
  daemon.compile(request, options, events);
  if (!source.as_it_is && outcome.error && common::fall_back_to_origin(request, *outcome.error)) {
    outcome.error.reset();
    daemon.compile(request, options, events);
  }
  if (outcome.error && outcome.error->kind == ErrorKind::kCancelled && interrupted())
    outcome.error->message = "interrupted";
  // The client knows what was left when it was asked, not what the user gave. What to do is the client's to say.
  if (outcome.error && outcome.error->kind == ErrorKind::kTimedOut)
    if (auto in_time = deadline.check(); !in_time) outcome.error->message = std::move(in_time.error().message);
  return outcome;
}

void compile_all(const Context& context, const std::vector<Source>& sources, const std::vector<std::size_t>& indices,
                 const Deadline& deadline, std::vector<Outcome>& outcomes, std::size_t at_once) {
  const bool may_start = context.settings.text("autostart") != "0";
  if (may_start || !common::in_batch_job()) {  // there the call itself waits for the job's daemon
    if (auto serves = ensure_daemon(context, may_start, deadline); !serves) {
      for (const auto i : indices) outcomes[i].error = serves.error();
      return;
    }
  }
  std::vector<std::string> names;
  for (const auto i : indices) names.push_back(shown_name(sources[i].name));
  ProgressDisplay display(ProgressDisplay::mode_of(context.settings.text("progress")), std::move(names));
  rpc::Daemon& daemon = daemon_client(context);
  // For a daemon that was about to end when it was found, or that ends under the compile.
  Restart restart(context, deadline);
  const std::function<bool()> start = may_start ? std::function<bool()>(std::ref(restart)) : nullptr;
  const auto work = [&](std::size_t at) {
    const auto tell = [&](const rpc::Progress& progress) {
      display.update(at, progress);
      return !interrupted();
    };
    const auto i = indices[at];
    outcomes[i] = compile(context, daemon, sources[i], deadline, tell, start);
    auto& error = outcomes[i].error;
    if (error && error->kind == ErrorKind::kUnreachable)
      if (auto why = restart.failure()) error = std::move(why);
    display.done(at);
  };
  const auto failed = [&](std::size_t at, const std::exception& exception) {
    outcomes[indices[at]].error = fail(ErrorKind::kInternal, exception.what(), sources[indices[at]].name).error();
  };
  in_parallel(indices.size(), at_once, work, failed);
}

void obtain_all(const Context& context, const std::vector<Source>& sources, const Deadline& deadline,
                std::vector<Outcome>& outcomes, bool with_figures, std::size_t at_once) {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (outcomes[i].error) continue;
    if (auto hit = look_up(context, sources[i], deadline, with_figures)) {
      outcomes[i] = std::move(*hit);
    } else {
      missing.push_back(i);
    }
  }
  if (!missing.empty()) compile_all(context, sources, missing, deadline, outcomes, at_once);
}

}  // namespace jitc::cli
