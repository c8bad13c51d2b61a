#include "client/api/request.h"

#include <algorithm>
#include <string>
#include <string_view>
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

// The caller's text, or what the caller's function has put into `made`.
Result<std::string_view> source_of(const jitc_request& request, const char* name, jitc_text& made) {
  if (request.make_source) {
    const int status = request.make_source(request.make_source_state, &made);
    if (status == 0 && made.failure.empty()) return made.source;
    return common::fail(
        ErrorKind::kUsage,
        "the source could not be made: " + (made.failure.empty() ? "status " + std::to_string(status) : made.failure),
        name, "see what this rank does differently from the others");
  }
  if (!request.source)
    return common::fail(ErrorKind::kUsage, "the request has neither a source nor a function that makes one", name);
  return request.source_length ? std::string_view(request.source, request.source_length)
                               : std::string_view(request.source);
}

std::string_view given_or(const char* given, std::string_view otherwise) {
  return given && *given ? std::string_view(given) : otherwise;
}

const char* name_of(const jitc_request& given) { return given.name && *given.name ? given.name : kDefaultName; }

bool is_text(const std::string& text, const char* given) { return given && text == given; }

bool has_flags(const Request& request, const std::vector<std::string>& defaults, const jitc_request& given) {
  const std::size_t count = defaults.size();
  return request.flags.size() == count + given.flag_count &&
         std::equal(defaults.begin(), defaults.end(), request.flags.begin()) &&
         std::equal(given.flags, given.flags + given.flag_count, request.flags.data() + count,
                    [](const char* flag, const std::string& text) { return is_text(text, flag); });
}

// Would request_of give this request? The caller may have changed any byte since.
bool is_request_of(const Request& request, const jitc_request& given, const Request& defaults,
                   std::string_view origin) {
  return request.origin == origin && request.name == name_of(given) && has_flags(request, defaults.flags, given) &&
         std::equal(request.headers.begin(), request.headers.end(), given.headers, given.headers + given.header_count,
                    [](const common::Header& header, const jitc_header& one) {
                      return is_text(header.name, one.name) && is_text(header.text, one.text);
                    }) &&
         request.compiler == given_or(given.compiler, defaults.compiler) &&
         request.isa_wish == given_or(given.isa, defaults.isa_wish) &&
         request.abi_tag == given_or(given.abi_tag, defaults.abi_tag) &&
         request.exact_flags == (given.exact_flags != 0) && request.no_cache == (given.no_cache != 0);
}

}  // namespace

Result<Defaults> defaults_of(const Result<common::Settings>& settings) {
  if (!settings) return std::unexpected(settings.error());
  Result<std::vector<std::string>> flags = common::split_flags(settings->text("cflags"));
  if (!flags) return std::unexpected(std::move(flags.error()));
  Request request;
  request.flags = std::move(*flags);
  request.compiler = settings->text("cc");
  request.isa_wish = settings->text("isa");
  request.share = settings->text("share");
  request.cse = settings->text("cse");
  return Defaults{std::move(request), settings->text("canary")};
}

Request request_of(const jitc_request& given, const Request& defaults, std::string origin) {
  Request request = defaults;
  request.name = name_of(given);
  request.origin = std::move(origin);
  for (std::size_t i = 0; i < given.flag_count; ++i) request.flags.emplace_back(given.flags[i]);
  for (std::size_t i = 0; i < given.header_count; ++i)
    request.headers.push_back({given.headers[i].name, given.headers[i].text});
  request.compiler = given_or(given.compiler, defaults.compiler);
  request.isa_wish = given_or(given.isa, defaults.isa_wish);
  request.abi_tag = given_or(given.abi_tag, defaults.abi_tag);
  request.exact_flags = given.exact_flags != 0;
  request.no_cache = given.no_cache != 0;
  return request;
}

gate::Demand demand_of(const jitc_request* request, const Result<Defaults>& defaults, RecentRequests& recent) {
  try {
    if (!defaults) return {std::unexpected(defaults.error()), {}};
    if (!request) return {common::fail(ErrorKind::kUsage, "no request was given", "jitc_compile"), {}};
    const jitc_request given = from_sized(request);
    std::string manifest;
    if (given.manifest) manifest.assign(static_cast<const char*>(given.manifest), given.manifest_length);
    jitc_text made;
    const Result<std::string_view> source = source_of(given, name_of(given), made);
    if (!source) return {std::unexpected(source.error()), {}};
    const common::SharedRequest& known =
        recent.get([&](const Request& one) { return is_request_of(one, given, defaults->request, *source); },
                   [&] {
                     Request wanted = request_of(given, defaults->request, std::string(*source));
                     wanted.emitter_version = sharing_version(wanted);
                     return wanted;
                   });
    gate::Demand demand{known, std::move(manifest)};
    if (wants_sharing(*known)) {
      demand.make_code = [](const Request& asked) -> Result<gate::MadeCode> { return shared_text(asked); };
      demand.origin_is_source = true;
    }
    return demand;
  } catch (...) {  // memory, or a C++ callback that throws: the other ranks must hear of it like of any failure
    return {std::unexpected(failure_of_exception().error), {}};
  }
}

}  // namespace jitc::api
