// One line on the terminal for what takes longer than a moment, renewed until it is done.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace jitc::cli {

// Shows nothing where standard error is no terminal, or within the first 0.3 s.
class Ticker {
 public:
  // `line` is called by a thread of this object's; not after clear().
  explicit Ticker(bool shows, std::function<std::string()> line);
  // By the setting `progress`: auto shows on a terminal, and so does 1.
  static bool shows(const std::string& setting);
  ~Ticker() { clear(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // For what is written to the terminal meanwhile: takes the line away first.
  void aside(const std::function<void()>& write);
  // Takes it away for good.
  void clear();

 private:
  void wipe();
  void tick(const std::stop_token& stop);

  std::function<std::string()> line_;
  std::mutex mutex_;  // of the terminal, while the thread runs
  bool on_screen_ = false;
  std::condition_variable_any woken_;
  std::jthread thread_;
};

}  // namespace jitc::cli
