#include "daemon/observe/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

namespace jitc::observe {
namespace {

using common::ErrorKind;

constexpr std::size_t kLogBytes = std::size_t{8} << 20;

constexpr std::array<std::pair<std::string_view, Level>, 6> kLevels{{{"trace", Level::kTrace},
                                                                     {"debug", Level::kDebug},
                                                                     {"info", Level::kInfo},
                                                                     {"warn", Level::kWarning},
                                                                     {"error", Level::kError},
                                                                     {"off", Level::kOff}}};

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

struct Log {
  std::shared_ptr<spdlog::logger> logger =
      std::make_shared<spdlog::logger>("jitcd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  LogFormat format = LogFormat::kText;
};
// Set once, before threads start.
Log& current() {
  static Log log;
  return log;
}

std::string as_text(std::string_view message, std::initializer_list<Field> fields) {
  std::string line(message);
  for (const auto& [name, value] : fields) {
    const bool plain = !value.empty() && value.find_first_of(" \"\n=") == value.npos;
    line.append(" ").append(name).append("=");
    line += plain ? value : nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return line;
}

std::string as_json(Level level, std::string_view message, std::initializer_list<Field> fields) {
  nlohmann::json object;
  const auto entry = std::find_if(kLevels.begin(), kLevels.end(), [&](const auto& e) { return e.second == level; });
  object["level"] = entry->first;
  object["message"] = message;
  for (const auto& [name, value] : fields) object[std::string(name)] = value;
  // The time is spdlog's pattern's; the object goes on behind it.
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(1);
}

}  // namespace

common::Result<LogOptions> parse_log_spec(std::string_view spec) {
  const auto colon = spec.find(':');
  const auto name = spec.substr(0, colon);
  const auto entry = std::find_if(kLevels.begin(), kLevels.end(), [&](const auto& e) { return e.first == name; });
  if (entry == kLevels.end()) {
    return common::fail(ErrorKind::kUsage, "unknown log level \"" + std::string(name) + "\"", "log",
                        "use trace, debug, info, warn, error or off, with :FILE behind it for a file");
  }
  LogOptions options;
  options.level = entry->second;
  if (colon != spec.npos) options.file = spec.substr(colon + 1);
  return options;
}

common::Result<void> open_log(const LogOptions& options) {
  Log& log = current();
  log.format = options.format;
  if (!options.file.empty()) {
    try {
      log.logger = std::make_shared<spdlog::logger>(
          "jitcd", std::make_shared<spdlog::sinks::rotating_file_sink_mt>(options.file, kLogBytes, 1));
    } catch (const spdlog::spdlog_ex& error) {
      return common::fail(ErrorKind::kUsage, error.what(), options.file, "name a log file that can be written");
    }
  }
  log.logger->set_level(to_spdlog(options.level));
  log.logger->flush_on(spdlog::level::trace);
  log.logger->set_pattern(options.format == LogFormat::kJson ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%e%z\",%v"
                                                             : "%Y-%m-%d %H:%M:%S.%e jitcd[%P] %l: %v");
  return {};
}

void log(Level level, std::string_view message, std::initializer_list<Field> fields) {
  Log& log = current();
  const auto severity = to_spdlog(level);
  if (!log.logger->should_log(severity)) return;
  const std::string line = log.format == LogFormat::kJson ? as_json(level, message, fields) : as_text(message, fields);
  log.logger->log(severity, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace jitc::observe
