// Artifacts in one file, to be carried from store to store: a tar archive of them under the names that they have in a
// store. docs/formats.md has its bytes. Names are for people: what an artifact is, its own footer and manifest say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/artifact.h"
#include "common/digest.h"
#include "common/error.h"
#include "daemon/store/store.h"

namespace jitc::cli {

inline constexpr std::uint64_t kLargestArtifact = std::uint64_t{1} << 30;

// Is it whole, and does its manifest lead to its key? kCorrupt.
common::Result<common::ArtifactView> check_artifact(std::string_view bytes);

using Sink = std::function<common::Result<void>(std::string_view)>;
// Fills the buffer from its front; the number of bytes, 0 at the end.
using Supply = std::function<common::Result<std::size_t>(char* buffer, std::size_t most)>;

// `artifact` is one that check_artifact() has passed. In the order of the keys equal artifacts make equal archives.
common::Result<void> write_entry(const Sink& sink, const common::Digest& key, std::string_view artifact);
common::Result<void> write_end(const Sink& sink);

struct ImportedEntry {
  enum class State { kPublished, kPresent, kRefused };
  std::string name;  // in the archive
  State state = State::kRefused;
  std::string path;      // in the store; empty: refused
  common::Error reason;  // when it is
};

// Puts the archive's artifacts into the store, each after it was checked; what is no artifact is refused and told.
// Fails for an archive that is damaged or cut short, when `supply` does, and when the store takes no more: what came
// before is published.
common::Result<void> import_artifacts(const Supply& supply, store::Store& store,
                                      const std::function<void(const ImportedEntry&)>& tell);

}  // namespace jitc::cli
