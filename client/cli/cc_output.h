// What a command left, as its artifact has it; and the files that a compiler would have written.
#pragma once

#include <string>
#include <string_view>

#include "common/error.h"

namespace jitc::cli {

struct CcResult {
  int exit_code = 0;
  std::string_view output;  // empty: none was written
  std::string_view out, err;
};
// Of a verified artifact, which must outlive the result. kCorrupt for one that is not a command's.
common::Result<CcResult> read_result(std::string_view artifact);

// May this name be replaced by a new file, as compilers and linkers do? Not devices, nor what no file can be made at.
bool is_replaceable(const std::string& path);
// A new file in the place of that name, with the mode that the umask leaves of `mode`. Never seen half written, but
// where an empty file is there, which is filled.
common::Result<void> replace_file(const std::string& path, std::string_view bytes, mode_t mode);
// Written in place, as the preprocessor does with dependency files.
common::Result<void> overwrite_file(const std::string& path, std::string_view bytes);

}  // namespace jitc::cli
