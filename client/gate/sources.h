// Where artifacts come from. Both run on helper threads of a rank that leads, several at once: the store's on the root,
// the compiler's on the root and, in a call for several modules, on one rank of each node.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "client/gate/wire.h"
#include "client/rpc/daemon.h"
#include "common/digest.h"
#include "common/error.h"
#include "common/request.h"

namespace jitc::gate {

struct Obtained {
  std::string bytes;  // the whole artifact file
  common::Digest key;
  Origin origin = Origin::kMemory;
  bool is_merged = false;
  double compile_seconds = 0;
  std::uint64_t peak_bytes = 0;
  bool has_made_code = false;  // MakeCode was called
};

// Says how far it is; false: nobody waits any more, give up.
using Report = std::function<bool(const rpc::Progress&)>;

// A text, and what its module must compute where that is known.
struct MadeCode {
  std::string code;
  std::optional<common::Canary> canary;
  MadeCode(std::string text, std::optional<common::Canary> values = {})  // a text alone is one, too
      : code(std::move(text)), canary(std::move(values)) {}
};

// Makes the text that is compiled where another one stands for it in the request's digest: a problem not yet
// differentiated, a text not yet shared. Called on one rank alone, and only when the store has no artifact; on a
// helper thread, so that it owns what it uses.
using MakeCode = std::function<common::Result<MadeCode>(const common::Request& request)>;

class StoreLookup {
 public:
  virtual ~StoreLookup() = default;
  // nullopt: not there, or not to be had. Never an error: the compiler is asked next.
  virtual std::optional<Obtained> look_up(const common::Request& request) = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Blocks. Its origin is kCompiled or kDaemon.
  virtual common::Result<Obtained> compile(const common::Request& request, const Report& report) = 0;
};

// Keeps what a run asks for.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Never an error: what cannot be kept is compiled all the same. `make_code` is empty where the origin is a C text.
  virtual void record(const common::Request& request, const MakeCode& make_code) = 0;
};

}  // namespace jitc::gate
