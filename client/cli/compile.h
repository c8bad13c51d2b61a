// One source to one verified artifact: from the store where that has it, else from the daemon.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/copy.h"
#include "client/cli/outcome.h"
#include "common/identity.h"
#include "common/request.h"

namespace jitc::cli {

struct Source {
  std::string name;  // as given on the command line
  common::Request request;
  std::string copy_to;                         // where the artifact's bytes go as well; empty: nowhere
  const char* copy_remedy = kNameAnotherFile;  // when they cannot be put there
  bool as_it_is = false;                       // the request's code is what is compiled: none is made here
};

// Reads the store only: no socket but the datagram that tells the daemon of the hit, no gRPC. Nothing on a miss, or
// without the identity file of a daemon.
std::optional<Outcome> look_up(const Context& context, const Source& source, const Deadline& deadline,
                               bool with_figures);

// Asks the daemon; blocks. `progress` and `start` as in rpc::Daemon. Any thread.
Outcome compile(const Context& context, rpc::Daemon& daemon, const Source& source, const Deadline& deadline,
                const std::function<bool(const rpc::Progress&)>& progress, const std::function<bool()>& start);

// Threads only wait for the daemon, which decides how many compilers run.
inline constexpr std::size_t kMostAtOnce = 64;

// Asks the daemon for the sources with these indices, so many at the same time. Starts one where that is allowed.
void compile_all(const Context& context, const std::vector<Source>& sources, const std::vector<std::size_t>& indices,
                 const Deadline& deadline, std::vector<Outcome>& outcomes, std::size_t at_once = kMostAtOnce);

// Each source whose outcome has no error yet: from the store, else from the daemon.
void obtain_all(const Context& context, const std::vector<Source>& sources, const Deadline& deadline,
                std::vector<Outcome>& outcomes, bool with_figures, std::size_t at_once = kMostAtOnce);

// Says to standard error what people should know of it; the exit code: its error's, or 0.
int tell(const Outcome& outcome);

}  // namespace jitc::cli
