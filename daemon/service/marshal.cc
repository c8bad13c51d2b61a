#include "daemon/service/marshal.h"

#include <algorithm>

#include "common/flags.h"
#include "common/identity.h"
#include "common/utf8.h"

namespace jitc::service {
namespace {

using common::Error;
using common::ErrorKind;

v1::FailureKind to_wire(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidSource:
      return v1::INVALID_SOURCE;
    case ErrorKind::kRefused:
    case ErrorKind::kUsage:
      return v1::REFUSED;
    case ErrorKind::kOutOfMemory:
      return v1::OUT_OF_MEMORY;
    case ErrorKind::kTimedOut:
      return v1::TIMED_OUT;
    case ErrorKind::kCancelled:
      return v1::CANCELLED;
    case ErrorKind::kCompilerCrashed:
      return v1::COMPILER_CRASHED;
    case ErrorKind::kStoreFull:
      return v1::STORE_FULL;
    case ErrorKind::kStoreUnavailable:
      return v1::STORE_UNAVAILABLE;
    case ErrorKind::kDraining:
      return v1::DRAINING;
    case ErrorKind::kVersionSkew:
      return v1::VERSION_SKEW;
    case ErrorKind::kMiscompiled:
      return v1::MISCOMPILED;
    default:
      return v1::INTERNAL;
  }
}

v1::TraceReply::Span::Kind to_wire(observe::TraceSpan::Kind kind) {
  using Kind = observe::TraceSpan::Kind;
  switch (kind) {
    case Kind::kLookUp:
      return v1::TraceReply::Span::LOOK_UP;
    case Kind::kQueued:
      return v1::TraceReply::Span::QUEUED;
    case Kind::kElsewhere:
      return v1::TraceReply::Span::ELSEWHERE;
    case Kind::kRunning:
      return v1::TraceReply::Span::RUNNING;
    case Kind::kPublishing:
      return v1::TraceReply::Span::PUBLISHING;
    case Kind::kAnswered:
      return v1::TraceReply::Span::ANSWERED;
  }
  return v1::TraceReply::Span::KIND_UNSPECIFIED;
}

// Protobuf refuses to send a string that is not UTF-8; diagnostics quote sources and logs quote anything.
std::string utf8(std::string_view text) { return common::valid_utf8(text); }

common::Request to_request(v1::CompileRequest&& wire) {
  common::Request request;
  request.origin = std::move(*wire.mutable_origin());
  request.code = std::move(*wire.mutable_code());
  request.flags.assign(wire.flags().begin(), wire.flags().end());
  // proto3 cannot tell "empty" from "not said": the request's own defaults stand for both.
  if (!wire.compiler().empty()) request.compiler = wire.compiler();
  if (!wire.share().empty()) request.share = wire.share();
  if (!wire.cse().empty()) request.cse = wire.cse();
  if (!wire.isa_wish().empty()) request.isa_wish = wire.isa_wish();
  request.abi_tag = wire.abi_tag();
  request.emitter_version = wire.emitter_version();
  request.isa_level = wire.isa_level();
  request.exact_flags = wire.exact_flags();
  request.name = wire.name();
  request.job = wire.job();
  request.prefetch = wire.prefetch();
  request.no_cache = wire.no_cache();
  request.no_capsule = wire.no_capsule();
  for (auto& header : *wire.mutable_headers()) {
    request.headers.push_back({std::move(*header.mutable_name()), std::move(*header.mutable_text())});
  }
  return request;
}

common::Result<void> check_size(std::string_view what, std::uint64_t bytes, std::uint64_t most) {
  if (bytes <= most) return {};
  auto refusal = common::fail(
      ErrorKind::kRefused, "has " + std::to_string(bytes) + " bytes, this daemon takes at most " + std::to_string(most),
      std::string(what), "share or split the source, or raise JITC_MAX_SOURCE at the daemon");
  return refusal;
}

common::Diagnostic from_wire(const v1::Diagnostic& wire) {
  return {wire.severity(), wire.line(), wire.column(), wire.message(), wire.excerpt()};
}

using Outcome = WorkerFinished::Outcome;

// A module is loaded and called a few times: milliseconds, and next to nothing beside what the child shares.
constexpr std::uint32_t kCheckSeconds = 5;
constexpr std::uint64_t kCheckBytes = std::uint64_t{1} << 30;

std::optional<Outcome> from_wire(v1::WorkerReport::Finished::Outcome outcome) {
  switch (outcome) {
    case v1::WorkerReport::Finished::DONE:
      return Outcome::kDone;
    case v1::WorkerReport::Finished::INVALID_SOURCE:
      return Outcome::kInvalidSource;
    case v1::WorkerReport::Finished::REFUSED:
      return Outcome::kRefused;
    case v1::WorkerReport::Finished::OUT_OF_MEMORY:
      return Outcome::kOutOfMemory;
    case v1::WorkerReport::Finished::TIMED_OUT:
      return Outcome::kTimedOut;
    case v1::WorkerReport::Finished::CANCELLED:
      return Outcome::kCancelled;
    case v1::WorkerReport::Finished::CRASHED:
      return Outcome::kCrashed;
    case v1::WorkerReport::Finished::MISCOMPILED:
      return Outcome::kMiscompiled;
    default:
      return std::nullopt;
  }
}

ErrorKind kind_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kInvalidSource:
      return ErrorKind::kInvalidSource;
    case Outcome::kRefused:
      return ErrorKind::kRefused;
    case Outcome::kOutOfMemory:
      return ErrorKind::kOutOfMemory;
    case Outcome::kTimedOut:
      return ErrorKind::kTimedOut;
    case Outcome::kCancelled:
      return ErrorKind::kCancelled;
    case Outcome::kCrashed:
      return ErrorKind::kCompilerCrashed;
    case Outcome::kMiscompiled:
      return ErrorKind::kMiscompiled;
    case Outcome::kDone:
      break;
  }
  return ErrorKind::kInternal;
}

