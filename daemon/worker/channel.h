// Protobuf messages with file descriptors over a SOCK_SEQPACKET socket: one message per datagram. The daemon and its
// worker speak through it, and so do the worker and its children.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/files.h"

namespace jitc::worker {

// A datagram must fit the kernel's default send buffer (net.core.wmem_default, 208 KiB, minus its own overhead); what
// is larger travels as a memfd.
inline constexpr std::size_t kMaxMessageBytes = 192 * 1024;
inline constexpr int kMaxDescriptors = 4;

// Two connected ends, close-on-exec, blocking.
common::Result<std::pair<common::Fd, common::Fd>> make_channel();

// Sends one message; true: sent, false: the socket is non-blocking and full, try again when it is writable. Errors:
// kUnreachable when the other end is gone; any other, kUsage for a message that is too large, concerns this message
// alone.
common::Result<bool> send_datagram(int socket, std::string_view bytes, std::span<const int> descriptors = {});
common::Result<bool> send_message(int socket, const google::protobuf::MessageLite& message,
                                  std::span<const int> descriptors = {});

struct Datagram {
  enum class State { kMessage, kNothingYet, kClosed };
  State state = State::kNothingYet;
  std::string bytes;                    // a serialised message
  std::vector<common::Fd> descriptors;  // close-on-exec
};
// Takes one datagram; kNothingYet only on a non-blocking socket.
common::Result<Datagram> receive_datagram(int socket);

// The descriptor's whole content, for memfds that carry large payloads.
common::Result<std::string> read_payload(const common::Fd& descriptor, std::string_view what);

// Messages that wait for a non-blocking socket to take them, in order.
class Outbox {
 public:
  explicit Outbox(int socket) : socket_(socket) {}
  // Sends at once when nothing waits before it.
  common::Result<void> send(const google::protobuf::MessageLite& message, common::Fd descriptor = {});
  // Call when the socket is writable again.
  common::Result<void> flush();
  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    std::string bytes;
    common::Fd descriptor;
  };
  int socket_;
  std::deque<Waiting> waiting_;
};

}  // namespace jitc::worker
