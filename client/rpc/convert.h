// Between the contract's messages and our own types: the only client file that knows both. What comes from the wire is
// checked here.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "client/rpc/daemon.h"
#include "common/command.h"
#include "common/error.h"
#include "common/request.h"
#include "jitc/v1/compiler.pb.h"

namespace jitc::rpc {

// The protocol versions that this client speaks.
inline constexpr std::uint32_t kOldestProtocol = 1;
inline constexpr std::uint32_t kNewestProtocol = 1;

v1::HelloRequest hello_message();
v1::CompileRequest to_message(const common::Request& request, bool want_bytes);
v1::CompileRequest to_message(const common::Command& command, const std::string& name, bool want_bytes);

common::Error to_error(const v1::Failure& failure);
// A status that gRPC itself made. kUnreachable means that the daemon went away.
common::Error to_error(const grpc::Status& status, const std::string& socket_path);
// kVersionSkew unless the two ranges overlap.
common::Result<void> check_version(const v1::HelloReply& reply);

// JSON objects for people and scripts; 64-bit numbers are numbers.
std::string to_json(const v1::HelloReply& reply);
std::string to_json(const v1::JobsReply& reply);
std::string to_json(const v1::StatsReply& reply);  // flat: counter or gauge to value
std::string to_json(const v1::TraceReply& reply);

}  // namespace jitc::rpc
