// Short calls: what they may take, and what it means when the daemon does not answer.
#pragma once

#include <string>
#include <string_view>

#include "client/cli/context.h"
#include "client/rpc/daemon.h"
#include "common/error.h"

namespace jitc::cli {

// The least of JITC_TIMEOUT, `most` seconds and what is left of the deadline; until an interrupt (see
// watch_interrupts).
rpc::Daemon::Limits short_call(const Context& context, double most, const Deadline& deadline = Deadline(0));

// What a call with such limits ended with, in the words of who waited: interrupted, the deadline's, else which process
// does not answer. Other errors stay as they are.
common::Error explained(const Context& context, common::Error error, const rpc::Daemon::Limits& limits,
                        const Deadline& deadline = Deadline(0));

// rpc::Daemon::query of the context's daemon.
common::Result<std::string> ask(const Context& context, std::string_view what, double most,
                                const Deadline& deadline = Deadline(0));

}  // namespace jitc::cli
