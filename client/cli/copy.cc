#include "client/cli/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "common/files.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::Result;

std::unexpected<common::Error> cannot_write(int error_number, const std::string& path,
                                            std::string_view remedy = kNameAnotherFile) {
  return common::fail_errno(ErrorKind::kUsage, error_number, "cannot be written", path, std::string(remedy));
}

// The mode of what is there, through symlinks.
std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mode;
}

// What -o names is the user's to choose.
Result<std::string> follow(const std::string& path) {
  auto file = common::follow_links(path);
  if (!file) file.error().kind = ErrorKind::kUsage;
  return file;
}

// A pipe that nobody reads would be waited for when it is opened, and one whose reader stopped when it is written.
Result<void> write_through(const std::string& path, std::string_view bytes, const Deadline& deadline,
                           std::string_view remedy) {
  const common::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file && errno == ENXIO && S_ISFIFO(mode_of(path).value_or(0)))
    return common::fail(ErrorKind::kUsage, "nobody reads it", path,
                        "start the reader of this pipe first, or " + std::string(remedy));
  if (!file) return cannot_write(errno, path, remedy);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      if (auto room = wait_writable(file.get(), deadline); !room) return room;
    } else if (errno != EINTR) {
      return cannot_write(errno, path, remedy);
    }
  }
  return {};
}

// A temporary file beside it, then rename. The name is not that of a run that was killed, whose process id may come
// again.
Result<void> replace(const std::string& path, std::string_view bytes, unsigned mode, std::string_view remedy) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string temporary = path + ".jitc-" + std::to_string(::getpid()) + "-" + std::to_string(now);
  const common::Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return cannot_write(errno, path, remedy);
  auto written = common::write_all(file.get(), bytes, path);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = cannot_write(errno, path, remedy);
  if (!written) {
    ::unlink(temporary.c_str());
    written.error().kind = ErrorKind::kUsage;
  }
  return written;
}

}  // namespace

Result<void> check_copy(const std::string& path) {
  if (path.empty()) return common::fail(ErrorKind::kUsage, "an empty file name", "-o", "name a file");
  const auto mode = mode_of(path);
  if (mode && S_ISDIR(*mode)) return cannot_write(EISDIR, path);
  if (mode && S_ISSOCK(*mode)) return common::fail(ErrorKind::kUsage, "a socket", path, kNameAnotherFile);
  if (mode && !S_ISREG(*mode)) return ::access(path.c_str(), W_OK) == 0 ? Result<void>() : cannot_write(errno, path);
  const auto file = follow(path);
  if (!file) return std::unexpected(file.error());
  const std::string folder = std::filesystem::path(*file).parent_path().string();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) return cannot_write(errno, path);
  return {};
}

Result<void> write_copy(const std::string& path, std::string_view bytes, const Deadline& deadline, unsigned mode,
                        std::string_view remedy) {
  // Links of /proc, as /dev/stdout is one, are followed by the kernel alone.
  if (const auto present = mode_of(path); present && !S_ISREG(*present))
    return write_through(path, bytes, deadline, remedy);
  const auto file = follow(path);
  if (!file) return std::unexpected(file.error());
  return replace(*file, bytes, mode, remedy);
}

Result<void> write_text(const std::optional<std::string>& output, std::string_view text) {
  constexpr unsigned kTextMode = 0666;
  if (output) return write_copy(*output, text, Deadline(0), kTextMode);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace jitc::cli
