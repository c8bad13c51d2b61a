#include "daemon/worker/command.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "common/files.h"
#include "daemon/worker/compiler_text.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/program.h"

namespace jitc::worker {
namespace {

using common::Fd;

std::vector<std::string> environment_of(const v1::Command& command, const std::string& directory) {
  std::vector<std::string> entries = {"TMPDIR=" + directory};
  for (const std::string& entry : command.environment())
    if (!entry.starts_with("TMPDIR=")) entries.push_back(entry);
  return entries;
}

// The compiler's own words and end, unless what ended it was not about the command.
Outcome judge(const Job& job, const ProgramEnd& end, const std::string& words) {
  if (end.exec_error != 0)
    return failed(Finished::REFUSED, job.start.compiler_path() + " cannot be run: " + std::strerror(end.exec_error));
  if (WIFSIGNALED(end.status))
    return failed(Finished::CRASHED, "the compiler was ended by " + name_of_signal(WTERMSIG(end.status)), words);
  if (WEXITSTATUS(end.status) != 0) {
    const std::uint64_t limit = limits_of(job.start).memory_bytes;
    if (const auto line = memory_complaint_in(words); !line.empty() && limit != 0)
      return failed(Finished::OUT_OF_MEMORY, "the compiler ran out of memory under its limit", line);
    if (const auto line = dead_program_in(words); !line.empty()) return failed(Finished::CRASHED, line, words);
  }
  Outcome outcome;
  outcome.finished.set_outcome(Finished::DONE);
  outcome.finished.set_exit_status(WEXITSTATUS(end.status));
  return outcome;
}

}  // namespace

Outcome run_command(const Job& job) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  v1::Command command;
  if (!command.ParseFromString(job.source) || command.argv().empty())
    return failed(Finished::CRASHED, "the command cannot be read");
  if (fchdir(job.directory.get()) != 0) return failed(Finished::CRASHED, "the private directory cannot be entered");
  const std::string place = std::filesystem::current_path();
  if (chdir(command.directory().c_str()) != 0)
    return failed(Finished::REFUSED, "the caller's directory cannot be entered: " + std::string(std::strerror(errno)));
  const Fd out(memfd_create("command-out", MFD_CLOEXEC)), err(memfd_create("command-err", MFD_CLOEXEC));
  if (!out || !err) return failed(Finished::CRASHED, "no memory files for the compiler's words");
  const std::string output_path = place + "/out";
  Program program{.path = command.compiler(),
                  .words = {command.argv().begin(), command.argv().end()},
                  .environment = environment_of(command, place),
                  .limits = limits_of(job.start),
                  .out = out.get(),
                  .err = err.get()};
  program.words.insert(program.words.end(), {"-o", output_path});
  const ProgramEnd end = run_program(std::move(program));
  end_leftovers();
  const auto said = common::read_all(out.get(), "command's output");
  const auto complained = common::read_all(err.get(), "command's errors");
  if (!said || !complained) return failed(Finished::CRASHED, "the compiler's words cannot be read");
  Outcome outcome = judge(job, end, *complained);
  if (outcome.finished.outcome() != Finished::DONE) return outcome;
  // What names the private place is not what the caller's own compiler would have said.
  if ((*said + *complained).find(place) != std::string::npos)
    return failed(Finished::REFUSED, "the compiler speaks of its private directory", *complained);
  const auto output = common::read_file(output_path);
  if (!output && outcome.finished.exit_status() == 0)
    return failed(Finished::REFUSED, "the compiler left no output where it was told to", *complained);
  const std::string payload = output.value_or(std::string());
  outcome.finished.set_is_command(true);
  outcome.finished.set_output_bytes(payload.size());
  outcome.finished.set_stdout_bytes(said->size());
  outcome.finished.set_stderr_bytes(complained->size());
  auto sealed = common::sealed_memfd("command", payload + *said + *complained, false);
  if (!sealed) return failed(Finished::CRASHED, "no memory file for the output: " + sealed.error().message);
  outcome.elf = std::move(*sealed);
  return outcome;
}

}  // namespace jitc::worker
