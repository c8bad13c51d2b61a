#include "client/graph/c_text.h"

#include "client/graph/c_unit.h"

namespace jitc::graph {

SharedText share(std::string_view text) { return c::Unit(text).share(); }

}  // namespace jitc::graph
