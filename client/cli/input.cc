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
    const auto got = read_some(STDIN_FILENO, buffer.data(), buffer.size(), "standard input", deadline);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return text;
    text.append(buffer.data(), *got);
  }
}

}  // namespace

Result<std::size_t> read_some(int descriptor, char* buffer, std::size_t most, const std::string& name,
                              const Deadline& deadline) {
  for (;;) {
    const auto readable = wait_readable({descriptor}, deadline, kLookAgainSeconds);
    if (!readable) return std::unexpected(readable.error());
    if (*readable == 0) continue;
    const ssize_t got = ::read(descriptor, buffer, most);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN)  // another reader of a shared description may have been faster
      return common::fail_errno(ErrorKind::kUsage, errno, "cannot be read", name);
  }
}

Result<std::string> read_input(const std::string& file, const Deadline& deadline) {
  if (file == "-") return read_standard_input(deadline);
  auto text = common::read_file(file);
  if (!text) text.error().kind = ErrorKind::kUsage;
  return text;
}

}  // namespace jitc::cli
