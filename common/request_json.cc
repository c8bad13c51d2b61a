#include "common/request_json.h"

namespace jitc::common {
namespace {

// Which members each object has, for the writer and the reader alike.
template <class R, class Visit>
void visit_request(R& request, Visit visit) {
  visit("name", request.name);
  visit("origin", request.origin);
  visit("code", request.code);
  visit("flags", request.flags);
  visit("compiler", request.compiler);
  visit("abi_tag", request.abi_tag);
  visit("share", request.share);
  visit("cse", request.cse);
  visit("emitter_version", request.emitter_version);
  visit("isa_wish", request.isa_wish);
  visit("isa_level", request.isa_level);
  visit("exact_flags", request.exact_flags);
}
template <class H, class Visit>
void visit_header(H& header, Visit visit) {
  visit("name", header.name);
  visit("text", header.text);
}

bool read_headers(const nlohmann::json& request, std::vector<Header>& headers, std::string& wrong) {
  const auto it = request.find("headers");
  if (it == request.end()) return true;
  if (!it->is_array()) return false;
  for (const auto& item : *it) {
    if (!item.is_object()) return false;
    visit_header(headers.emplace_back(), Members(item, wrong));
  }
  return true;
}

}  // namespace

nlohmann::ordered_json request_to_json(const Request& request) {
  using Json = nlohmann::ordered_json;
  Json object = Json::object();
  visit_request(request, writer(object));
  Json& headers = object["headers"] = Json::array();
  for (const Header& header : request.headers) visit_header(header, writer(headers.emplace_back(Json::object())));
  return object;
}

Request request_from_json(const nlohmann::json& object, std::string& wrong) {
  Request request;
  visit_request(request, Members(object, wrong));
  if (!read_headers(object, request.headers, wrong) && wrong.empty()) wrong = "headers";
  return request;
}

}  // namespace jitc::common
