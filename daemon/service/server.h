// The gRPC server without a port of its own: connections are handed to it as descriptors that were accepted and
// checked.
#pragma once

#include <grpcpp/server.h>

#include <chrono>
#include <memory>

#include "common/error.h"
#include "common/files.h"
#include "daemon/service/services.h"
#include "jitc/v1/compiler.grpc.pb.h"

namespace jitc::service {

// Compiler's methods, each handed to the file of its group.
class CompilerService final : public v1::Compiler::CallbackService {
 public:
  explicit CompilerService(const Services& services) : services_(services) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context, const v1::HelloRequest* request,
                                  v1::HelloReply* reply) override;
  grpc::ServerWriteReactor<v1::CompileEvent>* Compile(grpc::CallbackServerContext* context,
                                                      const v1::CompileRequest* request) override;
  grpc::ServerUnaryReactor* Lookup(grpc::CallbackServerContext* context, const v1::LookupRequest* request,
                                   v1::LookupReply* reply) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelReply* reply) override;
  grpc::ServerUnaryReactor* Jobs(grpc::CallbackServerContext* context, const v1::JobsRequest* request,
                                 v1::JobsReply* reply) override;
  grpc::ServerUnaryReactor* Stats(grpc::CallbackServerContext* context, const v1::StatsRequest* request,
                                  v1::StatsReply* reply) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest* request,
                                  v1::DrainReply* reply) override;
  grpc::ServerUnaryReactor* Trace(grpc::CallbackServerContext* context, const v1::TraceRequest* request,
                                  v1::TraceReply* reply) override;

 private:
  const Services& services_;
};

class Server {
 public:
  explicit Server(const Services& services) : service_(services), max_source_bytes_(services.policy.max_source_bytes) {}
  // Health says SERVING, reflection answers; starts gRPC's threads.
  common::Result<void> start();
  // A connected socket, non-blocking; its peer was checked.
  void add_connection(common::Fd socket);
  // Health says NOT_SERVING; connections stay.
  void not_serving();
  // Ends the calls that are left after `patience`. Blocks: never on the state thread, which answers them.
  void shut_down(std::chrono::milliseconds patience);

 private:
  CompilerService service_;
  std::uint64_t max_source_bytes_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace jitc::service
