#include "client/rpc/daemon_client.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel_posix.h>

#include <exception>
#include <utility>

#include "client/rpc/convert.h"
#include "common/artifact.h"
#include "common/identity.h"
#include "common/runtime_dir.h"

namespace jitc::rpc {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

// gRPC, protobuf and the standard library may throw (bad_alloc, at least); nothing may leave across the library's
// border.
template <class Work>
auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return fail(ErrorKind::kInternal, std::string("unexpected exception: ") + exception.what());
  } catch (...) {  // a C++ border can be crossed by anything; the type tells nothing more
    return fail(ErrorKind::kInternal, "unexpected exception of an unknown type");
  }
}

template <class Reply>
struct UnaryCall : Call {
  Reply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader;
};

struct CompileCall : Call {
  v1::CompileEvent event;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncReader<v1::CompileEvent>> reader;
};

// `start(stub, context)` begins the call and gives its reader.
template <class Reply, class Start>
Result<Reply> ask(v1::Compiler::Stub& stub, Wait& wait, Start start, const std::string& socket_path) {
  const auto call = std::make_shared<UnaryCall<Reply>>();
  call->reader = start(stub, call->context);
  call->reader->Finish(&call->reply, &call->status, wait.tag());
  if (auto done = wait.next(call); !done) {
    done.error().thing = socket_path;
    return std::unexpected(std::move(done.error()));
  }
  if (!call->status.ok()) return std::unexpected(to_error(call->status, socket_path));
  return std::move(call->reply);
}

template <class Reply>
Result<std::string> as_json(const Result<Reply>& reply) {
  if (!reply) return std::unexpected(reply.error());
  return to_json(*reply);
}

Wait::ProgressCallback asking(const Daemon::Limits& limits) {
  if (!limits.go_on) return {};
  return [&limits](const Progress&) { return limits.go_on(); };
}

// What an event tells about the state of the request.
void note(const v1::CompileEvent& event, Progress& state) {
  using Phase = Progress::Phase;
  if (event.has_accepted()) {
    state.phase = Phase::kQueued;
  } else if (event.has_queued()) {
    state.phase = Phase::kQueued;
    state.place = event.queued().place();
  } else if (event.has_started()) {
    state.phase = Phase::kCompiling;
    state.place = 0;
  } else if (event.has_heartbeat()) {
    const auto& beat = event.heartbeat();
    state.phase = beat.elsewhere() ? Phase::kElsewhere : beat.place() == 0 ? Phase::kCompiling : Phase::kQueued;
    state.place = beat.place();
    state.memory_bytes = beat.memory_bytes();
  }
}

}  // namespace

struct DaemonClient::Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Compiler::Stub> stub;
};

struct DaemonClient::Outcome {
  v1::Artifact artifact;
  std::string bytes;
};

DaemonClient::DaemonClient(std::string socket_path) : socket_path_(std::move(socket_path)) { grpc_init(); }

DaemonClient::~DaemonClient() {
  connection_.reset();
  grpc_shutdown();
}

Result<std::shared_ptr<DaemonClient::Connection>> DaemonClient::connect(Wait& wait) const {
  auto socket = common::connect_own(socket_path_);
  // A full backlog, behind a stopped or very busy daemon: wait for room, but look up at every tick.
  while (!socket && socket.error().kind == ErrorKind::kTimedOut) {
    if (auto looked = wait.look(); !looked) return std::unexpected(std::move(looked.error()));
    socket = common::connect_own(socket_path_, wait.until_look());
  }
  if (!socket) return std::unexpected(std::move(socket.error()));

  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  auto connection = std::make_shared<Connection>();
  connection->channel = grpc::CreateCustomInsecureChannelFromFd("jitcd", socket->release(), arguments);
  connection->stub = v1::Compiler::NewStub(connection->channel);

  const auto start = [&](auto& stub, auto& context) {
    return stub.AsyncHello(&context, hello_message(), wait.queue());
  };
  const auto hello = ask<v1::HelloReply>(*connection->stub, wait, start, socket_path_);
  if (!hello) return std::unexpected(hello.error());
  if (auto fits = check_version(*hello); !fits) return std::unexpected(std::move(fits.error()));
  return connection;
}

Result<DaemonClient::Opened> DaemonClient::connection(Wait& wait) {
  {
    const std::lock_guard lock(mutex_);
    if (connection_) return Opened{connection_, false};
  }
  auto made = connect(wait);
  if (!made) return std::unexpected(std::move(made.error()));
  // Two threads may have connected at once: the first one's connection is everybody's, the other's ends with its call.
  const std::lock_guard lock(mutex_);
  if (!connection_) connection_ = *made;
  return Opened{std::move(*made), true};
}

