#include "daemon/service/capsules.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>

#include "common/files.h"
#include "common/identity.h"
#include "common/text.h"
#include "daemon/observe/log.h"

namespace jitc::service {
namespace {

using common::Fd;
using common::Result;

constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kTemporary = ".new";
constexpr std::int64_t kTemporarySeconds = 60;  // a write takes milliseconds
constexpr std::int64_t kClockSlack = 60;        // seconds

// What compilers and their drivers read; the rest of an environment is nobody's business.
constexpr auto kVariables =
    std::to_array<const char*>({"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "CPATH",
                                "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LD_LIBRARY_PATH",
                                "SDKROOT", "TMPDIR", "SOURCE_DATE_EPOCH", "MALLOC_ARENA_MAX", "CCC_OVERRIDE_OPTIONS"});

}  // namespace

std::vector<std::string> compiler_environment() {
  std::vector<std::string> entries;
  for (const char* name : kVariables)
    if (const char* value = std::getenv(name)) entries.push_back(std::string(name) + "=" + value);
  return entries;
}

namespace {

// A text of so many bytes would not fit, however it is written.
bool is_too_large(const common::Request& request) {
  std::uint64_t bytes = request.origin.size() + request.code.size();
  for (const auto& header : request.headers) bytes += header.text.size();
  return bytes > Capsules::kMostBytes;
}

void not_kept(const common::Digest& key, const std::string& why) {
  observe::log_warning("capsule not kept", {{"key", key.hex()}, {"why", why}});
}

}  // namespace

common::Capsule capsule_of(const Failure& failure) {
  const Prepared& prepared = *failure.prepared;
  return {.created = common::utc_text(std::time(nullptr)),
          .jitc = common::build_version(),
          .host = common::host_name(),
          .request = prepared.request,
          .key = prepared.resolved.key.hex(),
          .request_digest = prepared.resolved.request.hex(),
          .compiler = prepared.resolved.compiler,
          .target = prepared.resolved.target,
          .command = failure.finished.command,
          .environment = compiler_environment(),
          .memory_bytes = failure.memory_bytes,
          .cpu_seconds = failure.cpu_seconds,
          .compilers = failure.compilers,
          .budget_bytes = failure.budget_bytes,
          .predicted_bytes = failure.predicted_bytes,
          .peak_bytes = failure.finished.peak_bytes,
          .seconds = failure.finished.seconds,
          .attempts = failure.attempts,
          .exit_status = failure.finished.exit_status,
          .signal = failure.finished.signal,
          .error = failure.error};
}

struct Capsules::Entry {
  std::string path;
  common::Digest key;
  std::uint64_t bytes = 0;
  timespec written{};
};

std::vector<Capsules::Entry> Capsules::entries() const {
  std::vector<Entry> found;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    struct stat status{};
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    // Written by a clock that was wrong: it takes its place in the order, and ages, from now on.
    if (status.st_mtim.tv_sec > now.tv_sec + kClockSlack) {
      ::utimensat(AT_FDCWD, it->path().c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
      status.st_mtim = now;
    }
    if (name.ends_with(kTemporary) && now.tv_sec - status.st_mtim.tv_sec > kTemporarySeconds)
      ::unlink(it->path().c_str());
    if (!name.ends_with(kSuffix)) continue;
    const auto key = common::Digest::from_hex(std::string_view(name).substr(0, name.size() - kSuffix.size()));
    if (key) found.push_back({it->path().string(), *key, static_cast<std::uint64_t>(status.st_size), status.st_mtim});
  }
  std::ranges::sort(found, std::greater<>(),
                    [](const Entry& entry) { return std::pair(entry.written.tv_sec, entry.written.tv_nsec); });
  return found;
}

std::set<common::Digest> Capsules::trim(const common::Digest& newest) const {
  std::vector<Entry> found = entries();
  // Whatever the clock of the others was: this one is the last to go.
  const auto own = std::ranges::find(found, newest, &Entry::key);
  if (own != found.end()) std::rotate(found.begin(), own, own + 1);
  std::set<common::Digest> kept;
  std::uint64_t bytes = 0;
  for (const Entry& entry : found) {
    bytes += entry.bytes;
    const bool fits = kept.size() < most_ && bytes <= kMostBytes;
    if (fits || ::unlink(entry.path.c_str()) != 0) kept.insert(entry.key);
  }
  return kept;
}

// The umask does not decide who may read sources, and whoever may write the directory above could replace this one.
Result<void> Capsules::prepare() const {
  if (auto made = common::make_directories(directory_, 0700); !made) return made;
  if (auto above = common::check_private_directory(std::filesystem::path(directory_).parent_path()); !above)
    return above;
  if (auto checked = common::check_private_directory(directory_); !checked) return checked;
  if (::chmod(directory_.c_str(), 0700) != 0)
    return common::fail_errno(common::ErrorKind::kStoreUnavailable, errno, "its mode cannot be set", directory_);
  return {};
}

Result<void> Capsules::write(const common::Digest& key, const std::string& text) const {
  const std::string path = path_of(key);
  const std::string temporary = path + "." + std::to_string(::getpid()) + std::string(kTemporary);
  ::unlink(temporary.c_str());  // of a process of this number that died
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return common::fail_errno(common::ErrorKind::kStoreUnavailable, errno, "cannot be made", temporary);
  auto written = common::write_all(file.get(), text, temporary);
  if (written && (::fchmod(file.get(), 0600) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0))
    written = common::fail_errno(common::ErrorKind::kStoreUnavailable, errno, "cannot be put in place", path);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

// What is there is touched only when the new one is in place: an earlier one under this key is of the same failure, and
// better than none.
std::set<common::Digest> Capsules::keep(const Failure& failure) const {
  const common::Digest& key = failure.prepared->resolved.key;
  if (auto ready = prepare(); !ready) {
    not_kept(key, common::to_line(ready.error()));
    return {};
  }
  std::optional<std::string> text;
  if (!is_too_large(failure.prepared->request)) text = common::to_json(capsule_of(failure));
  if (!text || text->size() > kMostBytes) {
    not_kept(key, "its texts are larger than all capsules together may be");
  } else if (auto written = write(key, *text); !written) {
    not_kept(key, common::to_line(written.error()));
  }
  return trim(key);
}

}  // namespace jitc::service
