#include "common/settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <ranges>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Wrong files ("[[#") fail an assertion of the parser that stands before its own error.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include "common/files.h"
#include "common/utf8.h"

namespace jitc::common {
namespace {

using enum SettingType;

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 10;
// The parser goes down one level of the stack for each part of a dotted name, which stands in one line.
constexpr std::ptrdiff_t kMostDots = 1000;

constexpr auto kTable = std::to_array<SettingInfo>({
    {"runtime_dir", "JITC_RUNTIME_DIR", "--runtime-dir", kText, "", "",
     "directory of socket, lock and identity file (default: $XDG_RUNTIME_DIR/jitc, else jitc-<uid> in the temp "
     "directory; "
     "inside a batch job <job>.<node> below it)"},
    {"store", "JITC_STORE", "--store", kText, "", "", "writable store of artifacts (default: ~/.cache/jitc)"},
    {"store_readonly", "JITC_STORE_READONLY", "", kList, "", "",
     "stores that are read before the writable one, ':' between"},
    {"store_max", "JITC_STORE_MAX", "--store-max", kBytes, "10G", "", "size that the writable store may reach"},
    {"store_max_entries", "JITC_STORE_MAX_ENTRIES", "", kCount, "1000000", "",
     "artifacts that the writable store may hold (0: any number)"},
    {"store_max_age", "JITC_STORE_MAX_AGE", "", kSeconds, "0", "",
     "how long an artifact stays that nobody uses, such as 90d (0: for ever)"},
    {"store_mode", "JITC_STORE_MODE", "", kMode, "0600", "",
     "mode of published entries, 0600 at least; directories get the x bits that go with it"},
    {"store_allow_shared", "JITC_STORE_ALLOW_SHARED", "", kBool, "0", "",
     "a group's store: accept one that others may write, and what they put into it"},
    {"store_lease", "JITC_STORE_LEASE", "", kBool, "1", "",
     "let one of the daemons on a store compile a source for all of them"},
    {"max_compilers", "JITC_MAX_COMPILERS", "--max-compilers", kCount, "0", "",
     "compilers that may run at once on this node (0: the cores that the daemon may use)"},
    {"memory_budget", "JITC_MEMORY_BUDGET", "--memory-budget", kBytes, "0", "",
     "memory for all compilers together (0: what this process may use, re-read as it runs)"},
    {"cflags", "JITC_CFLAGS", "--cflags", kText,
     "-O3 -g0 -std=gnu11 -ffp-contract=off -fno-math-errno -fno-trapping-math", "",
     "compiler flags, replacing the default ones; -fPIC -shared are always there"},
    {"cc", "JITC_CC", "--cc", kText, "clang", "", "compiler: clang (embedded), gcc, or a path that the daemon allows"},
    {"compilers", "JITC_COMPILERS", "", kList, "", "",
     "paths of further compilers that the daemon may run, ':' between"},
    {"include_roots", "JITC_INCLUDE_ROOTS", "", kList, "", "",
     "directories that sources may include from, ':' between"},
    {"cse", "JITC_CSE", "--cse", kChoice, "auto", "0 1 auto",
     "share common subexpressions of symbolic input when it is printed"},
    {"share", "JITC_SHARE", "--share", kChoice, "auto", "0 1 auto",
     "share common subexpressions of C text before its first compile"},
    {"canary", "JITC_CANARY", "", kChoice, "auto", "auto off on",
     "call a fresh module of a problem at seeded points and compare before anybody gets it (auto: unless flags such as "
     "-ffast-math let values differ)"},
    {"isa", "JITC_ISA", "--isa", kText, "common", "",
     "instruction set: common (to the job's CPUs), native, or a level such as x86-64-v3"},
    {"divergent", "JITC_DIVERGENT", "", kChoice, "error", "error adopt",
     "ranks that ask for different sources: an error, or the root's source"},
    {"timeout", "JITC_TIMEOUT", "", kSeconds, "30s", "",
     "silence after which a client gives up, or the daemon on its store (0: never)"},
    {"arrival_timeout", "JITC_ARRIVAL_TIMEOUT", "", kSeconds, "10min", "",
     "how long ranks wait for the others to begin a call (0: for ever)"},
    {"progress", "JITC_PROGRESS", "", kChoice, "auto", "0 1 auto",
     "progress lines on standard error (auto: on a terminal)"},
    {"log", "JITC_LOG", "--log", kText, "info", "", "LEVEL or LEVEL:FILE; levels trace, debug, info, warn, error, off"},
    {"log_format", "JITC_LOG_FORMAT", "--log-format", kChoice, "text", "text json", "form of the daemon's log lines"},
    {"metrics_file", "JITC_METRICS_FILE", "", kText, "", "",
     "file that the daemon writes its counters to every 15 s, for node_exporter's textfile collector (NAME.prom)"},
    {"autostart", "JITC_AUTOSTART", "", kChoice, "auto", "0 1 auto",
     "start a daemon when none runs (auto: the command does, ranks of a solver do not)"},
    {"require_daemon", "JITC_REQUIRE_DAEMON", "", kBool, "0", "",
     "no fallback: without a daemon's answer a compile is an error"},
    {"stage_dir", "JITC_STAGE_DIR", "", kText, "", "",
     "load modules from files in this directory (for debuggers and profilers)"},
    {"record", "JITC_RECORD", "", kText, "", "", "file that each request of a run is added to, for 'jitc warm'"},
    {"lazy_arms", "JITC_LAZY_ARMS", "", kBool, "0", "", "never hoist a temporary out of a piecewise arm"},
    {"idle_exit", "JITC_IDLE_EXIT", "--idle-exit", kSeconds, "30min", "",
     "the daemon ends after so long without work (0: never, as with --foreground in a batch job unless this is set)"},
    {"cgroup", "JITC_CGROUP", "", kChoice, "auto", "0 auto",
     "bound each compile's processes by a control group of their own (auto: where one can be made; 0: by sampling)"},
    {"cpu_limit", "JITC_CPU_LIMIT", "", kSeconds, "600s", "", "processor time that one compile may take"},
    {"grace", "JITC_GRACE", "", kSeconds, "2s", "", "how long a compile goes on when nobody waits for it"},
    {"failure_memory", "JITC_FAILURE_MEMORY", "", kSeconds, "30s", "",
     "how long a failed compile answers the same request"},
    {"capsules", "JITC_CAPSULES", "", kCount, "20", "",
     "failed compiles that the daemon keeps for 'jitc replay', at most 64 MiB of them (0: none)"},
    {"tries", "JITC_TRIES", "", kPositive, "2", "", "starts of one compile before a crash is the answer"},
    {"queue_length", "JITC_QUEUE_LENGTH", "", kPositive, "10000", "", "compiles that may wait"},
    {"max_source", "JITC_MAX_SOURCE", "", kBytes, "64M", "", "size of the largest source that is taken"},
});

const SettingInfo* find(std::string_view name) {
  const auto it = std::ranges::find(kTable, name, &SettingInfo::name);
  return it == kTable.end() ? nullptr : &*it;
}

// The number at the front of `text`, and what stands behind it.
template <class Number>
std::optional<std::pair<Number, std::string_view>> number_and_rest(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return std::pair{value, text.substr(static_cast<std::size_t>(end - text.data()))};
}

constexpr mode_t kOwnerMode = 0600;  // without these bits not even its owner uses a store
constexpr mode_t kFileModes = 0666;
constexpr mode_t kOthersWrite = 0022;

mode_t mode_of(std::string_view octal) {
  mode_t mode = 0;
  std::from_chars(octal.data(), octal.data() + octal.size(), mode, 8);
  return mode;
}

bool is_mode(std::string_view text) {
  const bool is_octal =
      text.size() >= 3 && text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '7'; });
  return is_octal && (mode_of(text) & ~kFileModes) == 0 && (mode_of(text) & kOwnerMode) == kOwnerMode;
}

