#include "client/cli/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

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
Result<common::Fd> open_to_write_through(const std::string& path, std::string_view remedy) {
  common::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file) return file;
  if (errno == ENXIO && S_ISFIFO(mode_of(path).value_or(0)))
    return common::fail(ErrorKind::kUsage, "nobody reads it", path,
                        "start the reader of this pipe first, or " + std::string(remedy));
  return cannot_write(errno, path, remedy);
}

// The name is not that of a run that was killed, whose process id may come again.
std::string temporary_name(const std::string& path) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return path + ".jitc-" + std::to_string(::getpid()) + "-" + std::to_string(now);
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

Result<CopyStream> CopyStream::open(const std::string& path, unsigned mode, std::string_view remedy) {
  // Links of /proc, as /dev/stdout is one, are followed by the kernel alone.
  if (const auto present = mode_of(path); present && !S_ISREG(*present)) {
    auto file = open_to_write_through(path, remedy);
    if (!file) return std::unexpected(std::move(file.error()));
    return CopyStream(path, std::move(*file), remedy);
  }
  auto final = follow(path);
  if (!final) return std::unexpected(std::move(final.error()));
  // A temporary file beside it, then rename.
  auto names = std::make_unique<Names>(*final, temporary_name(*final));
  common::Fd file(::open(names->temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return cannot_write(errno, path, remedy);
  CopyStream stream(path, std::move(file), remedy);
  stream.names_ = std::move(names);
  return stream;
}

CopyStream::~CopyStream() {
  if (names_) ::unlink(names_->temporary.c_str());
}

Result<void> CopyStream::write(std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      if (auto room = wait_writable(file_.get(), deadline); !room) return room;
    } else if (errno != EINTR) {
      return cannot_write(errno, path_, remedy_);
    }
  }
  return {};
}

Result<void> CopyStream::commit() {
  if (names_ && ::rename(names_->temporary.c_str(), names_->final.c_str()) != 0)
    return cannot_write(errno, path_, remedy_);
  names_.reset();
  return {};
}

Result<void> write_copy(const std::string& path, std::string_view bytes, const Deadline& deadline, unsigned mode,
                        std::string_view remedy) {
  auto stream = CopyStream::open(path, mode, remedy);
  if (!stream) return std::unexpected(std::move(stream.error()));
  auto written = stream->write(bytes, deadline);
  return written ? stream->commit() : written;
}

Result<void> write_text(const std::optional<std::string>& output, std::string_view text) {
  constexpr unsigned kTextMode = 0666;
  if (output) return write_copy(*output, text, Deadline(0), kTextMode);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace jitc::cli
