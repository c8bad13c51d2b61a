#include "daemon/worker/channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace jitc::worker {

using common::ErrorKind;
using common::Fd;
using common::Result;

Result<std::pair<Fd, Fd>> make_channel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return common::fail_errno(ErrorKind::kInternal, errno, "cannot create a socket pair", "worker channel");
  }
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

namespace {

std::unexpected<common::Error> too_large(std::size_t bytes) {
  return common::fail(ErrorKind::kUsage, "a message of " + std::to_string(bytes) + " bytes is too large",
                      "worker channel", "use fewer or shorter flags and include roots");
}

}  // namespace

Result<bool> send_datagram(int socket, std::string_view bytes, std::span<const int> descriptors) {
  if (bytes.size() > kMaxMessageBytes) return too_large(bytes.size());
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)] = {};
  if (!descriptors.empty()) {
    if (descriptors.size() > std::size_t{kMaxDescriptors}) {
      return common::fail(ErrorKind::kUsage, "too many descriptors in one message", "worker channel");
    }
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno == EMSGSIZE) return too_large(bytes.size());
    const bool gone = errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN;
    return common::fail_errno(gone ? ErrorKind::kUnreachable : ErrorKind::kInternal, errno, "cannot send a message",
                              "worker channel");
  }
  return true;
}

Result<bool> send_message(int socket, const google::protobuf::MessageLite& message, std::span<const int> descriptors) {
  return send_datagram(socket, message.SerializeAsString(), descriptors);
}

Result<Datagram> receive_datagram(int socket) {
  Datagram datagram;
  datagram.bytes.resize(kMaxMessageBytes);
  iovec part{datagram.bytes.data(), datagram.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size = 0;
  while ((size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    datagram.bytes.clear();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return datagram;
    if (errno == ECONNRESET) {  // the other end died with messages of ours unread: closed as well
      size = 0;
      break;
    }
    return common::fail_errno(ErrorKind::kUnreachable, errno, "cannot receive a message", "worker channel");
  }
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr; entry = CMSG_NXTHDR(&header, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(entry) + i * sizeof(int), sizeof descriptor);
      datagram.descriptors.emplace_back(descriptor);
    }
  }
  if (size > 0 && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return common::fail(ErrorKind::kInternal, "a message was cut off", "worker channel");
  }
  // No message of ours is empty (each has a oneof set), so 0 bytes mean the end.
  datagram.state = size > 0 ? Datagram::State::kMessage : Datagram::State::kClosed;
  datagram.bytes.resize(static_cast<std::size_t>(size > 0 ? size : 0));
  return datagram;
}

Result<std::string> read_payload(const Fd& descriptor, std::string_view what) {
  return common::read_all(descriptor.get(), what);
}

Result<void> Outbox::send(const google::protobuf::MessageLite& message, Fd descriptor) {
  waiting_.push_back({message.SerializeAsString(), std::move(descriptor)});
  return flush();
}

Result<void> Outbox::flush() {
  while (!waiting_.empty()) {
    const Waiting& next = waiting_.front();
    const int descriptor = next.descriptor.get();
    const auto sent =
        send_datagram(socket_, next.bytes, next.descriptor ? std::span(&descriptor, 1) : std::span<const int>());
    if (!sent) return std::unexpected(sent.error());
    if (!*sent) return {};
    waiting_.pop_front();
  }
  return {};
}

}  // namespace jitc::worker
