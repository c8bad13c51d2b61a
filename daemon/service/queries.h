// Compiler.Hello, Lookup, Jobs, Stats, Trace: they change nothing.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "daemon/service/services.h"
#include "jitc/v1/compiler.pb.h"

namespace jitc::service {

grpc::ServerUnaryReactor* answer_hello(const Services& services, grpc::CallbackServerContext& context,
                                       const v1::HelloRequest& request, v1::HelloReply& reply);
grpc::ServerUnaryReactor* answer_lookup(const Services& services, grpc::CallbackServerContext& context,
                                        const v1::LookupRequest& request, v1::LookupReply& reply);
grpc::ServerUnaryReactor* answer_jobs(const Services& services, grpc::CallbackServerContext& context,
                                      v1::JobsReply& reply);
grpc::ServerUnaryReactor* answer_stats(const Services& services, grpc::CallbackServerContext& context,
                                       v1::StatsReply& reply);
grpc::ServerUnaryReactor* answer_trace(const Services& services, grpc::CallbackServerContext& context,
                                       v1::TraceReply& reply);

}  // namespace jitc::service
