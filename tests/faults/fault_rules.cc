#include "tests/faults/fault_rules.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace jitc::faults {
namespace {

constexpr std::array<std::string_view, 14> kNames{"open", "stat",   "read",   "write", "map",   "close", "fsync",
                                                  "link", "rename", "unlink", "mkdir", "chmod", "touch", "list"};

struct Errno {
  std::string_view name;
  int value;
};
constexpr std::array<Errno, 14> kErrnos{{{"ENOENT", ENOENT},
                                         {"ESTALE", ESTALE},
                                         {"EBUSY", EBUSY},
                                         {"ENOSPC", ENOSPC},
                                         {"EIO", EIO},
                                         {"EACCES", EACCES},
                                         {"EDQUOT", EDQUOT},
                                         {"EEXIST", EEXIST},
                                         {"EINTR", EINTR},
                                         {"EINVAL", EINVAL},
                                         {"ENOSYS", ENOSYS},
                                         {"EPERM", EPERM},
                                         {"EROFS", EROFS},
                                         {"ETIMEDOUT", ETIMEDOUT}}};

struct Rule {
  Fault fault;
  unsigned operations = 0;  // bits
  std::string pattern;
  std::string argument;  // of the effect
  std::optional<int> rank;
  std::string program;
  unsigned long first = 1, last = ULONG_MAX;
  std::atomic<unsigned long> calls{0};
};

// Rules never move: their counters are shared by all threads.
using Rules = std::vector<std::unique_ptr<Rule>>;

[[noreturn]] void refuse(const std::string& line, const std::string& why) {
  std::fprintf(stderr, "fault_shim: '%s': %s\n", line.c_str(), why.c_str());
  std::_Exit(99);
}

template <class T>
T number(const std::string& line, const std::string& text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse(line, "no number: " + text);
  return static_cast<T>(value);
}

unsigned bits_of(const std::string& line, const std::string& names) {
  if (names == "all") return (1U << kNames.size()) - 1;
  unsigned bits = 0;
  std::istringstream each(names);
  for (std::string name; std::getline(each, name, ',');) {
    const auto found = std::ranges::find(kNames, name);
    if (found == kNames.end()) refuse(line, "no such operation: " + name);
    bits |= 1U << (found - kNames.begin());
  }
  return bits;
}

void read_effect(const std::string& line, const std::string& word, std::istringstream& words, Rule& rule) {
  if (word == "watch") return;
  if (!(words >> rule.argument)) refuse(line, "what shall happen?");
  if (word == "fail") {
    rule.fault.effect = Effect::kFail;
    const auto found = std::ranges::find(kErrnos, rule.argument, &Errno::name);
    if (found == kErrnos.end()) refuse(line, "no such errno here: " + rule.argument);
    rule.fault.error = found->value;
  } else if (word == "short") {
    rule.fault.effect = Effect::kShort;
    rule.fault.bytes = number<std::size_t>(line, rule.argument);
  } else if (word == "hold") {
    rule.fault.effect = Effect::kHold;
    rule.fault.fifo = rule.argument;
  } else {
    refuse(line, "begins with none of fail, short, hold, watch");
  }
}

void read_conditions(const std::string& line, std::istringstream& words, Rule& rule) {
  for (std::string word, value; words >> word;) {
    if (word == "after") {
      rule.fault.after = true;
      continue;
    }
    if (!(words >> value)) refuse(line, word + " needs a value");
    if (word == "rank") {
      rule.rank = number<int>(line, value);
    } else if (word == "program") {
      rule.program = value;
    } else if (word == "call") {
      rule.first = rule.last = number<unsigned long>(line, value);
    } else if (word == "from") {
      rule.first = number<unsigned long>(line, value);
    } else {
      refuse(line, "no such condition: " + word);
    }
  }
}

std::unique_ptr<Rule> rule_of(const std::string& line) {
  auto rule = std::make_unique<Rule>();
  std::istringstream words(line);
  std::string word, operations;
  if (!(words >> word >> operations >> rule->pattern)) refuse(line, "a rule has an effect, operations and a pattern");
  rule->operations = bits_of(line, operations);
  read_effect(line, word, words, *rule);
  read_conditions(line, words, *rule);
  return rule;
}

int rank_of_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "FAULT_RANK"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return -1;
}

