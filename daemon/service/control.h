// Compiler.Cancel and Drain: they change what runs.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "daemon/service/services.h"
#include "jitc/v1/compiler.pb.h"

namespace jitc::service {

grpc::ServerUnaryReactor* carry_out_cancel(const Services& services, grpc::CallbackServerContext& context,
                                           const v1::CancelRequest& request, v1::CancelReply& reply);
grpc::ServerUnaryReactor* carry_out_drain(const Services& services, grpc::CallbackServerContext& context,
                                          v1::DrainReply& reply);

}  // namespace jitc::service
