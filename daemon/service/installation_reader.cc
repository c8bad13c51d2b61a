#include "daemon/service/installation_reader.h"

#include <algorithm>
#include <chrono>

#include "daemon/observe/log.h"
#include "daemon/service/children.h"

namespace jitc::service {
namespace {

constexpr std::chrono::milliseconds kBeat{500};  // the contract promises one a second

}  // namespace

void InstallationReader::read(ReadingWaiter waiter) {
  if (abandoned_) return waiter.failed(*abandoned_);
  next_.push_back(std::move(waiter));
  if (!reading_) start();
  beat();
}

void InstallationReader::start() {
  reading_ = true;
  current_ = std::exchange(next_, {});
  if (!thread_) thread_.emplace(1);
  const auto fresh = std::ranges::max(current_, {}, &ReadingWaiter::fresh).fresh;
  asio::post(*thread_, [this, fresh] {
    if (installation_.changed(fresh)) {
      installation_.inspect();
      if (!worthless_) {
        observe::log_info("compilers and include roots read");
        changed_({installation_.compilers(), installation_.include_roots()});
      }
    }
    asio::post(state_, [this] { ended(); });
  });
}

void InstallationReader::ended() {
  reading_ = false;
  for (const auto& waiter : std::exchange(current_, {})) waiter.ready();
  if (!next_.empty()) start();
}

void InstallationReader::beat() {
  if (beating_ || (next_.empty() && current_.empty())) return;
  beating_ = true;
  beat_.expires_after(kBeat);
  beat_.async_wait([this](const boost::system::error_code& error) {
    beating_ = false;
    if (error) return;
    for (const auto* waiters : {&current_, &next_}) {
      for (const auto& waiter : *waiters) waiter.beat();
    }
    beat();
  });
}

void InstallationReader::abandon(const common::Error& error) {
  abandoned_ = error;
  worthless_ = true;  // before the commands end: an answer cut short must enter no key
  end_commands();
  beat_.cancel();
  for (auto* waiters : {&current_, &next_}) {
    for (const auto& waiter : std::exchange(*waiters, {})) waiter.failed(error);
  }
}

void InstallationReader::join() {
  if (thread_) thread_->join();
}

}  // namespace jitc::service
