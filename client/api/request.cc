#include "client/api/request.h"

#include <string>
#include <utility>

#include "client/api/handles.h"
#include "client/api/sharing.h"
#include "common/flags.h"

namespace jitc::api {
namespace {

using common::ErrorKind;
using common::Request;
using common::Result;

constexpr const char* kDefaultName = "source.c";

Result<std::string> source_of(const jitc_request& request, const std::string& name) {
  if (request.make_source) {
    jitc_text text;
    const int status = request.make_source(request.make_source_state, &text);
    if (status == 0 && text.failure.empty()) return std::move(text.source);
    return common::fail(
        ErrorKind::kUsage,
        "the source could not be made: " + (text.failure.empty() ? "status " + std::to_string(status) : text.failure),
        name, "see what this rank does differently from the others");
  }
  if (!request.source)
    return common::fail(ErrorKind::kUsage, "the request has neither a source nor a function that makes one", name);
  return request.source_length ? std::string(request.source, request.source_length) : std::string(request.source);
}

std::string name_of(const jitc_request& given) { return given.name && *given.name ? given.name : kDefaultName; }

}  // namespace

Result<Request> defaults_of(const Result<common::Settings>& settings) {
  if (!settings) return std::unexpected(settings.error());
  Result<std::vector<std::string>> flags = common::split_flags(settings->text("cflags"));
  if (!flags) return std::unexpected(std::move(flags.error()));
  Request request;
  request.flags = std::move(*flags);
  request.compiler = settings->text("cc");
  request.isa_wish = settings->text("isa");
  request.share = settings->text("share");
  request.cse = settings->text("cse");
  return request;
}

Request request_of(const jitc_request& given, const Request& defaults, std::string origin) {
  Request request = defaults;
  request.name = name_of(given);
  request.origin = std::move(origin);
  for (std::size_t i = 0; i < given.flag_count; ++i) request.flags.emplace_back(given.flags[i]);
  for (std::size_t i = 0; i < given.header_count; ++i)
    request.headers.push_back({given.headers[i].name, given.headers[i].text});
  if (given.compiler && *given.compiler) request.compiler = given.compiler;
  if (given.isa && *given.isa) request.isa_wish = given.isa;
  if (given.abi_tag) request.abi_tag = given.abi_tag;
  request.exact_flags = given.exact_flags != 0;
  return request;
}

gate::Demand demand_of(const jitc_request* request, const Result<Request>& defaults) {
  try {
    if (!defaults) return {std::unexpected(defaults.error()), {}};
    if (!request) return {common::fail(ErrorKind::kUsage, "no request was given", "jitc_compile"), {}};
    const jitc_request given = from_sized(request);
    std::string manifest;
    if (given.manifest) manifest.assign(static_cast<const char*>(given.manifest), given.manifest_length);
    Result<std::string> source = source_of(given, name_of(given));
    if (!source) return {std::unexpected(std::move(source.error())), {}};
    gate::Demand demand{request_of(given, *defaults, std::move(*source)), std::move(manifest)};
    demand.request->emitter_version = sharing_version(*demand.request);
    if (wants_sharing(*demand.request)) {
      demand.make_code = [](const Request& asked) -> Result<std::string> { return shared_text(asked); };
      demand.origin_is_source = true;
    }
    return demand;
  } catch (...) {  // memory, or a C++ callback that throws: the other ranks must hear of it like of any failure
    return {std::unexpected(failure_of_exception().error), {}};
  }
}

}  // namespace jitc::api