common::Result<WorkerFinished> from_wire(const v1::WorkerReport::Finished& wire, std::vector<common::Fd>& descriptors) {
  const bool is_check = wire.check();
  const auto outcome = from_wire(wire.outcome());
  if (!outcome) return common::fail(ErrorKind::kInternal, "unknown outcome of a compile", "worker's report");
  WorkerFinished finished;
  finished.job = wire.job();
  finished.outcome = *outcome;
  finished.outside = wire.outside();
  finished.log = wire.log();
  for (const auto& function : wire.functions()) finished.functions.push_back({function.name(), function.signature()});
  finished.calls = wire.counts().calls();
  finished.nesting = wire.counts().nesting();
  finished.peak_bytes = wire.peak_bytes();
  finished.seconds = wire.seconds();
  finished.flags_used.assign(wire.flags_used().begin(), wire.flags_used().end());
  finished.command.assign(wire.command().begin(), wire.command().end());
  finished.exit_status = wire.exit_status();
  finished.signal = wire.signal();
  finished.output_bytes = wire.output_bytes();
  finished.stdout_bytes = wire.stdout_bytes();
  finished.stderr_bytes = wire.stderr_bytes();
  if (*outcome == Outcome::kDone) {
    if (descriptors.empty() && is_check) return finished;
    if (descriptors.empty()) return common::fail(ErrorKind::kInternal, "no object came with it", "worker's report");
    finished.object = std::move(descriptors.front());
    return finished;
  }
  Error& error = finished.error;
  error.kind = kind_of(*outcome);
  error.message = wire.message().empty() ? std::string(common::name_of(error.kind)) : wire.message();
  if (!wire.evidence().empty()) error.message += " (" + wire.evidence() + ")";
  for (const auto& diagnostic : wire.diagnostics()) error.diagnostics.push_back(from_wire(diagnostic));
  error.log = wire.log();
  error.thing = wire.thing();
  return finished;
}

}  // namespace

