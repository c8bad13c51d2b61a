#include "client/api/sharing.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "client/graph/c_text/share.h"
#include "client/graph/emit.h"

namespace jitc::api {
namespace {

// With these a compiler may give other values to the same expressions when they stand in other places; or they change
// what the text means. Prefixes.
constexpr auto kLoose = std::to_array<std::string_view>({
    "-ffast-math",
    "-Ofast",
    "-funsafe-math",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math",
    "-fno-signed-zeros",
    "-fno-honor-",
    "-fdenormal-fp-math",
    "-mdaz-ftz",
    "-mrecip",
    "-frounding-math",
    "-fapprox-func",
    "-ffp-model",
    "-ffp-exception-behavior",
    "-fsingle-precision-constant",
    "-mfpmath",
    "-m32",
    "-mx32",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-x",
    "-ansi",  // here and below: // begins no comment
    "-std=c89",
    "-std=c90",
    "-std=iso9899:1990",
});

// Does no flag let values depend on how an expression is cut into statements? Without -ffp-contract=off both gcc and
// clang fuse products with sums where the processor can.
bool keeps_bits(const std::vector<std::string>& flags) {
  bool contracts = true;
  for (const std::string_view flag : flags) {
    if (flag.starts_with("-ffp-contract=")) contracts = flag != "-ffp-contract=off";
    if (std::ranges::any_of(kLoose, [&](std::string_view loose) { return flag.starts_with(loose); })) return false;
  }
  return !contracts;
}

}  // namespace

std::uint32_t sharing_version(const common::Request& request) {
  return wants_sharing(request) ? graph::kEmitterVersion : 0;
}

bool wants_sharing(const common::Request& request) {
  if (request.share != "auto") return request.share == "1";
  return request.origin.size() >= kAutoShareBytes && keeps_bits(request.flags);
}

std::string shared_text(const common::Request& request) {
  graph::SharedText shared = graph::share(request.origin);
  return shared.text == request.origin ? std::string() : std::move(shared.text);
}

}  // namespace jitc::api
