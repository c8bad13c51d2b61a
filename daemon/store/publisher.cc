#include "daemon/store/publisher.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "common/artifact.h"
#include "common/files.h"
#include "common/store_reader.h"

namespace jitc::store {
namespace {

using common::Digest;
using common::Result;

constexpr int kTries = 4;  // of what can only go wrong again when others interfere each time

}  // namespace

Publisher::Publisher(FileSystem& files, Directories& directories)
    : files_(files), directories_(directories), self_(common::Owner::this_process()) {}

Result<Published> Publisher::publish(const Digest& key, std::string_view elf, std::string_view tail) {
  if (auto checked = directories_.check_publish(key); !checked) return std::unexpected(checked.error());
  for (int attempt = 1;; ++attempt) {
    const auto temp = write_temp(elf, tail);
    if (!temp) return std::unexpected(temp.error());
    auto published = place(*temp, key);
    // Not published and gone: somebody wiped the store, or took this process for dead. Written again.
    FileInfo info;
    const bool vanished = !published && files_.status(*temp, info) == -ENOENT;
    if (vanished && attempt < kTries) continue;
    // Best effort: EBUSY, ENOENT and the like leave a file behind at most, which the cleaner finds when this process
    // has ended. After a rename there is none.
    files_.unlink(*temp);
    return published;
  }
}

// ---- the temporary file ---------------------------------------------------------------------------------------------

Result<std::string> Publisher::write_temp(std::string_view elf, std::string_view tail) {
  std::string path;
  const auto fd = open_temp(path);
  if (!fd) return std::unexpected(fd.error());
  int error = fill(*fd, elf, tail);
  // Shared file systems write late: what did not fit is reported here.
  const int closed = files_.close(*fd);
  if (error == 0) error = closed;
  // A write that was done, reported as interrupted and done again would double its bytes.
  FileInfo info;
  if (error == 0 && files_.status(path, info) == 0 && info.size != elf.size() + tail.size()) error = -EIO;
  if (error == 0) return path;
  files_.unlink(path);
  return store_error(-error, "an artifact cannot be written", path);
}

// The directories are made when they turn out to be absent: at first, and after somebody wiped the store.
Result<int> Publisher::open_temp(std::string& path) {
  int fd = -ENOENT;
  for (int attempt = 0; attempt < kTries && fd < 0; ++attempt) {
    path = directories_.temps() + "/" + common::temp_name(self_);
    fd = files_.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd >= 0) break;
    if (fd == -ENOENT) {
      if (auto made = directories_.make(); !made) return std::unexpected(made.error());
    } else if (fd != -EEXIST && fd != -EINTR && fd != -ESTALE) {
      break;
    }
  }
  if (fd < 0) return store_error(-fd, "no file can be made in the store", directories_.temps());
  return fd;
}

int Publisher::fill(int fd, std::string_view elf, std::string_view tail) {
  if (const int error = write_all(fd, elf); error < 0) return error;
  if (const int error = write_all(fd, tail); error < 0) return error;
  return files_.fchmod(fd, directories_.file_mode());
}

int Publisher::write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = files_.write(fd, bytes);
    if (written == -EINTR) continue;
    if (written <= 0) return written < 0 ? static_cast<int>(written) : -EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// ---- the final name -------------------------------------------------------------------------------------------------

// What link() answers over a network is not always what happened: a request that was sent twice reports EEXIST or
// ENOENT although the first one was carried out. So every error is followed by a look at the final name.
Result<Published> Publisher::place(const std::string& temp, const Digest& key) {
  Published published{.path = common::artifact_path(directories_.store(), key)};
  int error = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    error = files_.link_or_rename(temp, published.path);
    if (error == 0) return published;
    if (is_good(key)) {
      published.is_ours = false;
      return published;
    }
    if (error == -EEXIST) {
      // Broken, and in the way. If it cannot be moved, trying again would not help.
      if (!quarantine(key)) break;
      ++published.quarantined;
    } else if (error == -ENOENT) {
      if (auto made = directories_.make_shard(key); !made) return std::unexpected(made.error());
    } else if (error != -EINTR && error != -ESTALE && error != -EBUSY) {
      break;
    }
  }
  if (error == -EEXIST) return in_the_way(key, published.path);
  return store_error(-error, "an artifact cannot be given its final name", published.path);
}

