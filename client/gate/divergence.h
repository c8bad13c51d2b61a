// How one rank's call differs from the root's. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/gate/wire.h"
#include "common/error.h"

namespace jitc::gate {

// nullopt: the same call. Else kDivergent with the first difference, the mine-and-root's way round, the first differing
// line for texts.
std::optional<common::Error> difference(const Call& mine, const Call& root);

// Is it the same call apart from the text and the manifest, which the root's may replace? A call out of turn is not.
bool is_adoptable(const Call& mine, const Call& root);

// The same for calls for several modules.
std::optional<common::Error> difference(const std::vector<Call>& mine, const std::vector<Call>& root);
bool is_adoptable(const std::vector<Call>& mine, const std::vector<Call>& root);

// "line 3: 'int a;' here, 'int b;' on rank 0"; texts that differ.
std::string first_difference(std::string_view mine, std::string_view root);

}  // namespace jitc::gate
