// Plans, mutated: each is refused with the line's number, or its requests are written and read again as they were, and
// a line that somebody adds is read behind whatever is there.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "common/plan.h"
#include "common/request_json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json_change.h"

namespace {

using namespace jitc::common;
namespace fuzz = jitc::fuzz;

Request small_request() {
  Request request;
  request.origin = "int f(void);\n";
  return request;
}

Request full_request() {
  Request request;
  request.origin = "{\"problem\": 1}";
  request.code = "int f(void) { return 0; }\n";
  request.flags = {"-O3", "-DX='a b'"};
  request.compiler = "gcc";
  request.abi_tag = "petsc 3.18";
  request.share = "0";
  request.emitter_version = 3;
  request.isa_wish = "x86-64-v3";
  request.headers = {{"a.h", "#define A 1\n"}, {"b/c.h", ""}};
  request.exact_flags = true;
  request.name = "name";
  return request;
}

std::set<std::string> recorded_digests(const std::string& input) {
  std::set<std::string> digests;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) continue;
    const auto digest = object.find("digest");
    if (digest != object.end() && digest->is_string()) digests.insert(digest->get<std::string>());
  }
  return digests;
}

Result<std::string> lines_of(const Plan& plan) {
  std::string lines;
  for (const Request& request : plan.requests) {
    auto line = plan_line(request);
    if (!line) return line;
    lines += *line;
  }
  return lines;
}

std::string check_written(const Plan& plan) {
  const auto lines = lines_of(plan);
  if (!lines) return "what was read cannot be written: " + to_line(lines.error());
  const auto again = plan_from_text(*lines, "plan");
  if (!again) return "what was read and written is refused: " + to_line(again.error());
  if (again->requests.size() != plan.requests.size() || !again->cut_lines.empty()) return "requests are lost";
  return lines_of(*again) == *lines ? "" : "a plan changes when it is read and written again";
}

std::string check(const std::string& input) {
  const auto plan = plan_from_text(input, "plan");
  if (!plan) {
    const Error& error = plan.error();
    const bool is_explained = error.kind == ErrorKind::kUsage || error.kind == ErrorKind::kVersionSkew;
    return is_explained && !error.message.empty() && error.thing.starts_with("plan:") ? ""
                                                                                      : "refused as " + to_line(error);
  }
  const auto digests = recorded_digests(input);
  for (const Request& request : plan->requests)
    if (!digests.contains(request_digest(request).hex())) return "a request that was not recorded";
  if (auto wrong = check_written(*plan); !wrong.empty()) return wrong;
  Request added = small_request();
  added.origin += "int added(void);\n";
  const auto longer = plan_from_text(input + "\n" + *plan_line(added), "plan");
  if (!longer) return "refused with a line added: " + to_line(longer.error());
  return longer->requests.size() == plan->requests.size() + 1 && longer->cut_lines == plan->cut_lines
             ? ""
             : "an added line is not read";
}

// The digest of the request that is in the line, for what is behind that check.
void seal(std::string& line) {
  auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("request") || !object["request"].is_object()) return;
  std::string ignored;
  object["digest"] = request_digest(request_from_json(object["request"], ignored)).hex();
  line = object.dump();
}

void change(std::string& input, fuzz::Mutator& mutator) {
  const std::size_t inside = mutator.below(input.size() + 1);
  const std::size_t before = inside == 0 ? std::string::npos : input.rfind('\n', inside - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  std::string line = input.substr(begin, input.find('\n', begin) - begin);
  const std::size_t size = line.size();
  fuzz::change_value(line, mutator);
  if (mutator.below(2) == 0) seal(line);
  input.replace(begin, size, line);
}

}  // namespace

fuzz::Target fuzz::target() {
  const std::string small = *plan_line(small_request()), full = *plan_line(full_request());
  return {.name = "plan_fuzz",
          .corpus = {small, full, small + full, full.substr(0, 100) + "\n" + small, full + "\n" + small.substr(0, 200)},
          .words = fuzz::json_words({"\n", "\r\n", "\n\n", "1e308", "\\n", "18446744073709551616",
                                     "\"format\":\"jitc plan\"", "\"version\":1", "\"version\":2", "\"request\":{",
                                     "\"headers\":[{\"name\":\"a.h\"}]", "\"isa_level\":\"x86-64-v2\"", "\"flags\":["}),
          .check = check,
          .change = change};
}
