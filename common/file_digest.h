// Plain SHA-256 of a file's content, read in small parts: a compiler has files of many megabytes.
#pragma once

#include <string>

#include "common/digest.h"
#include "common/error.h"

namespace jitc::common {

Result<Digest> sha256_of_file(const std::string& path);

}  // namespace jitc::common
