#include "client/cli/cc.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "client/cli/cc_arguments.h"
#include "client/cli/cc_compiler.h"
#include "client/cli/cc_inputs.h"
#include "client/cli/cc_output.h"
#include "client/cli/cc_process.h"
#include "client/cli/context.h"
#include "client/cli/start.h"
#include "common/command.h"
#include "common/files.h"
#include "common/text.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;

// How many of us are above this process: a compiler that we run may be a script that calls us (mpicc and OMPI_CC),
// which must not wait for a second turn; and never for ever.
constexpr const char* kDepth = "JITC_CC_DEPTH";
constexpr int kMostDepth = 8;

// What makes compilers do more than their command says, or be others than they seem.
constexpr auto kStrangeVariables = std::to_array<const char*>(
    {"LD_PRELOAD", "LD_AUDIT", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COMPARE_DEBUG", "GCC_ROOT"});

// Programs that a driver finds by these are what the daemon takes them for only where they name whole paths.
bool has_relative_paths() {
  for (const char* name : {"PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    const auto directories = common::split(value, ':');
    if (!std::ranges::all_of(directories, [](auto directory) { return directory.starts_with('/'); })) return true;
  }
  return false;
}

int depth() {
  const char* text = std::getenv(kDepth);
  int value = 0;
  if (text != nullptr) std::from_chars(text, text + std::string_view(text).size(), value);
  return value;
}

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

// As GCC decides whether to colour its words.
bool wants_colours() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

// What it opens would get their numbers.
bool has_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) return false;
  return true;
}

class Cc {
 public:
  Cc(const Context& context, CcCompiler compiler) : context_(context), compiler_(std::move(compiler)) {}

  int run() {
    if (!reach_daemon()) return without_daemon();
    const auto plan = plan_here();
    auto inputs = plan ? inputs_of(compiler_, *plan, options_) : std::nullopt;
    if (inputs) {
      if (const auto code = serve(*plan, *inputs)) return *code;
    }
    if (error_) return without_daemon();
    return pass(plan ? plan->source : std::string());
  }

 private:
  // Nothing: it is the compiler's alone.
  std::optional<CcPlan> plan_here() {
    if (!compiler_.is_known || std::ranges::any_of(kStrangeVariables, [](auto name) { return std::getenv(name); }) ||
        has_relative_paths())
      return std::nullopt;
    std::error_code error;
    options_.directory = std::filesystem::current_path(error);
    if (error) return std::nullopt;
    options_.relaxed_debug = context_.settings.flag("cc_relaxed_debug");
    options_.environment = environment();
    const auto words = expanded_arguments(compiler_.arguments, [](const std::string& path) {
      auto text = common::read_file(path);
      return text ? std::optional(std::move(*text)) : std::nullopt;
    });
    if (!words) return std::nullopt;
    auto plan = plan_of(*words);
    if (plan.kind == CcPlan::Kind::kPass || !is_replaceable(plan.output)) return std::nullopt;
    if (plan.dependencies && !is_replaceable(plan.dependencies->file)) return std::nullopt;
    write_as_to_a_terminal(plan);
    return plan;
  }

  // The daemon's compiler has no terminal: it is told what it would see.
  void write_as_to_a_terminal(CcPlan& plan) {
    if (::isatty(STDERR_FILENO) != 1) return;
    if (wants_colours() && !plan.chooses_colours) {
      plan.command.emplace_back("-fdiagnostics-color=always");
      plan.keyed.emplace_back("-fdiagnostics-color=always");
    }
    winsize size{};
    if (std::getenv("COLUMNS") == nullptr && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      options_.environment.push_back("COLUMNS=" + std::to_string(size.ws_col));
  }

  bool reach_daemon() {
    const bool may_start = context_.settings.text("autostart") != "0";
    auto serves = ensure_daemon(context_, may_start, Deadline(0));
    if (!serves) error_ = std::move(serves.error());
    return serves.has_value();
  }

  int without_daemon() {
    if (context_.settings.flag("require_daemon")) return report(*error_);
    return become_compiler(compiler_);
  }

  rpc::Daemon::Events events() {
    rpc::Daemon::Events events;
    events.failure = [this](const common::Error& error) { error_ = error; };
    events.reply = [](const rpc::Reply&) {};
    // One that went away is not waited for longer than another takes to start.
    events.start = [this] { return reach_daemon(); };
    return events;
  }
  rpc::Daemon::Options patience() const {
    return {.want_bytes = true,
            .silence_seconds = context_.settings.seconds("timeout"),
            .total_seconds = 0,
            .awaits_daemon = false};
  }

  // The exit code, when the daemon's answer is what the compiler would have done.
  std::optional<int> serve(const CcPlan& plan, CcInputs& inputs) {
    std::string artifact;
    auto heard = events();
    heard.reply = [&artifact](const rpc::Reply& reply) { artifact = reply.bytes; };
    daemon_client(context_).run(inputs.command, plan.source.empty() ? plan.output : plan.source, patience(), heard);
    if (error_) return failed();
    const auto result = read_result(artifact);
    if (!result) return std::nullopt;
    const bool quiet = result->out.empty() && result->err.empty();
    // A linker's words name this link's files, where another's may have been made; nor does it leave the same behind.
    if (!inputs.command.with_messages && (result->exit_code != 0 || !quiet)) return std::nullopt;
    // With -pipe, GCC has begun the output when the source fails, and removes it.
    if (result->exit_code != 0 && std::ranges::find(plan.command, "-pipe") != plan.command.end()) return std::nullopt;
    if (plan.dependencies && !overwrite_file(plan.dependencies->file, inputs.dependencies)) return std::nullopt;
    if (result->exit_code == 0) {
      const mode_t mode = plan.kind == CcPlan::Kind::kCompile ? 0666 : 0777;
      if (!replace_file(plan.output, result->output, mode)) return std::nullopt;
    }
    (void)common::write_all(STDOUT_FILENO, result->out, "standard output");  // as a compiler's, which nobody reads
    (void)common::write_all(STDERR_FILENO, result->err, "standard error");
    return result->exit_code;
  }

  // What the node's limits say, or who cancelled it, is no reason to go beyond them. Other failures are the daemon's:
  // unless it is silent or gone, it can still give a turn.
  std::optional<int> failed() {
    const bool final = error_->kind == ErrorKind::kOutOfMemory || error_->kind == ErrorKind::kCancelled;
    if (final || context_.settings.flag("require_daemon")) {
      report(*error_);
      return EXIT_FAILURE;
    }
    if (error_->kind != ErrorKind::kTimedOut && error_->kind != ErrorKind::kUnreachable) error_.reset();
    return std::nullopt;
  }

  // Its turn is the daemon's to give; without one it runs all the same.
  int pass(const std::string& name) {
    common::Command turn;
    turn.compiler = compiler_.path;
    turn.argv = compiler_.arguments;
    turn.by_caller = true;
    for (const auto& word : compiler_.arguments) {
      std::error_code error;
      const auto size = is_source_name(word) ? std::filesystem::file_size(word, error) : 0;
      if (!error) turn.scan.bytes += size;
    }
    std::optional<int> code;
    auto heard = events();
    heard.admitted = [this, &code] { code = run_compiler(compiler_); };
    ::setenv(kDepth, std::to_string(depth() + 1).c_str(), 1);
    daemon_client(context_).run(turn, name.empty() ? compiler_.name : name, patience(), heard);
    return code ? *code : without_daemon();
  }

  const Context& context_;
  CcCompiler compiler_;
  CcOptions options_;
  std::optional<common::Error> error_;
};

}  // namespace

int run_cc(const std::string& link, std::vector<std::string> words) {
  const auto context = Context::load(SettingFlags());
  if (!context) return report(context.error());
  auto compiler = find_compiler(*context, link, std::move(words));
  if (!compiler) return report(compiler.error());
  if (depth() > kMostDepth)
    return report({.kind = ErrorKind::kUsage,
                   .message = "this compiler calls 'jitc cc' again and again",
                   .thing = compiler->path,
                   .remedy = "name the real one: JITC_CC_COMPILER"});
  if (depth() > 0 || !has_standard_streams()) {
    ::setenv(kDepth, std::to_string(depth() + 1).c_str(), 1);
    return become_compiler(*compiler);
  }
  return Cc(*context, std::move(*compiler)).run();
}

}  // namespace jitc::cli
