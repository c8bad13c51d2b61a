#include "common/store_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/files.h"

namespace jitc::common {
namespace {

constexpr int kOpenTries = 3;
constexpr std::uint64_t kLargestManifest = std::uint64_t{64} << 20;

enum class ReadOutcome { kRead, kAbsent, kUnreadable, kUntrusted };

// Of this layer, by its directories. None of them is a link, so that what is opened then is what they hold.
Result<void> check_directories(const StoreLayer& layer, const std::string& entry) {
  const std::string shard = entry.substr(0, entry.rfind('/'));
  if (auto version = check_inside(layer, shard.substr(0, shard.rfind('/'))); !version) return version;
  return check_inside(layer, shard);
}

std::string why_not_opened(const std::string& path, int error_number) {
  if (error_number == ELOOP) return "not a regular file";
  return fail_errno(ErrorKind::kStoreUnavailable, error_number, "cannot be opened", path).error().message;
}

// A shared file system may answer ESTALE, or show a file of 0 bytes, on the first open after another node published it.
// A fresh open sees the truth; a file that stays so is treated as absent.
ReadOutcome read_entry(const StoreLayer& layer, const std::string& path, std::string& bytes, std::string& reason) {
  struct stat status{};
  for (int attempt = 0; attempt < kOpenTries; ++attempt) {
    if (auto checked = check_directories(layer, path); !checked) {
      reason = checked.error().thing + ": " + checked.error().message;
      if (checked.error().kind == ErrorKind::kRefused) return ReadOutcome::kUntrusted;
      continue;
    }
    const Fd fd = open_regular(path, status);
    if (!fd && errno == ENOENT) return ReadOutcome::kAbsent;
    if (!fd && errno != ESTALE) {
      reason = why_not_opened(path, errno);
      return ReadOutcome::kUnreadable;
    }
    if (!fd) continue;
    reason = Believed(layer).doubt(status);
    if (!reason.empty()) return ReadOutcome::kUntrusted;
    auto text = read_all(fd.get(), path);
    if (!text) reason = std::move(text.error().message);
    if (!text || text->empty()) continue;
    bytes = std::move(*text);
    return ReadOutcome::kRead;
  }
  // Zero bytes three times over: a crash before the data reached the disk.
  bytes.clear();
  return ::lstat(path.c_str(), &status) == 0 && status.st_size == 0 ? ReadOutcome::kRead : ReadOutcome::kAbsent;
}

// The way to the layer may be another one than when it was opened: some name stores on file for years.
ReadOutcome read_entry_of(const StoreLayer& layer, const std::string& path, std::string& bytes, std::string& reason) {
  const auto opened = open_layer(layer);
  if (opened) return read_entry(*opened, path, bytes, reason);
  reason = opened.error().thing + ": " + opened.error().message;
  return opened.error().kind == ErrorKind::kRefused ? ReadOutcome::kUntrusted : ReadOutcome::kUnreadable;
}

}  // namespace

std::string artifact_path(const std::string& store, const Digest& key) {
  const std::string hex = key.hex();
  return store + "/v1/" + hex.substr(0, 2) + "/" + hex + ".so";
}

LookupOutcome StoreReader::look_up(const Digest& key, StoredArtifact& artifact, std::string* reason) const {
  // What is said when no layer has a good one: of a later layer rather than of an earlier one, and of one that does not
  // verify rather than of others.
  LookupOutcome bad = LookupOutcome::kAbsent;
  std::string bad_path, bad_reason;
  const auto note = [&](LookupOutcome outcome, std::string path, std::string why) {
    if (bad == LookupOutcome::kCorrupt && outcome != bad) return;
    if (outcome == LookupOutcome::kAbsent && (bad != outcome || why.empty())) return;
    bad = outcome;
    bad_path = std::move(path);
    bad_reason = std::move(why);
  };
  for (const auto& layer : layers_) {
    std::string path = artifact_path(layer.path, key);
    std::string why;
    const ReadOutcome read = read_entry_of(layer, path, artifact.bytes, why);
    if (read != ReadOutcome::kRead) {  // what cannot be read is as if absent
      note(read == ReadOutcome::kUntrusted ? LookupOutcome::kUntrusted : LookupOutcome::kAbsent, std::move(path),
           std::move(why));
      continue;
    }
    auto view = verify_artifact(artifact.bytes);
    if (view && view->key == key) {
      artifact.path = std::move(path);
      artifact.view = *view;
      artifact.is_read_only = layer.is_read_only;
      return LookupOutcome::kFound;
    }
    note(LookupOutcome::kCorrupt, std::move(path), view ? "it is the artifact of another key" : view.error().message);
  }
  if (bad != LookupOutcome::kAbsent) artifact.path = std::move(bad_path);
  if (reason != nullptr) *reason = std::move(bad_reason);
  return bad;
}

Result<Manifest> read_manifest(const std::string& path) {
  struct stat status{};
  const Fd file = open_regular(path, status);
  if (!file) return fail(ErrorKind::kStoreUnavailable, why_not_opened(path, errno), path);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto read_at = [&](std::uint64_t offset, std::uint64_t count) {
    std::string bytes(count, '\0');
    const ssize_t got = ::pread(file.get(), bytes.data(), count, static_cast<off_t>(offset));
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  };
  const auto place = manifest_place(read_at(size - std::min<std::uint64_t>(size, kFooterSize), kFooterSize), size);
  if (!place) return std::unexpected(place.error());
  if (place->size > kLargestManifest) return fail(ErrorKind::kCorrupt, "its manifest is too large", path);
  return manifest_from_json(read_at(place->offset, place->size));
}

void touch_artifact(const StoredArtifact& artifact) {
  if (artifact.is_read_only) return;
  (void)::utimensat(AT_FDCWD, artifact.path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

}  // namespace jitc::common
