// What travels inside the daemon: a request that was validated, what the worker says, what a waiter gets. No protobuf.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/artifact.h"
#include "common/command.h"
#include "common/digest.h"
#include "common/error.h"
#include "common/files.h"
#include "common/flags.h"
#include "common/identity.h"
#include "common/request.h"

namespace jitc::service {

// A request with its keys, checked.
struct Prepared {
  common::Request request;
  common::ResolvedRequest resolved;
  std::shared_ptr<const common::Identity> identity;  // that the keys were made with
  common::SourceScan scan;
  std::optional<common::Command> command;  // what is run instead of a request's compile
  bool want_bytes = false;
  std::shared_ptr<const std::string> canary;  // what the module must compute, as the worker reads it; null: unknown
};

// What a finished request gives. Shared by its waiters.
struct Product {
  common::Digest key;
  std::string path;  // empty: not published
  std::uint64_t size = 0;
  common::Digest digest;  // its footer's
  double compile_seconds = 0;
  std::uint64_t peak_bytes = 0;
  std::vector<std::string> warnings;
  bool degraded = false;                     // not compiled as asked
  bool is_new = false;                       // its code is what was compiled now, not what another writer had
  std::shared_ptr<const std::string> bytes;  // the whole file
};

// One waiter's view of it.
struct Delivery {
  std::shared_ptr<const Product> product;
  bool hit = false;
  bool merged = false;
  std::vector<std::string> rungs;
};

// ---- the worker's reports ---------------------------------------------------------------------------------------
struct WorkerIdentity {
  std::string embedded_identity, triple, cpu, features;
  std::string enforcement;  // how it keeps the limits of compiles, for people
  bool operator==(const WorkerIdentity&) const = default;
};
struct WorkerStarted {
  std::uint64_t job = 0;
  std::int64_t pid = 0;
};
struct WorkerUsage {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> jobs;  // job, bytes
  std::uint64_t spare_bytes = 0;
  std::uint32_t spares = 0;
  std::uint32_t processes = 0;  // of all compiles, and the spares
  std::uint64_t anonymous_bytes = 0;
};
struct WorkerFinished {
  enum class Outcome { kDone, kInvalidSource, kRefused, kOutOfMemory, kTimedOut, kCancelled, kCrashed, kMiscompiled };
  std::uint64_t job = 0;
  Outcome outcome = Outcome::kCrashed;
  bool outside = false;  // kCrashed, by a limit that is not the compile's own
  common::Error error;   // all but kDone
  std::string log;
  std::vector<common::ExportedFunction> functions;
  std::uint64_t calls = 0;  // as the parse counted them; 0: not counted
  std::uint64_t nesting = 0;
  std::uint64_t peak_bytes = 0;
  double seconds = 0;
  std::vector<std::string> flags_used;
  std::vector<std::string> command;  // all but kDone: what was run
  int exit_status = 0, signal = 0;   // how a process of it ended; 0: not so
  common::Fd object;                 // kDone: the ELF image, or what a command left; a sealed memfd
  std::uint64_t output_bytes = 0, stdout_bytes = 0,
                stderr_bytes = 0;  // of a command: the object's parts, in this order
};
using WorkerEvent = std::variant<WorkerIdentity, WorkerStarted, WorkerUsage, WorkerFinished>;

// ---- the state, for queries -------------------------------------------------------------------------------------
struct JobView {
  std::uint64_t flight = 0;
  common::Digest key;
  std::string name, client, compiler, phase;
  std::uint32_t waiters = 0, place = 0, attempt = 0;
  double elapsed_seconds = 0, waiting_seconds = 0;
  std::uint64_t predicted_bytes = 0, memory_bytes = 0, limit_bytes = 0;
};

struct DrainView {
  std::uint32_t running = 0, queued = 0;
};

}  // namespace jitc::service
