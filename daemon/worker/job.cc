#include "daemon/worker/job.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "common/utf8.h"
#include "daemon/worker/limits.h"

namespace jitc::worker {
namespace {

constexpr std::size_t kMaxLogBytes = 64 * 1024;
constexpr int kMaxDiagnostics = 50;
constexpr std::size_t kMaxDiagnosticBytes = 1000;
constexpr std::size_t kMaxTextBytes = 4000;
// What the fixed fields and protobuf's own framing may take.
constexpr std::size_t kReserveBytes = 4096;
constexpr std::size_t kLeastFraming = 2;  // tag and length of an element

}  // namespace

common::Result<Job> read_job(const v1::WorkerCommand::Start& start, std::vector<common::Fd> descriptors) {
  const std::size_t expected = 1 + (start.has_headers() ? 1 : 0) + (start.compiler_path().empty() ? 0 : 1);
  if (descriptors.size() != expected) {
    return common::fail(
        common::ErrorKind::kInternal,
        "expected " + std::to_string(expected) + " descriptors, got " + std::to_string(descriptors.size()),
        "job " + std::to_string(start.job()));
  }
  Job job;
  job.start = start;
  auto source = read_payload(descriptors[0], "source");
  if (!source) return std::unexpected(source.error());
  job.source = std::move(*source);
  if (start.has_headers()) {
    const auto headers = read_payload(descriptors[1], "headers");
    if (!headers) return std::unexpected(headers.error());
    if (!job.headers.ParseFromString(*headers)) {
      return common::fail(common::ErrorKind::kInternal, "not a Headers message", "headers");
    }
  }
  if (!start.compiler_path().empty()) job.directory = std::move(descriptors.back());
  return job;
}

Outcome failed(Finished::Outcome outcome, std::string message, std::string evidence) {
  Outcome result;
  result.finished.set_outcome(outcome);
  result.finished.set_message(std::move(message));
  result.finished.set_evidence(std::move(evidence));
  return result;
}

Outcome ended_from_outside(std::string message, std::string evidence) {
  Outcome outcome = failed(Finished::CRASHED, std::move(message), std::move(evidence));
  outcome.finished.set_outside(true);
  return outcome;
}

Outcome refused_memory(std::string evidence) {
  const auto space = address_space_limit();
  return ended_from_outside(
      "the compiler was refused memory although its own limit was not met: " +
          (space ? "the daemon's limit of address space (ulimit -v) is " + std::to_string(*space >> 20) + " MiB"
                 : std::string(
                       "the node does not overcommit (vm.overcommit_memory), or a limit of the daemon's was met")),
      std::move(evidence));
}

std::string refusal_of_include(std::string_view file) {
  return "include of \"" + std::string(file) +
         "\": not in the request, not under an include root; send it with the request";
}

std::string name_of_signal(int signal) {
  const char* name = sigabbrev_np(signal);
  const std::string text = "signal " + std::to_string(signal) + " (SIG" + (name != nullptr ? name : "?");
  return signal == SIGKILL ? text + ", not sent by jitc; possibly the kernel's out-of-memory killer)" : text + ")";
}

void tell_end(Finished& finished, int status) {
  if (WIFSIGNALED(status)) finished.set_signal(WTERMSIG(status));
  if (WIFEXITED(status)) finished.set_exit_status(WEXITSTATUS(status));
}

bool names_machine(const v1::WorkerCommand::Start& start) {
  return std::ranges::any_of(
      start.flags(), [](const std::string& flag) { return flag.starts_with("-march=") || flag.starts_with("-mcpu="); });
}

std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  // Not in the middle of a UTF-8 sequence: protobuf strings must be valid.
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit)) + "... (" + std::to_string(text.size() - limit) + " more bytes)";
}

void make_texts_valid(google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
    if (!is_text && field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (is_text) {
        reflection.SetString(&message, field, common::valid_utf8(reflection.GetString(message, field)));
      } else {
        make_texts_valid(*reflection.MutableMessage(&message, field));
      }
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (is_text) {
        const std::string text = reflection.GetRepeatedString(message, field, i);
        reflection.SetRepeatedString(&message, field, i, common::valid_utf8(text));
      } else {
        make_texts_valid(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    }
  }
}

void fit_into_datagram(Finished& finished) {
  make_texts_valid(finished);
  finished.set_message(shortened(finished.message(), kMaxTextBytes));
  finished.set_evidence(shortened(finished.evidence(), kMaxTextBytes));
  std::string log = shortened(finished.log(), kMaxLogBytes);
  if (const int extra = finished.diagnostics_size() - kMaxDiagnostics; extra > 0) {
    finished.mutable_diagnostics()->DeleteSubrange(kMaxDiagnostics, extra);
    log += "\n(" + std::to_string(extra) + " more diagnostics)";
  }
  for (auto& diagnostic : *finished.mutable_diagnostics()) {
    diagnostic.set_message(shortened(diagnostic.message(), kMaxDiagnosticBytes));
    diagnostic.set_excerpt(shortened(diagnostic.excerpt(), kMaxDiagnosticBytes));
  }
  finished.clear_log();
  int left_out = 0;
  const std::size_t limit = kMaxMessageBytes - kReserveBytes - log.size();
  std::size_t size = finished.ByteSizeLong();
  while (size > limit && finished.functions_size() > 0) {
    size -= finished.functions(finished.functions_size() - 1).ByteSizeLong() + kLeastFraming;
    finished.mutable_functions()->RemoveLast();
    ++left_out;
  }
  if (size > limit) {
    finished =
        failed(Finished::REFUSED, "its flags of " + std::to_string(size) + " bytes are too long to be reported", {})
            .finished;
  }
  if (left_out > 0) log += "\n(" + std::to_string(left_out) + " more functions are not listed)";
  finished.set_log(std::move(log));
}

}  // namespace jitc::worker
