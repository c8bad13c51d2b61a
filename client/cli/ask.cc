#include "client/cli/ask.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "client/cli/start.h"

namespace jitc::cli {
namespace {

constexpr double kLeastSeconds = 1e-3;  // 0 is no end

}  // namespace

rpc::Daemon::Limits short_call(const Context& context, double most, const Deadline& deadline) {
  double seconds = most;
  if (const double silence = context.settings.seconds("timeout"); silence > 0) seconds = std::min(seconds, silence);
  if (deadline.limited()) seconds = std::min(seconds, deadline.left());
  return {.seconds = std::max(seconds, kLeastSeconds), .go_on = [] { return !interrupted(); }};
}

common::Error explained(const Context& context, common::Error error, const rpc::Daemon::Limits& limits,
                        const Deadline& deadline) {
  if (error.kind == common::ErrorKind::kCancelled && interrupted()) error.message = "interrupted";
  if (error.kind != common::ErrorKind::kTimedOut) return error;
  const auto holder = lock_holder(context.runtime_dir);
  std::array<char, 32> within{};
  std::snprintf(within.data(), within.size(), " within %.3g s", limits.seconds);
  error.message = (holder ? "jitcd, pid " + std::to_string(holder->pid) + ", does not answer"
                          : std::string("the daemon does not answer")) +
                  within.data();
  error.remedy = "is it stopped, or the machine overloaded? Its last words are in jitcd.log in " + context.runtime_dir;
  if (const auto in_time = deadline.check(); !in_time) error.message = in_time.error().message + ": " + error.message;
  return error;
}

common::Result<std::string> ask(const Context& context, std::string_view what, double most, const Deadline& deadline) {
  const auto limits = short_call(context, most, deadline);
  auto answer = daemon_client(context).query(what, limits);
  if (!answer) return std::unexpected(explained(context, std::move(answer.error()), limits, deadline));
  return answer;
}

}  // namespace jitc::cli
