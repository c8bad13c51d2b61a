#include "daemon/worker/verdict.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "daemon/worker/child.h"
#include "daemon/worker/limits.h"

namespace jitc::worker {

namespace {

// The compile is none the worse for it: it is tried again.
Outcome outcome_from_outside(const Breach& breach) {
  const std::string where =
      breach.around.empty() ? "the node, or a group around the daemon's," : "the control group " + breach.around;
  if (breach.of == Breach::Of::kMemory) {
    return ended_from_outside(
        "the kernel ended the compile, which was within its own limit: " + where + " ran out of memory",
        breach.evidence);
  }
  return ended_from_outside("the kernel refused the compile a process, although its own limit of " +
                                std::to_string(kMostProcesses) + " was not met: " + where + " allows no more",
                            breach.evidence);
}

// By an exit code of the child's own, whatever was full around it.
bool says_why(int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return code == kExitRefusedMemory || code == kExitOutOfMemory || code == kExitDeepSource;
}

}  // namespace

// The kernel killed or refused a process below the child, which tells of a compiler that died. One that says something
// about the source has got to the source, whatever was full around it.
bool explains(const std::optional<Breach>& breach, Finished::Outcome outcome) {
  if (!breach || outcome == Finished::DONE) return false;
  return !breach->outside || outcome == Finished::CRASHED;
}

Outcome outcome_of(const Breach& breach) {
  if (breach.outside) return outcome_from_outside(breach);
  if (breach.of == Breach::Of::kMemory) {
    return failed(Finished::OUT_OF_MEMORY, "the compile grew beyond its memory limit", breach.evidence);
  }
  return failed(Finished::REFUSED, "the compile needs more than " + std::to_string(kMostProcesses) +
                                       " processes at once: " + breach.evidence);
}

// What a call of the module can bring about by itself. Others send signals too, and a machine under load takes its
// time: both say nothing of the module.
bool is_fault(int signal) {
  constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
  return std::ranges::find(kFaults, signal) != kFaults.end();
}

bool is_lack_of_memory(int code) { return code == kExitRefusedMemory || code == kExitOutOfMemory; }

// Of a check that ended without an answer: nullopt when that need not be the module's doing.
std::optional<Outcome> outcome_of_check(const End& end) {
  const bool is_by_itself = end.ending == Ending::kNone && !end.breach;
  std::string how;
  if (end.ending == Ending::kCpuTime || (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGXCPU)) {
    how = "did not come back in " + std::to_string(end.start.cpu_seconds()) + " s of CPU time";
  } else if (is_by_itself && WIFSIGNALED(end.status) && is_fault(WTERMSIG(end.status))) {
    how = "ended by " + name_of_signal(WTERMSIG(end.status));
  } else if (is_by_itself && WIFEXITED(end.status) && !is_lack_of_memory(WEXITSTATUS(end.status))) {
    how = "ended its process with status " + std::to_string(WEXITSTATUS(end.status));
  } else {
    return std::nullopt;
  }
  Outcome outcome = failed(Finished::MISCOMPILED, "a call of it, or loading it, " + how);
  outcome.finished.set_thing("the module");
  return outcome;
}

Finished verdict(const End& end) {
  const std::string& log = end.log;
  const int status = end.status;
  Outcome outcome;
  if (auto of_check = end.start.check() ? outcome_of_check(end) : std::nullopt) {
    outcome = std::move(*of_check);
  } else if (end.ending == Ending::kCancelled) {
    outcome = failed(Finished::CANCELLED, "cancelled");
  } else if (end.ending == Ending::kStalled) {
    outcome =
        failed(Finished::TIMED_OUT, "the compile did nothing for " + std::to_string(end.stall.count()) + " s",
               "sampled: its processes used no CPU time meanwhile; before, " + std::to_string(end.cpu_seconds) + " s");
  } else if (end.ending == Ending::kCpuTime) {
    outcome = failed(
        Finished::TIMED_OUT,
        "the compile's processes together used up their " + std::to_string(end.start.cpu_seconds()) + " s of CPU time",
        "sampled: " + std::to_string(end.cpu_seconds) + " s");
  } else if (end.ending == Ending::kTime) {
    outcome = failed(Finished::TIMED_OUT,
                     "the compile took more than " + std::to_string(kTimePerCpuTime) + " times its CPU limit of " +
                         std::to_string(end.start.cpu_seconds()) + " s",
                     "sampled: it used " + std::to_string(end.cpu_seconds) + " s of CPU time");
  } else if (end.ending == Ending::kUnreadable) {
    outcome = failed(Finished::CRASHED, "the compile child sent what cannot be read, and was ended by jitc");
  } else if (end.breach && (!end.breach->outside || !says_why(status))) {
    outcome = outcome_of(*end.breach);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kExitRefusedMemory) {
    outcome = refused_memory("exit code " + std::to_string(kExitRefusedMemory) + ": " + log);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kExitOutOfMemory) {
    outcome = failed(Finished::OUT_OF_MEMORY, "the compiler ran out of memory under its limit",
                     "exit code " + std::to_string(kExitOutOfMemory) + ": " + log);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDeepSource) {
    outcome = failed(Finished::INVALID_SOURCE,
                     "the source nests, or chains, more deeply than the compiler's stack of " +
                         std::to_string(stack_bytes() >> 20) + " MiB takes: name sub-expressions",
                     "exit code " + std::to_string(kExitDeepSource) + ": " + log);
  } else if (WIFEXITED(status)) {
    outcome = failed(Finished::CRASHED, "the compile child ended with status " + std::to_string(WEXITSTATUS(status)) +
                                            (log.empty() ? "" : ": " + log));
  } else if (WTERMSIG(status) == SIGXCPU) {
    outcome = failed(Finished::TIMED_OUT,
                     "the compile used up its " + std::to_string(end.start.cpu_seconds()) + " s of CPU time",
                     name_of_signal(SIGXCPU));
  } else {
    outcome = failed(Finished::CRASHED, "the compile child was ended by " + name_of_signal(WTERMSIG(status)) +
                                            (log.empty() ? "" : ": " + log));
  }
  outcome.finished.set_log(log);
  tell_end(outcome.finished, status);
  if (!end.start.check()) tell_command(outcome.finished, end.start);
  fit_into_datagram(outcome.finished);
  return std::move(outcome.finished);
}

}  // namespace jitc::worker
