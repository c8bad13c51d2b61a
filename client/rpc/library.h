// Opens libjitc-rpc.so, so that only a process that must ask the daemon pays for gRPC (threads, megabytes, symbols).
#pragma once

#include <memory>
#include <string>

#include "client/rpc/daemon.h"
#include "common/error.h"

namespace jitc::rpc {

struct CloseDaemon {
  decltype(&jitc_rpc_close) close = nullptr;
  void operator()(Daemon* daemon) const { close(daemon); }
};
using DaemonHandle = std::unique_ptr<Daemon, CloseDaemon>;

// A client of the daemon behind this socket; it connects on its first call. The library is searched beside the file
// that holds this code (libjitc.so), in JITC_PRIVATE_DIR there, then as the system searches; JITC_RPC_LIBRARY names a
// file instead. It stays loaded. kUnreachable with the linker's reason when it cannot be loaded, kVersionSkew when it
// is of another build.
common::Result<DaemonHandle> open_daemon(const std::string& socket_path);

}  // namespace jitc::rpc
