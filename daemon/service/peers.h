// Who is at the other end of a connection: recorded when it was accepted, found again by what gRPC calls the peer.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/runtime_dir.h"

namespace jitc::service {

class Peers {
 public:
  // A descriptor's number is used again after a connection ends: the newest entry is the right one, and the table never
  // grows beyond the number of descriptors.
  void accepted(int fd, const common::Peer& peer) {
    const std::lock_guard lock(mutex_);
    peers_["fd:" + std::to_string(fd)] = peer;
  }
  std::optional<common::Peer> find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto entry = peers_.find(name);
    return entry == peers_.end() ? std::nullopt : std::optional(entry->second);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, common::Peer> peers_;
};

}  // namespace jitc::service
