#include "daemon/observe/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "common/files.h"

namespace jitc::observe {
namespace {

using common::ErrorKind;

constexpr mode_t kMode = 0644;
constexpr const char* kRemedy = "name a file whose directory the daemon may write (JITC_METRICS_FILE)";

}  // namespace

common::Result<void> write_metrics_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".tmp";
  ::unlink(temporary.c_str());  // of a daemon that had this pid and was killed
  common::Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd) return common::fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be written", temporary, kRemedy);
  auto written = common::write_all(fd.get(), text, temporary);
  if (written && (::fchmod(fd.get(), kMode) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0))
    written = common::fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be put in place", path, kRemedy);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

}  // namespace jitc::observe
