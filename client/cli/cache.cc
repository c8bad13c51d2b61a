// jitc cache: what the store holds. Reads only; it needs no daemon.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "client/cli/context.h"
#include "client/cli/json_text.h"
#include "client/cli/progress.h"
#include "client/cli/status_text.h"
#include "common/files.h"
#include "common/identity.h"
#include "common/store_reader.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;

constexpr std::string_view kSuffix = ".so";

struct Options {
  bool json = false;
  std::string key;
  SettingFlags settings;
};

struct Entry {
  common::Digest key;
  std::string layer;
  std::string path;
  std::uint64_t size = 0;
  double unused_seconds = 0;
};

// The store that --store names, else those of the daemon, else those of the settings.
std::vector<std::string> layers_of(const Context& context) {
  const auto& store = context.settings.value("store");
  if (store.origin == "--store") return {store.text};
  std::vector<std::string> layers;
  if (auto identity = common::read_identity(context.runtime_dir)) {
    layers = std::move(identity->read_only_stores);
    layers.push_back(std::move(identity->store));
  } else {
    layers = context.settings.list("store_readonly");
    layers.push_back(store.text);
  }
  return layers;
}

std::optional<Entry> entry_at(const std::filesystem::path& file, const std::string& layer) {
  const std::string name = file.filename().string();
  if (!name.ends_with(kSuffix)) return std::nullopt;
  const auto key = common::Digest::from_hex(std::string_view(name).substr(0, name.size() - kSuffix.size()));
  struct stat status{};
  timespec now{};
  if (!key || ::stat(file.c_str(), &status) != 0 || ::clock_gettime(CLOCK_REALTIME, &now) != 0) return std::nullopt;
  Entry entry{*key, layer, file.string(), static_cast<std::uint64_t>(status.st_size), 0};
  entry.unused_seconds = std::max(0.0, static_cast<double>(now.tv_sec - status.st_mtim.tv_sec));
  return entry;
}

struct Listing {
  std::vector<Entry> entries;             // last used first
  std::vector<std::string> absent;        // stores that do not exist
  std::vector<common::Error> unreadable;  // folders that cannot be listed
};

void note(const std::error_code& error, const std::string& folder, Listing& listing) {
  if (error && error != std::errc::no_such_file_or_directory)
    listing.unreadable.push_back(
        common::fail_errno(ErrorKind::kStoreUnavailable, error.value(), "cannot be listed", folder).error());
}

void list_folder(const std::filesystem::path& folder, const std::string& layer, Listing& listing) {
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (auto entry = entry_at(file->path(), layer)) listing.entries.push_back(std::move(*entry));
  note(error, folder.string(), listing);
}

// Entries come and go while others use the store: what vanishes during the walk is not listed.
Listing list_stores(const std::vector<std::string>& layers) {
  namespace fs = std::filesystem;
  Listing listing;
  for (const auto& layer : layers) {
    std::error_code error;
    if (!fs::exists(layer, error) && !error) listing.absent.push_back(layer);
    for (fs::directory_iterator folder(layer + "/v1", error), end; !error && folder != end; folder.increment(error))
      if (folder->path().filename().string().size() == 2) list_folder(folder->path(), layer, listing);
    note(error, layer, listing);
  }
  std::ranges::sort(listing.entries, {}, &Entry::unused_seconds);
  return listing;
}

// What could not be looked at, to standard error; the exit code.
int report_gaps(const Listing& listing) {
  for (const auto& layer : listing.absent)
    std::fprintf(stderr, "jitc: %s: there is no store yet: nothing to look at\n", layer.c_str());
  int code = 0;
  for (const auto& error : listing.unreadable) code = report(error);
  return code;
}

int list(const Context& context, const Options& options) {
  const auto listing = list_stores(layers_of(context));
  std::uint64_t bytes = 0;
  for (const auto& entry : listing.entries) {
    const auto manifest = common::read_manifest(entry.path);
    const std::string name = manifest ? manifest->name : "(no readable manifest)";
    bytes += entry.size;
    if (options.json) {
      const nlohmann::ordered_json object = {{"key", entry.key.hex()}, {"path", entry.path},
                                             {"size", entry.size},     {"unused_seconds", entry.unused_seconds},
                                             {"name", name},           {"layer", entry.layer}};
      std::printf("%s\n", one_line(object).c_str());
      continue;
    }
    std::printf("%s  %9s  used %s ago  %s\n", entry.key.hex().c_str(), bytes_text(entry.size).c_str(),
                duration_text(entry.unused_seconds).c_str(), name.c_str());
  }
  if (!options.json)
    std::fprintf(stderr, "jitc: %zu artifacts, %s\n", listing.entries.size(), bytes_text(bytes).c_str());
  return report_gaps(listing);
}

