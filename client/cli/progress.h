// What a person sees while waiting: one line, renewed about once a second.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/ticker.h"
#include "client/rpc/daemon.h"

namespace jitc::cli {

// "17 KiB", "340 MiB", "1.3 GiB".
std::string bytes_text(std::uint64_t bytes);
// "f.c: compiling, 12 s, 340 MiB"
std::string progress_line(std::string_view name, const rpc::Progress& progress);

// The state of several requests. Pure.
class ProgressBoard {
 public:
  explicit ProgressBoard(std::vector<std::string> names) : names_(std::move(names)), states_(names_.size()) {}
  void update(std::size_t index, const rpc::Progress& progress);
  void done(std::size_t index);
  // One request: its line. Several: "3 of 8 done, 2 compiling, 3 queued, 12 s, 340 MiB".
  std::string line() const;

 private:
  std::vector<std::string> names_;
  std::vector<std::optional<rpc::Progress>> states_;  // empty: not begun, or done
  std::size_t done_ = 0;
  double seconds_ = 0;
};

// Shows a board on standard error. Threads may call it at the same time.
class ProgressDisplay {
 public:
  enum class Mode { kOff, kLines, kTerminal };  // kTerminal: the line is overwritten in place
  ProgressDisplay(Mode mode, std::vector<std::string> names);
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  // By the setting: 1, 0, or auto (on a terminal).
  static Mode mode_of(std::string_view setting);

  void update(std::size_t index, const rpc::Progress& progress);
  void done(std::size_t index);

 private:
  std::string line();

  const Mode mode_;
  std::mutex mutex_;  // guards what follows, but the ticker
  ProgressBoard board_;
  double shown_at_ = 0;
  Ticker ticker_;  // the last: it ends first
};

}  // namespace jitc::cli
