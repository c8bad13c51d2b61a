// One table of settings: name, environment variable, flag, type, unit, default, help. A value's origin is known.
// Precedence: flag > environment > job file (JITC_JOB_FILE) > user file > site file > default.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace jitc::common {

enum class SettingType {
  kText,
  kDirectory,
  kFile,
  kList,  // of paths
  kBool,
  kCount,
  kPositive,
  kBytes,
  kSeconds,
  kChoice,
  kMode
};

struct SettingInfo {
  std::string_view name;         // in TOML files: "store", "max_compilers"
  std::string_view environment;  // JITC_STORE
  std::string_view flag;         // --store; empty: none
  SettingType type;
  std::string_view fallback;  // the default, as text
  std::string_view choices;   // for kChoice: "0 1 auto"
  std::string_view help;
};
std::span<const SettingInfo> settings_table();
// What stands for a value in help texts: "DIR", "SIZE", "{0,1,auto}".
std::string value_name(const SettingInfo& info);

// Variables of this process whose names begin with JITC_, and that nothing reads: misspelt ones.
std::vector<std::string> unknown_variables();

class Settings {
 public:
  struct Value {
    std::string text;
    std::string origin;  // "default", "JITC_STORE", "--store", "/etc/jitc/jitc.toml", "jitc_options"
  };
  // Reads files and environment; `given` maps setting names to texts that come before these: flags of the command line,
  // or what `giver` says. kUsage names the key, the value, where it came from and what is allowed.
  static Result<Settings> load(const std::map<std::string, std::string>& given = {}, std::string_view giver = {});

  // The name must be in the table with a fitting type (a programming error otherwise: the process aborts).
  const Value& value(std::string_view name) const;
  std::string text(std::string_view name) const { return value(name).text; }
  bool is_set(std::string_view name) const;                    // not the default
  std::vector<std::string> list(std::string_view name) const;  // ':' separated
  bool flag(std::string_view name) const;
  std::uint64_t count(std::string_view name) const;
  std::uint64_t bytes(std::string_view name) const;
  double seconds(std::string_view name) const;
  mode_t mode(std::string_view name) const;

 private:
  std::map<std::string, Value, std::less<>> values_;
};

// "400M" -> 400 * 2^20; suffixes K M G T, none: bytes.
Result<std::uint64_t> parse_bytes(std::string_view text);
// "30", "1.5s", "10min", "2h", "30d" -> seconds.
Result<double> parse_seconds(std::string_view text);
// A time that was parsed, in whole seconds; none but 0 becomes 0.
std::chrono::seconds rounded_up(double seconds);
// "123" -> 123, up to 2^32 - 1. No sign, no blank, no 0 before other digits.
Result<std::uint64_t> parse_count(std::string_view text);
// The same, 1 or more.
Result<std::uint64_t> parse_positive(std::string_view text);

}  // namespace jitc::common
