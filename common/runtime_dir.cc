#include "common/runtime_dir.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace jitc::common {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The batch job that this process belongs to; empty outside one.
std::string batch_job() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID"})
    if (auto value = environment(name); !value.empty()) return value;
  return {};
}

// As the batch system calls this node: several of Slurm's nodes may share a host, and a host may be known by other
// names than its own.
std::string node_name() {
  const std::string name = environment("SLURM_JOB_ID").empty() ? std::string() : environment("SLURMD_NODENAME");
  return name.empty() ? host_name() : name;
}

// One path component, whatever a scheduler puts into its names.
std::string as_component(std::string text) {
  for (char& c : text)
    if (c == '/' || c == '\0' || c == ' ') c = '_';
  return text;
}

void set_send_timeout(int socket, double seconds) {
  timeval timeout{};
  timeout.tv_sec = static_cast<time_t>(seconds);
  timeout.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(timeout.tv_sec)) * 1e6);
  if (timeout.tv_sec == 0 && timeout.tv_usec == 0) timeout.tv_usec = 1;  // 0 would mean: for ever
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

std::unexpected<Error> nobody_listens(int error_number, const std::string& path) {
  return fail_errno(ErrorKind::kUnreachable, error_number, "no daemon answers", path,
                    "start one with 'jitc daemon start'");
}

}  // namespace

std::string runtime_directory(std::string_view configured) {
  if (!configured.empty()) return std::string(configured);
  std::string base = environment("XDG_RUNTIME_DIR");
  if (!base.empty()) {
    base += "/jitc";
  } else {
    const std::string temp = environment("TMPDIR");
    base = (temp.empty() ? "/tmp" : temp) + "/jitc-" + std::to_string(::geteuid());
  }
  if (const auto job = batch_job(); !job.empty()) base += "/" + as_component(job) + "." + as_component(node_name());
  return base;
}

bool in_batch_job() { return !batch_job().empty(); }

Result<void> prepare_runtime_directory(const std::string& path) {
  if (auto made = make_directories(path, 0700); !made) return made;
  return check_private_directory(path);
}

Result<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorKind::kUsage,
                "the socket's path has " + std::to_string(path.size()) + " bytes, the system takes at most " +
                    std::to_string(sizeof address.sun_path - 1),
                path, "set JITC_RUNTIME_DIR to a shorter directory");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return fail_errno(ErrorKind::kRefused, errno, "the peer's identity cannot be read", "socket");
  return Peer{credentials.uid, credentials.pid};
}

bool is_own_uid(uid_t uid) {
  static const uid_t nobody = overflow_uid();
  return uid == ::geteuid() && uid != nobody;
}

Result<Fd> connect_own(const std::string& socket_path, double wait_seconds) {
  auto address = socket_address(socket_path);
  if (!address) return std::unexpected(address.error());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (wait_seconds > 0 ? 0 : SOCK_NONBLOCK), 0));
  if (!fd) return fail_errno(ErrorKind::kUnreachable, errno, "no socket can be made", socket_path);
  // A Unix socket connects at once unless the listener's backlog is full: then it says EAGAIN, a blocking one after its
  // send time-out. It never stays in progress.
  if (wait_seconds > 0) set_send_timeout(fd.get(), wait_seconds);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    if (errno == EAGAIN || errno == EINTR)
      return fail(ErrorKind::kTimedOut, "the daemon accepts no connection", socket_path,
                  "is it stopped? Its pid is in jitcd.lock beside the socket");
    return nobody_listens(errno, socket_path);
  }
  if (wait_seconds > 0) ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  auto peer = peer_of(fd.get());
  if (!peer) return std::unexpected(peer.error());
  // Root may be the service manager that listens for this user's daemon, which it then starts; a daemon of root's own
  // closes the connection.
  const bool is_trusted = is_own_uid(peer->uid) || peer->uid == 0;
  if (!is_trusted)
    return fail(ErrorKind::kRefused, "the process that listens there runs as uid " + std::to_string(peer->uid),
                socket_path,
                "a daemon of your own must listen; use another JITC_RUNTIME_DIR if somebody took this path");
  return fd;
}

void report_hit(const std::string& runtime_dir, std::string_view key_bytes) {
  const auto address = socket_address(runtime_dir + "/" + kHitsSocketName);
  if (!address) return;
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return;
  // Lost when nobody listens or the queue is full: it only feeds counters.
  (void)::sendto(fd.get(), key_bytes.data(), key_bytes.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
}

}  // namespace jitc::common
