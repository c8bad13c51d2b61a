// jitc doctor: a daemon is started as any other would be, in a directory of its own; what it can use, and whether each
// of its compilers compiles.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "client/cli/doctor.h"
#include "client/cli/program.h"
#include "client/cli/progress.h"
#include "client/cli/start.h"
#include "common/text.h"

namespace jitc::cli {
namespace {

using common::Result;
using nlohmann::json;

constexpr const char* kSource = "double jitc_doctor(double x) { return 2.0 * x + 1.0; }\n";
constexpr double kVersionSeconds = 5;
constexpr int kEndMilliseconds = 5000;  // for a daemon that has nothing to do
constexpr std::uint64_t kLittleMemory = std::uint64_t{512} << 20;

// The daemon, from its start to its end.
class PrivateService {
 public:
  explicit PrivateService(double seconds) : seconds_(seconds) {
    const char* temp = std::getenv("TMPDIR");
    std::string path = std::string(temp == nullptr || *temp == '\0' ? "/tmp" : temp) + "/jitc-doctor-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) directory_ = path;
  }
  ~PrivateService() {
    if (directory_.empty()) return;
    if (const auto holder = lock_holder(directory_)) end(*holder);
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  PrivateService(const PrivateService&) = delete;
  PrivateService& operator=(const PrivateService&) = delete;

  const std::string& directory() const { return directory_; }
  // Nothing of the user's is written: not the store, no log, no plan, no counters. It ends by itself should this
  // process be killed.
  Result<Ended> jitc(std::vector<std::string> arguments, const std::string& input = {},
                     Interrupts interrupts = Interrupts::kHeeds) const {
    arguments.insert(arguments.begin(), own_program());
    return run_program(arguments,
                       {{"JITC_RUNTIME_DIR", directory_},
                        {"JITC_STORE", directory_ + "/store"},
                        {"JITC_IDLE_EXIT", "60s"},
                        {"JITC_AUTOSTART", "0"},
                        {"JITC_RECORD", directory_ + "/plan"},
                        {"JITC_METRICS_FILE", directory_ + "/metrics.prom"},
                        {"JITC_LOG", "warn"},
                        {"JITC_PROGRESS", "0"}},
                       input, seconds_, interrupts);
  }

 private:
  // After an interrupt too, hence no wait that one ends.
  static void end(const LockHolder& holder) {
    pollfd ended = {holder.process.get(), POLLIN, 0};
    for (const int number : {SIGTERM, SIGKILL}) {
      ::syscall(SYS_pidfd_send_signal, holder.process.get(), number, nullptr, 0);
      if (::poll(&ended, 1, kEndMilliseconds) > 0) return;
    }
  }

  std::string directory_;
  const double seconds_;
};

// In one line.
std::string words_of(const Result<Ended>& ended) {
  std::string text = ended ? ended->err : common::to_line(ended.error());
  while (text.ends_with('\n')) text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

void examine_compiler(const PrivateService& service, const json& compiler, const Teller& tell) {
  const auto name = compiler.value("name", std::string()), path = compiler.value("path", std::string());
  const std::string check =
      "compiler." + (name.starts_with('/') ? std::filesystem::path(name).filename().string() : name);
  tell.step(check);
  // The embedded one says with its identity which it is.
  const std::string version = path.empty() ? compiler.value("identity", std::string())
                                           : path + ", " + first_line({path, "--version"}, kVersionSeconds);
  const auto compiled = service.jitc({"submit", "--json", "--no-cache", "--cc", name, "-"}, kSource);
  if (!compiled || compiled->code != 0)
    return tell({check, Verdict::kFail, version + ": a small source does not compile: " + words_of(compiled),
                 path.empty()
                     ? "see the limits here, and jitc's log with JITC_LOG=debug"
                     : "see that assembler and linker are installed and may be run, or do not name it (--cc)"});
  const auto outcome = json::parse(compiled->out);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), ": a small source in %.2g s, ", outcome.value("seconds", 0.0));
  tell({check, Verdict::kOk, version + text.data() + bytes_text(outcome.value("peak_bytes", std::uint64_t{0})), {}});
}

void examine_memory(const json& hello, const Teller& tell) {
  const auto budget = hello.value("memory_budget_bytes", std::uint64_t{0});
  const std::string found = bytes_text(budget) + " for " + std::to_string(hello.value("max_compilers", 0U)) +
                            " compilers at once, in the place where this command runs";
  if (budget < kLittleMemory)
    tell({"service.memory", Verdict::kWarn, found, "give the job more memory, or raise JITC_MEMORY_BUDGET"});
  else
    tell({"service.memory", Verdict::kOk, found, {}});
}

}  // namespace

void examine_service(const Context& context, const Teller& tell) {
  tell.step("service.start");
  const double silence = context.settings.seconds("timeout");
  PrivateService service(silence > 0 ? silence : kLookSeconds);
  if (service.directory().empty())
    return tell({"service.start", Verdict::kFail, "no directory can be made for temporary files",
                 "set TMPDIR to one that can be written"});
  // Not left half started: nobody would know whom to end.
  const auto started = service.jitc({"daemon", "start"}, {}, Interrupts::kOutlasts);
  if (!started || started->code != 0)
    return tell({"service.start", Verdict::kFail, "a daemon does not start: " + words_of(started),
                 "install jitc, jitcd and jitc-worker of one build, and see that they may be run"});
  const auto state = service.jitc({"status", "--json"});
  if (!state || state->code != 0)
    return tell({"service.start", Verdict::kFail, "a daemon starts, and does not answer: " + words_of(state),
                 "see the limits here, and 'ulimit -u'"});
  const json hello = json::parse(state->out)["daemon"];
  tell({"service.start", Verdict::kOk, "a daemon starts, and answers", {}});
  examine_memory(hello, tell);
  tell_limits(hello.dump(), tell);
  const json compilers = hello.value("compilers", json::array());
  for (const auto& compiler : compilers) {
    if (interrupted()) return;
    examine_compiler(service, compiler, tell);
  }
  if (compilers.size() == 1)
    tell({"compiler.gcc", Verdict::kWarn, "no gcc on the PATH: the embedded clang alone can be asked for",
          "nothing need be done, unless a solver asks for gcc (JITC_CC): install it, or correct the PATH"});
  tell.step("service.end");
}

}  // namespace jitc::cli
