// From a problem to what the gate is asked for: its origin is a description of the mathematics, its code the text that
// the root prints when it must.
#pragma once

#include <array>
#include <string>

#include "client/api/problem.h"
#include "client/api/request.h"
#include "client/gate/gate.h"
#include "common/request.h"

namespace jitc::api {

// Of all symbols of the module that a request makes: two problems never meet in one process.
std::string symbol_prefix(const common::Digest& request);

// The name of the module's table, with that prefix. Takes no memory.
std::array<char, 32> table_symbol(const common::Digest& request) noexcept;

// Like demand_of(request, defaults): what is wrong becomes this rank's part of the collective decision.
gate::Demand demand_of(jitc_problem* problem, const jitc_emit_options* options, const jitc_request* request,
                       const common::Result<Defaults>& defaults);

}  // namespace jitc::api
