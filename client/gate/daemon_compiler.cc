#include "client/gate/daemon_compiler.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "client/gate/autostart.h"
#include "client/gate/first_contact.h"
#include "common/runtime_dir.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using common::Result;

Result<Obtained> obtained_of(const rpc::Reply& reply) {
  const auto key = common::Digest::from_hex(reply.key);
  if (!key || reply.bytes.empty())
    return common::fail(ErrorKind::kVersionSkew, "the daemon's reply has no key or no artifact", "daemon",
                        "use a daemon and a library of one version");
  Obtained obtained;
  obtained.bytes = reply.bytes;
  obtained.key = *key;
  obtained.origin = reply.hit || reply.merged ? Origin::kDaemon : Origin::kCompiled;
  obtained.is_merged = reply.merged;
  obtained.compile_seconds = reply.compile_seconds;
  obtained.peak_bytes = reply.peak_bytes;
  return obtained;
}

// The process's; never destroyed, since a helper thread may outlive main().
FirstContact& first_contact() {
  static auto& contact = *new FirstContact;
  return contact;
}

Result<void> start(const DaemonOptions& options, const Report& report) {
  try {
    Start how{.runtime_dir = options.runtime_dir, .store = options.store};
    if (options.silence_seconds > 0)
      how.limit = std::min(how.limit, std::chrono::ceil<std::chrono::milliseconds>(
                                          std::chrono::duration<double>(options.silence_seconds)));
    return ensure_daemon(how, report);
  } catch (const std::exception& thrown) {  // memory; the others wait for has_started()
    return common::fail(ErrorKind::kInternal, std::string("the daemon cannot be started: ") + thrown.what());
  }
}

}  // namespace

Result<rpc::Daemon*> DaemonCompiler::open(const Report& report) {
  {
    const std::lock_guard lock(mutex_);
    if (daemon_) return daemon_.get();
  }
  if (options_.may_start && first_contact().may_start()) {
    const auto started = start(options_, report);
    first_contact().has_started();
    if (!started) return std::unexpected(started.error());
  }
  first_contact().connect();
  Result<rpc::DaemonHandle> opened = rpc::open_daemon(options_.runtime_dir + "/" + common::kSocketName);
  if (!opened) return std::unexpected(std::move(opened.error()));
  // Of two threads that have opened it at once the first one's is everybody's.
  const std::lock_guard lock(mutex_);
  if (!daemon_) daemon_ = std::move(*opened);
  return daemon_.get();
}

Result<Obtained> DaemonCompiler::compile(const common::Request& request, const Report& report) {
  const Result<rpc::Daemon*> daemon = open(report);
  if (!daemon) return std::unexpected(daemon.error());
  Result<Obtained> result = common::fail(ErrorKind::kInternal, "the daemon's client gave no answer");
  rpc::Daemon::Events events;
  events.progress = report;
  events.reply = [&](const rpc::Reply& reply) { result = obtained_of(reply); };
  events.failure = [&](const common::Error& error) { result = std::unexpected(error); };
  events.warning = options_.on_warning;
  rpc::Daemon::Options options;
  options.silence_seconds = options_.silence_seconds;
  options.awaits_daemon = options_.awaits_daemon;
  (*daemon)->compile(request, options, events);
  return result;
}

}  // namespace jitc::gate
