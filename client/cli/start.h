// Who serves a runtime directory, and how to get somebody who does.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "client/cli/context.h"
#include "common/error.h"
#include "common/files.h"

namespace jitc::cli {

struct LockHolder {
  pid_t pid = 0;
  common::Fd process;  // a pidfd: readable once the process has ended, and never another process with the same id
};
// The daemon that holds the directory's lock; nothing when none does.
std::optional<LockHolder> lock_holder(const std::string& runtime_dir);
// The same for who ends a daemon: when none runs, standard error says so.
std::optional<LockHolder> find_daemon(const Context& context);
// Waits for its end: kCancelled after an interrupt, kTimedOut after the deadline. `meanwhile` is called once a second.
common::Result<void> wait_for_end(const LockHolder& holder, const Deadline& deadline,
                                  const std::function<void()>& meanwhile = {});

// A daemon serves when this returns: the one that does already, else one that is started when `may_start`. Several
// processes may call it at once; one daemon is the result.
common::Result<void> ensure_daemon(const Context& context, bool may_start, const Deadline& deadline);

// For threads that all find the daemon gone: one of them starts another, and the rest find that one. A start that has
// failed is not tried again.
class Restart {
 public:
  // The references must outlive this object.
  Restart(const Context& context, const Deadline& deadline) : context_(context), deadline_(deadline) {}
  // Does somebody serve now?
  bool operator()();
  std::optional<common::Error> failure() const;

 private:
  const Context& context_;
  const Deadline& deadline_;
  mutable std::mutex mutex_;
  std::optional<common::Error> failure_;
};

}  // namespace jitc::cli
