#include "daemon/store/store.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <queue>
#include <ranges>
#include <span>
#include <utility>

namespace jitc::store {
namespace {

using common::ErrorKind;
using common::LookupOutcome;
using common::Result;

constexpr std::chrono::hours kBetweenLooksForAge{1};
constexpr std::chrono::minutes kBetweenTries{1};  // to make room, where all was used lately

common::Trust trust_of(const Options& options) {
  return options.allow_shared ? common::Trust::kEverybody : common::Trust::kOwn;
}

using Use = std::pair<FileTime, std::string>;  // when, and of which file

// Those read-only layers that nobody but their owners can have written, and why others are not among them.
std::vector<common::StoreLayer> read_only_layers(const Options& options, std::vector<common::Error>& refused) {
  std::vector<common::StoreLayer> layers;
  for (const std::string& path : options.read_only) {
    const common::Trust trust = options.allow_shared ? common::Trust::kEverybody : common::Trust::kOwner;
    if (auto layer = common::open_layer({path, trust, /*is_read_only=*/true})) {
      layers.push_back(std::move(*layer));
    } else {
      refused.push_back(std::move(layer.error()));
    }
  }
  return layers;
}

// What comes later, or is a server's that does not answer now, is read from then on.
std::vector<common::Error> unreadable(std::span<const common::StoreLayer> layers, FileSystem& files) {
  std::vector<common::Error> errors;
  for (const common::StoreLayer& layer : layers) {
    std::vector<std::string> names;
    if (const int error = files.list(layer.path, names); error != 0)
      errors.push_back(common::fail_errno(ErrorKind::kStoreUnavailable, -error, "cannot be listed", layer.path,
                                          "correct JITC_STORE_READONLY, or see that the directory can be read")
                           .error());
  }
  return errors;
}

}  // namespace

Store::Store(Options options, std::vector<common::StoreLayer> layers, FileSystem& files)
    : options_(std::move(options)),
      files_(files),
      reader_(std::move(layers)),
      directories_(files, reader_.layers().back(), options_.mode),
      publisher_(files, directories_),
      leases_(files, directories_),
      cleaner_(files, directories_, leases_) {}

Result<std::unique_ptr<Store>> Store::open(Options options, FileSystem& files) {
  if (options.directory.empty()) {
    return common::fail(ErrorKind::kUsage, "no directory is named", "store", "set JITC_STORE");
  }
  auto resolved = common::resolve_store({options.directory, trust_of(options)});
  if (!resolved) return std::unexpected(resolved.error());
  options.directory = std::move(*resolved);
  std::vector<common::Error> refused;
  std::vector<common::StoreLayer> layers = read_only_layers(options, refused);
  std::vector<common::Error> unread = unreadable(layers, files);
  layers.push_back({options.directory, trust_of(options)});
  std::unique_ptr<Store> store(new Store(std::move(options), std::move(layers), files));
  store->refused_layers_ = std::move(refused);
  store->unread_layers_ = std::move(unread);
  if (!store->options_.make) return store;
  if (auto made = store->directories_.make(); !made && made.error().kind == ErrorKind::kRefused) {
    return std::unexpected(made.error());
  }
  return store;
}

LookupOutcome Store::look_up(const common::Digest& key, common::StoredArtifact& artifact, std::string* reason) {
  const LookupOutcome outcome = reader_.look_up(key, artifact, reason);
  if (outcome == LookupOutcome::kUntrusted) ++untrusted_;
  const bool ours =
      outcome != LookupOutcome::kAbsent && artifact.path == common::artifact_path(options_.directory, key);
  if (!ours) return outcome;
  if (outcome == LookupOutcome::kUntrusted) return outcome;
  if (outcome == LookupOutcome::kFound) {
    files_.touch(artifact.path);  // only the order of eviction hangs on it
  } else {
    quarantine(key);
  }
  return outcome;
}

Result<std::string> Store::publish(const common::Digest& key, std::string_view elf, std::string_view tail) {
  const auto published = publisher_.publish(key, elf, tail);
  if (!published) return std::unexpected(published.error());
  count_quarantined(published->quarantined);
  if (published->is_ours) {
    ++published_;
    ++entries_;
    bytes_ += elf.size() + tail.size();
    ++publishes_since_scan_;
  }
  return published->path;
}

void Store::set_aside(const common::Digest& key) {
  if (publisher_.set_aside(key)) count_quarantined(1);
}

bool Store::quarantine(const common::Digest& key) {
  const bool moved = publisher_.quarantine(key);
  if (moved) count_quarantined(1);
  return moved;
}

// A disk that breaks many must not be filled with them before the next clean(). It is a short directory.
void Store::count_quarantined(unsigned pieces) {
  if (pieces == 0) return;
  quarantined_ += pieces;
  cleaner_.trim_quarantine();
}

Store::Removal Store::remove(const common::Digest& key) {
  if (!directories_.check_publish(key)) return Removal::kKept;
  const int error = files_.unlink(common::artifact_path(options_.directory, key));
  if (error == -ENOENT) return Removal::kGone;
  return error == 0 ? Removal::kRemoved : Removal::kKept;
}

Result<void> Store::sync(const std::string& path) { return publisher_.sync(path); }

void Store::touch(const common::Digest& key) { files_.touch(common::artifact_path(options_.directory, key)); }

// A scan of the whole store: not with each publish while nothing may go.
bool Store::wants_cleaning() const {
  if (publishes_since_scan_ >= kPublishesBetweenScans || is_aged()) return true;
  return is_above_limits() && (!held_up_ || has_passed(kBetweenTries));
}

bool Store::is_above_limits() const {
  return (options_.max_bytes > 0 && bytes_ > options_.max_bytes) ||
         (options_.max_entries > 0 && entries_ > options_.max_entries);
}

// Entries pass the limit of age without anybody publishing.
bool Store::is_aged() const { return options_.max_age.count() > 0 && has_passed(kBetweenLooksForAge); }

// Since the last clean(), or the clock stepped back.
bool Store::has_passed(FileTime::duration time) const {
  const FileTime at{FileTime::duration(cleaned_at_)}, now = files_.now();
  return now - at >= time || now < at;
}

Cleaned Store::clean(bool dry_run) {
  const Cleaned cleaned = cleaner_.clean(
      {.bytes = options_.max_bytes, .entries = options_.max_entries, .age = options_.max_age, .dry_run = dry_run});
  if (!cleaned.done || dry_run) return cleaned;
  cleaned_at_ = files_.now().time_since_epoch().count();
  held_up_ = cleaned.held_up;
  evicted_ += cleaned.evicted;
  stale_temps_ += cleaned.stale_temps;
  if (cleaned.complete) {
    bytes_ = cleaned.bytes_left;
    entries_ = cleaned.entries_left;
  }
  publishes_since_scan_ = 0;
  return cleaned;
}

std::vector<common::Manifest> Store::newest_manifests(std::size_t most, std::chrono::milliseconds patience) const {
  const auto begin = std::chrono::steady_clock::now();
  const auto in_time = [begin](auto time) { return std::chrono::steady_clock::now() < begin + time; };
  std::priority_queue<Use, std::vector<Use>, std::greater<>> newest;  // the oldest of them on top
  for (const common::StoreLayer& layer : reader_.layers()) {
    std::vector<std::string> shards, names;
    files_.list(layer.path + "/v1", shards);
    for (const std::string& shard : shards) {
      if (shard.size() != 2 || !in_time(patience / 2)) continue;  // half of it is for reading them
      const std::string directory = layer.path + "/v1/" + shard;
      names.clear();
      files_.list(directory, names);
      for (const std::string& name : names) {
        if (!in_time(patience / 2)) break;
        if (!name.ends_with(".so")) continue;
        std::string path = directory + "/" + name;
        FileInfo info;
        if (files_.status(path, info) != 0 || !info.regular) continue;
        newest.emplace(info.used, std::move(path));
        if (newest.size() > most) newest.pop();
      }
    }
  }
  std::vector<std::string> paths;  // the oldest first
  for (; !newest.empty(); newest.pop()) paths.push_back(newest.top().second);
  std::vector<common::Manifest> manifests;
  for (const std::string& path : paths | std::views::reverse) {
    if (!in_time(patience)) break;
    if (auto manifest = common::read_manifest(path)) manifests.push_back(std::move(*manifest));
  }
  std::ranges::reverse(manifests);
  return manifests;
}

Counters Store::counters() const {
  return {.published = published_,
          .quarantined = quarantined_,
          .evicted = evicted_,
          .stale_temps = stale_temps_,
          .untrusted = untrusted_};
}

}  // namespace jitc::store
