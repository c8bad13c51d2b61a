// Hits without asking anybody: the daemon's identity file gives the artifact key, the store's layers give the bytes.
#pragma once

#include <optional>
#include <string>

#include "client/gate/sources.h"

namespace jitc::gate {

class LocalStore : public StoreLookup {
 public:
  explicit LocalStore(std::string runtime_dir) : runtime_dir_(std::move(runtime_dir)) {}
  // Verified bytes. nullopt without an identity file, for a compiler that the daemon does not offer, on a miss, for an
  // entry that was not checked where the request wants that (the daemon checks it), and for one that does not verify
  // (the daemon finds it too, and puts it away).
  std::optional<Obtained> look_up(const common::Request& request) override;

 private:
  std::string runtime_dir_;
};

}  // namespace jitc::gate
