// Bodies that are understood, as C text again.
#pragma once

#include <string>
#include <string_view>

#include "client/graph/c_text/function.h"

namespace jitc::graph::c {

struct Printed {
  std::string text;  // what stands between the braces
  std::size_t nodes = 0;
  std::size_t temporaries = 0;
};

// How many underscores the printed names need so that none of them is `name`: temporaries t0, copies of elements
// t_out_3 and jitc_result, with the underscores behind the t and the jitc_result.
std::size_t underscores_beside(std::string_view name);

// With at least so many underscores, and none of the parameters' names. Nothing when it cannot be printed.
std::optional<Printed> print(const Body& body, const Signature& signature, std::size_t underscores);

}  // namespace jitc::graph::c
