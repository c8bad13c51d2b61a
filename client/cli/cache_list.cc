// jitc cache ls, show: what the store holds. Reads only.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "client/cli/cache.h"
#include "client/cli/cache_entries.h"
#include "client/cli/json_text.h"
#include "client/cli/progress.h"
#include "client/cli/status_text.h"
#include "common/store_reader.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;

// An entry and what its manifest says of it.
struct Row {
  CacheEntry entry;
  bool readable = false;
  std::string name = "(no readable manifest)", created;
  double compile_seconds = 0;
};

void read_manifest_of(Row& row) {
  auto manifest = common::read_manifest(row.entry.path);
  if (!manifest) return;
  row.readable = true;
  row.name = std::move(manifest->name);
  row.created = std::move(manifest->created);
  row.compile_seconds = manifest->compile_seconds;
}

// What is equal stays in the order of the last use; that order is the entries' own.
void sort_by(std::vector<Row>& rows, const std::string& order) {
  const auto sort = [&rows](auto key) { std::ranges::sort(rows, {}, key); };
  if (order == "size")
    sort([](const Row& row) { return std::pair(~row.entry.size, row.entry.unused_seconds); });  // ~: largest first
  if (order == "name") sort([](const Row& row) { return std::tie(row.name, row.entry.unused_seconds); });
  if (order == "compile-seconds")
    sort([](const Row& row) { return std::pair(-row.compile_seconds, row.entry.unused_seconds); });
  if (order == "age")  // who does not say when it was made comes last
    sort([](const Row& row) { return std::pair<bool, const std::string&>(row.created.empty(), row.created); });
}

// Manifests are read of what is shown, and of all only where the order asks for them.
std::vector<Row> rows_of(std::vector<CacheEntry> entries, const std::string& order,
                         std::optional<std::uint64_t> limit) {
  std::vector<Row> rows;
  rows.reserve(entries.size());
  for (auto& entry : entries) rows.push_back({.entry = std::move(entry)});
  const bool by_manifest = order == "name" || order == "age" || order == "compile-seconds";
  if (by_manifest) std::ranges::for_each(rows, read_manifest_of);
  sort_by(rows, order);
  if (limit && rows.size() > *limit) rows.resize(*limit);
  if (!by_manifest) std::ranges::for_each(rows, read_manifest_of);
  return rows;
}

void print(const Row& row, bool json) {
  const CacheEntry& entry = row.entry;
  if (!json) {
    std::printf("%s  %9s  used %s ago  compiled in %.3g s  %s\n", entry.key.hex().c_str(),
                bytes_text(entry.size).c_str(), duration_text(entry.unused_seconds).c_str(), row.compile_seconds,
                shown_name(row.name).c_str());
    return;
  }
  nlohmann::ordered_json object = {{"key", entry.key.hex()}, {"path", entry.path},
                                   {"size", entry.size},     {"unused_seconds", entry.unused_seconds},
                                   {"name", row.name},       {"layer", entry.layer.path}};
  if (row.readable) {
    object["created"] = row.created;
    object["compile_seconds"] = row.compile_seconds;
  }
  std::printf("%s\n", one_line(object).c_str());
}

int print_manifest(std::string_view manifest, bool in_one_line) {
  const std::string text = in_one_line ? one_line(nlohmann::ordered_json::parse(manifest)) : std::string(manifest);
  std::printf("%s\n", text.c_str());
  return 0;
}

}  // namespace

int cache_ls(const Context& context, const CacheOptions& options) {
  auto listing = list_stores(cache_layers(context));
  std::uint64_t bytes = 0;
  for (const auto& entry : listing.entries) bytes += entry.size;
  const std::size_t count = listing.entries.size();
  for (const Row& row : rows_of(std::move(listing.entries), options.sort, options.limit)) print(row, options.json);
  if (!options.json) std::fprintf(stderr, "jitc: %zu artifacts, %s\n", count, bytes_text(bytes).c_str());
  return report_gaps(listing);
}

int cache_show(const Context& context, const CacheOptions& options) {
  const auto layers = cache_layers(context);
  const std::string& text = options.keys.front();
  auto key = common::Digest::from_hex(text);
  if (!key) {
    const auto listing = list_stores(layers);
    const auto found = key_that_begins(text, listing.entries);
    if (!found) return report_not_found(found.error(), listing);
    key = *found;
  }
  common::StoredArtifact artifact;
  std::string reason;
  switch (common::StoreReader(layers).look_up(*key, artifact, &reason)) {
    case common::LookupOutcome::kFound:
      return print_manifest(artifact.view.manifest, options.json);
    case common::LookupOutcome::kCorrupt:
      return report(fail(ErrorKind::kCorrupt, reason, artifact.path, artifact.remedy).error());
    case common::LookupOutcome::kUntrusted:
      return report(fail(ErrorKind::kRefused, "not trusted: " + reason, artifact.path, artifact.remedy).error());
    case common::LookupOutcome::kAbsent:
      break;
  }
  if (reason.empty()) return report_not_found(key_that_begins(text, {}).error(), list_stores(layers));
  return report(fail(ErrorKind::kStoreUnavailable, reason, artifact.path, artifact.remedy).error());
}

}  // namespace jitc::cli