bool is_choice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const auto blank = choices.find(' ');
    if (choices.substr(0, blank) == text) return true;
    choices = blank == std::string_view::npos ? "" : choices.substr(blank + 1);
  }
  return false;
}

// What a text must look like; empty when it is right.
std::string what_is_allowed(const SettingInfo& info, const std::string& text) {
  // Messages between processes and the daemon's files are, and settings stand in both.
  if (!is_utf8(text)) return "text in UTF-8";
  switch (info.type) {
    case kText:
    case kList:
      return {};
    case kBool:
      return text == "0" || text == "1" ? "" : "0 or 1";
    case kCount:
      return parse_count(text) ? "" : "a whole number";
    case kPositive:
      return parse_positive(text) ? "" : "a whole number, 1 or more";
    case kBytes:
      return parse_bytes(text) ? "" : "bytes, such as 400M or 2G";
    case kSeconds:
      return parse_seconds(text) ? "" : "a time, such as 30s or 10min";
    case kChoice:
      return is_choice(info.choices, text) ? "" : "one of: " + std::string(info.choices);
    case kMode:
      return is_mode(text) ? "" : "an octal mode of files, from 0600 to 0666, such as 0640";
  }
  return {};
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string user_directory(const char* xdg, const char* below_home) {
  std::string base = environment(xdg);
  if (!base.empty()) return base;
  const std::string home = environment("HOME");
  return home.empty() ? std::string() : home + below_home;
}

std::string default_store() {
  const std::string cache = user_directory("XDG_CACHE_HOME", "/.cache");
  return cache.empty() ? "/tmp/jitc-store-" + std::to_string(::geteuid()) : cache + "/jitc";
}

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "1" : "0";
  if (const auto* list = node.as_array()) {
    std::string joined;
    for (const auto& item : *list) {
      const auto* text = item.as_string();
      if (text == nullptr) return std::nullopt;
      joined += (joined.empty() ? "" : ":") + text->get();
    }
    return joined;
  }
  return std::nullopt;
}

