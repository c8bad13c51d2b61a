// The writable store of `jitc cache`, to change it.
#pragma once

#include <memory>

#include "client/cli/cache.h"
#include "common/error.h"
#include "daemon/store/store.h"

namespace jitc::cli {

// Null when there is none: nothing is made of a directory that is no store.
common::Result<std::unique_ptr<store::Store>> open_store(const Context& context, const CacheOptions& given);
// One is made when there is none.
common::Result<std::unique_ptr<store::Store>> make_store(const Context& context, const CacheOptions& given);

}  // namespace jitc::cli
