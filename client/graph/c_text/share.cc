#include "client/graph/c_text/share.h"

#include "client/graph/c_text/unit.h"

namespace jitc::graph {

SharedText share(std::string_view text) { return c::Unit(text).share(); }

}  // namespace jitc::graph
