// From the caller's jitc_request and the settings to what the gate is asked for.
#pragma once

#include <algorithm>
#include <deque>
#include <string>

#include "client/gate/gate.h"
#include "client/include/jitc/jitc.h"
#include "common/settings.h"

namespace jitc::api {

// What the settings say of every request; an error for a setting that is wrong.
common::Result<common::Request> defaults_of(const common::Result<common::Settings>& settings);

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

// Never fails itself: what is wrong, the source callback's failure included, becomes this rank's part of the collective
// decision.
gate::Demand demand_of(const jitc_request* request, const common::Result<common::Request>& defaults,
                       RecentRequests& recent);

// The request with `origin` for a source and the rest as given, the defaults where nothing is given.
common::Request request_of(const jitc_request& given, const common::Request& defaults, std::string origin);

}  // namespace jitc::api