void DaemonClient::forget(const std::shared_ptr<Connection>& gone) {
  const std::lock_guard lock(mutex_);
  if (connection_ == gone) connection_.reset();
}

template <class Use>
auto DaemonClient::on_connection(Wait& wait, Use use) -> decltype(use(std::declval<Connection&>())) {
  for (bool again = false;; again = true) {
    auto open = connection(wait);
    auto result = open ? use(*open->connection) : decltype(use(*open->connection))(std::unexpected(open.error()));
    if (result || result.error().kind != ErrorKind::kUnreachable) return result;
    if (open) forget(open->connection);
    if (again) return result;
  }
}

template <class Reply, class Start>
Result<Reply> DaemonClient::unary(Wait& wait, Start start) {
  return on_connection(wait, [&](Connection& open) { return ask<Reply>(*open.stub, wait, start, socket_path_); });
}

Result<DaemonClient::Outcome> DaemonClient::compile_on(Connection& open, const v1::CompileRequest& message, Wait& wait,
                                                       const Events& events) const {
  const auto with_socket = [&](common::Error error) {
    error.thing = socket_path_;
    return std::unexpected(std::move(error));
  };
  const auto call = std::make_shared<CompileCall>();
  call->reader = open.stub->AsyncCompile(&call->context, message, wait.queue(), wait.tag());
  auto ok = wait.next(call);

  Outcome outcome;
  v1::CompileEvent& event = call->event;
  while (ok && *ok && !event.has_finished()) {
    call->reader->Read(&event, wait.tag());
    ok = wait.next(call);
    if (!ok || !*ok) break;
    note(event, wait.state());
    if (event.has_started() && message.command().by_caller()) {
      if (events.admitted) events.admitted();
      call->reader->Finish(&call->status, wait.tag());  // what the end waits for
      return wait.end(call, {.kind = ErrorKind::kCancelled, .message = "its turn is over"});
    }
    if (event.has_chunk()) outcome.bytes.append(event.chunk());
  }
  if (!ok) return with_socket(std::move(ok.error()));

  call->reader->Finish(&call->status, wait.tag());
  ok = wait.next(call);
  // The result is the last event; what happens to the call after it does not matter any more.
  if (event.has_finished()) {
    if (event.finished().has_artifact()) {
      outcome.artifact = std::move(*event.mutable_finished()->mutable_artifact());
      return outcome;
    }
    if (event.finished().has_failure()) return std::unexpected(to_error(event.finished().failure()));
    return fail(ErrorKind::kInternal, "the daemon's last event has no result that this client knows", socket_path_);
  }
  if (!ok) return with_socket(std::move(ok.error()));
  if (call->status.ok()) return fail(ErrorKind::kInternal, "the daemon ended the call without a result", socket_path_);
  return std::unexpected(to_error(call->status, socket_path_));
}

Result<DaemonClient::Outcome> DaemonClient::compile_anywhere(const v1::CompileRequest& message, Wait& wait,
                                                             const Options& options, const Events& events) {
  Recovery recovery(socket_path_, options, events, wait);
  for (;;) {
    const auto open = connection(wait);
    if (!open) {
      if (auto found = recovery.after_connect(open.error()); !found) return std::unexpected(std::move(found.error()));
      continue;
    }
    auto result = compile_on(*open->connection, message, wait, events);
    if (result) return result;
    auto again = recovery.after_call(std::move(result.error()), open->is_new);
    if (!again) return std::unexpected(std::move(again.error()));
    forget(open->connection);
  }
}

// The bytes that crossed the socket are the artifact that the daemon meant.
Result<void> DaemonClient::check_bytes(const Outcome& outcome, bool want_bytes) const {
  const auto& artifact = outcome.artifact;
  if (!common::Digest::from_hex(artifact.key()))
    return fail(ErrorKind::kInternal, "the daemon's key is not 64 hex digits: '" + artifact.key() + "'", socket_path_);
  if (outcome.bytes.empty() && !want_bytes && !artifact.path().empty()) return {};
  const auto wrong = [&](std::string message) {
    return fail(ErrorKind::kCorrupt, std::move(message), artifact.key(),
                "ask again; if it stays so, restart the daemon");
  };
  if (outcome.bytes.size() != artifact.size())
    return wrong("the artifact has " + std::to_string(artifact.size()) + " bytes, " +
                 std::to_string(outcome.bytes.size()) + " arrived");
  const auto view = common::verify_artifact(outcome.bytes);
  if (!view) return wrong("the artifact's bytes do not verify: " + view.error().message);
  if (view->digest.hex() != artifact.digest() || view->key.hex() != artifact.key())
    return wrong("the bytes that arrived are another artifact's");
  return {};
}

