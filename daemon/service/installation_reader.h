// Reads compilers and include roots for the requests whose keys they enter, on a thread of its own: a compiler that
// hangs, or a directory whose server does, keeps nobody else waiting. State thread only, but for the reading itself.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/request.h"
#include "daemon/service/asio.h"
#include "daemon/service/installation.h"

namespace jitc::service {

// What was read.
struct Reading {
  std::vector<common::CompilerIdentity> compilers;
  std::vector<std::pair<std::string, std::string>> include_roots;  // path, content digest
};

// Somebody who waits for a reading that begins after they asked. Called on the state thread: `beat` twice a second,
// then one of the others.
struct ReadingWaiter {
  Installation::Time fresh;  // a look at the system's headers that began then or later is good enough
  std::function<void()> beat;
  std::function<void()> ready;
  std::function<void(const common::Error&)> failed;
};

class InstallationReader {
 public:
  // `changed` gets what was read anew, on the reading thread, before those who wait hear that it is ready.
  InstallationReader(asio::io_context& state, Installation& installation, std::function<void(Reading)> changed)
      : state_(state), installation_(installation), changed_(std::move(changed)), beat_(state) {}

  // The thread starts with the first.
  void read(ReadingWaiter waiter);
  // Who waits gets the error, now and from now on; the compiler that is being asked is ended.
  void abandon(const common::Error& error);
  // Until the thread has ended. A directory that hangs cannot be abandoned: bound this by end_within().
  void join();

 private:
  void start();
  void ended();
  void beat();

  asio::io_context& state_;
  Installation& installation_;  // the thread's, once that runs
  std::function<void(Reading)> changed_;
  std::optional<asio::thread_pool> thread_;
  std::vector<ReadingWaiter> next_, current_;  // for the next reading; for the one that runs
  bool reading_ = false;
  asio::steady_timer beat_;
  bool beating_ = false;
  std::optional<common::Error> abandoned_;
  std::atomic<bool> worthless_{false};  // what is read now: commands were ended under it
};

}  // namespace jitc::service
