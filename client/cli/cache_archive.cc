// jitc cache export, import: artifacts from store to store by one file, without a daemon.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "client/cli/artifact_archive.h"
#include "client/cli/cache.h"
#include "client/cli/cache_entries.h"
#include "client/cli/cache_store.h"
#include "client/cli/copy.h"
#include "client/cli/input.h"
#include "client/cli/json_text.h"
#include "client/cli/ticker.h"
#include "common/files.h"
#include "common/store_reader.h"

namespace jitc::cli {
namespace {

using common::Digest;
using common::ErrorKind;
using common::fail;
using common::LookupOutcome;
using common::Result;

// ---- export ---------------------------------------------------------------------------------------------------------

// Each once, in order.
Result<std::vector<Digest>> keys_of(const CacheOptions& options, const std::vector<CacheEntry>& entries) {
  if (options.keys.empty() != options.all)
    return fail(ErrorKind::kUsage, "one way to say what is exported is needed", "cache export", "give KEYs, or --all");
  auto keys = keys_that_begin(options.keys, entries);
  if (!keys) return keys;
  for (const CacheEntry& entry : entries)
    if (options.all) keys->push_back(entry.key);
  std::ranges::sort(*keys);
  keys->erase(std::ranges::unique(*keys).begin(), keys->end());
  return keys;
}

// The artifact, checked; nullopt: it has gone since the listing.
Result<bool> read_checked(const common::StoreReader& reader, const Digest& key, common::StoredArtifact& artifact) {
  std::string reason;
  const auto outcome = reader.look_up(key, artifact, &reason);
  if (outcome == LookupOutcome::kAbsent && reason.empty()) return false;
  if (outcome == LookupOutcome::kFound) {
    auto checked = check_artifact(artifact.bytes);
    if (checked) return true;
    reason = std::move(checked.error().message);
  }
  const bool is_untrusted = outcome == LookupOutcome::kUntrusted;
  return fail(ErrorKind::kCorrupt, is_untrusted ? "not trusted: " + reason : reason,
              artifact.path.empty() ? key.hex() : artifact.path, "'jitc cache verify --repair' takes such away");
}

// Where the archive goes.
class Output {
 public:
  static Result<Output> open(const std::string& path) {
    Output output;
    if (path != "-") {
      auto file = CopyStream::open(path, 0666);
      if (!file) return std::unexpected(file.error());
      output.file_ = std::move(*file);
    } else if (::isatty(STDOUT_FILENO) == 1) {
      return fail(ErrorKind::kUsage, "an archive is not for a terminal", "-o -", "name a file, or redirect it");
    }
    return output;
  }
  Result<void> write(std::string_view bytes) {
    if (interrupted()) return fail(ErrorKind::kCancelled, "interrupted");
    if (file_) return file_->write(bytes, Deadline(0));
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return {};
    return common::fail_errno(ErrorKind::kUsage, errno, "cannot be written", "standard output");
  }
  Result<void> commit() { return file_ ? file_->commit() : Result<void>(); }

 private:
  std::optional<CopyStream> file_;
};

// ---- import ---------------------------------------------------------------------------------------------------------

Result<common::Fd> open_input(const std::string& path) {
  common::Fd file(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                              : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return common::fail_errno(ErrorKind::kUsage, errno, "cannot be opened", path);
  return file;
}

Supply supply_of(int descriptor, const std::string& path) {
  return [descriptor, path](char* buffer, std::size_t most) {
    return read_some(descriptor, buffer, most, path, Deadline(0));
  };
}

struct Tally {
  std::size_t published = 0, present = 0, refused = 0;
};

const char* name_of(ImportedEntry::State state) {
  switch (state) {
    case ImportedEntry::State::kPublished:
      return "imported";
    case ImportedEntry::State::kPresent:
      return "present";
    case ImportedEntry::State::kRefused:
      break;
  }
  return "refused";
}

void note(const ImportedEntry& entry, bool json, Tally& tally) {
  tally.published += entry.state == ImportedEntry::State::kPublished;
  tally.present += entry.state == ImportedEntry::State::kPresent;
  tally.refused += entry.state == ImportedEntry::State::kRefused;
  if (entry.state == ImportedEntry::State::kRefused) report(entry.reason);
  if (!json) return;
  nlohmann::ordered_json object = {{"name", entry.name}, {"state", name_of(entry.state)}};
  if (!entry.path.empty()) object["path"] = entry.path;
  if (entry.path.empty()) object["reason"] = entry.reason.message;
  std::printf("%s\n", one_line(object).c_str());
}

}  // namespace

int cache_export(const Context& context, const CacheOptions& options) {
  watch_interrupts();
  const auto layers = cache_layers(context);
  const auto listing = list_stores(layers);
  const auto keys = keys_of(options, listing.entries);
  if (!keys) return report(keys.error());
  if (options.json && options.archive == "-")
    return report(fail(ErrorKind::kUsage, "standard output takes the archive or the object, not both", "--json",
                       "name a file with -o")
                      .error());
  int code = report_gaps(listing);
  auto output = Output::open(options.archive);
  if (!output) return report(output.error());
  const common::StoreReader reader(layers);
  const Sink sink = [&output](std::string_view bytes) { return output->write(bytes); };
  std::atomic<std::size_t> count = 0;
  Ticker ticker(Ticker::shows(context.settings.text("progress")),
                [&] { return std::to_string(count) + " of " + std::to_string(keys->size()) + " exported"; });
  for (const Digest& key : *keys) {
    common::StoredArtifact artifact;
    const auto has_it = read_checked(reader, key, artifact);
    if (!has_it) ticker.aside([&] { code = report(has_it.error()); });
    if (!has_it || !*has_it) continue;
    if (auto written = write_entry(sink, key, artifact.bytes); !written) {
      ticker.clear();
      return report(written.error());
    }
    ++count;
  }
  ticker.clear();
  auto ended = write_end(sink);
  if (ended) ended = output->commit();
  if (!ended) return report(ended.error());
  if (options.json)
    std::printf("%s\n",
                one_line(nlohmann::ordered_json{{"archive", options.archive}, {"artifacts", count.load()}}).c_str());
  std::fprintf(stderr, "jitc: %zu artifacts exported\n", count.load());
  return code;
}

int cache_import(const Context& context, const CacheOptions& options) {
  watch_interrupts();
  const auto input = open_input(options.archive);
  if (!input) return report(input.error());
  const auto store = make_store(context, options);
  if (!store) return report(store.error());
  Tally tally;
  std::atomic<std::size_t> count = 0;
  Ticker ticker(Ticker::shows(context.settings.text("progress")),
                [&] { return std::to_string(count) + " artifacts looked at"; });
  auto imported = import_artifacts(supply_of(input->get(), options.archive), **store, [&](const ImportedEntry& entry) {
    ticker.aside([&] { note(entry, options.json, tally); });
    ++count;
  });
  ticker.clear();
  std::fprintf(stderr, "jitc: %zu artifacts imported, %zu already there, %zu refused\n", tally.published, tally.present,
               tally.refused);
  if (imported) return tally.refused > 0 ? common::exit_code(ErrorKind::kCorrupt) : 0;
  if (imported.error().kind == ErrorKind::kCorrupt) imported.error().thing = options.archive;
  return report(imported.error());
}

}  // namespace jitc::cli
