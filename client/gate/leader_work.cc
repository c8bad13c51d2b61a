#include "client/gate/leader_work.h"

#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "client/gate/failure.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using common::Result;

// Threads wait in calls to the daemon, which queues what is too much for the node.
constexpr std::size_t kCompilesAtOnce = 64;
// Each is a few small reads, of a file system that serves others, too.
constexpr std::size_t kLookUpsAtOnce = 8;
// Twice as long as it takes a call to the daemon to ask whether somebody waits, and more.
constexpr std::chrono::seconds kFarewell{3};
// A thread that has been joined counts for the limit (ulimit -u) until the kernel has taken it apart.
constexpr int kTries = 100;
constexpr std::chrono::milliseconds kNextTry{1};

Result<Obtained> compile(Compiler& compiler, const LeaderWork::Order& order, const Report& report) {
  const common::Request& request = order.request;
  if (!report({})) return common::fail(ErrorKind::kCancelled, "nobody waits any more", request.name);
  if (!order.make_code) return compiler.compile(request, report);
  Result<MadeCode> made = order.make_code(request);
  if (!made) return std::unexpected(std::move(made.error()));
  common::Request with_code = request;
  with_code.code = std::move(made->code);
  with_code.canary = std::move(made->canary);
  Result<Obtained> obtained = compiler.compile(with_code, report);
  if (order.origin_is_source && !obtained && common::fall_back_to_origin(with_code, obtained.error()))
    obtained = compiler.compile(with_code, report);
  if (obtained) obtained->has_made_code = !with_code.code.empty();
  return obtained;
}

// Where there is no daemon nobody can check what the store has, and it serves as it is.
std::optional<Obtained> look_up_unchecked(StoreLookup& store, common::Request request) {
  request.checked = false;
  return store.look_up(request);
}

// For the helper thread; it owns what it uses. A miss of a mere look-up has no bytes.
RootWork::Task task_of(Work work, std::shared_ptr<const LeaderWork::Order> order, std::shared_ptr<StoreLookup> store,
                       std::shared_ptr<Compiler> compiler, std::shared_ptr<Recorder> recorder) {
  return [work, order = std::move(order), store = std::move(store), compiler = std::move(compiler),
          recorder = std::move(recorder)](const Report& report) -> Result<Obtained> {
    if (work != Work::kCompile && recorder)
      recorder->record(order->request, order->origin_is_source ? MakeCode() : order->make_code);
    if (work != Work::kCompile)
      if (std::optional<Obtained> found = store->look_up(order->request)) return std::move(*found);
    if (work == Work::kLookUp) return Obtained{};
    Result<Obtained> obtained = compile(*compiler, *order, report);
    if (!obtained && obtained.error().kind == ErrorKind::kUnreachable && order->request.checked)
      if (std::optional<Obtained> found = look_up_unchecked(*store, order->request)) return std::move(*found);
    return obtained;
  };
}

}  // namespace

LeaderWork::~LeaderWork() {
  for (const Running& running : running_) running.work->give_up();
  const auto deadline = std::chrono::steady_clock::now() + kFarewell;
  for (const Running& running : running_) running.work->wait_until(deadline);
}

void LeaderWork::begin(Work work, std::vector<Order> orders) {
  work_ = work;
  running_.reserve(kCompilesAtOnce);
  for (Order& order : orders) waiting_.push_back(std::make_shared<const Order>(std::move(order)));
  start_some();
}

void LeaderWork::settle(std::size_t module, Result<Obtained> result) {
  with_memory([&] { results_.insert_or_assign(module, std::move(result)); });  // else take() says so
}

void LeaderWork::fail(const std::vector<std::size_t>& modules, const common::Error& error) {
  waiting_.clear();
  running_.clear();
  for (const std::size_t module : modules) with_memory([&] { settle(module, std::unexpected(error)); });
}

void LeaderWork::start_some() {
  const std::size_t limit = work_ == Work::kLookUp ? kLookUpsAtOnce : kCompilesAtOnce;
  while (!waiting_.empty() && running_.size() < limit) {
    Result<void> started = start(waiting_.front());
    if (!started && !running_.empty()) return;  // the next thread starts when one has ended
    const std::shared_ptr<const Order> order = std::move(waiting_.front());
    waiting_.pop_front();
    if (!started) conclude(order->module, std::unexpected(std::move(started.error())));
  }
}

Result<void> LeaderWork::start(const std::shared_ptr<const Order>& order) {
  const int tries = running_.empty() ? kTries : 1;
  try {
    for (int one = 1;; ++one) {
      auto work = RootWork::start(task_of(work_, order, store_, compiler_, recorder_));
      if (work) {
        running_.push_back({order->module, std::move(*work)});
        return {};
      }
      if (one == tries) return std::unexpected(std::move(work.error()));
      std::this_thread::sleep_for(kNextTry);
    }
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory());
  }
}

RootWork* LeaderWork::awaited(const action::Await& await) {
  if (running_.empty() || (!await.is_look_up && results_.contains(await.module))) return nullptr;
  return running_.front().work.get();
}

void LeaderWork::collect() {
  const std::size_t module = running_.front().module;
  Result<Obtained> result = running_.front().work->take();
  running_.erase(running_.begin());
  conclude(module, std::move(result));
  start_some();
}

// What is stuck in the store is left alone.
void LeaderWork::conclude(std::size_t module, Result<Obtained> result) {
  if (work_ == Work::kLookUp && !result) {
    waiting_.clear();
    running_.clear();
  }
  if (work_ != Work::kLookUp || !result || !result->bytes.empty()) settle(module, std::move(result));
}

Result<Obtained> LeaderWork::take(std::size_t module) {
  auto result = results_.extract(module);
  if (result.empty()) return std::unexpected(out_of_memory());
  return std::move(result.mapped());
}

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
