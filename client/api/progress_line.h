// The default progress: one line from the root when a call takes longer than two seconds.
#pragma once

#include <string>
#include <string_view>

#include "client/rpc/daemon.h"

namespace jitc::api {

// "jitc: residual.c: compiling, 3 s, 120 MiB"
std::string progress_text(std::string_view name, const rpc::Progress& progress);

class ProgressLine {
 public:
  // The setting: 0, 1 or auto (on a terminal).
  explicit ProgressLine(std::string_view setting);
  void show(std::string_view name, const rpc::Progress& progress);
  // Takes the line off the terminal.
  void clear();

 private:
  bool is_terminal_;
  bool is_on_;
  bool is_shown_ = false;
};

}  // namespace jitc::api
