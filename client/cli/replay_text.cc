#include "client/cli/replay_text.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "common/text.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;

// Places count: an error that moved is another one.
std::vector<common::Diagnostic> errors_of(const common::Error& error) {
  std::vector<common::Diagnostic> errors;
  std::ranges::copy_if(error.diagnostics, std::back_inserter(errors),
                       [](const auto& diagnostic) { return diagnostic.severity == "error"; });
  return errors;
}

std::string seconds(std::uint32_t count) { return std::to_string(count) + " s"; }

using Variables = std::map<std::string, std::string>;

Variables variables(const std::vector<std::string>& environment) {
  Variables named;
  for (const auto& entry : environment) {
    const auto end = entry.find('=');
    if (end != std::string::npos) named.emplace(entry.substr(0, end), entry.substr(end + 1));
  }
  return named;
}

bool is_of_the_compile(ErrorKind kind) {
  return kind == ErrorKind::kInvalidSource || kind == ErrorKind::kCompilerCrashed || kind == ErrorKind::kOutOfMemory ||
         kind == ErrorKind::kTimedOut || kind == ErrorKind::kMiscompiled;
}

}  // namespace

Replayed compare(const common::Error& recorded, const std::optional<common::Error>& now) {
  if (!now) return recorded.kind == ErrorKind::kMiscompiled ? Replayed::kUnchecked : Replayed::kCompiles;
  if (now->kind == recorded.kind) {
    const bool same = now->kind != ErrorKind::kInvalidSource || errors_of(*now) == errors_of(recorded);
    return same ? Replayed::kSameFailure : Replayed::kOtherFailure;
  }
  return is_of_the_compile(now->kind) ? Replayed::kOtherFailure : Replayed::kNotRun;
}

const char* words_of(Replayed replayed) {
  switch (replayed) {
    case Replayed::kCompiles:
      return "it compiles here";
    case Replayed::kUnchecked:
      return "it compiles here, and was not checked";
    case Replayed::kSameFailure:
      return "the same failure";
    case Replayed::kOtherFailure:
      return "another failure";
    case Replayed::kNotRun:
      break;
  }
  return "not compiled here";
}

const char* name_of(Replayed replayed) {
  switch (replayed) {
    case Replayed::kCompiles:
      return "compiles";
    case Replayed::kUnchecked:
      return "compiles_unchecked";
    case Replayed::kSameFailure:
      return "same_failure";
    case Replayed::kOtherFailure:
      return "other_failure";
    case Replayed::kNotRun:
      break;
  }
  return "not_run";
}

std::vector<Change> changes_since(const common::Capsule& capsule, const common::Identity& identity,
                                  const std::optional<common::ResolvedRequest>& resolved) {
  std::vector<Change> changes;
  const auto note = [&changes](const char* what, const std::string& recorded, const std::string& here) {
    if (!recorded.empty() && !here.empty() && recorded != here) changes.push_back({what, recorded, here});
  };
  note("jitc", capsule.jitc, identity.version);
  note("target", capsule.target.triple, identity.triple);
  if (!resolved) return changes;
  note("compiler", capsule.compiler.name, resolved->compiler.name);
  note("compiler's identity", capsule.compiler.identity, resolved->compiler.identity);
  note("instruction set", capsule.target.isa, resolved->target.isa);
  note("request", capsule.request_digest, resolved->request.hex());
  return changes;
}

std::vector<Change> changes_around(const common::Capsule& capsule, const Surroundings& here) {
  std::vector<Change> changes;
  const auto note = [&changes](const std::string& what, const std::string& recorded, const std::string& now) {
    if (recorded != now) changes.push_back({what, recorded, now});
  };
  note("memory for all compilers", common::mebibytes(capsule.budget_bytes), common::mebibytes(here.budget_bytes));
  note("limit of CPU time", seconds(capsule.cpu_seconds), seconds(here.cpu_seconds));
  note("number of compilers at once", std::to_string(capsule.compilers), std::to_string(here.compilers));
  const auto recorded = variables(capsule.environment), now = variables(here.environment);
  auto all = recorded;
  all.insert(now.begin(), now.end());
  const auto value = [](const Variables& of, const std::string& name) {
    const auto found = of.find(name);
    return found == of.end() ? "(unset)" : "'" + found->second + "'";
  };
  for (const auto& [name, _] : all) note("variable " + name, value(recorded, name), value(now, name));
  return changes;
}

}  // namespace jitc::cli
