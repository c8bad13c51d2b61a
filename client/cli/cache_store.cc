#include "client/cli/cache_store.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "client/cli/cache_entries.h"

namespace jitc::cli {

using common::ErrorKind;
using common::Result;

Result<std::unique_ptr<store::Store>> open_store(const Context& context, const CacheOptions& given) {
  const common::StoreLayer layer = cache_layers(context).back();
  std::error_code error;
  if (std::filesystem::exists(layer.path + "/v1", error)) return make_store(context, given);
  if (!error) return nullptr;
  return common::fail_errno(ErrorKind::kStoreUnavailable, error.value(), "cannot be looked at", layer.path);
}

Result<std::unique_ptr<store::Store>> make_store(const Context& context, const CacheOptions& given) {
  const common::StoreLayer layer = cache_layers(context).back();
  const common::Settings& settings = context.settings;
  const double age = given.max_age.value_or(settings.seconds("store_max_age"));
  return store::Store::open({.directory = layer.path,
                             .read_only = {},
                             .max_bytes = given.max_bytes.value_or(settings.bytes("store_max")),
                             .max_entries = given.max_entries.value_or(settings.count("store_max_entries")),
                             .max_age = std::chrono::seconds(static_cast<std::int64_t>(age)),
                             .mode = settings.mode("store_mode"),
                             .allow_shared = layer.trust == common::Trust::kEverybody,
                             .make = !given.dry_run});
}

}  // namespace jitc::cli
