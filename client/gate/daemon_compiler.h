// The node's daemon as the gate's compiler. gRPC enters the process with the first compile, and only then.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "client/gate/sources.h"
#include "client/rpc/library.h"

namespace jitc::gate {

struct DaemonOptions {
  std::string runtime_dir;
  double silence_seconds = 30;
  // Start a daemon when none runs: at most once in this process, before it connects for the first time.
  bool may_start = false;
  std::string store;  // of the daemon that is started; empty: what its own settings say
  // Where it may not: one is started beside the ranks (in a batch job), and is waited for.
  bool awaits_daemon = false;
  // Hears what the daemon warns of (a store that cannot be written). On the helper thread; may be empty.
  std::function<void(std::string_view)> on_warning;
};

// Threads may compile at the same time.
class DaemonCompiler : public Compiler {
 public:
  explicit DaemonCompiler(DaemonOptions options) : options_(std::move(options)) {}
  common::Result<Obtained> compile(const common::Request& request, const Report& report) override;

 private:
  common::Result<rpc::Daemon*> open(const Report& report);

  DaemonOptions options_;
  std::mutex mutex_;  // of the next
  rpc::DaemonHandle daemon_;
};

}  // namespace jitc::gate
