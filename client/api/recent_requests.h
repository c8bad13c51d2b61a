// What a context remembers of the requests it was last given.
#pragma once

#include <algorithm>
#include <deque>

#include "common/request.h"

namespace jitc::api {

// A context's last requests with C text. Solvers ask for the same few modules again and again: such a request costs a
// comparison of its bytes, and neither copies nor digests.
class RecentRequests {
 public:
  // The one that `is_wanted` is true of; else what `make()` gives, in place of the oldest ones.
  template <class IsWanted, class Make>
  const common::SharedRequest& get(const IsWanted& is_wanted, const Make& make) {
    const auto found = std::ranges::find_if(requests_, [&](const auto& request) { return is_wanted(*request); });
    if (found == requests_.end()) {
      add(make());
    } else if (found != requests_.begin()) {
      std::rotate(requests_.begin(), found, found + 1);
    }
    return requests_.front();
  }

 private:
  void add(common::SharedRequest request);
  std::deque<common::SharedRequest> requests_;  // the last one first
};

}  // namespace jitc::api
