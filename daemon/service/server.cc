#include "daemon/service/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <limits>

#include "daemon/service/compile_call.h"
#include "daemon/service/control.h"
#include "daemon/service/queries.h"

namespace jitc::service {
namespace {

constexpr std::uint64_t kMessageSlack = std::uint64_t{1} << 20;  // flags, names, framing
constexpr int kMostThreads = 8;                                  // of the only synchronous service, reflection

}  // namespace

grpc::ServerUnaryReactor* CompilerService::Hello(grpc::CallbackServerContext* context, const v1::HelloRequest* request,
                                                 v1::HelloReply* reply) {
  return answer_hello(services_, *context, *request, *reply);
}

grpc::ServerWriteReactor<v1::CompileEvent>* CompilerService::Compile(grpc::CallbackServerContext* context,
                                                                     const v1::CompileRequest* request) {
  return start_compile_call(services_, *context, *request);
}

grpc::ServerUnaryReactor* CompilerService::Lookup(grpc::CallbackServerContext* context,
                                                  const v1::LookupRequest* request, v1::LookupReply* reply) {
  return answer_lookup(services_, *context, *request, *reply);
}

grpc::ServerUnaryReactor* CompilerService::Cancel(grpc::CallbackServerContext* context,
                                                  const v1::CancelRequest* request, v1::CancelReply* reply) {
  return carry_out_cancel(services_, *context, *request, *reply);
}

grpc::ServerUnaryReactor* CompilerService::Jobs(grpc::CallbackServerContext* context, const v1::JobsRequest*,
                                                v1::JobsReply* reply) {
  return answer_jobs(services_, *context, *reply);
}

grpc::ServerUnaryReactor* CompilerService::Stats(grpc::CallbackServerContext* context, const v1::StatsRequest*,
                                                 v1::StatsReply* reply) {
  return answer_stats(services_, *context, *reply);
}

grpc::ServerUnaryReactor* CompilerService::Drain(grpc::CallbackServerContext* context, const v1::DrainRequest*,
                                                 v1::DrainReply* reply) {
  return carry_out_drain(services_, *context, *reply);
}

grpc::ServerUnaryReactor* CompilerService::Trace(grpc::CallbackServerContext* context, const v1::TraceRequest*,
                                                 v1::TraceReply* reply) {
  return answer_trace(services_, *context, *reply);
}

common::Result<void> Server::start() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // Room for an origin, a code and headers that are each a little too large: those get a typed refusal, while gRPC
  // itself would only end the call.
  const std::uint64_t message = 3 * max_source_bytes_ + kMessageSlack;
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<std::uint64_t>(message, std::numeric_limits<int>::max())));
  builder.SetMaxSendMessageSize(-1);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  grpc::ResourceQuota quota("jitcd");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  if (!server_) return common::fail(common::ErrorKind::kInternal, "gRPC does not start", "server");
  server_->GetHealthCheckService()->SetServingStatus(v1::Compiler::service_full_name(), true);
  return {};
}

void Server::add_connection(common::Fd socket) { grpc::AddInsecureChannelFromFd(server_.get(), socket.release()); }

void Server::not_serving() { server_->GetHealthCheckService()->SetServingStatus(false); }

void Server::shut_down(std::chrono::milliseconds patience) {
  server_->Shutdown(std::chrono::system_clock::now() + patience);
}

}  // namespace jitc::service