void DaemonClient::compile(const common::Request& request, const Options& options, const Events& events) {
  answer([&] { return to_message(request, options.want_bytes); }, options, events);
}

void DaemonClient::run(const common::Command& command, const std::string& name, const Options& options,
                       const Events& events) {
  answer([&] { return to_message(command, name, options.want_bytes); }, options, events);
}

void DaemonClient::answer(const std::function<v1::CompileRequest()>& make, const Options& options,
                          const Events& events) {
  const auto outcome = guarded([&]() -> Result<Outcome> {
    const auto message = make();
    Wait wait(options.silence_seconds, options.total_seconds, events.progress);
    auto result = compile_anywhere(message, wait, options, events);
    if (!result) return result;
    if (auto checked = check_bytes(*result, options.want_bytes); !checked) return std::unexpected(checked.error());
    return result;
  });
  if (!outcome) return events.failure(outcome.error());
  const auto& artifact = outcome->artifact;
  if (events.warning)
    for (const auto& warning : artifact.warnings()) events.warning(warning);
  if (events.rung)
    for (const auto& rung : artifact.rungs()) events.rung(rung);
  events.reply({.key = artifact.key(),
                .path = artifact.path(),
                .bytes = outcome->bytes,
                .hit = artifact.hit(),
                .merged = artifact.merged(),
                .compile_seconds = artifact.compile_seconds(),
                .peak_bytes = artifact.peak_bytes(),
                .degraded = artifact.degraded()});
}

Result<std::string> DaemonClient::query(std::string_view what, const Limits& limits) {
  return guarded([&]() -> Result<std::string> {
    const auto tick = asking(limits);
    Wait wait(0, limits.seconds, tick);
    if (what == "hello")
      return as_json(unary<v1::HelloReply>(
          wait, [&](auto& stub, auto& context) { return stub.AsyncHello(&context, hello_message(), wait.queue()); }));
    if (what == "jobs")
      return as_json(unary<v1::JobsReply>(
          wait, [&](auto& stub, auto& context) { return stub.AsyncJobs(&context, v1::JobsRequest(), wait.queue()); }));
    if (what == "stats")
      return as_json(unary<v1::StatsReply>(wait, [&](auto& stub, auto& context) {
        return stub.AsyncStats(&context, v1::StatsRequest(), wait.queue());
      }));
    if (what == "trace")
      return as_json(unary<v1::TraceReply>(wait, [&](auto& stub, auto& context) {
        return stub.AsyncTrace(&context, v1::TraceRequest(), wait.queue());
      }));
    return fail(ErrorKind::kUsage, "the daemon answers hello, jobs, stats and trace", std::string(what));
  });
}

Result<void> DaemonClient::cancel(std::uint64_t flight, const Limits& limits) {
  return guarded([&]() -> Result<void> {
    const auto tick = asking(limits);
    Wait wait(0, limits.seconds, tick);
    v1::CancelRequest request;
    request.set_flight(flight);
    auto reply = unary<v1::CancelReply>(
        wait, [&](auto& stub, auto& context) { return stub.AsyncCancel(&context, request, wait.queue()); });
    if (!reply) return std::unexpected(reply.error());
    if (!reply->found())
      return fail(ErrorKind::kUsage, "no such compile is waiting or running", "flight " + std::to_string(flight));
    return {};
  });
}

Result<void> DaemonClient::drain(const Limits& limits) {
  return guarded([&]() -> Result<void> {
    const auto tick = asking(limits);
    Wait wait(0, limits.seconds, tick);
    auto reply = unary<v1::DrainReply>(
        wait, [&](auto& stub, auto& context) { return stub.AsyncDrain(&context, v1::DrainRequest(), wait.queue()); });
    if (!reply) return std::unexpected(reply.error());
    return {};
  });
}

}  // namespace jitc::rpc

extern "C" {

__attribute__((visibility("default"))) jitc::rpc::Daemon* jitc_rpc_open(std::uint32_t interface_version,
                                                                        const char* socket_path) {
  if (interface_version != jitc::rpc::interface_version(jitc::common::build_version())) return nullptr;
  try {
    return new jitc::rpc::DaemonClient(socket_path);
  } catch (const std::exception&) {  // no memory: a C border, and there is no text to give
    return nullptr;
  }
}

__attribute__((visibility("default"))) void jitc_rpc_close(jitc::rpc::Daemon* daemon) { delete daemon; }
}
