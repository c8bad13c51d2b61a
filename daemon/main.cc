// jitcd: the node's compile service. This file puts it together and nothing else.
#include <malloc.h>

#include <cstdio>

#include "daemon/observe/log.h"
#include "daemon/service/daemon.h"
#include "daemon/service/options.h"
#include "daemon/service/process.h"

namespace {

using jitc::common::Fd;
using jitc::common::Result;
using namespace jitc::service;

// The daemon's own memory stays small: few arenas for its threads, and what a large source took goes back at once.
void keep_memory_small() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  mallopt(M_TRIM_THRESHOLD, 512 * 1024);
}

Result<void> serve(const Options& options, Starter& starter, Fd socket) {
  auto log = log_options(options);
  if (!log) return std::unexpected(log.error());
  auto lock = DaemonLock::take(options.runtime_dir, options.is_jobs);
  if (!lock) return std::unexpected(lock.error());
  if (auto opened = jitc::observe::open_log(*log); !opened) return opened;
  if (starter.detached() && !log->file.empty()) append_errors_to(log->file);
  Daemon daemon(options, std::move(*lock), std::move(socket));
  if (auto started = daemon.start(); !started) return started;
  starter.ready();
  daemon.run();
  end_process();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto line = read_command_line(argc, argv);
  if (!line) {
    std::fprintf(stderr, "jitcd: %s\n", to_text(line.error()).c_str());
    return exit_code(line.error().kind);
  }
  if (!line->options) {
    std::fputs(line->text.c_str(), stdout);
    return 0;
  }
  const Options& options = *line->options;
  Fd socket(options.foreground ? passed_socket().value_or(-1) : -1);
  auto starter = options.foreground ? Result<Starter>(Starter::stay(options.ready_fd)) : Starter::detach();
  if (!starter) {
    std::fprintf(stderr, "jitcd: %s\n", to_text(starter.error()).c_str());
    return exit_code(starter.error().kind);
  }
  clean_process(starter->detached(), {socket.get(), starter->descriptor()});
  prepare_process();
  keep_memory_small();
  const auto served = serve(options, *starter, std::move(socket));
  if (served) return 0;
  return starter->ended(to_text(served.error()),
                        is_already_running(served.error()) ? 0 : exit_code(served.error().kind));
}
