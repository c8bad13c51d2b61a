#include "client/api/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <new>

namespace jitc::api {
namespace {

constexpr double kPatience = 2;  // seconds before the first line

std::string phase_text(const rpc::Progress& progress) {
  switch (progress.phase) {
    case rpc::Progress::Phase::kConnecting:
      return "connecting";
    case rpc::Progress::Phase::kQueued:
      return progress.place ? "queued, place " + std::to_string(progress.place) : "queued";
    case rpc::Progress::Phase::kCompiling:
      return "compiling";
    case rpc::Progress::Phase::kLoading:
      return "loading";
    case rpc::Progress::Phase::kArriving:
      return "waiting for other ranks";
    case rpc::Progress::Phase::kReconnecting:
      return "reconnecting";
    case rpc::Progress::Phase::kElsewhere:
      return "another node compiles it";
  }
  return "waiting";
}

}  // namespace

std::string progress_text(std::string_view name, const rpc::Progress& progress) {
  std::string text = "jitc: " + std::string(name) + ": " + phase_text(progress) + ", " +
                     std::to_string(static_cast<long>(progress.seconds)) + " s";
  if (progress.memory_bytes) text += ", " + std::to_string(progress.memory_bytes >> 20) + " MiB";
  return text;
}

ProgressLine::ProgressLine(std::string_view setting)
    : is_terminal_(isatty(STDERR_FILENO) == 1), is_on_(setting == "1" || (setting == "auto" && is_terminal_)) {}

void ProgressLine::show(std::string_view name, const rpc::Progress& progress) {
  if (!is_on_ || progress.seconds < kPatience) return;
  try {
    std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", progress_text(name, progress).c_str());
  } catch (const std::bad_alloc&) {  // in the midst of a collective wait: a line less is better than a rank less
    return;
  }
  std::fflush(stderr);
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (is_shown_ && is_terminal_) std::fputs("\r\033[K", stderr);
  is_shown_ = false;
}

}  // namespace jitc::api
