// Capsules, mutated: each is refused as none, or read and written again as it was.
#include <string>
#include <utility>

#include "common/capsule.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json_change.h"

namespace {

using namespace jitc::common;
namespace fuzz = jitc::fuzz;

Capsule good_capsule(bool is_full) {
  Capsule capsule;
  capsule.request.origin = "int f(void) { return q; }\n";
  capsule.error = {ErrorKind::kInvalidSource, "does not compile", "f.c"};
  if (!is_full) return capsule;
  capsule.created = "2024-02-29T23:59:59Z";
  capsule.jitc = "0.1.0";
  capsule.host = "node7";
  capsule.request.code = "int f(void) { return q + 0; }\n";
  capsule.request.flags = {"-O3", "-DX=1"};
  capsule.request.headers = {{"a.h", "#define A 1\n"}, {"b/c.h", ""}};
  capsule.key = capsule.request_digest = std::string(64, 'a');
  capsule.compiler = {"gcc", "/usr/bin/gcc", "digest"};
  capsule.target = {"x86_64-pc-linux-gnu", "x86-64-v3"};
  capsule.command = {"/usr/bin/gcc", "-O3"};
  capsule.environment = {"LANG=C"};
  capsule.memory_bytes = capsule.budget_bytes = ~std::uint64_t{0} >> 1;
  capsule.cpu_seconds = 600;
  capsule.seconds = 0.5;
  capsule.attempts = 2;
  capsule.signal = 11;
  capsule.error.diagnostics = {{"error", 1, 22, "'q' undeclared", "int f(void) { return q; }\n"}};
  capsule.error.rungs = {"tried again"};
  return capsule;
}

// Somewhere, a value becomes one that is nested as deeply as the size of a capsule allows.
std::string with_deep_value(std::string text, fuzz::Mutator& mutator) {
  const std::size_t depth = mutator.below(200'000);
  const std::size_t at = text.find(mutator.below(2) == 0 ? "\"\"" : "0", mutator.below(text.size() + 1));
  if (at == std::string::npos) return text;
  return text.replace(at, text[at] == '0' ? 1 : 2, std::string(depth, '[') + std::string(depth, ']'));
}

void change(std::string& input, fuzz::Mutator& mutator) {
  if (mutator.below(128) == 0) {
    input = with_deep_value(std::move(input), mutator);
  } else {
    fuzz::change_value(input, mutator);
  }
}

std::string check(const std::string& input) {
  const auto capsule = capsule_from_json(input, "capsule.json");
  if (!capsule) {
    const Error& error = capsule.error();
    const bool is_explained = error.kind == ErrorKind::kUsage || error.kind == ErrorKind::kVersionSkew;
    return is_explained && !error.message.empty() ? "" : "refused as " + to_line(error);
  }
  static_cast<void>(check_request(capsule->request));
  const std::string written = to_json(*capsule);
  const auto again = capsule_from_json(written, "capsule.json");
  if (!again) return "what was read and written is refused: " + to_line(again.error());
  return to_json(*again) == written ? "" : "a capsule changes when it is read and written again";
}

}  // namespace

fuzz::Target fuzz::target() {
  return {.name = "capsule_fuzz",
          .corpus = {to_json(good_capsule(true)), to_json(good_capsule(false))},
          .words = fuzz::json_words({"1e308", "0.1", "18446744073709551615", "9223372036854775808", "\"version\": 1",
                                     "\"headers\": [{\"name\": \"a.h\"}]", "\"diagnostics\": [{\"line\": ",
                                     "\"error\": {", "\"request\": {", "\"kind\": \"OUT_OF_MEMORY\""}),
          .check = check,
          .change = change};
}
