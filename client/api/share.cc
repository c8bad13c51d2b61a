// jitc_share.
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "client/api/handles.h"
#include "client/graph/c_text/share.h"

using namespace jitc;

namespace {

std::string report_of(const graph::SharedText& shared) {
  nlohmann::json report = {{"nodes", shared.nodes}, {"temporaries", shared.temporaries}};
  nlohmann::json& functions = report["functions"] = nlohmann::json::array();
  for (const graph::SharedFunction& function : shared.functions)
    functions.push_back({{"name", function.name},
                         {"line", function.line},
                         {"shared", function.is_shared},
                         {"reason", function.reason}});
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

jitc_kind jitc_share(const char* text, size_t length, jitc_text** shared, jitc_text** report, jitc_error** error) {
  if (shared) *shared = nullptr;
  if (report) *report = nullptr;
  return api::attempt(error, [&]() -> common::Result<void> {
    if (!text || !shared) return api::null_pointer("jitc_share");
    graph::SharedText made = graph::share({text, length ? length : std::strlen(text)});
    auto told = std::make_unique<jitc_text>();
    if (report) told->source = report_of(made);
    *shared = new jitc_text{std::move(made.text), {}};
    if (report) *report = told.release();
    return {};
  });
}
