// The entries of stores, by their names alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "common/digest.h"
#include "common/error.h"
#include "common/store_trust.h"

namespace jitc::cli {

struct CacheEntry {
  common::Digest key;
  common::StoreLayer layer;
  std::string path;
  std::uint64_t size = 0;
  double unused_seconds = 0;
};

struct CacheListing {
  std::vector<CacheEntry> entries;        // last used first
  std::vector<std::string> absent;        // stores that do not exist yet
  std::vector<common::Error> unreadable;  // what is no store, is not trusted, or has a folder that cannot be listed
};

// The store that --store names, else those of the daemon, else those of the settings; the last one is the writable one.
std::vector<common::StoreLayer> cache_layers(const Context& context);

// Is there a store of this version at the layer's path? False: nothing is there yet, or an empty directory. Else why
// not: something else is there (kStoreUnavailable), a store of another version (kVersionSkew), a link (kRefused).
common::Result<bool> has_store(const common::StoreLayer& layer);

// Entries come and go while others use the store: what vanishes during the walk is not listed.
CacheListing list_stores(const std::vector<common::StoreLayer>& layers);

// What could not be looked at, to standard error; the exit code.
int report_gaps(const CacheListing& listing);

// A key that is not there may be where nobody can look: the gaps, else the error; the exit code.
int report_not_found(const common::Error& error, const CacheListing& listing);

// The one key of these entries that begins with `text`, 4 digits at least. kUsage when none or several do.
common::Result<common::Digest> key_that_begins(const std::string& text, const std::vector<CacheEntry>& entries);
// The same for each of `texts`, in their order; the first error ends it.
common::Result<std::vector<common::Digest>> keys_that_begin(const std::vector<std::string>& texts,
                                                            const std::vector<CacheEntry>& entries);

}  // namespace jitc::cli
