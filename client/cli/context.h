// What every subcommand starts from: settings with their origins, the runtime directory, and how it says what went
// wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/rpc/daemon.h"
#include "common/command_tree.h"
#include "common/error.h"
#include "common/settings.h"

namespace jitc::cli {

// Flags that the settings table gives, for one subcommand.
class SettingFlags {
 public:
  // Adds the table's flag for each of these settings. This object must outlive the parse.
  void add(CLI::App& app, std::initializer_list<std::string_view> settings);
  const std::map<std::string, std::string>& given() const { return given_; }

 private:
  std::map<std::string, std::string> given_;
};

struct Context {
  common::Settings settings;
  std::string runtime_dir;  // absolute
  std::string socket() const;
  static common::Result<Context> load(const SettingFlags& flags);
};

// A client's total patience. 0 seconds: no end.
class Deadline {
 public:
  explicit Deadline(double seconds) : total_(seconds), start_(std::chrono::steady_clock::now()) {}
  bool limited() const { return total_ > 0; }
  double left() const;  // seconds; not below 0. Only where limited().
  // kTimedOut once it has passed, in the words of the flag: "--timeout 3".
  common::Result<void> check() const;
  // For poll(2): at most `cap` seconds.
  int milliseconds(double cap) const;

 private:
  double total_;
  std::chrono::steady_clock::time_point start_;
};

// Adds --timeout: a finite number of seconds, 0 for no end.
void add_timeout(CLI::App& app, double& seconds, const std::string& help);

// Adds an option of more than 0 seconds, and finite.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& seconds, const std::string& help);

// Adds an option of seconds between two looks: 0.1 to 3600.
CLI::Option* add_interval(CLI::App& app, const std::string& name, double& seconds, const std::string& help);

// The client of this context's daemon; it connects on its first call. It lives as long as the process: ending gRPC's
// threads one by one takes longer than a whole hit. Call it once.
rpc::Daemon& daemon_client(const Context& context);

// Writes lines to standard error. What others named or wrote (files, sources) becomes printable: no escape sequence of
// theirs reaches a terminal.
void say(std::string_view text);
// A name on one line of these.
std::string shown_name(std::string_view name);
// Writes the error to standard error; the exit code that goes with it.
int report(const common::Error& error, std::string_view name = "source.c");

// From the first SIGINT, SIGTERM or SIGHUP on; a second one ends the process at once.
void watch_interrupts();
bool interrupted();
// Waits until a descriptor is readable (or at its end), an interrupt or the deadline: kCancelled, kTimedOut. No
// interrupt is missed, wherever it comes. The number of readable ones; 0 after `cap` seconds.
common::Result<int> wait_readable(std::initializer_list<int> descriptors, const Deadline& deadline, double cap);
// Waits until a descriptor takes bytes (or an error), an interrupt or the deadline.
common::Result<void> wait_writable(int descriptor, const Deadline& deadline);

// The daemon's store, where it is another one than the settings name.
std::optional<std::string> other_store(const Context& context);
// Once, to standard error, that it is.
void warn_of_other_store(const Context& context);

// A subcommand: adds itself to the application, and sets `run` when it was named.
using Action = std::function<int()>;
void add_submit(CLI::App& app, Action& run);
void add_lower(CLI::App& app, Action& run);
void add_share(CLI::App& app, Action& run);
void add_warm(CLI::App& app, Action& run);
void add_status(CLI::App& app, Action& run);
void add_top(CLI::App& app, Action& run);
void add_stats(CLI::App& app, Action& run);
void add_trace(CLI::App& app, Action& run);
void add_jobs(CLI::App& app, Action& run);
void add_cancel(CLI::App& app, Action& run);
void add_drain(CLI::App& app, Action& run);
void add_cache(CLI::App& app, Action& run);
void add_explain(CLI::App& app, Action& run);
void add_replay(CLI::App& app, Action& run);
void add_daemon(CLI::App& app, Action& run);
void add_config(CLI::App& app, Action& run);
void add_doctor(CLI::App& app, Action& run);
void add_version(CLI::App& app, Action& run);
void add_man(CLI::App& app, Action& run);
void add_completion(CLI::App& app, Action& run);

}  // namespace jitc::cli
