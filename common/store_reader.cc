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

enum class ReadOutcome { kRead, kAbsent, kUnreadable, kUntrusted, kCorrupt };

// So many bytes from there on, or those that there are.
Result<std::string> read_at(int fd, std::uint64_t offset, std::uint64_t count, const std::string& path) {
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t got = ::pread(fd, bytes.data() + have, count - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be read", path);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

// Of a file of this size.
Result<ManifestPlace> place_in(int fd, std::uint64_t size, const std::string& path) {
  const auto footer = read_at(fd, size - std::min<std::uint64_t>(size, kFooterSize), kFooterSize, path);
  return footer ? manifest_place(*footer, size) : std::unexpected(footer.error());
}

LookupOutcome outcome_of(ReadOutcome read) {
  switch (read) {
    case ReadOutcome::kUntrusted:
      return LookupOutcome::kUntrusted;
    case ReadOutcome::kCorrupt:
      return LookupOutcome::kCorrupt;
    default:  // what cannot be read is as if absent
      return LookupOutcome::kAbsent;
  }
}

// Of this layer, by its directories. None of them is a link, so that what is opened then is what they hold.
Result<void> check_directories(const StoreLayer& layer, const std::string& entry) {
  const std::string shard = entry.substr(0, entry.rfind('/'));
  if (auto version = check_inside(layer, shard.substr(0, shard.rfind('/'))); !version) return version;
  return check_inside(layer, shard);
}

// In a layer that is only read it is its owner's to do.
std::string remove_it(const StoreLayer& layer, const std::string& path) {
  const std::string key = path.substr(path.rfind('/') + 1, 2 * sizeof(Digest::bytes));
  return "'jitc cache rm " + key + (layer.trust == Trust::kOwner ? " --store " + layer.path : "") + "'";
}

Error not_opened(const StoreLayer& layer, const std::string& path, int error_number) {
  if (error_number == ELOOP) return {ErrorKind::kStoreUnavailable, "not a regular file", path, "move it away"};
  return fail_errno(ErrorKind::kStoreUnavailable, error_number, "cannot be opened", path,
                    "let this user read it (chmod u+r " + path + "), or " + remove_it(layer, path))
      .error();
}

Error not_believed(const StoreLayer& layer, const std::string& path, std::string doubt, uid_t owner) {
  const std::string close_it = Believed(layer).owner(owner) ? "chmod go-w " + path + ", or " : "";
  return {ErrorKind::kRefused, std::move(doubt), path, close_it + remove_it(layer, path)};
}

// A shared file system may answer ESTALE, or show a file of 0 bytes, on the first open after another node published it.
// A fresh open sees the truth; a file that stays so is treated as absent.
ReadOutcome read_entry(const StoreLayer& layer, const std::string& path, std::string& bytes, Error& why) {
  struct stat status{};
  for (int attempt = 0; attempt < kOpenTries; ++attempt) {
    if (auto checked = check_directories(layer, path); !checked) {
      why = std::move(checked.error());
      if (why.kind == ErrorKind::kRefused) return ReadOutcome::kUntrusted;
      continue;
    }
    const Fd fd = open_regular(path, status);
    if (!fd && errno == ENOENT) return ReadOutcome::kAbsent;
    if (!fd && errno != ESTALE) {
      why = not_opened(layer, path, errno);
      return ReadOutcome::kUnreadable;
    }
    if (!fd) continue;
    if (std::string doubt = Believed(layer).doubt(status); !doubt.empty()) {
      why = not_believed(layer, path, std::move(doubt), status.st_uid);
      return ReadOutcome::kUntrusted;
    }
    auto whole = read_artifact(fd.get(), status, path);
    if (whole) {
      bytes = std::move(*whole);
      return ReadOutcome::kRead;
    }
    why = {whole.error().kind, std::move(whole.error().message), path, remove_it(layer, path)};
    if (why.kind == ErrorKind::kCorrupt && status.st_size > 0) return ReadOutcome::kCorrupt;
  }
  // Zero bytes three times over: a crash before the data reached the disk.
  return ::lstat(path.c_str(), &status) == 0 && status.st_size == 0 ? ReadOutcome::kCorrupt : ReadOutcome::kUnreadable;
}

// The way to the layer may be another one than when it was opened: some name stores on file for years.
ReadOutcome read_entry_of(const StoreLayer& layer, const std::string& path, std::string& bytes, Error& why) {
  const auto opened = open_layer(layer);
  if (opened) return read_entry(*opened, path, bytes, why);
  why = opened.error();
  return why.kind == ErrorKind::kRefused ? ReadOutcome::kUntrusted : ReadOutcome::kUnreadable;
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
  std::string bad_path;
  Error bad_why;
  const auto note = [&](LookupOutcome outcome, std::string path, Error why) {
    if (bad == LookupOutcome::kCorrupt && outcome != bad) return;
    if (outcome == LookupOutcome::kAbsent && (bad != outcome || why.message.empty())) return;
    bad = outcome;
    bad_path = std::move(path);
    bad_why = std::move(why);
  };
  for (const auto& layer : layers_) {
    std::string path = artifact_path(layer.path, key);
    Error why;
    const ReadOutcome read = read_entry_of(layer, path, artifact.bytes, why);
    if (read != ReadOutcome::kRead) {
      note(outcome_of(read), std::move(path), std::move(why));
      continue;
    }
    auto view = verify_artifact(artifact.bytes);
    if (view && view->key == key) {
      artifact.path = std::move(path);
      artifact.view = *view;
      artifact.is_read_only = layer.is_read_only;
      return LookupOutcome::kFound;
    }
    const std::string what = view ? "it is the artifact of another key" : view.error().message;
    note(LookupOutcome::kCorrupt, path, {ErrorKind::kCorrupt, what, path, remove_it(layer, path)});
  }
  if (!bad_path.empty()) artifact.path = bad_path;
  artifact.remedy = std::move(bad_why.remedy);
  if (reason != nullptr) *reason = (bad_why.thing == bad_path ? "" : bad_why.thing + ": ") + bad_why.message;
  return bad;
}

Result<Manifest> read_manifest(const std::string& path) {
  struct stat status{};
  const Fd file = open_regular(path, status);
  if (!file) return std::unexpected(not_opened({}, path, errno));
  const auto place = place_in(file.get(), static_cast<std::uint64_t>(status.st_size), path);
  if (!place) return std::unexpected(place.error());
  if (place->size > kLargestManifest) return fail(ErrorKind::kCorrupt, "its manifest is too large", path);
  const auto manifest = read_at(file.get(), place->offset, place->size, path);
  return manifest ? manifest_from_json(*manifest) : std::unexpected(manifest.error());
}

Result<std::string> read_artifact(int fd, const struct stat& status, const std::string& path) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (const auto place = place_in(fd, size, path); !place) return std::unexpected(place.error());
  return read_all(fd, path, size);
}

void touch_artifact(const StoredArtifact& artifact) {
  if (artifact.is_read_only) return;
  (void)::utimensat(AT_FDCWD, artifact.path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

}  // namespace jitc::common
