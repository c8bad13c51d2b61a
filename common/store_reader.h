// The read side of the store: layers in order, verified reads through one descriptor. Creates and changes nothing but
// the time of use of an entry in the writable layer.
//
// Layout: <store>/v1/<first 2 hex digits of the key>/<64 hex digits>.so
#pragma once

#include <string>
#include <vector>

#include "common/artifact.h"
#include "common/digest.h"
#include "common/error.h"
#include "common/store_trust.h"

namespace jitc::common {

std::string artifact_path(const std::string& store, const Digest& key);

struct StoredArtifact {
  std::string path;
  std::string bytes;  // the whole file; `view` points into it
  ArtifactView view;
  bool is_read_only = false;  // its layer is
  std::string remedy;         // of one that is there and was not found: what to do about it
  StoredArtifact() = default;
  StoredArtifact(StoredArtifact&&) = delete;  // `view` points into `bytes`
};

enum class LookupOutcome { kFound, kAbsent, kCorrupt, kUntrusted };

class StoreReader {
 public:
  // Layers in the order of reading: read-only ones first, then the writable one.
  explicit StoreReader(std::vector<StoreLayer> layers) : layers_(std::move(layers)) {}
  // Fills `artifact` when found; nothing is read of a file whose size is not what its footer says. A first read of 0
  // bytes or ESTALE is tried again a bounded number of times, then counts as absent. A file that does not verify (or is
  // not of this key) is kCorrupt with its path in `artifact.path` and the reason in `reason`, if no other layer has a
  // good one. kUntrusted says the same of one that others than the layer believes can have made or changed, or whose
  // directories they can, those on the way to the layer too, which are looked at each time: to be treated as absent.
  // kAbsent has a path and a reason when there is one that cannot be read, or something that is no regular file; it is
  // never waited for.
  LookupOutcome look_up(const Digest& key, StoredArtifact& artifact, std::string* reason = nullptr) const;
  const std::vector<StoreLayer>& layers() const { return layers_; }

 private:
  std::vector<StoreLayer> layers_;
};

// An artifact's manifest by its footer alone: for listings and statistics, which need not read whole files. Nothing is
// verified. kCorrupt, kStoreUnavailable.
Result<Manifest> read_manifest(const std::string& path);

// The whole of an artifact's file, through its descriptor: kCorrupt, before any memory is taken, if its footer does not
// fit its size, kStoreUnavailable. `status` is the descriptor's.
Result<std::string> read_artifact(int fd, const struct stat& status, const std::string& path);

// Marks an entry that was found as used now, for the least-recently-used order. Nothing is done in a read-only layer;
// failures are ignored.
void touch_artifact(const StoredArtifact& artifact);

}  // namespace jitc::common
