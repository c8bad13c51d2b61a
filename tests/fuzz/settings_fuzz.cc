// Settings files, mutated: each is refused with the place and the reason, or every setting has a value of its type.
#include <unistd.h>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "common/settings.h"
#include "common/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace jitc::common;

bool has_its_type(const Settings& settings, const SettingInfo& info) {
  const std::string text = settings.text(info.name);
  switch (info.type) {
    case SettingType::kText:
    case SettingType::kDirectory:
    case SettingType::kFile:
    case SettingType::kList:
      return is_utf8(text);
    case SettingType::kBool:
      return text == "0" || text == "1";
    case SettingType::kCount:
      return settings.count(info.name) <= ~std::uint32_t{0};
    case SettingType::kPositive:
      return settings.count(info.name) >= 1 && settings.count(info.name) <= ~std::uint32_t{0};
    case SettingType::kBytes:
      return parse_bytes(text).has_value();
    case SettingType::kSeconds:
      return settings.seconds(info.name) >= 0 && std::isfinite(settings.seconds(info.name));
    case SettingType::kChoice:
      return !text.empty() && (" " + std::string(info.choices) + " ").find(" " + text + " ") != std::string::npos;
    case SettingType::kMode:
      return !text.empty() && text.find_first_not_of("01234567") == std::string::npos;
  }
  return false;
}

std::string check(const std::string& path, const std::string& input) {
  // A new file each time: cutting one makes some file systems write through to the disk.
  ::unlink(path.c_str());
  std::ofstream(path, std::ios::binary) << input;
  const auto settings = Settings::load();
  if (!settings) {
    const Error& error = settings.error();
    if (error.kind != ErrorKind::kUsage || error.message.empty() || error.thing.empty() || error.remedy.empty())
      return "refused without saying what is wrong: " + to_line(error);
    return is_utf8(to_line(error)) ? "" : "an error that is not UTF-8";
  }
  for (const auto& info : settings_table()) {
    const auto& value = settings->value(info.name);
    if (value.origin != "default" && value.origin != path) return "a setting from " + value.origin;
    if (!has_its_type(*settings, info)) return std::string(info.name) + " is '" + value.text + "'";
    for (const auto& item : settings->list(info.name))
      if (item.empty() || item.find(':') != std::string::npos) return "a list with an item '" + item + "'";
  }
  return {};
}

}  // namespace

jitc::fuzz::Target jitc::fuzz::target() {
  static const jitc::testing::TemporaryDirectory directory;
  static const std::string path = directory.path() + "/job.toml";
  std::vector<jitc::testing::ScopedEnvironment::Variable> variables{
      {"HOME", directory.path().c_str()}, {"XDG_CONFIG_HOME", nullptr}, {"XDG_CACHE_HOME", nullptr}};
  std::string everything;
  for (const auto& info : settings_table()) {
    variables.emplace_back(info.environment, nullptr);
    everything += std::string(info.name) + " = '" + std::string(info.fallback) + "'\n";
  }
  variables.emplace_back("JITC_JOB_FILE", path.c_str());
  static const jitc::testing::ScopedEnvironment environment(variables);
  return {
      .name = "settings_fuzz",
      .corpus = {everything, "# nothing\n", "cc = 'gcc'\nmax_compilers = 4\nautostart = true\n",
                 "include_roots = ['/a', \"/b\"]\r\nstore_max = \"2G\"\nidle_exit = '1.5h'\nstore_mode = \"0640\"\n",
                 "cflags = \"\"\"\n-O2 \\\n -g0\"\"\"\nmemory_budget = 0x40_00\ntries = 3\n"},
      .words = {"=",
                "'",
                "\"",
                "\"\"\"",
                "'''",
                "[",
                "]",
                "[[",
                "]]",
                "{",
                "}",
                ",",
                ".",
                "\n",
                "#",
                "\\u00e9",
                "\\U0010FFFF",
                "\\uD800",
                "\xff",
                "\xef\xbb\xbf",
                "true",
                "1e400",
                "nan",
                "-inf",
                "0o777",
                "0b101",
                "99999999999999999999",
                "1979-05-27T07:32:00Z",
                "cse = 2\n",
                "tries = 0\n",
                "store_max = '16E'\n",
                "timeout = '1e9'\n",
                "timeout = 'nan'\n",
                "store_mode = '9'\n",
                "grace = '-1s'\n",
                "unknown = 1\n",
                "store.a = 1\n"},
      .check = [](const std::string& input) { return check(path, input); },
      .change = {}};
}
