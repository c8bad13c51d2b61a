// The daemon, over gRPC. Many threads may call one object at once; each drives its own call.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "client/rpc/daemon.h"
#include "client/rpc/recovery.h"
#include "client/rpc/wait.h"
#include "jitc/v1/compiler.grpc.pb.h"

namespace jitc::rpc {

class DaemonClient final : public Daemon {
 public:
  explicit DaemonClient(std::string socket_path);
  ~DaemonClient() override;

  void compile(const common::Request& request, const Options& options, const Events& events) override;
  common::Result<std::string> query(std::string_view what, const Limits& limits) override;
  common::Result<void> cancel(std::uint64_t flight, const Limits& limits) override;
  common::Result<void> drain(const Limits& limits) override;
  void run(const common::Command& command, const std::string& name, const Options& options,
           const Events& events) override;

 private:
  struct Connection;
  struct Outcome;

  // The open connection, else a new one: connected, both uids checked, versions compared.
  struct Opened {
    std::shared_ptr<Connection> connection;
    bool is_new;  // its daemon answered during this call
  };
  common::Result<Opened> connection(Wait& wait);
  common::Result<std::shared_ptr<Connection>> connect(Wait& wait) const;
  void forget(const std::shared_ptr<Connection>& gone);

  // Calls `use(connection)`; once more, on a new connection, when the daemon went away since the last call.
  template <class Use>
  auto on_connection(Wait& wait, Use use) -> decltype(use(std::declval<Connection&>()));
  template <class Reply, class Start>
  common::Result<Reply> unary(Wait& wait, Start start);

  common::Result<Outcome> compile_on(Connection& connection, const v1::CompileRequest& message, Wait& wait,
                                     const Events& events) const;
  // On one connection after the other, as long as Recovery says so.
  common::Result<Outcome> compile_anywhere(const v1::CompileRequest& message, Wait& wait, const Options& options,
                                           const Events& events);
  void answer(const std::function<v1::CompileRequest()>& make, const Options& options, const Events& events);
  common::Result<void> check_bytes(const Outcome& outcome, bool want_bytes) const;

  const std::string socket_path_;
  std::mutex mutex_;  // guards the pointer only; never held while anything waits
  std::shared_ptr<Connection> connection_;
};

}  // namespace jitc::rpc
