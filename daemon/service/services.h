// What the RPC handlers work with. Handlers run on gRPC's threads and touch nothing of the state: they post.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/identity.h"
#include "daemon/service/artifacts.h"
#include "daemon/service/asio.h"
#include "daemon/service/command_compilers.h"
#include "daemon/service/engine.h"
#include "daemon/service/figures.h"
#include "daemon/service/installation_reader.h"
#include "daemon/service/marshal.h"
#include "daemon/service/peers.h"

namespace jitc::service {

// The daemon's identity as it is now: replaced as a whole, read by any thread.
class IdentityBoard {
 public:
  void set(common::Identity identity) {
    auto next = std::make_shared<const common::Identity>(std::move(identity));
    const std::lock_guard lock(mutex_);
    identity_ = std::move(next);
  }
  std::shared_ptr<const common::Identity> get() const {
    const std::lock_guard lock(mutex_);
    return identity_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const common::Identity> identity_;
};

struct Services {
  asio::io_context& state;
  asio::thread_pool& io;
  Engine& engine;
  Artifacts& artifacts;
  const Peers& peers;
  const IdentityBoard& identity;
  std::vector<common::CompilerIdentity> offered;  // external compilers, read or not
  RequestPolicy policy;
  CommandCompilers& command_compilers;
  asio::thread_pool& command_io;  // where these are read: a compiler that hangs keeps nobody else waiting
  // On the state thread:
  std::function<void(ReadingWaiter)> read_installation;  // has what enters keys changed on this node?
  std::function<void(int change)> calls_changed;         // compile calls that are open: one more, one less
  std::function<std::map<std::string, std::uint64_t>()> counters;
  std::function<std::map<std::string, double>()> gauges;
  std::function<const std::vector<Figure>&()> figures;  // what bounds the service, as last read
  std::function<const std::string&()> enforcement;      // as the worker keeps limits
  std::function<void()> active;                         // somebody used the daemon: the idle clock starts anew
  std::function<void(const common::Digest& key, bool hit)> looked_up;
  std::function<void()> draining;  // Drain was asked for
  std::function<void()> drained;   // and nothing is left to finish
};

}  // namespace jitc::service