common::Result<Prepared> prepare(v1::CompileRequest&& wire, const RequestPolicy& policy,
                                 const common::Identity& identity) {
  Prepared prepared;
  prepared.want_bytes = wire.want_bytes();
  if (wire.has_canary()) prepared.canary = std::make_shared<const std::string>(wire.canary().SerializeAsString());
  prepared.request = to_request(std::move(wire));
  const common::Request& request = prepared.request;
  std::uint64_t header_bytes = 0;
  for (const auto& header : request.headers) header_bytes += header.name.size() + header.text.size();
  for (const auto& checked :
       {check_size("source", request.origin.size(), policy.max_source_bytes),
        check_size("source to compile", request.code.size(), policy.max_source_bytes),
        check_size("headers", header_bytes, policy.max_source_bytes),
        check_size("canary", prepared.canary ? prepared.canary->size() : 0, policy.max_source_bytes),
        common::check_request(request), common::check_flags(request.flags, policy.include_roots)}) {
    if (!checked) return std::unexpected(checked.error());
  }
  auto scan = common::check_source(request.text());
  if (!scan) return std::unexpected(scan.error());
  prepared.scan = *scan;
  auto resolved = common::resolve(request, identity);
  if (!resolved) return std::unexpected(resolved.error());
  prepared.resolved = std::move(*resolved);
  return prepared;
}

v1::Failure to_wire(const Error& error) {
  v1::Failure failure;
  failure.set_kind(to_wire(error.kind));
  failure.set_message(utf8(error.message));
  failure.set_thing(utf8(error.thing));
  failure.set_remedy(utf8(error.remedy));
  for (const auto& diagnostic : error.diagnostics) {
    auto* wire = failure.add_diagnostics();
    wire->set_severity(diagnostic.severity);
    wire->set_line(diagnostic.line);
    wire->set_column(diagnostic.column);
    wire->set_message(utf8(diagnostic.message));
    wire->set_excerpt(utf8(diagnostic.excerpt));
  }
  failure.set_log(utf8(error.log));
  failure.set_needed_bytes(error.needed_bytes);
  failure.set_budget_bytes(error.budget_bytes);
  failure.set_tries(error.tries);
  for (const auto& rung : error.rungs) failure.add_rungs(rung);
  failure.set_retry_after_seconds(error.retry_after_seconds);
  failure.set_capsule(utf8(error.capsule));
  return failure;
}

v1::Artifact to_wire(const Delivery& delivery) {
  const Product& product = *delivery.product;
  v1::Artifact artifact;
  artifact.set_key(product.key.hex());
  artifact.set_path(product.path);
  artifact.set_size(product.size);
  artifact.set_digest(product.digest.hex());
  artifact.set_hit(delivery.hit);
  artifact.set_merged(delivery.merged);
  artifact.set_compile_seconds(product.compile_seconds);
  artifact.set_peak_bytes(product.peak_bytes);
  for (const auto& rung : delivery.rungs) artifact.add_rungs(rung);
  for (const auto& warning : product.warnings) artifact.add_warnings(utf8(warning));
  artifact.set_degraded(product.degraded);
  return artifact;
}

v1::CompileEvent finished_event(const common::Result<Delivery>& result) {
  v1::CompileEvent event;
  if (result) {
    *event.mutable_finished()->mutable_artifact() = to_wire(*result);
  } else {
    *event.mutable_finished()->mutable_failure() = to_wire(result.error());
  }
  return event;
}

v1::Job to_wire(const JobView& job) {
  v1::Job wire;
  wire.set_flight(job.flight);
  wire.set_key(job.key.hex());
  wire.set_name(utf8(job.name));
  wire.set_job(utf8(job.client));
  wire.set_phase(job.phase);
  wire.set_waiters(job.waiters);
  wire.set_place(job.place);
  wire.set_elapsed_seconds(job.elapsed_seconds);
  wire.set_predicted_bytes(job.predicted_bytes);
  wire.set_memory_bytes(job.memory_bytes);
  wire.set_attempt(job.attempt);
  wire.set_limit_bytes(job.limit_bytes);
  wire.set_waiting_seconds(job.waiting_seconds);
  wire.set_compiler(utf8(job.compiler));
  return wire;
}

