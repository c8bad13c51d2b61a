#include "client/cli/replay_text.h"

#include <algorithm>
#include <iterator>

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

bool is_of_the_compile(ErrorKind kind) {
  return kind == ErrorKind::kInvalidSource || kind == ErrorKind::kCompilerCrashed || kind == ErrorKind::kOutOfMemory ||
         kind == ErrorKind::kTimedOut;
}

}  // namespace

Replayed compare(const common::Error& recorded, const std::optional<common::Error>& now) {
  if (!now) return Replayed::kCompiles;
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

}  // namespace jitc::cli
