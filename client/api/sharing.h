// Which C texts are shared before their first compile, and how: the setting `share` applied to a request.
#pragma once

#include <string>

#include "common/request.h"

namespace jitc::api {

// From this size on, share=auto shares.
inline constexpr std::size_t kAutoShareBytes = std::size_t{64} << 10;

// The emitter_version of a request whose other fields are set: the printer's where its text is to be shared, else 0, so
// that no other key depends on how texts are printed.
std::uint32_t sharing_version(const common::Request& request);

// Does the setting ask for the text to be shared? auto: from kAutoShareBytes on, and only where the flags let no
// compiler make different values of it (-ffast-math, contracted products). 1: always.
bool wants_sharing(const common::Request& request);

// What to compile in place of the text as given; empty when nothing in it could be shared. For a miss only: takes
// milliseconds a megabyte.
std::string shared_text(const common::Request& request);

}  // namespace jitc::api
