// What bodies call besides math.h: small functions of our own, and the opaque ones by declaration.
#pragma once

#include <string>

#include "client/graph/plain.h"

namespace jitc::graph {

// The text of helpers() in emit.h for what the outputs use.
std::string helpers(const Plain& plain);

}  // namespace jitc::graph
