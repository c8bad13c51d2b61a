#include "daemon/observe/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "common/files.h"
#include "common/owner.h"

namespace jitc::observe {
namespace {

using common::ErrorKind;

constexpr mode_t kMode = 0644;
constexpr const char* kRemedy = "name a regular file, in a directory that the daemon may write (JITC_METRICS_FILE)";

constexpr std::string_view kEnding = ".tmp";

// What daemons left that were killed in the middle. Those of other nodes, which share the directory, are theirs.
void remove_left_behind(const std::string& path, const common::Owner& self) {
  const std::filesystem::path file(path);
  const std::string begin = file.filename().string() + ".";
  std::error_code error;
  for (std::filesystem::directory_iterator entry(file.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(begin) || !name.ends_with(kEnding)) continue;
    const std::string_view maker = std::string_view(name).substr(begin.size());
    const auto owner = common::owner_of(maker.substr(0, maker.size() - std::min(maker.size(), kEnding.size())));
    if (owner && common::life_of(*owner, self) == common::Life::kDead) ::unlink(entry->path().c_str());
  }
}

}  // namespace

common::Result<void> write_metrics_file(const std::string& path, std::string_view text) {
  const auto file = common::follow_links(path);
  if (!file) return std::unexpected(file.error());
  struct stat present{};
  if (::lstat(file->c_str(), &present) == 0 && !S_ISREG(present.st_mode))
    return common::fail(ErrorKind::kRefused, "something else than a regular file, and would be lost", *file, kRemedy);
  const common::Owner self = common::Owner::this_process();
  remove_left_behind(*file, self);
  const std::string temporary = *file + "." + common::temp_name(self) + std::string(kEnding);
  common::Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd) return common::fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be written", temporary, kRemedy);
  auto written = common::write_all(fd.get(), text, temporary);
  if (written && (::fchmod(fd.get(), kMode) != 0 || ::rename(temporary.c_str(), file->c_str()) != 0))
    written = common::fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be put in place", *file, kRemedy);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

}  // namespace jitc::observe
