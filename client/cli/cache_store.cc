#include "client/cli/cache_store.h"

#include "client/cli/cache_entries.h"

namespace jitc::cli {

using common::Result;

Result<std::unique_ptr<store::Store>> open_store(const Context& context, const CacheOptions& given) {
  const common::StoreLayer layer = cache_layers(context).back();
  const auto has = has_store(layer);
  if (!has) return std::unexpected(has.error());
  if (!*has) return nullptr;
  return make_store(context, given);
}

Result<std::unique_ptr<store::Store>> make_store(const Context& context, const CacheOptions& given) {
  const common::StoreLayer layer = cache_layers(context).back();
  const common::Settings& settings = context.settings;
  const double age = given.max_age.value_or(settings.seconds("store_max_age"));
  return store::Store::open({.directory = layer.path,
                             .read_only = {},
                             .max_bytes = given.max_bytes.value_or(settings.bytes("store_max")),
                             .max_entries = given.max_entries.value_or(settings.count("store_max_entries")),
                             .max_age = common::rounded_up(age),
                             .mode = settings.mode("store_mode"),
                             .allow_shared = layer.trust == common::Trust::kEverybody,
                             .make = !given.dry_run});
}

}  // namespace jitc::cli