// A file that cannot be read may be whole: it stays.
std::unexpected<common::Error> Publisher::in_the_way(const Digest& key, const std::string& path) const {
  common::StoredArtifact artifact;
  std::string reason;
  common::StoreReader({directories_.layer()}).look_up(key, artifact, &reason);
  return common::fail(common::ErrorKind::kStoreUnavailable,
                      "an artifact is there that cannot be used or moved away" + (reason.empty() ? "" : ": " + reason),
                      path, "let its owner give it a mode for all who use the store (JITC_STORE_MODE), or remove it");
}

// Two who saw the same broken entry race here: between the slower one's look and its move, the faster one may have
// moved the broken entry and published a good one. The slower one then moves the good one; nothing is lost, because it
// looks at what it moved and gives it back (unless a third has published in between: then there is one, as good).
//
// A file that cannot be read now (EIO, ESTALE, another user's) may be whole: it stays where it is.
bool Publisher::quarantine(const Digest& key) {
  if (!directories_.check_publish(key)) return false;
  common::StoredArtifact artifact;
  const auto outcome = common::StoreReader({directories_.layer()}).look_up(key, artifact);
  if (outcome == common::LookupOutcome::kFound) return false;
  const std::string path = common::artifact_path(directories_.store(), key);
  if (outcome == common::LookupOutcome::kAbsent) {
    FileInfo entry;
    if (const int error = files_.status(path, entry); error != 0) return error == -ENOENT;  // somebody else moved it
    if (entry.regular) return false;
  }
  std::string away;
  const int error = move_away(path, key, away);
  if (error == 0) {
    if (is_good(away, key)) files_.link_or_rename(away, path);
    return true;
  }
  FileInfo info;
  if (error == -ENOENT && files_.status(path, info) == -ENOENT) return true;  // somebody else moved it
  return files_.unlink(path) == 0;                                            // there is no place to keep it
}

// Whoever has it mapped keeps it: the file itself stays.
bool Publisher::set_aside(const Digest& key) {
  if (!directories_.check_publish(key)) return false;
  const std::string path = common::artifact_path(directories_.store(), key);
  std::string away;
  const int error = move_away(path, key, away);
  if (error == 0) return true;
  return error != -ENOENT && files_.unlink(path) == 0;  // there is no place to keep it
}

// From then on its time says when it was put there.
int Publisher::move_away(const std::string& path, const Digest& key, std::string& away) {
  if (!directories_.check_care()) return -ENOTDIR;
  away = directories_.quarantine() + "/" + key.hex() + "." + common::random_digits();
  int error = files_.rename(path, away);
  if (error == -ENOENT && directories_.make_quarantine()) error = files_.rename(path, away);
  if (error == 0) files_.touch(away);
  return error;
}

bool Publisher::is_good(const Digest& key) const {
  common::StoredArtifact artifact;
  return common::StoreReader({directories_.layer()}).look_up(key, artifact) == common::LookupOutcome::kFound;
}

bool Publisher::is_good(const std::string& path, const Digest& key) const {
  struct stat status{};
  const common::Fd file = common::open_regular(path, status);
  if (!file || !common::Believed(directories_.layer()).doubt(status).empty()) return false;
  const auto bytes = common::read_artifact(file.get(), status, path);
  if (!bytes) return false;
  const auto view = common::verify_artifact(*bytes);
  return view && view->key == key;
}

// ---- durability -----------------------------------------------------------------------------------------------------

Result<void> Publisher::sync(const std::string& path) {
  const std::string shard = path.substr(0, path.rfind('/'));
  // The file, its name in the shard, and the shard's name.
  for (const std::string& one : {path, shard, directories_.version()}) {
    const int fd = files_.open(one, O_RDONLY, 0);
    const int error = fd < 0 ? fd : files_.fsync(fd);
    if (fd >= 0) files_.close(fd);
    if (error < 0) return store_error(-error, "an entry cannot be made durable", one);
  }
  return {};
}

}  // namespace jitc::store
