// What `jitc cache` does with a store: each returns the exit code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/context.h"

namespace jitc::cli {

struct CacheOptions {
  SettingFlags settings;
  bool json = false;
  std::vector<std::string> keys;  // or their beginnings
  // ls
  std::string sort = "used";
  std::optional<std::uint64_t> limit;
  // verify
  bool repair = false;
  // gc; what is not given is as the settings say
  std::optional<std::uint64_t> max_bytes, max_entries;
  std::optional<double> max_age;  // seconds
  bool dry_run = false;
  // rm
  bool all = false, yes = false, corrupt = false;
  std::optional<double> older_than;  // seconds
  // export (with `all`), import
  std::string archive;  // a file; "-": standard output, input
};

int cache_ls(const Context& context, const CacheOptions& options);
int cache_show(const Context& context, const CacheOptions& options);
int cache_verify(const Context& context, const CacheOptions& options);
int cache_gc(const Context& context, const CacheOptions& options);
int cache_export(const Context& context, const CacheOptions& options);
int cache_import(const Context& context, const CacheOptions& options);
int cache_rm(const Context& context, const CacheOptions& options);

}  // namespace jitc::cli
