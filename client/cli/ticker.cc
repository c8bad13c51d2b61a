#include "client/cli/ticker.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace jitc::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirst = 300ms, kNext = 500ms;

}  // namespace

bool Ticker::shows(const std::string& setting) { return setting != "0" && ::isatty(STDERR_FILENO) == 1; }

Ticker::Ticker(bool shows, std::function<std::string()> line) : line_(std::move(line)) {
  if (shows) thread_ = std::jthread([this](const std::stop_token& stop) { tick(stop); });
}

void Ticker::aside(const std::function<void()>& write) {
  const std::lock_guard lock(mutex_);
  wipe();
  write();
}

void Ticker::clear() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Ticker::wipe() {
  if (on_screen_) std::fputs("\r\033[K", stderr);
  on_screen_ = false;
}

void Ticker::tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (auto pause = kFirst;; pause = kNext) {
    woken_.wait_for(lock, stop, pause, [] { return false; });
    if (stop.stop_requested()) return wipe();
    std::fprintf(stderr, "\r\033[Kjitc: %s", line_().c_str());
    std::fflush(stderr);
    on_screen_ = true;
  }
}

}  // namespace jitc::cli
