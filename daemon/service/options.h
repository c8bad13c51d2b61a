// jitcd's command line: flags that belong to the process, and those that the settings table gives.
#pragma once

#include <optional>

#include "common/error.h"
#include "common/settings.h"
#include "daemon/observe/log.h"

namespace jitc::service {

struct Options {
  bool foreground = false;
  int ready_fd = -1;   // one byte is written to it when the daemon serves; for service managers and tests
  std::string worker;  // path of jitc-worker; beside this executable unless named
  common::Settings settings;
  std::string runtime_dir;   // absolute
  bool is_jobs = false;      // the runtime directory is the batch job's: nobody needs it after the daemon
  double idle_seconds = 0;   // ends after so long without work; 0: never
  std::string store;         // absolute
  std::string metrics_file;  // absolute; empty: none
};

// Either options, or what to do instead: text for stdout (help, version) with exit code 0.
struct CommandLine {
  std::optional<Options> options;
  std::string text;
};
// kUsage for wrong flags and wrong settings.
common::Result<CommandLine> read_command_line(int argc, const char* const* argv);

// The log's place and form. A detached daemon logs to jitcd.log in its runtime directory unless told otherwise.
common::Result<observe::LogOptions> log_options(const Options& options);

}  // namespace jitc::service
