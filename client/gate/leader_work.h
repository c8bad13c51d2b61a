// What the leader of a turn has under way: looks into the store and compiles, each on a helper thread of its own, and
// what came of them.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "client/gate/protocol.h"
#include "client/gate/root_work.h"
#include "client/gate/sources.h"

namespace jitc::gate {

class LeaderWork {
 public:
  // One module that is to be had, by its number in the call.
  struct Order {
    std::size_t module = 0;
    common::Request request;
    MakeCode make_code;
    bool origin_is_source = false;
  };

  // `recorder` may be empty.
  LeaderWork(std::shared_ptr<StoreLookup> store, std::shared_ptr<Compiler> compiler,
             std::shared_ptr<Recorder> recorder = nullptr)
      : store_(std::move(store)), compiler_(std::move(compiler)), recorder_(std::move(recorder)) {}
  // What is under way is told that nobody waits. It is waited for a little, so that a call to the daemon ends in good
  // order; what is stuck is left alone.
  ~LeaderWork();
  LeaderWork(const LeaderWork&) = delete;
  LeaderWork& operator=(const LeaderWork&) = delete;

  // Starts all of them, though not more than a few dozen threads at once: the daemon decides how many compile. Where
  // there cannot be as many threads, fewer do it. What has begun before goes on.
  void begin(Work work, std::vector<Order> orders);
  // There is nothing to do for this module.
  void settle(std::size_t module, common::Result<Obtained> result);
  // Work on these cannot begin; what has begun is given up.
  void fail(const std::vector<std::size_t>& modules, const common::Error& error);

  // What must be waited for before this module, or all of the look-ups, can be had; nullptr: nothing.
  RootWork* awaited(const action::Await& await);
  // That work has ended: takes its result and starts the next. A look-up that failed ends all of them.
  void collect();

  // Once for each module. One that is unknown has been lost for want of memory.
  common::Result<Obtained> take(std::size_t module);
  // After a look-up: which ones are there? The first error, if there was one.
  common::Result<std::vector<bool>> found(const std::vector<std::size_t>& modules) const;

 private:
  struct Running {
    std::size_t module;
    std::unique_ptr<RootWork> work;
  };
  void start_some();
  common::Result<void> start(const std::shared_ptr<const Order>& order);
  void conclude(std::size_t module, common::Result<Obtained> result);

  std::shared_ptr<StoreLookup> store_;
  std::shared_ptr<Compiler> compiler_;
  std::shared_ptr<Recorder> recorder_;
  Work work_ = Work::kLookUpOrCompile;
  // Lists: a warm call has no work, and they take no memory before they are used.
  std::list<std::shared_ptr<const Order>> waiting_;
  std::vector<Running> running_;  // in the order of the turns
  std::map<std::size_t, common::Result<Obtained>> results_;
};

}  // namespace jitc::gate
