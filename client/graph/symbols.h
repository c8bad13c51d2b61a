// The names of one C text: each means one thing, and none hides what another part of the text needs.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "client/graph/plain.h"
#include "common/error.h"

namespace jitc::graph {

class Symbols {
 public:
  // A name that the text uses for itself.
  void reserve(std::string name) { taken_.insert(std::move(name)); }
  // A function of the text. Fails (kInvalidSource, kUsage) when C or the text cannot take the name.
  common::Result<void> define(const std::string& name, const std::string& prefix);
  // A parameter, or a function that is defined elsewhere.
  common::Result<void> declare(const std::string& name);
  // All opaque functions that the outputs call.
  common::Result<void> declare_opaque(const Plain& plain);

 private:
  common::Result<void> take(const std::string& name);

  std::set<std::string, std::less<>> taken_;
};

}  // namespace jitc::graph