v1::TraceReply to_wire(const observe::TraceSnapshot& trace) {
  const auto microseconds = [](auto since) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
  };
  v1::TraceReply wire;
  wire.set_now_us(microseconds(trace.now.time_since_epoch()));
  wire.set_dropped(trace.dropped);
  for (const auto& span : trace.spans) {
    auto& added = *wire.add_spans();
    added.set_kind(to_wire(span.kind));
    added.set_open(span.open);
    added.set_lane(span.lane);
    added.set_attempt(span.attempt);
    added.set_flight(span.flight);
    added.set_name(utf8(span.subject->name));
    added.set_client(utf8(span.subject->client));
    added.set_compiler(utf8(span.subject->compiler));
    added.set_begin_us(microseconds(span.begin.time_since_epoch()));
    added.set_end_us(microseconds(span.end.time_since_epoch()));
    added.set_outcome(std::string(span.outcome));
    added.set_limit_bytes(span.limit_bytes);
    added.set_peak_bytes(span.peak_bytes);
  }
  for (const auto& sample : trace.samples) {
    auto& added = *wire.add_samples();
    added.set_at_us(microseconds(sample.at.time_since_epoch()));
    added.set_memory_bytes(sample.memory_bytes);
    added.set_budget_bytes(sample.budget_bytes);
    added.set_slots(sample.slots);
  }
  return wire;
}

common::Result<v1::HelloReply> hello(const v1::HelloRequest& request, const HelloFacts& facts) {
  const auto& range = request.protocol();
  if (range.newest() < kOldestProtocol || range.oldest() > kNewestProtocol) {
    const auto versions = [](std::uint32_t oldest, std::uint32_t newest) {
      return std::to_string(oldest) + " to " + std::to_string(newest);
    };
    return common::fail(ErrorKind::kVersionSkew,
                        "the client speaks versions " + versions(range.oldest(), range.newest()) +
                            " of the contract, this daemon " + versions(kOldestProtocol, kNewestProtocol),
                        std::string("jitcd ") + common::build_version(),
                        "restart the daemon from the client's installation");
  }
  const common::Identity& identity = facts.identity;
  v1::HelloReply reply;
  reply.mutable_protocol()->set_oldest(kOldestProtocol);
  reply.mutable_protocol()->set_newest(kNewestProtocol);
  reply.set_version(identity.version);
  reply.set_pid(identity.pid);
  const auto add = [&reply](const common::CompilerIdentity& compiler) {
    auto* wire = reply.add_compilers();
    wire->set_name(utf8(compiler.name));
    wire->set_path(utf8(compiler.path));
    wire->set_identity(compiler.identity);
  };
  for (const auto& compiler : identity.compilers) add(compiler);
  for (const auto& compiler : facts.offered) {
    if (identity.compiler(compiler.name) == nullptr) add(compiler);
  }
  reply.set_target_triple(identity.triple);
  reply.set_target_isa(identity.native_isa);
  reply.set_store(utf8(identity.store));
  reply.set_max_compilers(facts.max_compilers);
  reply.set_memory_budget_bytes(facts.memory_budget);
  for (const auto& figure : facts.figures) {
    auto* wire = reply.add_limits();
    wire->set_bounds(name_of(figure.bounds));
    wire->set_value(figure.value);
    wire->set_unit(unit_of(figure.bounds));
    wire->set_source(utf8(figure.source));
    wire->set_note(utf8(figure.note));
    wire->set_binding(figure.binding);
  }
  reply.set_enforcement(std::string(facts.enforcement));
  reply.set_draining(facts.draining);
  for (const char* capability : {"compile", "lookup", "cancel", "drain", "hits", "command"})
    reply.add_capabilities(capability);
  reply.set_cpu_seconds(facts.cpu_seconds);
  for (const auto& variable : facts.environment) reply.add_environment(utf8(variable));
  return reply;
}

