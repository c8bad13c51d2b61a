#include "client/rpc/convert.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/identity.h"
#include "common/utf8.h"

namespace jitc::rpc {
namespace {

using common::ErrorKind;

ErrorKind kind_of(v1::FailureKind kind) {
  switch (kind) {
    case v1::INVALID_SOURCE:
      return ErrorKind::kInvalidSource;
    case v1::REFUSED:
      return ErrorKind::kRefused;
    case v1::OUT_OF_MEMORY:
      return ErrorKind::kOutOfMemory;
    case v1::TIMED_OUT:
      return ErrorKind::kTimedOut;
    case v1::CANCELLED:
      return ErrorKind::kCancelled;
    case v1::COMPILER_CRASHED:
      return ErrorKind::kCompilerCrashed;
    case v1::STORE_FULL:
      return ErrorKind::kStoreFull;
    case v1::STORE_UNAVAILABLE:
      return ErrorKind::kStoreUnavailable;
    case v1::DRAINING:
      return ErrorKind::kDraining;
    case v1::VERSION_SKEW:
      return ErrorKind::kVersionSkew;
    case v1::MISCOMPILED:
      return ErrorKind::kMiscompiled;
    default:
      return ErrorKind::kInternal;  // also the kinds of daemons newer than this client
  }
}

v1::Canary::Argument::Kind to_wire(common::Canary::Argument::Kind kind) {
  using Kind = common::Canary::Argument::Kind;
  switch (kind) {
    case Kind::kInteger:
      return v1::Canary::Argument::INTEGER;
    case Kind::kIntegers:
      return v1::Canary::Argument::INTEGERS;
    case Kind::kNumbers:
      return v1::Canary::Argument::NUMBERS;
    case Kind::kConstants:
      return v1::Canary::Argument::CONSTANTS;
    case Kind::kOutput:
      return v1::Canary::Argument::OUTPUT;
  }
  return v1::Canary::Argument::KIND_UNSPECIFIED;
}

template <class List, class Values>
void assign(List& list, const Values& values) {
  list.Assign(values.begin(), values.end());
}

v1::Canary to_wire(const common::Canary& canary) {
  v1::Canary wire;
  wire.set_table(canary.table);
  wire.set_int_bits(canary.int_bits);
  wire.set_copies(canary.copies);
  assign(*wire.mutable_integers(), canary.integers);
  for (const common::Canary::Point& point : canary.points) {
    auto& added = *wire.add_points();
    assign(*added.mutable_numbers(), point.numbers);
    added.set_t(point.t);
    added.set_u_t_shift(point.u_t_shift);
  }
  for (const common::Canary::Call& call : canary.calls) {
    auto& added = *wire.add_calls();
    added.set_function(call.function);
    for (const common::Canary::Argument& argument : call.arguments) {
      auto& one = *added.add_arguments();
      one.set_kind(to_wire(argument.kind));
      one.set_value(argument.value);
      one.set_count(argument.count);
    }
    for (const common::Canary::Output& output : call.outputs) {
      auto& one = *added.add_outputs();
      one.set_kind(output.kind);
      one.set_of(common::valid_utf8(output.of));
      assign(*one.mutable_shape(), output.shape);
      assign(*one.mutable_want(), output.want);
      assign(*one.mutable_allowed(), output.allowed);
    }
  }
  return wire;
}

std::string dump(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string range(std::uint32_t oldest, std::uint32_t newest) {
  return std::to_string(oldest) + " to " + std::to_string(newest);
}

}  // namespace

v1::HelloRequest hello_message() {
  v1::HelloRequest hello;
  hello.mutable_protocol()->set_oldest(kOldestProtocol);
  hello.mutable_protocol()->set_newest(kNewestProtocol);
  hello.set_client(std::string("jitc ") + common::build_version());
  return hello;
}

v1::CompileRequest to_message(const common::Request& request, bool want_bytes) {
  v1::CompileRequest message;
  message.set_origin(request.origin);
  message.set_code(request.code);
  for (const auto& flag : request.flags) message.add_flags(flag);
  message.set_compiler(request.compiler);
  message.set_abi_tag(request.abi_tag);
  message.set_share(request.share);
  message.set_cse(request.cse);
  message.set_emitter_version(request.emitter_version);
  message.set_isa_wish(request.isa_wish);
  message.set_isa_level(request.isa_level);
  for (const auto& header : request.headers) {
    auto& added = *message.add_headers();
    added.set_name(header.name);
    added.set_text(header.text);
  }
  message.set_exact_flags(request.exact_flags);
  // For people, and file names need not be UTF-8 as the message must be.
  message.set_name(common::valid_utf8(request.name));
  message.set_job(common::valid_utf8(request.job));
  message.set_prefetch(request.prefetch);
  message.set_no_cache(request.no_cache);
  message.set_no_capsule(request.no_capsule);
  message.set_want_bytes(want_bytes);
  if (request.canary) *message.mutable_canary() = to_wire(*request.canary);
  return message;
}

v1::CompileRequest to_message(const common::Command& command, const std::string& name, bool want_bytes) {
  v1::CompileRequest message;
  message.set_name(common::valid_utf8(name));
  message.set_want_bytes(want_bytes);
  v1::Command& wire = *message.mutable_command();
  wire.set_compiler(command.compiler);
  for (const auto& word : command.argv) wire.add_argv(word);
  for (const auto& entry : command.environment) wire.add_environment(entry);
  wire.set_directory(command.directory);
  wire.set_by_caller(command.by_caller);
  wire.set_digest(command.digest.bytes.data(), command.digest.bytes.size());
  wire.set_for_this_cpu(command.for_this_cpu);
  wire.set_with_messages(command.with_messages);
  for (const auto& input : command.inputs) {
    auto& added = *wire.add_inputs();
    added.set_path(input.path);
    added.set_seen(input.seen);
  }
  wire.set_text_bytes(command.scan.bytes);
  wire.set_calls(command.scan.calls);
  wire.set_largest_function(command.scan.largest_function);
  wire.set_nesting(command.scan.nesting);
  return message;
}

common::Error to_error(const v1::Failure& failure) {
  common::Error error;
  error.kind = kind_of(failure.kind());
  error.message = failure.message();
  error.thing = failure.thing();
  error.remedy = failure.remedy();
  for (const auto& d : failure.diagnostics())
    error.diagnostics.push_back({d.severity(), d.line(), d.column(), d.message(), d.excerpt()});
  error.log = failure.log();
  error.needed_bytes = failure.needed_bytes();
  error.budget_bytes = failure.budget_bytes();
  error.tries = failure.tries();
  error.rungs.assign(failure.rungs().begin(), failure.rungs().end());
  error.retry_after_seconds = failure.retry_after_seconds();
  error.capsule = failure.capsule();
  return error;
}

common::Error to_error(const grpc::Status& status, const std::string& socket_path) {
  common::Error error;
  error.thing = socket_path;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      error.kind = ErrorKind::kUnreachable;
      error.message = "the daemon went away: " + status.error_message();
      error.remedy = "start one with 'jitc daemon start'; its log says why the last one ended";
      break;
    case grpc::StatusCode::UNIMPLEMENTED:
      error.kind = ErrorKind::kVersionSkew;
      error.message = "the daemon does not know this call: " + status.error_message();
      error.remedy = "restart the daemon so that it is of this client's version";
      break;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      error.kind = ErrorKind::kTimedOut;
      error.message = "the daemon did not answer in time";
      error.remedy = "is it stopped? See 'jitc status'";
      break;
    case grpc::StatusCode::CANCELLED:
      error.kind = ErrorKind::kCancelled;
      error.message = "the request was cancelled: " + status.error_message();
      break;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      error.kind = ErrorKind::kRefused;
      error.message = "the daemon refused the call: " + status.error_message();
      break;
    case grpc::StatusCode::INVALID_ARGUMENT:
      error.kind = ErrorKind::kUsage;
      error.message = status.error_message();
      break;
    default:
      error.kind = ErrorKind::kInternal;
      error.message =
          "gRPC status " + std::to_string(static_cast<int>(status.error_code())) + ": " + status.error_message();
  }
  return error;
}

common::Result<void> check_version(const v1::HelloReply& reply) {
  const auto& theirs = reply.protocol();
  if (std::max(theirs.oldest(), kOldestProtocol) <= std::min(theirs.newest(), kNewestProtocol)) return {};
  return common::fail(ErrorKind::kVersionSkew,
                      "this client speaks protocol " + range(kOldestProtocol, kNewestProtocol) +
                          ", the daemon (version " + reply.version() + ", pid " + std::to_string(reply.pid()) + ") " +
                          range(theirs.oldest(), theirs.newest()),
                      "protocol", "restart the daemon so that both are of one version: 'jitc daemon stop'");
}

std::string to_json(const v1::HelloReply& reply) {
  nlohmann::json compilers = nlohmann::json::array();
  for (const auto& compiler : reply.compilers())
    compilers.push_back({{"name", compiler.name()}, {"path", compiler.path()}, {"identity", compiler.identity()}});
  nlohmann::json limits = nlohmann::json::array();
  for (const auto& figure : reply.limits())
    limits.push_back({{"bounds", figure.bounds()},
                      {"value", figure.value()},
                      {"unit", figure.unit()},
                      {"source", figure.source()},
                      {"note", figure.note()},
                      {"binding", figure.binding()}});
  return dump({{"protocol", {{"oldest", reply.protocol().oldest()}, {"newest", reply.protocol().newest()}}},
               {"version", reply.version()},
               {"pid", reply.pid()},
               {"compilers", std::move(compilers)},
               {"target_triple", reply.target_triple()},
               {"target_isa", reply.target_isa()},
               {"store", reply.store()},
               {"max_compilers", reply.max_compilers()},
               {"memory_budget_bytes", reply.memory_budget_bytes()},
               {"limits", std::move(limits)},
               {"enforcement", reply.enforcement()},
               {"draining", reply.draining()},
               {"cpu_seconds", reply.cpu_seconds()},
               {"environment", std::vector<std::string>(reply.environment().begin(), reply.environment().end())},
               {"capabilities", std::vector<std::string>(reply.capabilities().begin(), reply.capabilities().end())}});
}

std::string to_json(const v1::JobsReply& reply) {
  nlohmann::json jobs = nlohmann::json::array();
  for (const auto& job : reply.jobs())
    jobs.push_back({{"flight", job.flight()},
                    {"key", job.key()},
                    {"name", job.name()},
                    {"job", job.job()},
                    {"phase", job.phase()},
                    {"waiters", job.waiters()},
                    {"place", job.place()},
                    {"elapsed_seconds", job.elapsed_seconds()},
                    {"predicted_bytes", job.predicted_bytes()},
                    {"memory_bytes", job.memory_bytes()},
                    {"attempt", job.attempt()},
                    {"limit_bytes", job.limit_bytes()},
                    {"waiting_seconds", job.waiting_seconds()},
                    {"compiler", job.compiler()}});
  return dump({{"jobs", std::move(jobs)}, {"draining", reply.draining()}});
}

std::string to_json(const v1::StatsReply& reply) {
  nlohmann::json counters = nlohmann::json::object();
  for (const auto& [name, value] : reply.counters()) counters[name] = value;
  for (const auto& [name, value] : reply.gauges()) counters[name] = value;
  return dump(counters);
}

std::string to_json(const v1::TraceReply& reply) {
  nlohmann::json spans = nlohmann::json::array(), samples = nlohmann::json::array();
  for (const auto& span : reply.spans())
    spans.push_back({{"kind", v1::TraceReply::Span::Kind_Name(span.kind())},
                     {"open", span.open()},
                     {"lane", span.lane()},
                     {"attempt", span.attempt()},
                     {"flight", span.flight()},
                     {"name", span.name()},
                     {"client", span.client()},
                     {"compiler", span.compiler()},
                     {"begin_us", span.begin_us()},
                     {"end_us", span.end_us()},
                     {"outcome", span.outcome()},
                     {"limit_bytes", span.limit_bytes()},
                     {"peak_bytes", span.peak_bytes()}});
  for (const auto& sample : reply.samples())
    samples.push_back({{"at_us", sample.at_us()},
                       {"memory_bytes", sample.memory_bytes()},
                       {"budget_bytes", sample.budget_bytes()},
                       {"slots", sample.slots()}});
  return dump({{"node", reply.node()},
               {"pid", reply.pid()},
               {"version", reply.version()},
               {"now_us", reply.now_us()},
               {"now_unix_us", reply.now_unix_us()},
               {"spans", std::move(spans)},
               {"samples", std::move(samples)},
               {"dropped", reply.dropped()}});
}

}  // namespace jitc::rpc
