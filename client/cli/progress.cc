#include "client/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace jitc::cli {
namespace {

using Phase = rpc::Progress::Phase;

// Several requests report once a second each; the line is renewed once a second for all.
constexpr double kShowEvery = 0.9;

std::string seconds_text(double seconds) { return std::to_string(static_cast<long>(seconds)) + " s"; }

std::string phase_text(const rpc::Progress& progress) {
  switch (progress.phase) {
    case Phase::kConnecting:
      return "connecting";
    case Phase::kQueued:
      return progress.place > 0 ? "queued, place " + std::to_string(progress.place) : "queued";
    case Phase::kCompiling:
      return "compiling";
    case Phase::kLoading:
      return "loading";
    case Phase::kArriving:
      return "waiting for other ranks";
    case Phase::kReconnecting:
      return "reconnecting";
    case Phase::kElsewhere:
      return "another node compiles it";
  }
  return "waiting";
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  std::array<char, 32> text{};
  const double kibi = static_cast<double>(bytes) / 1024;
  if (kibi >= 1024 * 1024) {
    std::snprintf(text.data(), text.size(), "%.1f GiB", kibi / (1024 * 1024));
  } else if (kibi >= 1024) {
    std::snprintf(text.data(), text.size(), "%.0f MiB", kibi / 1024);
  } else {
    std::snprintf(text.data(), text.size(), "%.0f KiB", kibi);
  }
  return text.data();
}

std::string progress_line(std::string_view name, const rpc::Progress& progress) {
  std::string line = std::string(name) + ": " + phase_text(progress) + ", " + seconds_text(progress.seconds);
  if (progress.memory_bytes > 0) line += ", " + bytes_text(progress.memory_bytes);
  return line;
}

void ProgressBoard::update(std::size_t index, const rpc::Progress& progress) {
  states_[index] = progress;
  seconds_ = std::max(seconds_, progress.seconds);
}

void ProgressBoard::done(std::size_t index) {
  states_[index].reset();
  ++done_;
}

std::string ProgressBoard::line() const {
  if (names_.size() == 1) {
    const auto& state = states_.front();
    return state ? progress_line(names_.front(), *state) : names_.front();
  }
  std::size_t compiling = 0;
  std::uint64_t memory = 0;
  for (const auto& state : states_) {
    if (!state || state->phase != Phase::kCompiling) continue;
    ++compiling;
    memory += state->memory_bytes;
  }
  std::string line = std::to_string(done_) + " of " + std::to_string(names_.size()) + " done, " +
                     std::to_string(compiling) + " compiling, " + std::to_string(names_.size() - done_ - compiling) +
                     " queued, " + seconds_text(seconds_);
  if (memory > 0) line += ", " + bytes_text(memory);
  return line;
}

ProgressDisplay::Mode ProgressDisplay::mode_of(std::string_view setting) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (setting == "0" || (setting == "auto" && !terminal)) return Mode::kOff;
  return terminal ? Mode::kTerminal : Mode::kLines;
}

ProgressDisplay::ProgressDisplay(Mode mode, std::vector<std::string> names)
    : mode_(mode), board_(std::move(names)), ticker_(mode == Mode::kTerminal, [this] { return line(); }) {}

std::string ProgressDisplay::line() {
  const std::lock_guard lock(mutex_);
  return board_.line();
}

void ProgressDisplay::update(std::size_t index, const rpc::Progress& progress) {
  if (mode_ == Mode::kOff) return;
  const std::lock_guard lock(mutex_);
  board_.update(index, progress);
  if (mode_ != Mode::kLines || progress.seconds - shown_at_ < kShowEvery) return;
  shown_at_ = progress.seconds;
  std::fprintf(stderr, "jitc: %s\n", board_.line().c_str());
}

void ProgressDisplay::done(std::size_t index) {
  const std::lock_guard lock(mutex_);
  board_.done(index);
}

}  // namespace jitc::cli
