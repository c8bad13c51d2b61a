// The one error type: what happened, to which thing, what to do. Its kinds are the typed failures of the contract and
// those that only a client can meet.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::common {

enum class ErrorKind : std::uint8_t {
  kInvalidSource = 1,  // the source does not compile; see `diagnostics`
  kRefused,            // policy, or no room: see `retry_after_seconds`
  kOutOfMemory,        // see `needed_bytes`, `budget_bytes`, `tries`
  kTimedOut,
  kCancelled,
  kCompilerCrashed,
  kStoreFull,
  kStoreUnavailable,
  kDraining,
  kVersionSkew,
  kUnreachable,  // no daemon, or it does not answer
  kUsage,        // a wrong argument or setting
  kDivergent,    // ranks ask for different things
  kBroken,       // the communicator cannot be used any more
  kNotLoaded,    // a rank could not load the module
  kCorrupt,      // an artifact does not verify
  kInternal,     // a bug
  kMiscompiled,  // the module does not compute what was asked for, see docs/canary.md
};

// "OUT_OF_MEMORY" and so on: stable names for JSON, logs and tests.
std::string_view name_of(ErrorKind kind);
// Exit codes of `jitc`, as its manual states them.
int exit_code(ErrorKind kind);

struct Diagnostic {
  std::string severity;      // error, warning, note
  std::uint32_t line = 0;    // 1-based; 0: no place
  std::uint32_t column = 0;  // 1-based
  std::string message;
  std::string excerpt;  // the source line and the caret under it
  bool operator==(const Diagnostic&) const = default;
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;  // what happened
  std::string thing;    // to which thing (a file, a flag, a setting, a socket); may be empty
  std::string remedy;   // what to do; may be empty
  std::vector<Diagnostic> diagnostics;
  std::string log;
  std::uint64_t needed_bytes = 0;
  std::uint64_t budget_bytes = 0;
  std::uint32_t tries = 0;
  std::vector<std::string> rungs;  // what was tried before this was the answer, in order
  double retry_after_seconds = 0;  // when to ask again, as the daemon guesses; 0: it does not say
  std::string capsule;  // the file, on the daemon's node, that 'jitc replay' compiles again; empty: none was left
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

std::unexpected<Error> fail(ErrorKind kind, std::string message, std::string thing = {}, std::string remedy = {});
// With the text of `error_number`, as errno gave it.
std::unexpected<Error> fail_errno(ErrorKind kind, int error_number, std::string what, std::string thing,
                                  std::string remedy = {});

// One line, for logs: KIND: thing: message (remedy).
std::string to_line(const Error& error);
// Many lines, for people; `name` replaces the source's fixed name in diagnostics (file:line:column: severity: text).
std::string to_text(const Error& error, std::string_view name = "source.c");
// For programs, and for capsules. Never fails: what cannot be read becomes kInternal with the text.
std::string to_json(const Error& error);
Error error_from_json(std::string_view text);

}  // namespace jitc::common
