// Artifacts as files, for debuggers and profilers (JITC_STAGE_DIR).
#pragma once

#include <string>
#include <string_view>

#include "common/digest.h"
#include "common/error.h"
#include "common/files.h"

namespace jitc::loader {

struct StagedFile {
  common::Fd file;
  std::string path;
};

// `<directory>/<key>.so` with exactly these bytes, which are compared through the descriptor that is returned. Ranks of
// one node share the file. The directory is created if absent and must be this user's own. kNotLoaded with the reason.
common::Result<StagedFile> stage(const std::string& directory, const common::Digest& key, std::string_view bytes);

}  // namespace jitc::loader
