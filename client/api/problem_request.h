// From a problem to what the gate is asked for: its origin is a description of the mathematics, its code the text that
// the root prints when it must.
#pragma once

#include <string>

#include "client/api/problem.h"
#include "client/gate/gate.h"
#include "common/request.h"

namespace jitc::api {

// Of all symbols of the module that a request makes: two problems never meet in one process.
std::string symbol_prefix(const common::Digest& request);

// Like demand_of(request, defaults): what is wrong becomes this rank's part of the collective decision.
gate::Demand demand_of(jitc_problem* problem, const jitc_emit_options* options, const jitc_request* request,
                       const common::Result<common::Request>& defaults);

}  // namespace jitc::api
