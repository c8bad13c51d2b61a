// The daemon's sockets in the runtime directory. Connections are accepted here, their peers checked, and handed on as
// descriptors; hits that clients served themselves arrive as datagrams. State thread only.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/digest.h"
#include "common/error.h"
#include "common/files.h"
#include "common/runtime_dir.h"
#include "daemon/service/asio.h"

namespace jitc::service {

// The name of a bound socket, removed at the end unless it is another one's by then.
class SocketName {
 public:
  // Of the socket that was just bound there.
  void take(std::string path);
  // Is it still that socket? True when none was taken.
  bool is_ours() const;
  void remove();

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Accepts connections of this user only.
class Listener {
 public:
  using Accepted = std::function<void(common::Fd, const common::Peer&)>;  // non-blocking, close-on-exec
  Listener(asio::io_context& state, Accepted accepted)
      : acceptor_(state), pause_(state), accepted_(std::move(accepted)) {}

  // Binds <runtime_dir>/jitcd.sock; the lock must be held, so that a socket already there is a dead daemon's
  // and is replaced. kRefused when somebody answers there all the same.
  common::Result<void> bind(const std::string& runtime_dir);
  // Takes a listening socket that a service manager made.
  common::Result<void> adopt(common::Fd socket);
  void start();
  // Closes and removes the socket (a service manager's own is left to it).
  void close();
  // Do clients that look for the socket find this one?
  bool is_found() const { return name_.is_ours(); }
  std::uint64_t refused() const { return refused_; }

 private:
  void accept();
  void check(asio::local::stream_protocol::socket socket);

  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer pause_;  // while no descriptor is free
  Accepted accepted_;
  SocketName name_;
  std::uint64_t refused_ = 0;
};

// The descriptor that systemd passed (LISTEN_FDS=1 for this process), if any.
std::optional<int> passed_socket();

// <runtime_dir>/hits.sock: datagrams of 32 bytes, an artifact key each.
class HitsSocket {
 public:
  HitsSocket(asio::io_context& state, std::function<void(const common::Digest&)> hit)
      : socket_(state), hit_(std::move(hit)) {}
  common::Result<void> bind(const std::string& runtime_dir);
  void start();
  void close();

 private:
  void drain();
  asio::local::datagram_protocol::socket socket_;
  std::function<void(const common::Digest&)> hit_;
  SocketName name_;
};

}  // namespace jitc::service
