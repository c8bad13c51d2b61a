#include "daemon/service/flight_terms.h"

#include <utility>

#include "daemon/schedule/features.h"

namespace jitc::service {
namespace {

using common::Error;
using schedule::CompileOutcome;
using schedule::FlightView;

schedule::Features features_of(const Prepared& prepared) {
  schedule::Features features;
  features.compiler = prepared.resolved.compiler.name;
  features.optimisation = schedule::optimisation_of(prepared.request.flags);
  features.math_errno = schedule::math_errno_of(prepared.request.flags);
  features.bytes = prepared.scan.bytes;
  features.calls = prepared.scan.calls;
  features.largest_function = prepared.scan.largest_function;
  features.nesting = prepared.scan.nesting;
  return features;
}

std::uint64_t bytes_of(const common::Command& command) {
  std::uint64_t bytes = 0;
  for (const auto* list : {&command.argv, &command.environment}) {
    for (const auto& word : *list) bytes += word.size();
  }
  for (const auto& input : command.inputs) bytes += input.path.size() + input.seen.size();
  return bytes;
}

}  // namespace

schedule::Submission submission_of(const Prepared& prepared, const std::string& client) {
  schedule::Submission submission;
  submission.key = prepared.resolved.key;
  submission.client = client;
  submission.name = prepared.request.name;
  submission.features = features_of(prepared);
  submission.held_bytes = prepared.request.origin.size() + prepared.request.code.size();
  if (prepared.canary) submission.held_bytes += prepared.canary->size();
  if (prepared.command) submission.held_bytes += bytes_of(*prepared.command);
  for (const auto& header : prepared.request.headers) submission.held_bytes += header.text.size();
  submission.prefetch = prepared.request.prefetch;
  submission.no_cache = prepared.request.no_cache;
  submission.exact_flags = prepared.request.exact_flags;
  submission.is_command = prepared.command.has_value();
  return submission;
}

observe::TraceSubject subject_of(const schedule::Submission& submission) {
  return {submission.name, submission.client, submission.features.compiler};
}

CompileOutcome outcome_of(const WorkerFinished& finished, const Prepared& prepared) {
  using Outcome = WorkerFinished::Outcome;
  CompileOutcome outcome{};
  switch (finished.outcome) {
    case Outcome::kDone:
      outcome.kind = CompileOutcome::Kind::kDone;
      break;
    case Outcome::kOutOfMemory:
      outcome.kind = CompileOutcome::Kind::kOutOfMemory;
      break;
    case Outcome::kCrashed:
      outcome.kind = CompileOutcome::Kind::kCrashed;
      break;
    default:
      outcome.kind = CompileOutcome::Kind::kFailed;
      break;
  }
  outcome.outside = finished.outside;
  outcome.error = finished.error;
  outcome.peak_bytes = finished.peak_bytes;
  outcome.features = features_of(prepared);
  if (finished.calls > 0) outcome.features.calls = finished.calls;
  if (finished.nesting > 0) outcome.features.nesting = finished.nesting;
  return outcome;
}

CompileOutcome failed_outcome(CompileOutcome::Kind kind, Error error) {
  CompileOutcome outcome{};
  outcome.kind = kind;
  outcome.error = std::move(error);
  return outcome;
}

const char* name_of(FlightView::Phase phase) {
  switch (phase) {
    case FlightView::Phase::kLookingUp:
    case FlightView::Phase::kClaiming:
      return "looking_up";
    case FlightView::Phase::kQueued:
      return "queued";
    case FlightView::Phase::kElsewhere:
      return "elsewhere";
    case FlightView::Phase::kRunning:
      return "running";
    case FlightView::Phase::kPublishing:
      return "publishing";
  }
  return "";
}

}  // namespace jitc::service
