#include "client/cli/cache_entries.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/identity.h"

namespace jitc::cli {
namespace {

namespace fs = std::filesystem;
using common::Error;
using common::ErrorKind;
using common::fail;
using common::Result;

constexpr std::string_view kSuffix = ".so";
constexpr std::size_t kFewestDigits = 4;  // of a key, so that nothing is named by a slip

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

std::unexpected<Error> not_listed(const std::error_code& error, const std::string& folder) {
  return common::fail_errno(ErrorKind::kStoreUnavailable, error.value(), "cannot be listed", folder,
                            "let this user read it, or name another store (--store, JITC_STORE)");
}

void note(const std::error_code& error, const std::string& folder, CacheListing& listing) {
  if (error && error != std::errc::no_such_file_or_directory)
    listing.unreadable.push_back(not_listed(error, folder).error());
}

std::unexpected<Error> is_link(const std::string& folder) {
  return fail(ErrorKind::kRefused, "a symbolic link, which is not followed inside a store", folder,
              "put a directory there");
}

// A directory without a version of this build's: absent or empty, so that a store may be made of it?
Result<void> check_no_store_yet(const std::string& directory) {
  std::error_code error;
  bool is_empty = true;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() > 1 && name[0] == 'v' && name.find_first_not_of("0123456789", 1) == std::string::npos)
      return fail(ErrorKind::kVersionSkew, "a store of another version (" + name + "); this jitc reads v1", directory,
                  "use the jitc that wrote it, or name another store (--store, JITC_STORE)");
    is_empty = false;
  }
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) return not_listed(error, directory);
  if (is_empty) return {};
  return fail(ErrorKind::kStoreUnavailable, "not a store: it has other things in it, and no directory v1", directory,
              "name a store, or a new directory (--store, JITC_STORE)");
}

void list_folder(const fs::path& folder, const common::StoreLayer& layer, CacheListing& listing) {
  std::error_code error;
  if (fs::is_symlink(folder, error)) return listing.unreadable.push_back(is_link(folder.string()).error());
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (auto entry = entry_at(file->path(), layer)) listing.entries.push_back(std::move(*entry));
  note(error, folder.string(), listing);
}

void list_store(const common::StoreLayer& layer, CacheListing& listing) {
  const auto has = has_store(layer);
  if (!has) return listing.unreadable.push_back(has.error());
  if (!*has) return listing.absent.push_back(layer.path);
  // Listed all the same, and each of its artifacts is said not to be trusted.
  if (const auto opened = common::open_layer(layer); !opened) listing.unreadable.push_back(opened.error());
  const std::string version = layer.path + "/v1";
  std::error_code error;
  for (fs::directory_iterator folder(version, error), end; !error && folder != end; folder.increment(error))
    if (folder->path().filename().string().size() == 2) list_folder(folder->path(), layer, listing);
  note(error, version, listing);
}

}  // namespace

Result<bool> has_store(const common::StoreLayer& layer) {
  const std::string version = layer.path + "/v1";
  struct stat status{};
  if (::lstat(version.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      const auto none = check_no_store_yet(layer.path);
      return none ? Result<bool>(false) : std::unexpected(none.error());
    }
    return common::fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be looked at", version,
                              "let this user read it, or name another store (--store, JITC_STORE)");
  }
  if (S_ISLNK(status.st_mode)) return is_link(version);
  std::error_code error;
  const fs::directory_iterator readable(version, error);
  if (error) return not_listed(error, version);
  return true;
}

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

int report_not_found(const Error& error, const CacheListing& listing) {
  const int gaps = report_gaps(listing);
  return gaps != 0 ? gaps : report(error);
}

common::Result<common::Digest> key_that_begins(const std::string& text, const std::vector<CacheEntry>& entries) {
  if (text.size() < kFewestDigits)
    return fail(ErrorKind::kUsage, "too short for a key", text, "give its first 4 digits at least");
  std::optional<common::Digest> found;
  for (const auto& entry : entries) {
    if (!entry.key.hex().starts_with(text) || found == entry.key) continue;
    if (found) return fail(ErrorKind::kUsage, "several keys begin so", text, "give more digits");
    found = entry.key;
  }
  if (!found) return fail(ErrorKind::kUsage, "no artifact has such a key", text, "'jitc cache ls' lists all");
  return *found;
}

Result<std::vector<common::Digest>> keys_that_begin(const std::vector<std::string>& texts,
                                                    const std::vector<CacheEntry>& entries) {
  std::vector<common::Digest> keys;
  for (const std::string& text : texts) {
    auto key = key_that_begins(text, entries);
    if (!key) return std::unexpected(std::move(key.error()));
    keys.push_back(*key);
  }
  return keys;
}

}  // namespace jitc::cli
