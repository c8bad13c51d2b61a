// Plays jitc-worker for tests of the daemon: the real channel and the real processes, but compiles that do what the
// source says. A line "//! hold FIFO" waits until somebody opens the FIFO for writing, "//! crash" and "//! die" end
// the child by a signal or the worker itself, "//! stop" stops the worker, "//! babble" breaks the channel's protocol,
// "//! invalid" and "//! memory" give those outcomes ("//! memory unless FLAG": not with this flag), "//! bytes N" the
// object's size, "//! file PATH" adds what this file says now. Anything else compiles to an ELF header and the text
// itself.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "common/files.h"
#include "daemon/worker/channel.h"
#include "jitc/v1/worker.pb.h"

namespace {

using jitc::common::Fd;
using Finished = jitc::v1::WorkerReport::Finished;
namespace worker = jitc::worker;

constexpr int kChannel = 3;
constexpr int kPeriod = 1000;               // milliseconds between reports while something runs
constexpr int kInvalid = 10, kMemory = 11;  // exit codes of a child

struct Job {
  pid_t pid = 0;
  Fd end;  // pidfd
  std::string source;
  std::vector<std::string> flags;
  bool cancelled = false;
};

// What follows "//! word " on its line; nullptr-like npos when the word is not there.
bool directive(const std::string& source, const std::string& word, std::string& argument) {
  const auto begin = source.find("//! " + word);
  if (begin == std::string::npos) return false;
  const auto from = begin + 4 + word.size();
  argument = source.substr(from, source.find('\n', from) - from);
  if (!argument.empty() && argument[0] == ' ') argument.erase(0, 1);
  return true;
}

[[noreturn]] void compile(const std::string& source, const std::vector<std::string>& flags) {
  std::string argument;
  if (directive(source, "hold", argument)) {
    Fd(open(argument.c_str(), O_RDONLY));
  }
  if (directive(source, "crash", argument)) {
    signal(SIGSEGV, SIG_DFL);  // sanitizers catch it
    raise(SIGSEGV);
  }
  if (directive(source, "invalid", argument)) _exit(kInvalid);
  if (directive(source, "memory", argument)) {
    const bool saved = std::ranges::any_of(flags, [&](const auto& flag) { return argument == "unless " + flag; });
    if (!saved) _exit(kMemory);
  }
  _exit(0);
}

void send(const jitc::v1::WorkerReport& report, const Fd* object = nullptr) {
  std::vector<int> descriptors;
  if (object != nullptr) descriptors.push_back(object->get());
  if (!worker::send_message(kChannel, report, descriptors)) _exit(0);  // the daemon is gone
}

void report_usage(const std::map<std::uint64_t, Job>& jobs) {
  jitc::v1::WorkerReport usage;
  for (const auto& [id, running] : jobs) {
    auto* one = usage.mutable_usage()->add_jobs();
    one->set_job(id);
    one->set_bytes(10 << 20);
  }
  send(usage);
}

void start(const jitc::v1::WorkerCommand::Start& command, const Fd& source, std::map<std::uint64_t, Job>& jobs) {
  Job job;
  job.source = *worker::read_payload(source, "source");
  job.flags.assign(command.flags().begin(), command.flags().end());
  std::string ignored;
  if (directive(job.source, "die", ignored)) raise(SIGKILL);
  if (directive(job.source, "stop", ignored)) raise(SIGSTOP);
  if (directive(job.source, "babble", ignored)) static_cast<void>(worker::send_datagram(kChannel, "no report"));
  job.pid = fork();
  if (job.pid == 0) {
    close(kChannel);
    compile(job.source, job.flags);
  }
  job.end = Fd(static_cast<int>(syscall(SYS_pidfd_open, job.pid, 0)));
  jitc::v1::WorkerReport started;
  started.mutable_started()->set_job(command.job());
  started.mutable_started()->set_pid(job.pid);
  send(started);
  jobs.emplace(command.job(), std::move(job));
  report_usage(jobs);
}

std::string object_of(const std::string& source) {
  std::string object("\177ELF\2\1\1", 7), size, path;
  object.resize(64);
  object += source;
  if (directive(source, "file", path)) object += jitc::common::read_file(path).value_or("");
  if (directive(source, "bytes", size)) object.resize(std::strtoul(size.c_str(), nullptr, 10), 'x');
  return object;
}

void finish(std::uint64_t id, const Job& job) {
  int status = 0;
  waitpid(job.pid, &status, 0);
  jitc::v1::WorkerReport report;
  Finished& finished = *report.mutable_finished();
  finished.set_job(id);
  finished.set_peak_bytes(10 << 20);
  finished.set_seconds(0.01);
  for (const auto& flag : job.flags) finished.add_flags_used(flag);
  Fd object;
  if (job.cancelled) {
    finished.set_outcome(Finished::CANCELLED);
  } else if (WIFSIGNALED(status)) {
    finished.set_outcome(Finished::CRASHED);
    finished.set_message("ended by signal " + std::to_string(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) == kInvalid) {
    finished.set_outcome(Finished::INVALID_SOURCE);
    auto* diagnostic = finished.add_diagnostics();
    diagnostic->set_severity("error");
    diagnostic->set_line(3);
    diagnostic->set_column(5);
    diagnostic->set_message("expected ';'");
    diagnostic->set_excerpt("int x");
  } else if (WEXITSTATUS(status) == kMemory) {
    finished.set_outcome(Finished::OUT_OF_MEMORY);
    finished.set_evidence("said so");
  } else {
    finished.set_outcome(Finished::DONE);
    auto* function = finished.add_functions();
    function->set_name("f");
    function->set_signature("double (double)");
    object = std::move(*jitc::common::sealed_memfd("object", object_of(job.source), true));
  }
  send(report, object ? &object : nullptr);
}

void take(worker::Datagram datagram, std::map<std::uint64_t, Job>& jobs) {
  jitc::v1::WorkerCommand command;
  if (!command.ParseFromString(datagram.bytes)) _exit(1);
  if (command.has_start()) start(command.start(), datagram.descriptors.at(0), jobs);
  if (!command.has_cancel()) return;
  if (const auto job = jobs.find(command.cancel().job()); job != jobs.end()) {
    job->second.cancelled = true;
    kill(job->second.pid, SIGKILL);
  }
}

}  // namespace

int main() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  jitc::v1::WorkerReport ready;
  ready.mutable_ready()->set_embedded_identity("stand-in 1");
  ready.mutable_ready()->set_target_triple("x86_64-pc-linux-gnu");
  ready.mutable_ready()->set_host_cpu("test");
  ready.mutable_ready()->set_host_features("+sse2");
  send(ready);
  std::map<std::uint64_t, Job> jobs;
  for (;;) {
    std::vector<pollfd> events{{kChannel, POLLIN, 0}};
    std::vector<std::uint64_t> ids;
    for (const auto& [id, job] : jobs) {
      events.push_back({job.end.get(), POLLIN, 0});
      ids.push_back(id);
    }
    const int happened = poll(events.data(), events.size(), jobs.empty() ? -1 : kPeriod);
    if (happened == 0) report_usage(jobs);
    if (happened <= 0) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (events[i + 1].revents == 0) continue;
      finish(ids[i], jobs.at(ids[i]));
      jobs.erase(ids[i]);
    }
    if (events[0].revents == 0) continue;
    auto datagram = worker::receive_datagram(kChannel);
    if (!datagram || datagram->state != worker::Datagram::State::kMessage) break;
    take(std::move(*datagram), jobs);
  }
  for (const auto& [id, job] : jobs) {
    kill(job.pid, SIGKILL);
    waitpid(job.pid, nullptr, 0);
  }
  return 0;
}