using Values = std::map<std::string, Settings::Value, std::less<>>;

Result<void> set(Values& values, const SettingInfo& info, std::string text, std::string origin) {
  if (const auto allowed = what_is_allowed(info, text); !allowed.empty())
    return fail(ErrorKind::kUsage, "'" + valid_utf8(text) + "' (from " + origin + ") is not a value of this setting",
                "setting " + std::string(info.name), "give " + allowed);
  values[std::string(info.name)] = {std::move(text), std::move(origin)};
  return {};
}

// Not what never ends or waits for a writer.
Result<std::string> read_settings_file(const std::string& path) {
  const auto wrong = [&path](std::string what) {
    return fail(ErrorKind::kUsage, std::move(what), path, "correct the file, or name another one");
  };
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return fail_errno(ErrorKind::kUsage, errno, "the settings file cannot be opened", path);
  if (!S_ISREG(status.st_mode)) return wrong("the settings file is not a regular file");
  auto text = read_all(file.get(), path, kMostBytes);
  if (!text) return wrong("the settings file cannot be read: " + text.error().message);
  for (const auto line : std::views::split(*text, '\n'))
    if (std::ranges::count(line, '.') > kMostDots)
      return wrong("a line of the settings file has more than " + std::to_string(kMostDots) + " dots");
  return text;
}

Result<void> read_toml(Values& values, const std::string& path, bool must_exist) {
  if (path.empty()) return {};
  if (::access(path.c_str(), F_OK) != 0) {
    if (!must_exist) return {};
    return fail(ErrorKind::kUsage, "the settings file does not exist", path, "correct JITC_JOB_FILE");
  }
  const auto content = read_settings_file(path);
  if (!content) return std::unexpected(content.error());
  const toml::parse_result parsed = toml::parse(*content);
  if (!parsed) {
    const auto& where = parsed.error().source().begin;
    return fail(ErrorKind::kUsage, std::string(parsed.error().description()),
                path + ":" + std::to_string(where.line) + ":" + std::to_string(where.column), "correct the file");
  }
  for (const auto& [key, node] : parsed.table()) {
    const SettingInfo* info = find(key.str());
    if (info == nullptr)
      return fail(ErrorKind::kUsage, "no setting has the name '" + std::string(key.str()) + "'", path,
                  "'jitc config' lists all names");
    const auto text = text_of(node);
    if (!text)
      return fail(ErrorKind::kUsage, "'" + std::string(key.str()) + "' has a value of a wrong type", path,
                  "give a text");
    if (auto done = set(values, *info, *text, path); !done) return done;
  }
  return {};
}

// A store that others may write is refused, the daemon's own too.
Result<void> check_store_mode(const Settings& settings) {
  if ((settings.mode("store_mode") & kOthersWrite) == 0 || settings.flag("store_allow_shared")) return {};
  const auto& [text, origin] = settings.value("store_mode");
  return fail(ErrorKind::kUsage, "'" + text + "' (from " + origin + ") lets others write into the store",
              "setting store_mode",
              "give 0640 or less, or declare that you trust all who may write it (JITC_STORE_ALLOW_SHARED=1)");
}

}  // namespace

std::span<const SettingInfo> settings_table() { return kTable; }

