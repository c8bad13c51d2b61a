#include "client/gate/plan.h"

#include <exception>
#include <utility>

namespace jitc::gate {
namespace {

common::Result<void> add(common::PlanRecorder& plan, const common::Request& request, const MakeCode& make_code) {
  const auto lacks = plan.lacks(common::request_digest(request));
  if (!lacks) return std::unexpected(lacks.error());
  if (!*lacks) return {};
  common::Request whole = request;
  if (make_code) {
    auto code = make_code(request);
    if (!code) return {};  // the call fails of the same, and says so
    whole.code = std::move(code->code);
  }
  return plan.add(whole);
}

}  // namespace

void PlanOfRun::record(const common::Request& request, const MakeCode& make_code) {
  try {
    const auto added = add(plan_, request, make_code);
    if (!added) warn("not recorded: " + common::to_line(added.error()));
  } catch (const std::exception&) {  // memory, mostly; the compile is tried all the same
    warn("not recorded: no memory");
  }
}

void PlanOfRun::warn(std::string_view text) {
  if (!has_warned_.exchange(true)) on_warning_(text);
}

}  // namespace jitc::gate
