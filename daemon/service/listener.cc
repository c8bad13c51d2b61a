#include "daemon/service/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "daemon/observe/log.h"

namespace jitc::service {
namespace {

using common::ErrorKind;
using common::Fd;

// Is somebody there? Our lock is held, so that it is no daemon: a service manager listens without it.
bool answers(int type, const sockaddr_un& address) {
  const Fd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return true;  // not known: nothing is removed
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  return errno == EAGAIN;  // its backlog is full
}

constexpr std::chrono::milliseconds kNoDescriptorPause{100};
constexpr int kHitsAtOnce = 256;

// A bound, private socket at `path`, in place of whatever a dead daemon left there.
common::Result<Fd> bound_socket(int type, const std::string& path) {
  const auto address = common::socket_address(path);
  if (!address) return std::unexpected(address.error());
  const auto failed = [&path](const char* what) {
    return common::fail_errno(ErrorKind::kRefused, errno, what, path, "set JITC_RUNTIME_DIR to a local directory");
  };
  struct stat there{};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) {
      return common::fail(ErrorKind::kRefused, "is in the way and not a socket", path, "remove it");
    }
    if (answers(type, *address)) {
      return common::fail(ErrorKind::kRefused, "somebody listens there already, perhaps a service manager", path,
                          "use its daemon, or stop its socket unit: systemctl --user stop jitcd.socket");
    }
    unlink(path.c_str());
  }
  Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed("cannot make a socket");
  // The umask made it 0600 at birth; the directory is 0700 beside that.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return failed("cannot bind");
  if (chmod(path.c_str(), 0600) != 0) return failed("cannot set the mode");
  return socket;
}

}  // namespace

void SocketName::take(std::string path) {
  struct stat named{};
  if (lstat(path.c_str(), &named) != 0) return;  // gone already
  path_ = std::move(path);
  device_ = named.st_dev;
  inode_ = named.st_ino;
}

bool SocketName::is_ours() const {
  struct stat named{};
  return path_.empty() || (lstat(path_.c_str(), &named) == 0 && named.st_dev == device_ && named.st_ino == inode_);
}

void SocketName::remove() {
  if (!path_.empty() && is_ours()) unlink(path_.c_str());
  path_.clear();
}

common::Result<void> Listener::bind(const std::string& runtime_dir) {
  const std::string path = runtime_dir + "/" + common::kSocketName;
  auto socket = bound_socket(SOCK_STREAM, path);
  if (!socket) return std::unexpected(socket.error());
  name_.take(path);
  if (::listen(socket->get(), SOMAXCONN) != 0)
    return common::fail_errno(ErrorKind::kRefused, errno, "cannot listen", path);
  acceptor_.assign(asio::local::stream_protocol(), socket->release());
  return {};
}

common::Result<void> Listener::adopt(Fd socket) {
  int listening = 0;
  socklen_t size = sizeof listening;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    return common::fail(ErrorKind::kUsage, "is not a listening socket", "descriptor " + std::to_string(socket.get()),
                        "start jitcd by its socket unit (ListenStream=)");
  }
  fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  acceptor_.assign(asio::local::stream_protocol(), socket.release());
  return {};
}

void Listener::start() {
  acceptor_.native_non_blocking(true);
  accept();
}

void Listener::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, asio::local::stream_protocol::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      check(std::move(socket));
      return accept();
    }
    observe::log_warning("connection not accepted", {{"error", error.message()}});
    // Out of descriptors or memory: the connection stays in the backlog, and to try at once would spin.
    pause_.expires_after(kNoDescriptorPause);
    pause_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled && acceptor_.is_open()) accept();
    });
  });
}

void Listener::check(asio::local::stream_protocol::socket socket) {
  const auto peer = common::peer_of(socket.native_handle());
  if (!peer || !common::is_own_uid(peer->uid)) {
    ++refused_;
    observe::log_warning("peer refused", {{"uid", peer ? std::to_string(peer->uid) : "unknown"}});
    return;
  }
  socket.native_non_blocking(true);
  Fd fd(socket.release());
  fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  accepted_(std::move(fd), *peer);
}

void Listener::close() {
  boost::system::error_code ignored;
  pause_.cancel();
  acceptor_.close(ignored);
  name_.remove();
}

std::optional<int> passed_socket() {
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || std::strcmp(count, "1") != 0) return std::nullopt;
  if (std::to_string(getpid()) != pid) return std::nullopt;
  return 3;
}

common::Result<void> HitsSocket::bind(const std::string& runtime_dir) {
  const std::string path = runtime_dir + "/" + common::kHitsSocketName;
  auto socket = bound_socket(SOCK_DGRAM, path);
  if (!socket) return std::unexpected(socket.error());
  name_.take(path);
  socket_.assign(asio::local::datagram_protocol(), socket->release());
  return {};
}

void HitsSocket::start() {
  socket_.native_non_blocking(true);
  socket_.async_wait(asio::socket_base::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    drain();
    start();
  });
}

void HitsSocket::drain() {
  common::Digest key;
  std::array<std::uint8_t, 33> datagram;  // one byte more than a key: what is longer is not one
  // A bounded batch, so that a flood of datagrams leaves the state thread to others in between.
  for (int i = 0; i < kHitsAtOnce; ++i) {
    const ssize_t size = recv(socket_.native_handle(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0) return;
    if (size != static_cast<ssize_t>(key.bytes.size())) continue;
    std::copy_n(datagram.begin(), key.bytes.size(), key.bytes.begin());
    hit_(key);
  }
}

void HitsSocket::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  name_.remove();
}

}  // namespace jitc::service
