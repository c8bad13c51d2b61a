// From the caller's jitc_request and the settings to what the gate is asked for.
#pragma once

#include <string>

#include "client/gate/gate.h"
#include "client/include/jitc/jitc.h"
#include "common/settings.h"

namespace jitc::api {

// Never fails itself: what is wrong, the source callback's failure included, becomes this rank's part of the collective
// decision.
gate::Demand demand_of(const jitc_request* request, const common::Result<common::Settings>& settings);

// The request with `origin` for a source and the rest as given, the settings where nothing is given.
common::Result<common::Request> request_of(const jitc_request& given, const common::Settings& settings,
                                           std::string origin);

}  // namespace jitc::api
