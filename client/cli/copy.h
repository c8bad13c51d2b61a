// Where an artifact's bytes go that a user wants in a file of his own (`-o`, `--keep`).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "client/cli/context.h"
#include "common/error.h"

namespace jitc::cli {

// What to do about a path that cannot be written.
inline constexpr const char* kNameAnotherFile = "name another file with -o";

// Before any compile: can this be written at all? kUsage for an empty path, a directory, a socket, a folder that does
// not exist or is not this user's to write.
common::Result<void> check_copy(const std::string& path);

// A regular file, or a new one, is there whole or not at all. A symlink stays, and what it leads to is replaced. What
// exists and is no regular file (/dev/null, a pipe) is written through: a pipe must have its reader by then, which is
// waited for until the deadline or an interrupt while it does not read (kTimedOut, kCancelled). Else kUsage: the path
// is the user's, and `remedy` says how to name another one. `mode` is a new file's, before the umask.
common::Result<void> write_copy(const std::string& path, std::string_view bytes, const Deadline& deadline,
                                unsigned mode = 0777, std::string_view remedy = kNameAnotherFile);

// A text that the command prints: to `output` as write_copy does, without a time limit, else to standard output.
common::Result<void> write_text(const std::optional<std::string>& output, std::string_view text);

}  // namespace jitc::cli
