// jitc cache verify, gc, rm: care for the store without a daemon, and beside one. Both use the same code, which expects
// others to change the store at the same time.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/cli/cache.h"
#include "client/cli/cache_entries.h"
#include "client/cli/cache_store.h"
#include "client/cli/json_text.h"
#include "client/cli/progress.h"
#include "client/cli/ticker.h"
#include "common/store_reader.h"
#include "daemon/store/store.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::LookupOutcome;

constexpr double kShortestTime = 1;  // seconds; what was not used for less is everything

void print(const nlohmann::ordered_json& object) { std::printf("%s\n", one_line(object).c_str()); }

int no_store(const Context& context) {
  say("jitc: " + cache_layers(context).back().path + ": there is no store yet: nothing to do\n");
  return 0;
}

// ---- verify ---------------------------------------------------------------------------------------------------------

enum class State { kGood, kCorrupt, kUntrusted, kUnreadable, kGone };

const char* name_of(State state) {
  switch (state) {
    case State::kGood:
      return "good";
    case State::kCorrupt:
      return "corrupt";
    case State::kUntrusted:
      return "untrusted";
    case State::kUnreadable:
      return "unreadable";
    case State::kGone:
      break;
  }
  return "gone";
}

struct Tally {
  std::size_t good = 0, corrupt = 0, unreadable = 0, untrusted = 0, repaired = 0;
  void add(State state) {
    good += state == State::kGood;
    corrupt += state == State::kCorrupt;
    unreadable += state == State::kUnreadable;
    untrusted += state == State::kUntrusted;
  }
};

struct Finding {
  State state = State::kGone;  // the daemon removed it meanwhile
  std::string reason, remedy;
};

Finding look_at(const CacheEntry& entry) {
  common::StoredArtifact artifact;
  Finding finding;
  const auto outcome = common::StoreReader({entry.layer}).look_up(entry.key, artifact, &finding.reason);
  finding.remedy = std::move(artifact.remedy);
  switch (outcome) {
    case LookupOutcome::kFound:
      finding.state = State::kGood;
      break;
    case LookupOutcome::kCorrupt:
      finding.state = State::kCorrupt;
      break;
    case LookupOutcome::kUntrusted:
      finding.state = State::kUntrusted;
      break;
    case LookupOutcome::kAbsent:
      if (!finding.reason.empty()) finding.state = State::kUnreadable;
  }
  return finding;
}

void tell(const CacheEntry& entry, const Finding& finding, bool repaired, bool json) {
  const auto& [state, reason, remedy] = finding;
  if (json) {
    print({{"key", entry.key.hex()},
           {"path", entry.path},
           {"layer", entry.layer.path},
           {"state", name_of(state)},
           {"reason", reason},
           {"remedy", repaired ? "" : remedy},
           {"repaired", repaired}});
  } else if (state == State::kCorrupt) {
    std::printf("%s\n", entry.path.c_str());
  }
  say("jitc: " + entry.path + ": " + (state == State::kUntrusted ? "not trusted: " : "") + reason +
      (repaired ? ": moved to the quarantine\n" : ": " + remedy + "\n"));
}

// `store`: where to repair; null: nowhere.
void verify_entry(const CacheEntry& entry, store::Store* store, bool json, Tally& tally, Ticker& ticker) {
  const Finding finding = look_at(entry);
  const bool bad = finding.state != State::kGood && finding.state != State::kGone;
  const bool repaired = bad && store != nullptr && store->quarantine(entry.key);
  if (repaired) {
    ++tally.repaired;
  } else {
    tally.add(finding.state);
  }
  if (bad) ticker.aside([&] { tell(entry, finding, repaired, json); });
}

// ---- rm -------------------------------------------------------------------------------------------------------------

common::Result<void> check_choice(const CacheOptions& options) {
  const int ways =
      (options.keys.empty() ? 0 : 1) + (options.all ? 1 : 0) + (options.corrupt ? 1 : 0) + (options.older_than ? 1 : 0);
  if (ways != 1)
    return fail(ErrorKind::kUsage, "one way to say what goes is needed", "cache rm",
                "give KEYs, --older-than, --corrupt, or --all");
  const bool is_every = options.all || (options.older_than && *options.older_than < kShortestTime);
  if (is_every && !options.yes)
    return fail(ErrorKind::kUsage, "it removes every artifact of the store", options.all ? "--all" : "--older-than",
                "say --yes as well");
  return {};
}

// All of what the options name, or an error before anything is removed.
common::Result<std::vector<CacheEntry>> chosen(const CacheOptions& options, std::vector<CacheEntry> entries) {
  const auto keys = keys_that_begin(options.keys, entries);
  if (!keys) return std::unexpected(keys.error());
  std::erase_if(entries, [&](const CacheEntry& entry) {
    if (options.all) return false;
    if (options.corrupt) return look_at(entry).state != State::kCorrupt;
    if (options.older_than) return entry.unused_seconds < *options.older_than;
    return std::ranges::find(*keys, entry.key) == keys->end();
  });
  return entries;
}

}  // namespace

