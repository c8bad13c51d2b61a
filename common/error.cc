#include "common/error.h"

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json.h"

namespace jitc::common {
namespace {

struct KindInfo {
  ErrorKind kind;
  std::string_view name;
  int exit_code;
};
constexpr std::array kKinds{
    KindInfo{ErrorKind::kInvalidSource, "INVALID_SOURCE", 1},
    KindInfo{ErrorKind::kRefused, "REFUSED", 4},
    KindInfo{ErrorKind::kOutOfMemory, "OUT_OF_MEMORY", 5},
    KindInfo{ErrorKind::kTimedOut, "TIMED_OUT", 6},
    KindInfo{ErrorKind::kCancelled, "CANCELLED", 9},
    KindInfo{ErrorKind::kCompilerCrashed, "COMPILER_CRASHED", 8},
    KindInfo{ErrorKind::kStoreFull, "STORE_FULL", 7},
    KindInfo{ErrorKind::kStoreUnavailable, "STORE_UNAVAILABLE", 7},
    KindInfo{ErrorKind::kDraining, "DRAINING", 3},
    KindInfo{ErrorKind::kVersionSkew, "VERSION_SKEW", 3},
    KindInfo{ErrorKind::kUnreachable, "UNREACHABLE", 3},
    KindInfo{ErrorKind::kUsage, "USAGE", 2},
    KindInfo{ErrorKind::kDivergent, "DIVERGENT", 4},
    KindInfo{ErrorKind::kBroken, "BROKEN", 70},
    KindInfo{ErrorKind::kNotLoaded, "NOT_LOADED", 70},
    KindInfo{ErrorKind::kCorrupt, "CORRUPT", 7},
    KindInfo{ErrorKind::kMiscompiled, "MISCOMPILED", 8},
    KindInfo{ErrorKind::kInternal, "INTERNAL", 70},
};

const KindInfo& info(ErrorKind kind) {
  for (const auto& entry : kKinds)
    if (entry.kind == kind) return entry;
  return kKinds.back();
}

void append_clause(std::string& text, std::string_view before, std::string_view clause, std::string_view after = "") {
  if (!clause.empty()) text.append(before).append(clause).append(after);
}

}  // namespace

std::string_view name_of(ErrorKind kind) { return info(kind).name; }

int exit_code(ErrorKind kind) { return info(kind).exit_code; }

std::unexpected<Error> fail(ErrorKind kind, std::string message, std::string thing, std::string remedy) {
  Error error;
  error.kind = kind;
  error.message = std::move(message);
  error.thing = std::move(thing);
  error.remedy = std::move(remedy);
  return std::unexpected(std::move(error));
}

std::unexpected<Error> fail_errno(ErrorKind kind, int error_number, std::string what, std::string thing,
                                  std::string remedy) {
  std::array<char, 128> buffer{};
  const char* text = ::strerror_r(error_number, buffer.data(), buffer.size());
  return fail(kind, std::move(what) + ": " + text, std::move(thing), std::move(remedy));
}

std::string to_line(const Error& error) {
  std::string line(name_of(error.kind));
  append_clause(line, ": ", error.thing);
  append_clause(line, ": ", error.message);
  append_clause(line, " (", error.remedy, ")");
  return line;
}

std::string to_text(const Error& error, std::string_view name) {
  std::string text;
  for (const auto& diagnostic : error.diagnostics) {
    text.append(name);
    if (diagnostic.line != 0) {
      text.append(":").append(std::to_string(diagnostic.line));
      text.append(":").append(std::to_string(diagnostic.column));
    }
    text.append(": ").append(diagnostic.severity).append(": ").append(diagnostic.message).append("\n");
    append_clause(text, "", diagnostic.excerpt, "\n");
  }
  text.append(to_line(error)).append("\n");
  for (const auto& rung : error.rungs) text.append("  before: ").append(rung).append("\n");
  append_clause(text, "  to compile it again: jitc replay ", error.capsule, "\n");
  if (error.diagnostics.empty() && !error.log.empty()) {
    text.append(error.log);
    if (!error.log.ends_with('\n')) text.append("\n");
  }
  return text;
}

std::string to_json(const Error& error) {
  nlohmann::json diagnostics = nlohmann::json::array();
  for (const auto& d : error.diagnostics)
    diagnostics.push_back({{"severity", d.severity},
                           {"line", d.line},
                           {"column", d.column},
                           {"message", d.message},
                           {"excerpt", d.excerpt}});
  const nlohmann::json object = {{"kind", name_of(error.kind)},
                                 {"message", error.message},
                                 {"thing", error.thing},
                                 {"remedy", error.remedy},
                                 {"diagnostics", std::move(diagnostics)},
                                 {"log", error.log},
                                 {"needed_bytes", error.needed_bytes},
                                 {"budget_bytes", error.budget_bytes},
                                 {"tries", error.tries},
                                 {"rungs", error.rungs},
                                 {"retry_after_seconds", error.retry_after_seconds},
                                 {"capsule", error.capsule}};
  // Bytes that are not UTF-8 (a compiler's log) are replaced, never thrown at.
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error error_from_json(std::string_view text) {
  const auto object = parse_json(text);
  Error error;
  if (!object.is_object()) {
    error.message = "an error arrived that cannot be read: " + std::string(text.substr(0, 200));
    return error;
  }
  const auto string = [](const nlohmann::json& from, const char* key) {
    const auto it = from.find(key);
    return it != from.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  const auto number = [](const nlohmann::json& from, const char* key) {
    const auto it = from.find(key);
    return it != from.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
  };
  const std::string kind = string(object, "kind");
  for (const auto& entry : kKinds)
    if (entry.name == kind) error.kind = entry.kind;
  error.message = string(object, "message");
  error.thing = string(object, "thing");
  error.remedy = string(object, "remedy");
  error.log = string(object, "log");
  error.capsule = string(object, "capsule");
  error.needed_bytes = number(object, "needed_bytes");
  error.budget_bytes = number(object, "budget_bytes");
  error.tries = static_cast<std::uint32_t>(number(object, "tries"));
  const auto retry_after = object.find("retry_after_seconds");
  if (retry_after != object.end() && retry_after->is_number()) error.retry_after_seconds = retry_after->get<double>();
  const auto rungs = object.find("rungs");
  if (rungs != object.end() && rungs->is_array())
    for (const auto& rung : *rungs)
      if (rung.is_string()) error.rungs.push_back(rung.get<std::string>());
  const auto diagnostics = object.find("diagnostics");
  if (diagnostics != object.end() && diagnostics->is_array())
    for (const auto& d : *diagnostics)
      error.diagnostics.push_back({string(d, "severity"), static_cast<std::uint32_t>(number(d, "line")),
                                   static_cast<std::uint32_t>(number(d, "column")), string(d, "message"),
                                   string(d, "excerpt")});
  return error;
}

}  // namespace jitc::common
