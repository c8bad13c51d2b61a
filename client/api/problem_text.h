// The printer's options, from the C interface's.
#pragma once

#include <string>
#include <string_view>

#include "client/api/problem.h"
#include "client/graph/emit.h"
#include "client/graph/problem.h"
#include "client/include/jitc/jitc.h"
#include "common/error.h"

namespace jitc::api {

// `options` NULL: defaults. The offsets of the fields are the problem's.
common::Result<graph::EmitOptions> emit_options_of(const jitc_emit_options* options, const graph::Problem& problem);
// The text in the layout that is wanted. The names of fused functions are <prefix>fused and <prefix>batch.
common::Result<std::string> print(const Lowered& lowered, const graph::EmitOptions& options, jitc_layout layout);
// "0", "1", "auto".
common::Result<graph::Sharing> sharing_of(std::string_view text);

}  // namespace jitc::api
