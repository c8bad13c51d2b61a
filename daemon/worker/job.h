// One compile as a child process sees it: what it is asked and what it answers.
#pragma once

#include <jitc/v1/worker.pb.h>

#include <chrono>
#include <string>
#include <string_view>

#include "common/files.h"
#include "daemon/worker/channel.h"

namespace jitc::worker {

using Finished = v1::WorkerReport::Finished;

// Every source is compiled under this name; the daemon's callers put their own name into what people read.
inline constexpr const char* kSourceName = "source.c";

struct Job {
  v1::WorkerCommand::Start start;
  std::string source;
  v1::Headers headers;
  common::Fd directory;  // private, for external compilers; else empty
};
// Reads the payloads that came beside the command: source, headers when announced, directory for external compilers.
common::Result<Job> read_job(const v1::WorkerCommand::Start& start, std::vector<common::Fd> descriptors);

struct Outcome {
  Finished finished;
  common::Fd elf;  // sealed memory file, when the outcome is DONE
};
Outcome failed(Finished::Outcome outcome, std::string message, std::string evidence = {});

// One that a limit ended which is not the compile's own: of a group around it, of the daemon, of the node.
Outcome ended_from_outside(std::string message, std::string evidence = {});
// The compiler was refused memory although the compile's own limit was not met.
Outcome refused_memory(std::string evidence);

// Why an include of this name is refused, whichever compiler misses it.
std::string refusal_of_include(std::string_view file);

// "signal 11 (SIGSEGV)"; SIGKILL with a word about who may have sent it.
std::string name_of_signal(int signal);

// How a process of the compile ended, as wait(2) tells it.
void tell_end(Finished& finished, int status);

// Is -march= or -mcpu= among the flags, so that the request's own level yields?
bool names_machine(const v1::WorkerCommand::Start& start);

// The text cut to `limit` bytes, with a word about what was cut.
std::string shortened(std::string_view text, std::size_t limit);

// Compilers, sources and paths have any bytes in their texts; a message with one that is no UTF-8 cannot be read. Every
// string in the message becomes valid (common::valid_utf8).
void make_texts_valid(google::protobuf::Message& message);

// Makes its texts valid and cuts log, diagnostics and functions so that the message fits a datagram; what was cut is
// said in the log.
void fit_into_datagram(Finished& finished);

}  // namespace jitc::worker
