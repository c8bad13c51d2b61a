#include "client/cli/input.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/files.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::Result;

constexpr double kLookAgainSeconds = 3600;

Result<std::string> read_standard_input(const Deadline& deadline) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const auto readable = wait_readable({STDIN_FILENO}, deadline, kLookAgainSeconds);
    if (!readable) return std::unexpected(readable.error());
    if (*readable == 0) continue;
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return common::fail_errno(ErrorKind::kUsage, errno, "cannot be read", "standard input");
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::string> read_input(const std::string& file, const Deadline& deadline) {
  if (file == "-") return read_standard_input(deadline);
  auto text = common::read_file(file);
  if (!text) text.error().kind = ErrorKind::kUsage;
  return text;
}

}  // namespace jitc::cli
