#include "daemon/store/store.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace jitc::store {
namespace {

using common::ErrorKind;
using common::LookupOutcome;
using common::Result;

std::vector<std::string> layers_of(const Options& options) {
  std::vector<std::string> layers = options.read_only;
  layers.push_back(options.directory);
  return layers;
}

}  // namespace

Store::Store(Options options, FileSystem& files)
    : options_(std::move(options)),
      files_(files),
      reader_(layers_of(options_)),
      directories_(files, options_.directory, options_.mode, options_.allow_shared),
      publisher_(files, directories_),
      leases_(files, directories_),
      cleaner_(files, directories_, leases_) {}

Result<std::unique_ptr<Store>> Store::open(Options options, FileSystem& files) {
  while (options.directory.size() > 1 && options.directory.ends_with('/')) options.directory.pop_back();
  if (options.directory.empty()) {
    return common::fail(ErrorKind::kUsage, "no directory is named", "store", "set JITC_STORE");
  }
  std::unique_ptr<Store> store(new Store(std::move(options), files));
  if (auto made = store->directories_.make(); !made && made.error().kind == ErrorKind::kRefused) {
    return std::unexpected(made.error());
  }
  return store;
}

LookupOutcome Store::look_up(const common::Digest& key, common::StoredArtifact& artifact, std::string* reason) {
  const LookupOutcome outcome = reader_.look_up(key, artifact, reason);
  const bool ours =
      outcome != LookupOutcome::kAbsent && artifact.path == common::artifact_path(options_.directory, key);
  if (!ours) return outcome;
  if (outcome == LookupOutcome::kFound) {
    files_.touch(artifact.path);  // only the order of eviction hangs on it
  } else if (publisher_.quarantine(key)) {
    ++quarantined_;
  }
  return outcome;
}

Result<std::string> Store::publish(const common::Digest& key, std::string_view elf, std::string_view tail) {
  const auto published = publisher_.publish(key, elf, tail);
  if (!published) return std::unexpected(published.error());
  quarantined_ += published->quarantined;
  if (published->is_ours) {
    ++published_;
    ++entries_;
    bytes_ += elf.size() + tail.size();
    ++publishes_since_scan_;
  }
  return published->path;
}

void Store::set_aside(const common::Digest& key) {
  if (publisher_.set_aside(key)) ++quarantined_;
}

Result<void> Store::sync(const std::string& path) { return publisher_.sync(path); }

void Store::touch(const common::Digest& key) { files_.touch(common::artifact_path(options_.directory, key)); }

bool Store::wants_cleaning() const {
  return publishes_since_scan_ >= kPublishesBetweenScans || (options_.max_bytes > 0 && bytes_ > options_.max_bytes) ||
         (options_.max_entries > 0 && entries_ > options_.max_entries);
}

Cleaned Store::clean() {
  const Cleaned cleaned = cleaner_.clean({options_.max_bytes, options_.max_entries});
  if (!cleaned.done) return cleaned;
  evicted_ += cleaned.evicted;
  stale_temps_ += cleaned.stale_temps;
  bytes_ = cleaned.bytes_left;
  entries_ = cleaned.entries_left;
  publishes_since_scan_ = 0;
  return cleaned;
}

std::vector<common::Manifest> Store::newest_manifests(std::size_t most, std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto in_time = [end] { return std::chrono::steady_clock::now() < end; };
  std::vector<std::pair<FileTime, std::string>> entries;
  for (const std::string& layer : reader_.layers()) {
    std::vector<std::string> shards, names;
    files_.list(layer + "/v1", shards);
    for (const std::string& shard : shards) {
      if (shard.size() != 2 || !in_time()) continue;
      const std::string directory = layer + "/v1/" + shard;
      names.clear();
      files_.list(directory, names);
      for (const std::string& name : names) {
        FileInfo info;
        if (!in_time()) break;
        if (files_.status(directory + "/" + name, info) == 0 && info.regular) {
          entries.emplace_back(info.used, directory + "/" + name);
        }
      }
    }
  }
  std::ranges::sort(entries, std::greater<>());
  if (entries.size() > most) entries.resize(most);
  std::vector<common::Manifest> manifests;
  for (const auto& [used, path] : entries) {
    if (!in_time()) break;
    if (auto manifest = common::read_manifest(path)) manifests.push_back(std::move(*manifest));
  }
  std::ranges::reverse(manifests);
  return manifests;
}

Counters Store::counters() const {
  return {.published = published_, .quarantined = quarantined_, .evicted = evicted_, .stale_temps = stale_temps_};
}

}  // namespace jitc::store