class RulesFile {
 public:
  // The process's; never destroyed: threads that outlive main() go on calling.
  static RulesFile& instance() {
    static auto& file = *new RulesFile;
    return file;
  }
  const std::string& path() const { return path_; }

  std::shared_ptr<const Rules> rules() {
    if (path_.empty()) return nullptr;
    struct stat now{};
    const std::lock_guard lock(mutex_);
    if (::stat(path_.c_str(), &now) != 0) return nullptr;
    if (!rules_ || now.st_ino != read_.st_ino || now.st_mtim.tv_sec != read_.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != read_.st_mtim.tv_nsec) {
      auto rules = std::make_shared<Rules>();
      std::ifstream file(path_);
      for (std::string line; std::getline(file, line);)
        if (!line.empty()) rules->push_back(rule_of(line));
      rules_ = std::move(rules);
      read_ = now;
    }
    return rules_;
  }

 private:
  RulesFile() {
    if (const char* path = std::getenv("FAULT_RULES")) path_ = path;
  }
  std::string path_;
  std::mutex mutex_;
  struct stat read_{};
  std::shared_ptr<const Rules> rules_;
};

void tell(Operation operation, const std::string& path, const std::string& what) {
  std::string line = std::to_string(::getpid()) + " " + std::to_string(rank_of_process()) + " " +
                     program_invocation_short_name + " " + std::string(kNames[operation]) + " " + what + " " + path +
                     "\n";
  const int log =
      ::open((RulesFile::instance().path() + ".log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0 || ::write(log, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    refuse(line, "the log cannot be written");
  ::close(log);
}

std::string path_of(int descriptor) {
  std::array<char, PATH_MAX> path;
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size());
  return length < 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

std::string absolute(const Place& place) {
  std::string name = place.name;
  if (name.starts_with('/')) return name;
  std::string path;
  if (place.descriptor != AT_FDCWD) {
    path = path_of(place.descriptor);
  } else if (std::array<char, PATH_MAX> here; ::getcwd(here.data(), here.size()) != nullptr) {
    path = here.data();
  }
  return name.empty() ? path : path + "/" + name;
}

bool applies(Rule& rule, Operation operation, const std::vector<std::string>& paths) {
  if (!(rule.operations >> operation & 1)) return false;
  if (rule.rank && *rule.rank != rank_of_process()) return false;
  if (!rule.program.empty() && rule.program != program_invocation_short_name) return false;
  const auto matches = [&rule](const std::string& path) {
    return ::fnmatch(rule.pattern.c_str(), path.c_str(), 0) == 0;
  };
  if (std::ranges::none_of(paths, matches)) return false;
  const unsigned long call = ++rule.calls;
  return call >= rule.first && call <= rule.last;
}

}  // namespace

std::optional<Fault> fault_of(Operation operation, std::initializer_list<Place> places) {
  auto rules = RulesFile::instance().rules();
  if (!rules || std::ranges::none_of(*rules, [=](const auto& rule) { return rule->operations >> operation & 1; }))
    return std::nullopt;
  std::vector<std::string> paths;
  for (const Place& place : places) paths.push_back(absolute(place));
  for (const auto& rule : *rules) {
    if (!applies(*rule, operation, paths)) continue;
    const Effect effect = rule->fault.effect;
    tell(operation, paths.back(),
         effect == Effect::kWatch   ? "watch"
         : effect == Effect::kShort ? "short"
         : effect == Effect::kHold  ? "hold"
                                    : rule->argument);
    if (effect != Effect::kWatch) return rule->fault;
  }
  return std::nullopt;
}

// The writer's coming and going are events for both sides.
void wait_on(const std::string& fifo) {
  const int descriptor = ::open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(fifo, "cannot be opened to wait on it");
  char byte = 0;
  while (::read(descriptor, &byte, 1) > 0) {
  }
  ::close(descriptor);
}

}  // namespace jitc::faults
