#include "client/cli/cache_entries.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/identity.h"

namespace jitc::cli {
namespace {

namespace fs = std::filesystem;
using common::ErrorKind;
using common::fail;

constexpr std::string_view kSuffix = ".so";

std::optional<CacheEntry> entry_at(const fs::path& file, const common::StoreLayer& layer) {
  const std::string name = file.filename().string();
  if (!name.ends_with(kSuffix)) return std::nullopt;
  const auto key = common::Digest::from_hex(std::string_view(name).substr(0, name.size() - kSuffix.size()));
  struct stat status{};
  timespec now{};
  if (!key || ::lstat(file.c_str(), &status) != 0 || ::clock_gettime(CLOCK_REALTIME, &now) != 0) return std::nullopt;
  CacheEntry entry{*key, layer, file.string(), static_cast<std::uint64_t>(status.st_size), 0};
  entry.unused_seconds = std::max(0.0, static_cast<double>(now.tv_sec - status.st_mtim.tv_sec));
  return entry;
}

void note(const std::error_code& error, const std::string& folder, CacheListing& listing) {
  if (error && error != std::errc::no_such_file_or_directory)
    listing.unreadable.push_back(
        common::fail_errno(ErrorKind::kStoreUnavailable, error.value(), "cannot be listed", folder).error());
}

// Inside a store no link is followed.
bool is_link(const fs::path& folder, CacheListing& listing) {
  std::error_code error;
  if (!fs::is_symlink(folder, error)) return false;
  listing.unreadable.push_back(fail(ErrorKind::kRefused, "a symbolic link, which is not followed inside a store",
                                    folder.string(), "put a directory there")
                                   .error());
  return true;
}

void list_folder(const fs::path& folder, const common::StoreLayer& layer, CacheListing& listing) {
  if (is_link(folder, listing)) return;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (auto entry = entry_at(file->path(), layer)) listing.entries.push_back(std::move(*entry));
  note(error, folder.string(), listing);
}

void list_store(const common::StoreLayer& layer, CacheListing& listing) {
  std::error_code error;
  if (!fs::exists(layer.path, error) && !error) listing.absent.push_back(layer.path);
  const std::string version = layer.path + "/v1";
  if (is_link(version, listing)) return;
  for (fs::directory_iterator folder(version, error), end; !error && folder != end; folder.increment(error))
    if (folder->path().filename().string().size() == 2) list_folder(folder->path(), layer, listing);
  note(error, layer.path, listing);
}

}  // namespace

std::vector<common::StoreLayer> cache_layers(const Context& context) {
  using common::Trust;
  const auto& store = context.settings.value("store");
  const bool shared = context.settings.flag("store_allow_shared");
  if (store.origin == "--store") return {{store.text, shared ? Trust::kEverybody : Trust::kOwner}};
  if (const auto identity = common::read_identity(context.runtime_dir)) return common::store_layers(*identity);
  common::Identity settings;
  settings.read_only_stores = context.settings.list("store_readonly");
  settings.store = store.text;
  settings.store_is_shared = shared;
  return common::store_layers(settings);
}

CacheListing list_stores(const std::vector<common::StoreLayer>& layers) {
  CacheListing listing;
  for (const auto& layer : layers) list_store(layer, listing);
  std::ranges::sort(listing.entries, {}, &CacheEntry::unused_seconds);
  return listing;
}

int report_gaps(const CacheListing& listing) {
  for (const auto& layer : listing.absent) say("jitc: " + layer + ": there is no store yet: nothing to look at\n");
  int code = 0;
  for (const auto& error : listing.unreadable) code = report(error);
  return code;
}

common::Result<common::Digest> key_that_begins(const std::string& text, const std::vector<CacheEntry>& entries) {
  std::optional<common::Digest> found;
  for (const auto& entry : entries) {
    if (!entry.key.hex().starts_with(text) || found == entry.key) continue;
    if (found) return fail(ErrorKind::kUsage, "several keys begin so", text, "give more digits");
    found = entry.key;
  }
  if (!found) return fail(ErrorKind::kUsage, "no artifact has such a key", text, "'jitc cache ls' lists all");
  return *found;
}

}  // namespace jitc::cli
