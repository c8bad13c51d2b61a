// Runs a program to its end and keeps what it said.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/files.h"

namespace jitc::testing {

struct Finished {
  int exit_code = -1;  // 128 + the signal's number for a program that a signal ended
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string>;

// A started program. Ended by its own id (SIGKILL) if it still runs at the end of the test.
class Process {
 public:
  // `environment` is added to this process's own; an empty value removes a variable. The program is argv[0], a path.
  Process(const std::vector<std::string>& argv, const Environment& environment = {}, const std::string& input = {});
  ~Process();
  Process(Process&&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Waits until standard output and error are closed and the program has ended. A program that takes longer than
  // `seconds` is killed; its exit code is then 128 + SIGKILL.
  Finished wait(double seconds = 60);
  // Waits until standard error holds `text`; false when the program ended (or the time is over) without it.
  bool wait_for_error_text(const std::string& text, double seconds = 60);

 private:
  bool read_some(double seconds);

  pid_t pid_ = -1;
  common::Fd pidfd_, in_, out_, err_;
  std::string pending_input_;
  std::string out_text_, err_text_;
};

Finished run(const std::vector<std::string>& argv, const Environment& environment = {}, const std::string& input = {});

}  // namespace jitc::testing