int no_such_artifact(const std::string& key) {
  return report(fail(ErrorKind::kUsage, "no artifact has such a key", key, "'jitc cache ls' lists all").error());
}

// Every key that begins with `text`, each once.
std::vector<common::Digest> keys_that_begin(const std::string& text, const std::vector<std::string>& layers) {
  if (const auto key = common::Digest::from_hex(text)) return {*key};
  std::vector<common::Digest> keys;
  for (const auto& entry : list_stores(layers).entries)
    if (entry.key.hex().starts_with(text) && std::ranges::find(keys, entry.key) == keys.end())
      keys.push_back(entry.key);
  return keys;
}

int show(const Context& context, const Options& options) {
  const auto layers = layers_of(context);
  const auto keys = keys_that_begin(options.key, layers);
  if (keys.empty()) return no_such_artifact(options.key);
  if (keys.size() > 1)
    return report(fail(ErrorKind::kUsage, "several keys begin so", options.key, "give more digits").error());
  common::StoredArtifact artifact;
  std::string reason;
  switch (common::StoreReader(layers).look_up(keys.front(), artifact, &reason)) {
    case common::LookupOutcome::kFound:
      std::printf("%.*s\n", static_cast<int>(artifact.view.manifest.size()), artifact.view.manifest.data());
      return 0;
    case common::LookupOutcome::kCorrupt:
      return report(
          fail(ErrorKind::kCorrupt, reason, artifact.path, "the daemon replaces it on the next request").error());
    case common::LookupOutcome::kAbsent:
      break;
  }
  return no_such_artifact(options.key);
}

// Why an entry that is there was not read; nothing for one that the daemon removed meanwhile.
std::optional<std::string> why_unread(const Entry& entry) {
  const common::Fd file(::open(entry.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return common::fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be opened", "").error().message;
  return "cannot be read";
}

int verify(const Context& context, const Options&) {
  const auto listing = list_stores(layers_of(context));
  std::size_t good = 0, corrupt = 0, unreadable = 0;
  for (const auto& entry : listing.entries) {
    common::StoredArtifact artifact;
    std::string reason;
    const auto outcome = common::StoreReader({entry.layer}).look_up(entry.key, artifact, &reason);
    if (outcome == common::LookupOutcome::kFound) {
      ++good;
      continue;
    }
    if (outcome == common::LookupOutcome::kCorrupt) {
      ++corrupt;
      std::printf("%s\n", entry.path.c_str());
    } else if (auto why = why_unread(entry)) {
      ++unreadable;
      reason = std::move(*why);
    } else {
      continue;
    }
    std::fprintf(stderr, "jitc: %s: %s\n", entry.path.c_str(), reason.c_str());
  }
  const int gaps = report_gaps(listing);
  std::fprintf(stderr, "jitc: %zu good, %zu corrupt, %zu unreadable\n", good, corrupt, unreadable);
  if (corrupt > 0) return common::exit_code(ErrorKind::kCorrupt);
  return unreadable > 0 ? common::exit_code(ErrorKind::kStoreUnavailable) : gaps;
}

CLI::App* add(CLI::App& cache, Action& action, const std::shared_ptr<Options>& options, const char* name,
              const char* help, int (*run)(const Context&, const Options&)) {
  auto* command = cache.add_subcommand(name, help);
  options->settings.add(*command, {"runtime_dir", "store"});
  command->callback([options, run, &action] {
    action = [options, run] {
      const auto context = Context::load(options->settings);
      if (!context) return report(context.error());
      if (context->settings.value("store").origin != "--store") warn_of_other_store(*context);
      return run(*context, *options);
    };
  });
  return command;
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* cache = app.add_subcommand("cache", "look into the store");
  cache->require_subcommand(1);
  cache->footer(
      "The stores are those of the daemon that runs, else those of the settings; --store names one.\n"
      "A store that does not exist yet holds nothing: exit code 0, and a line that says so.");
  add(*cache, action, options, "ls", "artifacts: key, size, last use, name; last used first", list)
      ->add_flag("--json", options->json, "one JSON object per artifact");
  add(*cache, action, options, "show", "an artifact's manifest, as JSON", show)
      ->add_option("KEY", options->key, "key, or its beginning")
      ->required();
  add(*cache, action, options, "verify",
      "read and check every artifact: the corrupt ones' paths; exit code 7 if one is corrupt or unreadable", verify);
}

}  // namespace jitc::cli
