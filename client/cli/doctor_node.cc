// jitc doctor: settings, this process's limits, the runtime directory and who serves it.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "client/cli/doctor.h"
#include "client/cli/program.h"
#include "client/cli/progress.h"
#include "client/cli/start.h"
#include "common/files.h"
#include "common/identity.h"
#include "common/runtime_dir.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail_errno;

constexpr double kQuerySeconds = 60;  // it gives up by itself long before

std::string amount(rlim_t limit, bool bytes) {
  if (limit == RLIM_INFINITY) return "unlimited";
  return bytes ? bytes_text(limit) : std::to_string(limit);
}

struct Ulimit {
  const char* name;
  int resource;
  const char* option;  // of the shell's ulimit
  bool bytes;
  rlim_t few;  // less is worth a warning; 0: anything will do
};

constexpr std::array<Ulimit, 4> kUlimits = {{{"ulimit.processes", RLIMIT_NPROC, "-u", false, 128},
                                             {"ulimit.descriptors", RLIMIT_NOFILE, "-n", false, 256},
                                             {"ulimit.memory", RLIMIT_AS, "-v", true, rlim_t{4} << 30},
                                             {"ulimit.core", RLIMIT_CORE, "-c", true, 0}}};

}  // namespace

Finding failed(std::string check, const common::Error& error) {
  return {std::move(check), Verdict::kFail, (error.thing.empty() ? "" : error.thing + ": ") + error.message,
          error.remedy.empty() ? "see docs/doctor.md" : error.remedy};
}

void examine_ulimits(const Teller& tell) {
  for (const auto& one : kUlimits) {
    tell.step(one.name);
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(one.resource), &limit) != 0) continue;
    Finding finding{one.name, Verdict::kOk, amount(limit.rlim_cur, one.bytes), {}};
    if (limit.rlim_max != limit.rlim_cur) finding.found += ", may be raised to " + amount(limit.rlim_max, one.bytes);
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < one.few) {
      finding.verdict = Verdict::kWarn;
      finding.remedy = std::string("raise it: ulimit ") + one.option + ", or the site's limits.conf";
    }
    tell(finding);
  }
}

void examine_settings(const SettingFlags& flags, const Teller& tell) {
  tell.step("settings");
  const auto context = Context::load(flags);
  if (!context) {
    tell(failed("settings", context.error()));
  } else {
    const auto set = std::ranges::count_if(
        common::settings_table(), [&](const common::SettingInfo& info) { return context->settings.is_set(info.name); });
    tell({"settings", Verdict::kOk, std::to_string(set) + " are not the defaults: 'jitc config' shows which", {}});
  }
  const auto unknown = common::unknown_variables();
  std::string names;
  for (const auto& name : unknown) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) {
    tell({"settings.variables", Verdict::kOk, "every JITC_ variable that is set is known", {}});
  } else {
    tell({"settings.variables", Verdict::kWarn, "no setting has this variable: " + names,
          "correct the name: 'jitc config --explain' lists all"});
  }
}

void examine_runtime_directory(const Context& context, const Teller& tell) {
  const std::string& path = context.runtime_dir;
  tell.step("runtime.socket");
  if (const auto address = common::socket_address(context.socket()); !address)
    tell(failed("runtime.socket", address.error()));
  else
    tell({"runtime.socket",
          Verdict::kOk,
          context.socket() + ", " + std::to_string(context.socket().size()) + " bytes of at most " +
              std::to_string(sizeof(sockaddr_un::sun_path) - 1),
          {}});
  tell.step("runtime.directory");
  std::filesystem::path existing = path;
  for (std::error_code error; !std::filesystem::exists(existing, error) && existing.has_relative_path();)
    existing = existing.parent_path();
  if (existing != path) {
    if (::access(existing.c_str(), W_OK | X_OK) != 0)
      tell(failed("runtime.directory",
                  fail_errno(ErrorKind::kRefused, errno, "the runtime directory cannot be made in it",
                             existing.string(), "set JITC_RUNTIME_DIR to one of your own")
                      .error()));
    else
      tell({"runtime.directory", Verdict::kOk, path + ": made when a daemon starts", {}});
  } else if (const auto checked = common::check_private_directory(path); !checked) {
    tell(failed("runtime.directory", checked.error()));
  } else {
    struct stat status{};
    std::array<char, 64> text{};
    if (::stat(path.c_str(), &status) == 0)
      std::snprintf(text.data(), text.size(), ", of uid %u, mode %04o", status.st_uid, status.st_mode & 07777);
    tell({"runtime.directory", Verdict::kOk, path + text.data(), {}});
  }
  tell.step("runtime.file_system");
  const std::string name = file_system_name(existing.string());
  if (is_shared_file_system(name))
    tell({"runtime.file_system", Verdict::kWarn, name + ": nodes that share it may take each other's lock",
          "set JITC_RUNTIME_DIR to a directory of this node alone, such as one in /tmp"});
  else
    tell({"runtime.file_system", Verdict::kOk, name.empty() ? "unknown" : name, {}});
}

