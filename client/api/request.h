// From the caller's jitc_request and the settings to what the gate is asked for.
#pragma once

#include <string>

#include "client/api/recent_requests.h"
#include "client/gate/gate.h"
#include "client/include/jitc/jitc.h"
#include "common/settings.h"

namespace jitc::api {

// What the settings say of every request.
struct Defaults {
  common::Request request;
  std::string canary;  // auto, off, on: of problems
};
// An error for a setting that is wrong.
common::Result<Defaults> defaults_of(const common::Result<common::Settings>& settings);

// Never fails itself: what is wrong, the source callback's failure included, becomes this rank's part of the collective
// decision.
gate::Demand demand_of(const jitc_request* request, const common::Result<Defaults>& defaults, RecentRequests& recent);

// The request with `origin` for a source and the rest as given, the defaults where nothing is given.
common::Request request_of(const jitc_request& given, const common::Request& defaults, std::string origin);

}  // namespace jitc::api