grpc::Status to_status(const Error& error) {
  const auto code = [&] {
    switch (error.kind) {
      case ErrorKind::kUsage:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case ErrorKind::kRefused:
        return grpc::StatusCode::PERMISSION_DENIED;
      case ErrorKind::kDraining:
        return grpc::StatusCode::UNAVAILABLE;
      case ErrorKind::kVersionSkew:
        return grpc::StatusCode::FAILED_PRECONDITION;
      case ErrorKind::kCancelled:
        return grpc::StatusCode::CANCELLED;
      case ErrorKind::kStoreUnavailable:
        return grpc::StatusCode::UNAVAILABLE;
      default:
        return grpc::StatusCode::INTERNAL;
    }
  }();
  return grpc::Status(code, utf8(common::to_line(error)));
}

v1::WorkerCommand start_command(const Prepared& prepared, const StartOrder& order) {
  v1::WorkerCommand command;
  auto& start = *command.mutable_start();
  start.set_job(order.job);
  if (prepared.command) {  // its words are in the payload, and its time is its caller's
    start.set_is_command(true);
    start.set_compiler_path(utf8(prepared.command->compiler));
    start.set_memory_limit_bytes(order.memory_limit_bytes);
    return command;
  }
  start.set_compiler_path(prepared.resolved.compiler.path);
  for (const auto& flag : prepared.request.flags) start.add_flags(flag);
  if (order.level) start.add_flags("-O" + std::to_string(*order.level));  // the last one counts
  for (const auto& root : order.include_roots) start.add_include_roots(root);
  start.set_memory_limit_bytes(order.memory_limit_bytes);
  start.set_cpu_seconds(order.cpu_seconds);
  const bool native = prepared.request.isa_wish == "native";
  start.set_isa_level(native ? "native" : prepared.resolved.target.isa);
  start.set_has_headers(!prepared.request.headers.empty());
  return command;
}

std::string headers_payload(const Prepared& prepared) {
  v1::Headers headers;
  for (const auto& header : prepared.request.headers) {
    auto* wire = headers.add_headers();
    wire->set_name(header.name);
    wire->set_text(header.text);
  }
  return headers.SerializeAsString();
}

v1::WorkerCommand check_command(std::uint64_t job) {
  v1::WorkerCommand command;
  auto& start = *command.mutable_start();
  start.set_job(job);
  start.set_check(true);
  start.set_cpu_seconds(kCheckSeconds);
  start.set_memory_limit_bytes(kCheckBytes);
  return command;
}

v1::WorkerCommand cancel_command(std::uint64_t job) {
  v1::WorkerCommand command;
  command.mutable_cancel()->set_job(job);
  return command;
}

v1::WorkerCommand spares_command(std::uint32_t count) {
  v1::WorkerCommand command;
  command.mutable_set_spares()->set_count(count);
  return command;
}

common::Result<WorkerEvent> from_wire(const v1::WorkerReport& report, std::vector<common::Fd> descriptors) {
  switch (report.report_case()) {
    case v1::WorkerReport::kReady:
      return WorkerIdentity{report.ready().embedded_identity(), report.ready().target_triple(),
                            report.ready().host_cpu(), report.ready().host_features(), report.ready().enforcement()};
    case v1::WorkerReport::kStarted:
      return WorkerStarted{report.started().job(), report.started().pid()};
    case v1::WorkerReport::kUsage: {
      WorkerUsage usage;
      for (const auto& one : report.usage().jobs()) usage.jobs.emplace_back(one.job(), one.bytes());
      usage.spare_bytes = report.usage().spare_bytes();
      usage.spares = report.usage().spares();
      usage.processes = report.usage().processes();
      usage.anonymous_bytes = report.usage().anonymous_bytes();
      return usage;
    }
    case v1::WorkerReport::kFinished: {
      auto finished = from_wire(report.finished(), descriptors);
      if (!finished) return std::unexpected(finished.error());
      return std::move(*finished);
    }
    case v1::WorkerReport::REPORT_NOT_SET:
      break;
  }
  return common::fail(ErrorKind::kInternal, "unknown report", "worker",
                      "use jitcd and jitc-worker of one installation");
}

}  // namespace jitc::service
