// Problems in JSON, mutated: each is refused with an error, or lowers and prints.
#include "client/graph/emit.h"
#include "client/graph/import_json.h"
#include "client/graph/problem.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::string check(const std::string& input) {
  auto problem = jitc::graph::import_json(input);
  if (!problem) return problem.error().message.empty() ? "an error without a message" : "";
  const auto functions = jitc::graph::lower(*problem);
  if (!functions) return functions.error().message.empty() ? "an error without a message" : "";
  const auto text = jitc::graph::emit(problem->graph, *functions, {});
  if (!text) return text.error().message.empty() ? "an error without a message" : "";
  return text->empty() ? "an empty text" : "";
}

}  // namespace

jitc::fuzz::Target jitc::fuzz::target() {
  return {
      .name = "json_fuzz",
      .corpus = corpus_files("problem.json"),
      .words = {"\"id\":",       "\"op\":\"pow\"", "\"args\":[", "0",       "-1",          "4294967295", "1e400",
                "\"0x1p-1074\"", "\"1/0\"",        "null",       "{",       "}",           "[",          "]",
                "\"max\"",       "\"piecewise\"",  "\"leaf\"",   "\"u_x\"", "\"index\":[", "true",       "\"named\"",
                "\"and\"",       "\"value\":\"",   "\\u0000",    "\xff"},
      .check = check,
      .change = {}};
}
