// Who may have put something into a store, and whom its readers believe. An artifact's footer says that it is whole,
// not who made it: that is said by the owner and the mode of the file and of every directory on the way to it.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/error.h"

namespace jitc::common {

enum class Trust : std::uint8_t {
  kOwn,        // this user and root: a private store
  kOwner,      // the owner of the layer's directory too: a read-only layer, which the settings name
  kEverybody,  // whoever may write: a group's store, which the settings declare as such
};

struct StoreLayer {
  std::string path;
  Trust trust = Trust::kOwn;
  bool is_read_only = false;  // nothing is ever written into it, not even the time of a use
  // Of kOwner: whose it was when it was opened, and stays. Without it (it was not there yet) whose it is at each look.
  std::optional<uid_t> owner = std::nullopt;
};

// Goes down to the layer one directory at a time, through symbolic links too, and looks who could have put another one
// there. kRefused says which directory and why: it belongs to somebody else, or others may write into it. A sticky one
// is no danger, since only owners rename in it, but anybody may have been the first to make what is there: in it root
// and this user alone are believed. A private store itself must be no link. Returns the path without links; what does
// not exist yet stays as it is, and must be looked at again once it is made.
Result<std::string> resolve_store(const StoreLayer& layer);
// The same, to read there from now on: the layer's path without links, and its owner.
Result<StoreLayer> open_layer(StoreLayer layer);

// Whom a layer that was opened believes: for what is inside it.
class Believed {
 public:
  explicit Believed(const StoreLayer& layer);
  // Empty when nobody else can have made or changed this file or directory; else why it is not believed.
  std::string doubt(const struct stat& status) const;
  bool owner(uid_t uid) const;  // as an owner

 private:
  Trust trust_;
  uid_t owner_;
};

// A directory inside a layer (v1, a shard, tmp, quarantine): a real one, of somebody believed, or absent. kRefused;
// with kStoreUnavailable it cannot be looked at. Since nobody else can replace what is in directories that were
// checked, looking first and using then is safe.
Result<void> check_inside(const StoreLayer& layer, const std::string& directory);

}  // namespace jitc::common