int cache_verify(const Context& context, const CacheOptions& options) {
  const auto listing = list_stores(cache_layers(context));
  std::unique_ptr<store::Store> store;
  if (options.repair) {
    auto opened = open_store(context, options);
    if (!opened) return report(opened.error());
    store = std::move(*opened);
  }
  const std::string writable = cache_layers(context).back().path;
  Tally tally;
  {
    std::atomic<std::size_t> done = 0;
    Ticker ticker(Ticker::shows(context.settings.text("progress")),
                  [&] { return std::to_string(done) + " of " + std::to_string(listing.entries.size()) + " verified"; });
    for (const auto& entry : listing.entries) {
      verify_entry(entry, entry.layer.path == writable ? store.get() : nullptr, options.json, tally, ticker);
      ++done;
    }
  }
  const int gaps = report_gaps(listing);
  const std::string repaired =
      options.repair ? "; " + std::to_string(tally.repaired) + " moved to the quarantine" : std::string();
  std::fprintf(stderr, "jitc: %zu good, %zu corrupt, %zu unreadable, %zu not trusted%s\n", tally.good, tally.corrupt,
               tally.unreadable, tally.untrusted, repaired.c_str());
  if (tally.corrupt > 0) return common::exit_code(ErrorKind::kCorrupt);
  return tally.unreadable + tally.untrusted > 0 ? common::exit_code(ErrorKind::kStoreUnavailable) : gaps;
}

int cache_gc(const Context& context, const CacheOptions& options) {
  const auto store = open_store(context, options);
  if (!store) return report(store.error());
  if (!*store) return no_store(context);
  const store::Cleaned cleaned = [&] {
    const Ticker ticker(Ticker::shows(context.settings.text("progress")),
                        [&] { return "cleaning " + shown_name((*store)->directory()); });
    return (*store)->clean(options.dry_run);
  }();
  if (!cleaned.done)
    return report(fail(ErrorKind::kRefused, "another process of this node cleans it now", (*store)->directory(),
                       "try again when that is done")
                      .error());
  if (options.json) {
    print({{"store", (*store)->directory()},
           {"dry_run", options.dry_run},
           {"removed", cleaned.evicted},
           {"removed_bytes", cleaned.evicted_bytes},
           {"stale_temps", cleaned.stale_temps},
           {"stale_leases", cleaned.stale_leases},
           {"quarantine_removed", cleaned.quarantine_removed},
           {"entries", cleaned.entries_left},
           {"bytes", cleaned.bytes_left},
           {"complete", cleaned.complete}});
  } else {
    const auto number = [](std::uint64_t count) { return std::to_string(count); };
    std::printf(
        "%s %s artifacts (%s), %s temporary files and %s leases of ended writers, %s quarantined; %s%s artifacts, "
        "%s %s\n",
        options.dry_run ? "would remove" : "removed", number(cleaned.evicted).c_str(),
        bytes_text(cleaned.evicted_bytes).c_str(), number(cleaned.stale_temps).c_str(),
        number(cleaned.stale_leases).c_str(), number(cleaned.quarantine_removed).c_str(),
        cleaned.complete ? "" : "at least ", number(cleaned.entries_left).c_str(),
        bytes_text(cleaned.bytes_left).c_str(), options.dry_run ? "would stay" : "stay");
  }
  return cleaned.problem ? report(*cleaned.problem) : 0;
}

int cache_rm(const Context& context, const CacheOptions& options) {
  if (auto checked = check_choice(options); !checked) return report(checked.error());
  const auto store = open_store(context, options);
  if (!store) return report(store.error());
  if (!*store && options.keys.empty()) return no_store(context);
  const auto listing = list_stores({cache_layers(context).back()});
  const auto entries = chosen(options, listing.entries);
  if (!entries) return report(entries.error());
  int code = report_gaps(listing);
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  for (const CacheEntry& entry : *entries) {
    const auto removal = (*store)->remove(entry.key);
    const bool removed = removal == store::Store::Removal::kRemoved;
    count += removed ? 1 : 0;
    bytes += removed ? entry.size : 0;
    if (options.json)
      print({{"key", entry.key.hex()}, {"path", entry.path}, {"size", entry.size}, {"removed", removed}});
    if (removal == store::Store::Removal::kKept)
      code = report(fail(ErrorKind::kStoreUnavailable, "cannot be removed", entry.path,
                         "see who owns it and its directory; what is no file goes with 'jitc cache verify --repair'")
                        .error());
  }
  if (!options.json) std::fprintf(stderr, "jitc: %zu artifacts removed, %s\n", count, bytes_text(bytes).c_str());
  return code;
}

}  // namespace jitc::cli
