#include "client/gate/leader_work.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace jitc::gate {
namespace {

using common::ErrorKind;
using common::Result;

// Threads wait in calls to the daemon, which queues what is too much for the node.
constexpr std::size_t kAtOnce = 64;

Result<Obtained> compile(Compiler& compiler, const LeaderWork::Order& order, const Report& report) {
  const common::Request& request = order.request;
  if (!report({})) return common::fail(ErrorKind::kCancelled, "nobody waits any more", request.name);
  if (!order.make_code) return compiler.compile(request, report);
  Result<std::string> code = order.make_code(request);
  if (!code) return std::unexpected(std::move(code.error()));
  common::Request with_code = request;
  with_code.code = std::move(*code);
  Result<Obtained> obtained = compiler.compile(with_code, report);
  if (order.origin_is_source && !obtained && common::fall_back_to_origin(with_code, obtained.error()))
    obtained = compiler.compile(with_code, report);
  if (obtained) obtained->has_made_code = !with_code.code.empty();
  return obtained;
}

// For the helper thread; it owns what it uses. A miss of a mere look-up has no bytes.
RootWork::Task task_of(Work work, LeaderWork::Order order, std::shared_ptr<StoreLookup> store,
                       std::shared_ptr<Compiler> compiler) {
  return [work, order = std::move(order), store = std::move(store),
          compiler = std::move(compiler)](const Report& report) -> Result<Obtained> {
    if (work != Work::kCompile)
      if (std::optional<Obtained> found = store->look_up(order.request)) return std::move(*found);
    if (work == Work::kLookUp) return Obtained{};
    return compile(*compiler, order, report);
  };
}

}  // namespace

void LeaderWork::begin(Work work, std::vector<Order> orders) {
  work_ = work;
  std::ranges::move(orders, std::back_inserter(waiting_));
  start_some();
}

void LeaderWork::settle(std::size_t module, Result<Obtained> result) { results_.emplace(module, std::move(result)); }

void LeaderWork::fail(const std::vector<std::size_t>& modules, const common::Error& error) {
  waiting_.clear();
  running_.clear();
  for (const std::size_t module : modules) results_.insert_or_assign(module, std::unexpected(error));
}

void LeaderWork::start_some() {
  for (; !waiting_.empty() && running_.size() < kAtOnce; waiting_.pop_front()) {
    Order& order = waiting_.front();
    Running& running = running_.emplace_back(order.module, nullptr);
    running.work = std::make_unique<RootWork>(task_of(work_, std::move(order), store_, compiler_));
  }
}

RootWork* LeaderWork::awaited(const action::Await& await) {
  if (running_.empty() || (!await.is_look_up && results_.contains(await.module))) return nullptr;
  return running_.front().work.get();
}

void LeaderWork::collect() {
  const std::size_t module = running_.front().module;
  Result<Obtained> result = running_.front().work->take();
  running_.pop_front();
  if (work_ == Work::kLookUp && !result) return fail({module}, result.error());
  if (work_ != Work::kLookUp || !result->bytes.empty()) settle(module, std::move(result));
  start_some();
}

Result<Obtained> LeaderWork::take(std::size_t module) { return std::move(results_.extract(module).mapped()); }

Result<std::vector<bool>> LeaderWork::found(const std::vector<std::size_t>& modules) const {
  std::vector<bool> found;
  for (const std::size_t module : modules) {
    const auto result = results_.find(module);
    if (result != results_.end() && !result->second) return std::unexpected(result->second.error());
    found.push_back(result != results_.end());
  }
  return found;
}

}  // namespace jitc::gate
