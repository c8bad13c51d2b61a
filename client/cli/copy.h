// Where an artifact's bytes go that a user wants in a file of his own (`-o`, `--keep`).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/cli/context.h"
#include "common/error.h"
#include "common/files.h"

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

// The same piece by piece: of a regular file nothing is seen before commit(), or at all without it.
class CopyStream {
 public:
  static common::Result<CopyStream> open(const std::string& path, unsigned mode,
                                         std::string_view remedy = kNameAnotherFile);
  CopyStream(CopyStream&& other) noexcept = default;
  CopyStream& operator=(CopyStream&& other) noexcept = default;
  ~CopyStream();

  common::Result<void> write(std::string_view bytes, const Deadline& deadline);
  common::Result<void> commit();

 private:
  struct Names {
    std::string final, temporary;
  };
  CopyStream(std::string path, common::Fd file, std::string_view remedy)
      : path_(std::move(path)), remedy_(remedy), file_(std::move(file)) {}

  std::string path_, remedy_;  // as given
  common::Fd file_;
  std::unique_ptr<Names> names_;  // none: what is there is written through
};

// A text that the command prints: to `output` as write_copy does, without a time limit, else to standard output.
common::Result<void> write_text(const std::optional<std::string>& output, std::string_view text);

}  // namespace jitc::cli
