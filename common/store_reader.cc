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

enum class ReadOutcome { kRead, kAbsent, kUnreadable };

// A shared file system may answer ESTALE, or show a file of 0 bytes, on the first open after another node published it.
// A fresh open sees the truth; a file that stays so is treated as absent.
ReadOutcome read_entry(const std::string& path, std::string& bytes, std::string* reason) {
  for (int attempt = 0; attempt < kOpenTries; ++attempt) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd && errno == ENOENT) return ReadOutcome::kAbsent;
    if (!fd && errno != ESTALE) {
      if (reason != nullptr)
        *reason = fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be opened", path).error().message;
      return ReadOutcome::kUnreadable;
    }
    if (!fd) continue;
    auto text = read_all(fd.get(), path);
    if (!text && reason != nullptr) *reason = text.error().message;
    if (!text || text->empty()) continue;
    bytes = std::move(*text);
    return ReadOutcome::kRead;
  }
  // Zero bytes three times over: a crash before the data reached the disk.
  bytes.clear();
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && status.st_size == 0 ? ReadOutcome::kRead : ReadOutcome::kAbsent;
}

}  // namespace

std::string artifact_path(const std::string& store, const Digest& key) {
  const std::string hex = key.hex();
  return store + "/v1/" + hex.substr(0, 2) + "/" + hex + ".so";
}

LookupOutcome StoreReader::look_up(const Digest& key, StoredArtifact& artifact, std::string* reason) const {
  std::string corrupt_path;
  std::string corrupt_reason, unread_reason;
  for (const auto& layer : layers_) {
    std::string path = artifact_path(layer, key);
    std::string why;
    const ReadOutcome read = read_entry(path, artifact.bytes, &why);
    if (read != ReadOutcome::kRead) {  // what cannot be read is as if absent
      if (!why.empty()) unread_reason = std::move(why);
      continue;
    }
    auto view = verify_artifact(artifact.bytes);
    if (view && view->key == key) {
      artifact.path = std::move(path);
      artifact.view = *view;
      return LookupOutcome::kFound;
    }
    corrupt_path = std::move(path);
    corrupt_reason = view ? "it is the artifact of another key" : view.error().message;
  }
  if (corrupt_path.empty()) {
    if (reason != nullptr) *reason = std::move(unread_reason);
    return LookupOutcome::kAbsent;
  }
  artifact.path = std::move(corrupt_path);
  if (reason != nullptr) *reason = std::move(corrupt_reason);
  return LookupOutcome::kCorrupt;
}

Result<Manifest> read_manifest(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be opened", path);
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

void touch_artifact(const std::string& path) {
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

}  // namespace jitc::common
