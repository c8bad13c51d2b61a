#include "client/cli/context.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <vector>

#include "client/cli/terminal_text.h"
#include "client/cli/watch.h"
#include "common/identity.h"
#include "common/runtime_dir.h"

namespace jitc::cli {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler sets it

constexpr double kLookAgainSeconds = 3600;
constexpr double kLeastInterval = 0.1, kMostInterval = 3600;

int g_interrupts = -1;  // an eventfd, for poll(2): readable from the first interrupt on

void on_interrupt(int) {
  const int before = errno;
  g_interrupted = true;
  const std::uint64_t one = 1;
  (void)!::write(g_interrupts, &one, sizeof one);
  errno = before;
}

// `waiting` has the interrupts already. The number of ready descriptors; 0 after `cap` seconds.
common::Result<int> wait(std::vector<pollfd>& waiting, const Deadline& deadline, double cap) {
  const int got = ::poll(waiting.data(), waiting.size(), deadline.milliseconds(cap));
  if (interrupted()) return common::fail(common::ErrorKind::kCancelled, "interrupted");
  if (auto in_time = deadline.check(); !in_time) return std::unexpected(std::move(in_time.error()));
  return std::max(got, 0);
}

// A file takes what it is given; a terminal only what its locale says.
bool stderr_takes_utf8() { return ::isatty(STDERR_FILENO) != 1 || locale_is_utf8(); }

std::string finite_number(const std::string& text) {
  return std::isfinite(std::strtod(text.c_str(), nullptr)) ? "" : "not a finite number: " + text;
}

}  // namespace

void SettingFlags::add(CLI::App& app, std::initializer_list<std::string_view> settings) {
  for (const auto& info : common::settings_table()) {
    if (std::ranges::find(settings, info.name) == settings.end()) continue;
    app.add_option_function<std::string>(
           std::string(info.flag),
           [this, name = std::string(info.name)](const std::string& text) { given_[name] = text; },
           std::string(info.help) + " [" + std::string(info.environment) + "]")
        ->type_name(common::value_name(info));
  }
}

std::string Context::socket() const { return runtime_dir + "/" + common::kSocketName; }

common::Result<Context> Context::load(const SettingFlags& flags) {
  auto settings = common::Settings::load(flags.given());
  if (!settings) return std::unexpected(std::move(settings.error()));
  Context context;
  context.settings = std::move(*settings);
  std::error_code ignored;  // without a working directory only an absolute path can mean anything
  const std::string directory = common::runtime_directory(context.settings.text("runtime_dir"));
  context.runtime_dir = std::filesystem::absolute(directory, ignored).lexically_normal().string();
  if (context.runtime_dir.empty()) context.runtime_dir = directory;
  return context;
}

double Deadline::left() const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  return std::max(0.0, total_ - passed.count());
}

common::Result<void> Deadline::check() const {
  if (!limited() || left() > 0) return {};
  std::array<char, 32> given{};
  std::snprintf(given.data(), given.size(), "%.9g", total_);
  return common::fail(common::ErrorKind::kTimedOut, std::string("not finished within --timeout ") + given.data(), "",
                      "allow more time, or look with 'jitc status' at what the daemon is doing");
}

int Deadline::milliseconds(double cap) const {
  return static_cast<int>(std::ceil(1000 * (limited() ? std::min(left(), cap) : cap)));
}

void add_timeout(CLI::App& app, double& seconds, const std::string& help) {
  app.add_option("--timeout", seconds, help)
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->check(finite_number)
      ->type_name("S");
}

CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& seconds, const std::string& help) {
  return app.add_option(name, seconds, help)
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->check(finite_number)
      ->type_name("S");
}

CLI::Option* add_interval(CLI::App& app, const std::string& name, double& seconds, const std::string& help) {
  const auto in_bounds = [](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool fits = end != text.c_str() && *end == '\0' && value >= kLeastInterval && value <= kMostInterval;
    return fits ? "" : "'" + text + "' is not a number of seconds from 0.1 to 3600";
  };
  return app.add_option(name, seconds, help)->capture_default_str()->check(in_bounds)->type_name("S");
}

rpc::Daemon& daemon_client(const Context& context) {
  static rpc::Daemon* const daemon =
      jitc_rpc_open(rpc::interface_version(common::build_version()), context.socket().c_str());
  if (daemon == nullptr) throw std::bad_alloc();  // the only reason, in a program that links its client
  return *daemon;
}

void say(std::string_view text) {
  const std::string shown = printable_lines(text, stderr_takes_utf8());
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

std::string shown_name(std::string_view name) { return printable(name, stderr_takes_utf8()); }

int report(const common::Error& error, std::string_view name) {
  say(common::to_text(error, shown_name(name)));
  return common::exit_code(error.kind);
}

void watch_interrupts() {
  g_interrupts = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND;  // and no SA_RESTART: a wait must notice
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    // What was ignored stays so (nohup).
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);
  }
}

bool interrupted() { return g_interrupted; }

common::Result<int> wait_readable(std::initializer_list<int> descriptors, const Deadline& deadline, double cap) {
  std::vector<pollfd> waiting = {{g_interrupts, POLLIN, 0}};
  for (const int fd : descriptors) waiting.push_back({fd, POLLIN, 0});
  return wait(waiting, deadline, cap);
}

common::Result<void> wait_writable(int descriptor, const Deadline& deadline) {
  std::vector<pollfd> waiting = {{g_interrupts, POLLIN, 0}, {descriptor, POLLOUT, 0}};
  for (;;) {
    const auto ready = wait(waiting, deadline, kLookAgainSeconds);
    if (!ready) return std::unexpected(ready.error());
    if (*ready > 0) return {};
  }
}

std::optional<std::string> other_store(const Context& context) {
  const auto& wanted = context.settings.value("store");
  if (wanted.origin == "default") return std::nullopt;
  const auto identity = common::read_identity(context.runtime_dir);
  if (!identity) return std::nullopt;
  std::error_code ignored;  // what cannot be resolved is compared as it is written
  const auto same = [&](const std::string& path) {
    const auto resolved = std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
    return resolved.empty() ? path : resolved.string();
  };
  return same(identity->store) == same(wanted.text) ? std::nullopt : std::optional(identity->store);
}

void warn_of_other_store(const Context& context) {
  const auto other = other_store(context);
  if (!other) return;
  const auto& wanted = context.settings.value("store");
  std::fprintf(stderr, "jitc: warning: the daemon of %s uses the store %s, not %s (%s)\n", context.runtime_dir.c_str(),
               other->c_str(), wanted.text.c_str(), wanted.origin.c_str());
}

}  // namespace jitc::cli
