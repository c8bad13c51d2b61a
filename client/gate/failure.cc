#include "client/gate/failure.h"

#include <algorithm>
#include <cstddef>

namespace jitc::gate {
namespace {

constexpr std::size_t kNamedRanks = 8;
constexpr std::size_t kNamedModules = 8;
constexpr std::size_t kTextLimit = std::size_t{64} * 1024;
constexpr std::size_t kDiagnosticLimit = 100;

void cut(std::string& text) {
  if (text.size() <= kTextLimit) return;
  text.resize(kTextLimit);
  text += " [cut]";
}

}  // namespace

std::string name_ranks(const std::vector<int>& ranks, int size) {
  if (ranks.size() == 1) return "rank " + std::to_string(ranks.front());
  if (ranks.size() == static_cast<std::size_t>(size)) return "all ranks";
  std::string text = "ranks ";
  const std::size_t named = std::min(ranks.size(), kNamedRanks);
  for (std::size_t i = 0; i < named; ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  if (named < ranks.size()) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

Failure join_errors(std::vector<int> ranks, const Reasons& reasons, int size) {
  Failure failure{reasons.front(), std::move(ranks)};
  if (size == 1) return failure;
  const bool alike = std::ranges::all_of(reasons, [&](const common::Error& error) {
    return error.kind == reasons.front().kind && error.message == reasons.front().message;
  });
  if (alike) {
    failure.error.message = name_ranks(failure.ranks, size) + ": " + failure.error.message;
    return failure;
  }
  failure.error.message = "rank " + std::to_string(failure.ranks.front()) + ": " + failure.error.message;
  for (std::size_t i = 1; i < reasons.size(); ++i)
    failure.error.message += "; rank " + std::to_string(failure.ranks[i]) + ": " +
                             std::string(common::name_of(reasons[i].kind)) + ": " + reasons[i].message;
  if (reasons.size() < failure.ranks.size())
    failure.error.message += "; and " + std::to_string(failure.ranks.size() - reasons.size()) + " more ranks";
  return failure;
}

Failure join_modules(const ModuleErrors& errors, std::size_t asked) {
  Failure failure{errors.front().second, {}};
  if (asked == 1) return failure;
  const auto named = [](const ModuleErrors::value_type& one) { return "module '" + one.first + "': "; };
  failure.error.message = named(errors.front()) + failure.error.message;
  const std::size_t told = std::min(errors.size(), kNamedModules);
  for (std::size_t i = 1; i < told; ++i)
    failure.error.message +=
        "; " + named(errors[i]) + std::string(common::name_of(errors[i].second.kind)) + ": " + errors[i].second.message;
  if (told < errors.size()) failure.error.message += "; and " + std::to_string(errors.size() - told) + " more modules";
  return failure;
}

common::Error out_of_memory() noexcept {
  common::Error error;
  error.kind = common::ErrorKind::kNotLoaded;
  error.message = "no memory";  // short enough to lie in the string itself
  return error;
}

common::Error bounded(common::Error error) {
  cut(error.message);
  cut(error.log);
  if (error.diagnostics.size() > kDiagnosticLimit) error.diagnostics.resize(kDiagnosticLimit);
  return error;
}

}  // namespace jitc::gate
