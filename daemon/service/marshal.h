// The only place that knows both the contract's messages and the daemon's own types. What comes in is validated here;
// a grpc::Status is made here and nowhere deeper.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/identity.h"
#include "daemon/observe/trace.h"
#include "daemon/service/figures.h"
#include "daemon/service/work.h"
#include "jitc/v1/compiler.pb.h"
#include "jitc/v1/worker.pb.h"

namespace jitc::service {

// Versions of the contract that this daemon speaks.
inline constexpr std::uint32_t kOldestProtocol = 1;
inline constexpr std::uint32_t kNewestProtocol = 1;

struct RequestPolicy {
  std::uint64_t max_source_bytes = std::uint64_t{64} << 20;
  std::vector<std::string> include_roots;
};
// The whole way from the wire to a request that may be scheduled: sizes, fields, flags, source, keys. Takes the texts.
common::Result<Prepared> prepare(v1::CompileRequest&& wire, const RequestPolicy& policy,
                                 const common::Identity& identity);

// The same for a command; `compiler` is the identity of its driver, empty for one that runs in its caller.
common::Result<common::Command> command_of(const v1::Command& wire, std::uint64_t most_bytes);
Prepared prepare(common::Command command, const v1::CompileRequest& wire,
                 std::shared_ptr<const common::Identity> identity, const std::string& compiler);

v1::Failure to_wire(const common::Error& error);
v1::Artifact to_wire(const Delivery& delivery);
v1::CompileEvent finished_event(const common::Result<Delivery>& result);
v1::Job to_wire(const JobView& job);
v1::TraceReply to_wire(const observe::TraceSnapshot& trace);

struct HelloFacts {
  const common::Identity& identity;
  std::span<const common::CompilerIdentity> offered;  // beside the identity's: their own is not known yet
  std::uint32_t max_compilers;
  std::uint64_t memory_budget;
  std::span<const Figure> figures;
  std::string_view enforcement;
  bool draining = false;
  std::uint32_t cpu_seconds = 0;
  std::vector<std::string> environment;
};
// kVersionSkew when the client's range has no version in common with ours.
common::Result<v1::HelloReply> hello(const v1::HelloRequest& request, const HelloFacts& facts);

// For RPCs whose reply has no place for a failure.
grpc::Status to_status(const common::Error& error);

// ---- the worker -------------------------------------------------------------------------------------------------
struct StartOrder {
  std::uint64_t job = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint32_t cpu_seconds = 0;
  std::span<const std::string> include_roots;
  std::optional<int> level;  // of optimisation, instead of the request's
};
v1::WorkerCommand start_command(const Prepared& prepared, const StartOrder& order);
// What the worker compiles: a source's text, or a command.
std::string source_payload(const Prepared& prepared);
// The headers that travel with a request, as the worker reads them; empty when there are none.
std::string headers_payload(const Prepared& prepared);
// Of a module against what it must compute.
v1::WorkerCommand check_command(std::uint64_t job);
v1::WorkerCommand cancel_command(std::uint64_t job);
v1::WorkerCommand spares_command(std::uint32_t count);
// kInternal for a report that this daemon does not know.
common::Result<WorkerEvent> from_wire(const v1::WorkerReport& report, std::vector<common::Fd> descriptors);

}  // namespace jitc::service
