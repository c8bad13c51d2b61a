#include "client/gate/autostart.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/rpc/spawn.h"
#include "common/files.h"
#include "common/runtime_dir.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using common::Result;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kTick{1};

// That of the build tree or installation which this library stands in; without one the name alone, for the PATH.
std::string daemon_program() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&ensure_daemon), &info) && info.dli_fname) {
    const std::string library = info.dli_fname;
    const std::string directory = library.substr(0, library.rfind('/') + 1);
    for (const char* folder : {"../bin", JITC_BIN_FROM_LIB}) {
      std::string program = directory + folder + "/jitcd";
      if (access(program.c_str(), X_OK) == 0) return program;
    }
  }
  return "jitcd";
}

// Waits for the end of jitcd's first process; ends it when nobody waits any more or the limit has passed.
Result<void> watch(const rpc::FirstProcess& process, const Start& start, const Report& report) {
  const steady_clock::time_point begin = steady_clock::now();
  const steady_clock::time_point deadline = begin + start.limit;
  while (!rpc::wait_for_end(process, std::min(deadline, steady_clock::now() + kTick))) {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    Result<void> result;
    if (!report({rpc::Progress::Phase::kConnecting, 0, seconds, 0}))
      result = common::fail(ErrorKind::kCancelled, "nobody waits for the daemon any more", start.runtime_dir);
    else if (steady_clock::now() >= deadline)
      result = common::fail(ErrorKind::kUnreachable,
                            "a daemon was started, and neither served nor ended within " +
                                std::to_string(std::chrono::duration_cast<std::chrono::seconds>(start.limit).count()) +
                                " s; it was ended",
                            start.runtime_dir, "run 'jitcd --foreground' to see what it waits for");
    if (result) continue;
    rpc::end_daemon(process);
    return result;
  }
  return {};
}

}  // namespace

Result<void> ensure_daemon(const Start& start, const Report& report) {
  const std::string socket = start.runtime_dir + "/" + common::kSocketName;
  Result<common::Fd> connected = common::connect_own(socket);
  if (connected || connected.error().kind != ErrorKind::kUnreachable) {
    return connected ? Result<void>() : std::unexpected(std::move(connected.error()));
  }
  if (auto prepared = common::prepare_runtime_directory(start.runtime_dir); !prepared) return prepared;
  std::vector<std::string> flags = {"--runtime-dir=" + start.runtime_dir};
  if (!start.store.empty()) flags.push_back("--store=" + start.store);
  const auto process = rpc::spawn_daemon(start.program.empty() ? daemon_program() : start.program, std::move(flags));
  if (!process) return std::unexpected(process.error());
  const auto watched = watch(*process, start, report);
  rpc::exit_code(*process);  // reaped; whether its daemon serves, the socket tells
  if (!watched) return watched;

  // The process has ended: its daemon serves, or does not, since another was first, or something is wrong.
  if (connected = common::connect_own(socket); connected) return {};
  common::Error error = std::move(connected.error());
  error.message = "a daemon was started and does not serve: " + error.message;
  error.remedy = "see its words on the job's standard error, or run 'jitcd --foreground'";
  return std::unexpected(std::move(error));
}

}  // namespace jitc::gate
