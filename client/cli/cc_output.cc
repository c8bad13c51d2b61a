#include "client/cli/cc_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "common/artifact.h"
#include "common/files.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

std::unexpected<common::Error> cannot_write(const std::string& path) {
  return common::fail_errno(common::write_error_kind(errno), errno, "cannot be written", path);
}

}  // namespace

common::Result<CcResult> read_result(std::string_view artifact) {
  const auto view = common::verify_artifact(artifact);
  if (!view) return std::unexpected(view.error());
  const auto manifest = common::manifest_from_json(view->manifest);
  if (!manifest) return std::unexpected(manifest.error());
  const std::string_view payload = view->elf;
  const std::uint64_t output = manifest->output_bytes, out = manifest->stdout_bytes, err = manifest->stderr_bytes;
  const bool fits = output <= payload.size() && out <= payload.size() - output && err == payload.size() - output - out;
  if (manifest->kind != common::kCommandKind || !fits)
    return common::fail(ErrorKind::kCorrupt, "this artifact is not what a command left", view->key.hex());
  return CcResult{static_cast<int>(manifest->exit_status), payload.substr(0, output), payload.substr(output, out),
                  payload.substr(output + out)};
}

bool is_replaceable(const std::string& path) {
  struct stat status{};
  if (lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return false;
  return access(directory_of(path).c_str(), W_OK | X_OK) == 0;
}

namespace {

// Assemblers and linkers write into an empty file, which keeps its mode and its other names, and make it executable.
common::Result<void> fill_file(const std::string& path, std::string_view bytes, mode_t old_mode, mode_t mode) {
  auto written = overwrite_file(path, bytes);
  const mode_t mask = umask(0);
  umask(mask);
  if (written && (mode & 0111) != 0 && chmod(path.c_str(), (old_mode & 07777) | (0111 & ~mask)) != 0)
    return cannot_write(path);
  return written;
}

}  // namespace

common::Result<void> replace_file(const std::string& path, std::string_view bytes, mode_t mode) {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && status.st_size == 0) return fill_file(path, bytes, status.st_mode, mode);
  const std::string temporary =
      directory_of(path) + (path.find('/') == path.npos ? "/" : "") + ".jitc-cc-" + std::to_string(getpid()) + ".tmp";
  const common::Fd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return cannot_write(temporary);
  auto written = common::write_all(file.get(), bytes, path);
  if (written && rename(temporary.c_str(), path.c_str()) != 0) written = cannot_write(path);
  if (!written) unlink(temporary.c_str());
  return written;
}

common::Result<void> overwrite_file(const std::string& path, std::string_view bytes) {
  const common::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return cannot_write(path);
  return common::write_all(file.get(), bytes, path);
}

}  // namespace jitc::cli
