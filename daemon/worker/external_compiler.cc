#include "daemon/worker/external_compiler.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/files.h"
#include "daemon/worker/compiler_text.h"
#include "daemon/worker/elf_image.h"
#include "daemon/worker/embedded_compiler.h"
#include "daemon/worker/file_view.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/preprocessed_text.h"
#include "daemon/worker/program.h"

namespace jitc::worker {
namespace {

using common::Fd;
using common::Result;

constexpr const char* kOutput = "out.so";
constexpr const char* kPreprocessed = "source.i";
// The private directory under a name that is the same for every compile: compilers believe PWD when it is where they
// are, and write it into debug information.
constexpr const char* kHere = "/proc/self/cwd";

// The embedded compiler's rules for the text that will be compiled. That Clang cannot parse it is no refusal: the
// compiler that was asked for may.
Outcome inspect(const Job& job, std::string text) {
  Job copy;
  copy.start = job.start;
  copy.start.clear_flags();
  copy.start.clear_isa_level();
  copy.start.clear_include_roots();
  for (const std::string& flag : job.start.flags()) {
    if (flag.starts_with("-std=") || flag == "-ansi") copy.start.add_flags(flag);
  }
  copy.start.add_flags("-ferror-limit=0");
  copy.source = std::move(text);
  return inspect_preprocessed(copy);
}

// The steps of one compile. What is inspected is what is compiled: the compiler's own preprocessor writes the text, so
// every macro means what it means for that compiler, and the compile reads nothing else.
enum class Step {
  kPreprocess,
  kCompile,
  kDiagnose,  // after errors: the same files once more, for columns as the source has them; makes nothing
};

bool is_for_preprocessor(const std::string& flag) {
  return flag.starts_with("-D") || flag.starts_with("-U") || flag.starts_with("-I");
}

// Flags of the request, without those for the preprocessor when it has run already.
std::vector<std::string> flags_of(const v1::WorkerCommand::Start& start, bool preprocess) {
  std::vector<std::string> words = {"-fPIC", std::string("-fdebug-prefix-map=") + kHere + "=."};
  if (!start.isa_level().empty() && !names_machine(start)) words.push_back("-march=" + start.isa_level());
  bool skip = false;
  for (const std::string& flag : start.flags()) {
    const bool value_of_skipped = std::exchange(skip, !preprocess && flag == "-I");
    if (preprocess || (!value_of_skipped && !is_for_preprocessor(flag))) words.push_back(flag);
  }
  if (!preprocess) return words;
  words.emplace_back("-I.");
  for (const std::string& root : start.include_roots()) words.insert(words.end(), {"-idirafter", root});
  for (const std::string_view macro : clock_macros()) {
    words.push_back("-D" + std::string(macro) + "=" + stand_in_for(macro));
  }
  words.emplace_back("-Wno-builtin-macro-redefined");
  return words;
}

std::vector<std::string> command_of(const v1::WorkerCommand::Start& start, Step step) {
  std::vector<std::string> words = {start.compiler_path()};
  const std::vector<std::string> flags = flags_of(start, step != Step::kCompile);
  words.insert(words.end(), flags.begin(), flags.end());
  switch (step) {
    case Step::kPreprocess:
      // What it warns about is said by the compile. Without -g: -g3 would leave every macro's definition in the text.
      words.insert(words.end(), {"-E", "-v", "-w", "-g0", "-o", kPreprocessed, "-x", "c", kSourceName});
      break;
    case Step::kCompile:
      words.insert(words.end(), {"-shared", "-nostartfiles", "-Wl,-z,defs", "-o", kOutput, "-x", "cpp-output",
                                 kPreprocessed, "-lm"});
      break;
    case Step::kDiagnose:
      words.insert(words.end(), {"-fsyntax-only", "-x", "c", kSourceName});
      break;
  }
  return words;
}

// As the answer reports them: what decides the result.
std::vector<std::string> reported_flags(const v1::WorkerCommand::Start& start) {
  std::vector<std::string> words = {"-fPIC", "-shared", "-nostartfiles"};
  if (!start.isa_level().empty() && !names_machine(start)) words.push_back("-march=" + start.isa_level());
  words.insert(words.end(), start.flags().begin(), start.flags().end());
  return words;
}

std::vector<std::string> environment_of(const v1::WorkerCommand::Start& start, const std::string& directory) {
  std::vector<std::string> entries = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + directory,
                                      std::string("PWD=") + kHere};
  entries.insert(entries.end(), start.environment().begin(), start.environment().end());
  return entries;
}

struct Ran {
  Step step = Step::kCompile;
  ProgramEnd ended;
  std::string log;
};
Result<Ran> run_step(const v1::WorkerCommand::Start& start, Step step) {
  const Fd log(memfd_create("compiler-log", MFD_CLOEXEC));
  if (!log) return common::fail_errno(common::ErrorKind::kInternal, errno, "cannot be made", "compiler's log");
  Ran ran{.step = step, .ended = {}, .log = {}};
  ran.ended = run_program({.path = start.compiler_path(),
                           .words = command_of(start, step),
                           .environment = environment_of(start, std::filesystem::current_path()),
                           .limits = limits_of(start),
                           .out = log.get(),
                           .err = log.get()});
  end_leftovers();
  ran.log = common::read_all(log.get(), "compiler's log").value_or("");
  return ran;
}

Result<void> write_inputs(const Job& job) {
  const auto write_file = [](const std::string& name, std::string_view text) -> Result<void> {
    const Fd file(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return common::fail_errno(common::ErrorKind::kInternal, errno, "cannot be written", name);
    return common::write_all(file.get(), text, name);
  };
  for (const auto& header : job.headers.headers()) {
    std::error_code ignored;  // the open below says what is wrong
    std::filesystem::create_directories(std::filesystem::path(header.name()).parent_path(), ignored);
    if (auto written = write_file(header.name(), header.text()); !written) return written;
  }
  return write_file(kSourceName, job.source);
}

Outcome take_output(const std::string& log) {
  const Fd file(open(kOutput, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return failed(Finished::CRASHED, "the compiler ended well but wrote no module", log);
  const auto image = common::read_all(file.get(), kOutput);
  if (!image) return failed(Finished::CRASHED, "the compiler's module cannot be read: " + image.error().message);
  if (const auto loadable = check_loadable(*image); !loadable) {
    const bool refused = loadable.error().kind == common::ErrorKind::kRefused;
    return failed(refused ? Finished::REFUSED : Finished::CRASHED,
                  refused ? loadable.error().message
                          : "the compiler ended well but its module is broken: " + loadable.error().message);
  }
  auto sealed = common::sealed_memfd("module", *image, true);
  if (!sealed) return failed(Finished::CRASHED, "no memory file for the module: " + sealed.error().message);
  Outcome outcome;
  outcome.finished.set_outcome(Finished::DONE);
  *outcome.finished.mutable_functions() = exported_functions(*image);
  outcome.elf = std::move(*sealed);
  return outcome;
}

// A compiler that ended with an error. What it says decides; what it says about the source comes first, so that words
// of the source are never taken for words of the compiler. Out of memory and time are so only under a limit of ours.
Outcome failure_of(const v1::WorkerCommand::Start& start, int exit_status, const std::string& log) {
  if (const std::string file = missing_file_in(log); !file.empty()) {
    return failed(Finished::REFUSED, refusal_of_include(file));
  }
  for (const auto& diagnostic : diagnostics_in(log)) {
    if (diagnostic.severity() == "error") return failed(Finished::INVALID_SOURCE, diagnostic.message());
  }
  if (const std::string line = error_in_a_file(log); !line.empty()) return failed(Finished::INVALID_SOURCE, line);
  if (const std::string line = memory_complaint_in(log); !line.empty()) {
    // A limit of address space that is no larger is met before ours, which counts a part of what it counts.
    const std::uint64_t limit = limits_of(start).memory_bytes;
    if (limit == 0 || address_space_limit().value_or(limit + 1) <= limit) return refused_memory(line);
    return failed(Finished::OUT_OF_MEMORY, "the compiler ran out of memory under its limit", line);
  }
  if (const std::string line = dead_program_in(log); !line.empty()) {
    const bool timed_out = start.cpu_seconds() > 0 && line.find("CPU time limit") != std::string::npos &&
                           cpu_seconds_of_children() >= start.cpu_seconds();
    if (timed_out) return failed(Finished::TIMED_OUT, "the compiler used up its CPU time", line);
    const bool killed = line.find("Killed") != std::string::npos;
    return failed(Finished::CRASHED, line + (killed ? " (possibly the kernel's out-of-memory killer)" : ""));
  }
  if (const std::string line = unknown_option_in(log); !line.empty()) return failed(Finished::REFUSED, line);
  return failed(Finished::CRASHED,
                "the compiler ended with status " + std::to_string(exit_status) + " and gave no reason");
}

// Nothing when the step ended well.
std::optional<Outcome> reason_of(const v1::WorkerCommand::Start& start, const Ran& ran) {
  const ProgramEnd& ended = ran.ended;
  if (ended.exec_error == EAGAIN) {
    return failed(Finished::CRASHED, start.compiler_path() +
                                         " cannot be started: the limit of processes is reached "
                                         "(RLIMIT_NPROC, ulimit -u, or the control group's)");
  }
  if (ended.exec_error != 0) {
    return failed(Finished::REFUSED, start.compiler_path() + " cannot be run: " + std::strerror(ended.exec_error));
  }
  if (WIFSIGNALED(ended.status)) {
    const int signal = WTERMSIG(ended.status);
    if (signal == SIGXCPU)
      return failed(Finished::TIMED_OUT, "the compiler used up its CPU time", name_of_signal(signal));
    return failed(Finished::CRASHED, "the compiler was ended by " + name_of_signal(signal));
  }
  if (WEXITSTATUS(ended.status) == 0) return std::nullopt;
  return failure_of(start, WEXITSTATUS(ended.status), ran.log);
}

// With what was run, and how it ended.
std::optional<Outcome> failure_of(const v1::WorkerCommand::Start& start, const Ran& ran) {
  auto failure = reason_of(start, ran);
  if (!failure) return failure;
  for (const std::string& word : command_of(start, ran.step)) failure->finished.add_command(word);
  tell_end(failure->finished, ran.ended.status);
  return failure;
}

Outcome refused(const common::Error& error) {
  Outcome outcome = failed(Finished::REFUSED, error.message);
  for (const common::Diagnostic& told : error.diagnostics) {
    v1::Diagnostic& diagnostic = *outcome.finished.add_diagnostics();
    diagnostic.set_severity(told.severity);
    diagnostic.set_message(told.message);
    diagnostic.set_line(told.line);
    diagnostic.set_column(told.column);
  }
  return outcome;
}
Outcome broken(const common::Error& error) { return failed(Finished::CRASHED, common::to_line(error)); }

Result<void> check_inputs(const Job& job) {
  for (const auto& header : job.headers.headers()) {
    if (auto checked = check_before_preprocessing(header.text(), header.name()); !checked) return checked;
  }
  return check_before_preprocessing(job.source, kSourceName);
}

// What the source says, by what the compiler printed.
void add_text(Outcome& outcome, const std::string& log) {
  outcome.finished.set_log(log);
  if (outcome.finished.diagnostics().empty()) *outcome.finished.mutable_diagnostics() = diagnostics_in(log);
}

// Preprocesses and inspects; counts are in the outcome when it is DONE. `is_clang`: which front end the compiler has.
Outcome prepare(const Job& job, bool& is_clang) {
  if (const auto checked = check_inputs(job); !checked) return refused(checked.error());
  auto ran = run_step(job.start, Step::kPreprocess);
  if (!ran) return broken(ran.error());
  const std::vector<std::string> directories = include_directories_in(ran->log);
  is_clang = is_of_clang(ran->log);
  ran->log = without_verbose_lines(ran->log);
  if (auto failure = failure_of(job.start, *ran)) {
    add_text(*failure, ran->log);
    return std::move(*failure);
  }
  auto text = common::read_file(kPreprocessed);
  if (!text) return failed(Finished::CRASHED, "the preprocessor ended well but wrote no text", ran->log);
  const std::vector<std::string> roots(job.start.include_roots().begin(), job.start.include_roots().end());
  if (const auto checked = check_preprocessed(*text, directories, roots); !checked) return refused(checked.error());
  Outcome inspected = inspect(job, std::move(*text));
  if (inspected.finished.outcome() != Finished::REFUSED) inspected.finished.set_outcome(Finished::DONE);
  return inspected;
}

}  // namespace

std::vector<std::string> external_command(const v1::WorkerCommand::Start& start) {
  return command_of(start, Step::kCompile);
}

Outcome compile_external(const Job& job) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (fchdir(job.directory.get()) != 0) return failed(Finished::CRASHED, "the private directory cannot be entered");
  if (auto names = check_header_names(job.headers); !names) {
    return failed(Finished::REFUSED, names.error().thing + ": " + names.error().message + "; " + names.error().remedy);
  }
  if (const auto written = write_inputs(job); !written) return broken(written.error());
  bool is_clang = false;
  Outcome prepared = prepare(job, is_clang);
  if (prepared.finished.outcome() != Finished::DONE) return prepared;
  v1::WorkerCommand::Start start = job.start;
  // With -pedantic it complains of the line markers that it wrote itself.
  if (is_clang) start.add_flags("-Wno-gnu-line-marker");
  const auto ran = run_step(start, Step::kCompile);
  if (!ran) return broken(ran.error());
  auto failure = failure_of(job.start, *ran);
  Outcome outcome = failure ? std::move(*failure) : take_output(ran->log);
  std::string log = ran->log;
  if (outcome.finished.outcome() == Finished::INVALID_SOURCE) {
    // Undefined symbols are found by the linker only; then there is nothing better to say.
    const auto diagnosed = run_step(job.start, Step::kDiagnose);
    if (diagnosed && diagnosed->ended.exec_error == 0 && diagnosed->ended.status != 0) log = diagnosed->log;
  }
  add_text(outcome, log);
  *outcome.finished.mutable_counts() = std::move(*prepared.finished.mutable_counts());
  if (!failure) {
    for (const std::string& flag : reported_flags(job.start)) outcome.finished.add_flags_used(flag);
  }
  return outcome;
}

}  // namespace jitc::worker
