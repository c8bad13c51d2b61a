// What travels between ranks besides certificates and artifacts. All ranks run the same build on machines of one byte
// order, so that numbers travel as they lie in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "common/request.h"

namespace jitc::gate {

enum class Origin : std::uint32_t { kMemory, kRank, kStore, kDaemon, kCompiled };

// From the leader of a turn about once a second while the others wait; the last one says how it ended.
struct Beat {
  // kUnreachable: another leader than the root has no daemon, or is refused by it; nothing follows.
  enum class State : std::uint32_t { kWaiting, kArtifact, kFailed, kUnreachable };
  State state = State::kWaiting;
  // kWaiting:
  std::uint32_t phase = 0;  // rpc::Progress::Phase
  std::uint32_t place = 0;
  double seconds = 0;
  std::uint64_t memory_bytes = 0;
  // kArtifact, kFailed: bytes that follow: the artifact, or the error. After a look into the store for several
  // modules kArtifact is followed by one byte a module, '1' where it was found.
  std::uint64_t size = 0;
  // kArtifact:
  Origin origin = Origin::kMemory;
  std::uint32_t is_merged = 0;
  std::uint32_t has_made_code = 0;
  double compile_seconds = 0;
  std::uint64_t peak_bytes = 0;
  common::Digest key;
};
std::string encode(const Beat& beat);
Beat decode_beat(std::string_view bytes);  // of the size that encode gives

// One rank's call for one module: what the certificate's digest is over, and the call before it.
struct Call {
  std::uint64_t sequence = 0;  // 1: the first call on this communicator
  common::Digest previous;     // request digest of the call before, of its module in the same place; zeros: none
  common::SharedRequest request;
  std::string manifest;
};
std::string encode(const Call& call);
common::Result<Call> decode_call(std::string_view bytes);
std::string encode(const std::vector<Call>& calls);
common::Result<std::vector<Call>> decode_calls(std::string_view bytes);

// Not as JSON, as the others hear of an error: the library for that ends the process where memory ends.
std::string encode(const common::Error& error);
common::Error decode_error(std::string_view bytes);  // one that cannot be read says so

}  // namespace jitc::gate
