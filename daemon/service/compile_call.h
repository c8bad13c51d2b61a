// Compiler.Compile: one source to one artifact, events on the way.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "daemon/service/services.h"
#include "jitc/v1/compiler.pb.h"

namespace jitc::service {

// The reactor ends itself with the call.
grpc::ServerWriteReactor<v1::CompileEvent>* start_compile_call(const Services& services,
                                                               const grpc::CallbackServerContext& context,
                                                               const v1::CompileRequest& request);

}  // namespace jitc::service
