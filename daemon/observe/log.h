// The daemon's log: one line per event, as text or JSON. Thread-safe; before open() lines go to stderr.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "common/error.h"

namespace jitc::observe {

enum class Level { kTrace, kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

struct LogOptions {
  Level level = Level::kInfo;
  LogFormat format = LogFormat::kText;
  std::string file;  // empty: stderr. Turned over once at 8 MiB, so that a daemon of months does not fill a disk.
};
// JITC_LOG: "level" or "level:file"; kUsage names what is allowed.
common::Result<LogOptions> parse_log_spec(std::string_view spec);
common::Result<void> open_log(const LogOptions& options);

using Field = std::pair<std::string_view, std::string>;
void log(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void log_debug(std::string_view message, std::initializer_list<Field> fields = {}) {
  log(Level::kDebug, message, fields);
}
inline void log_info(std::string_view message, std::initializer_list<Field> fields = {}) {
  log(Level::kInfo, message, fields);
}
inline void log_warning(std::string_view message, std::initializer_list<Field> fields = {}) {
  log(Level::kWarning, message, fields);
}
inline void log_error(std::string_view message, std::initializer_list<Field> fields = {}) {
  log(Level::kError, message, fields);
}

}  // namespace jitc::observe
