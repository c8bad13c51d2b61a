// The runtime directory: where one daemon per user and node (per job and node name inside a batch job) has its socket,
// lock and identity file.
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "common/error.h"
#include "common/files.h"

namespace jitc::common {

inline constexpr const char* kSocketName = "jitcd.sock";
inline constexpr const char* kHitsSocketName = "hits.sock";
inline constexpr const char* kLockName = "jitcd.lock";

// From JITC_RUNTIME_DIR, else XDG_RUNTIME_DIR/jitc, else jitc-<uid> in the temp directory, plus <job>.<node> inside a
// batch job (JITC_RUNTIME_DIR itself is taken as it is). `configured`: the setting's value, empty when not set.
std::string runtime_directory(std::string_view configured);
// Does this process belong to a batch job (Slurm, PBS, LSF, Grid Engine, Flux)?
bool in_batch_job();
// Creates it 0700 if absent and checks its owner.
Result<void> prepare_runtime_directory(const std::string& path);

// kUsage when the path does not fit into sun_path (107 bytes).
Result<sockaddr_un> socket_address(const std::string& path);
// Uid and pid of the process at the other end (SO_PEERCRED).
struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;
};
Result<Peer> peer_of(int socket);
// May this peer be served? Same uid only; the overflow uid is nobody.
bool is_own_uid(uid_t uid);
// Connects (close-on-exec, non-blocking after the connect) and refuses a peer whose uid is neither this process's
// nor root's.
// kUnreachable when nobody listens; kRefused for a squatted socket; kTimedOut when the listener's backlog is full and
// had no room for `wait_seconds` (the daemon is stopped, or very busy).
Result<Fd> connect_own(const std::string& socket_path, double wait_seconds = 0);

// Tells the daemon of a hit that it did not serve: one non-blocking datagram, failures ignored (it only feeds
// counters).
void report_hit(const std::string& runtime_dir, std::string_view key_bytes);

}  // namespace jitc::common