void tell_limits(const std::string& hello_json, const Teller& tell) {
  const auto hello = nlohmann::json::parse(hello_json);
  for (const auto& figure : hello.value("limits", nlohmann::json::array())) {
    const auto unit = figure.value("unit", std::string()), note = figure.value("note", std::string());
    const double value = figure.value("value", 0.0);
    std::array<char, 48> number{};
    std::snprintf(number.data(), number.size(), "%.4g %s", value, unit.c_str());
    std::string found = unit == "bytes" ? bytes_text(static_cast<std::uint64_t>(value)) : std::string(number.data());
    found += ", from " + figure.value("source", std::string()) + (note.empty() ? "" : " (" + note + ")");
    if (figure.value("binding", false)) found += "; this one binds";
    tell({"limit." + figure.value("bounds", std::string()), Verdict::kOk, found, {}});
  }
  if (const auto by = hello.value("enforcement", std::string()); !by.empty())
    tell({"limit.enforcement", Verdict::kOk, "kept by " + by, {}});
}

// Asked by another process of this program: whoever has called a daemon has threads.
void examine_daemon(const Context& context, const Teller& tell) {
  tell.step("daemon");
  const auto holder = lock_holder(context.runtime_dir);
  struct stat status{};
  const bool has_socket = ::lstat(context.socket().c_str(), &status) == 0;
  if (!holder && has_socket)
    return tell({"daemon", Verdict::kWarn, "none runs; the last one has left its socket " + context.socket(),
                 "nothing need be done, or start one: jitc daemon start"});
  if (!holder) {
    const bool starts = context.settings.text("autostart") != "0";
    return tell({"daemon", starts ? Verdict::kOk : Verdict::kWarn,
                 starts ? "none runs; the first 'jitc submit' starts one" : "none runs, and none may be started",
                 starts ? "" : "start one (jitc daemon start), or unset JITC_AUTOSTART"});
  }
  const std::string who = "pid " + std::to_string(holder->pid);
  const auto asked =
      run_program({own_program(), "status", "--json"}, {{"JITC_RUNTIME_DIR", context.runtime_dir}}, {}, kQuerySeconds);
  if (!asked || asked->code != 0) {
    std::string why = asked ? asked->err : common::to_line(asked.error());
    std::ranges::replace(why, '\n', ' ');
    return tell({"daemon", Verdict::kFail, who + " does not answer: " + why,
                 "end it (jitc daemon stop, else kill " + std::to_string(holder->pid) + "); see jitcd.log in " +
                     context.runtime_dir});
  }
  const auto state = nlohmann::json::parse(asked->out);
  const std::string version = state["daemon"].value("version", std::string());
  if (version != common::build_version())
    tell({"daemon", Verdict::kWarn, who + " is of version " + version + ", this command of " + common::build_version(),
          "restart it from this installation: jitc drain && jitc daemon start"});
  else
    tell({"daemon", Verdict::kOk, who + " answers, version " + version, {}});
  tell.step("daemon.store");
  if (const auto other = other_store(context))
    tell({"daemon.store", Verdict::kWarn, "the daemon uses " + *other + ", not " + context.settings.text("store"),
          "restart it with the settings of today, or unset JITC_STORE"});
  const auto identity = common::read_identity(context.runtime_dir);
  if (!identity || identity->pid != holder->pid)
    tell({"daemon.identity", Verdict::kWarn, "its identity file is missing, or another daemon's",
          "hits ask the daemon until it is there; if it stays so: jitc drain && jitc daemon start"});
  tell_limits(state["daemon"].dump(), tell);
}

std::string own_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace jitc::cli