Result<Settings> Settings::load(const std::map<std::string, std::string>& given, std::string_view giver) {
  Settings settings;
  Values& values = settings.values_;
  for (const auto& info : kTable) values[std::string(info.name)] = {std::string(info.fallback), "default"};
  values["store"].text = default_store();
  const std::string user = user_directory("XDG_CONFIG_HOME", "/.config");
  if (auto read = read_toml(values, "/etc/jitc/jitc.toml", false); !read) return std::unexpected(read.error());
  if (auto read = read_toml(values, user.empty() ? "" : user + "/jitc/jitc.toml", false); !read)
    return std::unexpected(read.error());
  if (auto read = read_toml(values, environment("JITC_JOB_FILE"), true); !read) return std::unexpected(read.error());
  for (const auto& info : kTable) {
    const std::string variable(info.environment);
    // An empty variable is an unset one: batch scripts clear variables that way.
    if (const auto text = environment(variable.c_str()); !text.empty())
      if (auto done = set(values, info, text, variable); !done) return std::unexpected(done.error());
  }
  for (const auto& [name, text] : given) {
    const SettingInfo* info = find(name);
    if (info == nullptr)
      return fail(ErrorKind::kUsage, "no setting has this name", name, "'jitc config' lists all names");
    std::string origin(!giver.empty() ? giver : info->flag.empty() ? info->name : info->flag);
    if (auto done = set(values, *info, text, std::move(origin)); !done) return std::unexpected(done.error());
  }
  // The default is made of other variables, which nobody has looked at.
  const Value store = values["store"];
  if (auto done = set(values, *find("store"), store.text, store.origin); !done) return std::unexpected(done.error());
  if (auto mode = check_store_mode(settings); !mode) return std::unexpected(mode.error());
  return settings;
}

const Settings::Value& Settings::value(std::string_view name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) {
    std::fprintf(stderr, "jitc: bug: setting '%.*s' is not in the table\n", static_cast<int>(name.size()), name.data());
    std::abort();
  }
  return it->second;
}

bool Settings::is_set(std::string_view name) const { return value(name).origin != "default"; }

std::vector<std::string> Settings::list(std::string_view name) const {
  std::vector<std::string> items;
  const std::string& text = value(name).text;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

bool Settings::flag(std::string_view name) const { return value(name).text == "1"; }

// Texts were checked when they were set, so that the fallbacks below are never seen.
std::uint64_t Settings::count(std::string_view name) const { return parse_count(value(name).text).value_or(0); }

std::uint64_t Settings::bytes(std::string_view name) const { return parse_bytes(value(name).text).value_or(0); }

double Settings::seconds(std::string_view name) const { return parse_seconds(value(name).text).value_or(0); }

mode_t Settings::mode(std::string_view name) const { return mode_of(value(name).text); }

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto wrong = fail(ErrorKind::kUsage, "not a size", std::string(text), "write 400M, 2G or plain bytes");
  const auto number = number_and_rest<std::uint64_t>(text);
  if (!number) return wrong;
  auto [value, suffix] = *number;
  if (suffix.empty()) return value;
  constexpr std::string_view kSuffixes = "KMGT";
  const auto power = kSuffixes.find(suffix[0]);
  if (power == std::string_view::npos || (suffix.size() > 1 && suffix.substr(1) != "iB" && suffix.substr(1) != "B"))
    return wrong;
  const auto shift = 10 * (power + 1);
  if (value > (~std::uint64_t{0} >> shift)) return wrong;
  return value << shift;
}

Result<double> parse_seconds(std::string_view text) {
  const auto wrong = fail(ErrorKind::kUsage, "not a time", std::string(text), "write 30s, 1.5s, 10min, 2h or 30d");
  const auto number = number_and_rest<double>(text);
  if (!number || !(number->first >= 0) || number->first > 1e9) return wrong;
  const auto [value, suffix] = *number;
  if (suffix.empty() || suffix == "s") return value;
  if (suffix == "ms") return value / 1000;
  if (suffix == "min") return value * 60;
  if (suffix == "h") return value * 3600;
  if (suffix == "d") return value * 86400;
  return wrong;
}

std::chrono::seconds rounded_up(double seconds) {
  return std::chrono::ceil<std::chrono::seconds>(std::chrono::duration<double>(seconds));
}

Result<std::uint64_t> parse_count(std::string_view text) {
  const auto number = number_and_rest<std::uint32_t>(text);
  const bool has_zeros = text.size() > 1 && text.starts_with('0');
  if (number && number->second.empty() && !has_zeros) return number->first;
  return fail(ErrorKind::kUsage, "not a whole number", std::string(text), "write digits alone, 4294967295 at most");
}

Result<std::uint64_t> parse_positive(std::string_view text) {
  auto number = parse_count(text);
  if (number && *number == 0) return fail(ErrorKind::kUsage, "too small", std::string(text), "write 1 or more");
  return number;
}

}  // namespace jitc::common
