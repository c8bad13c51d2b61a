#include "client/cli/cc_arguments.h"

#include <algorithm>
#include <array>
#include <utility>

namespace jitc::cli {
namespace {

// What an option means for the output.
enum class Use {
  kPass,      // not for us
  kCompile,   // -c
  kShared,    // -shared
  kOutput,    // -o
  kLanguage,  // -x
  kDepend,    // makes a dependency file
  kDependOn,  // with one: how it is written
  kDependIn,  // names it
  kSearch,    // where headers are: what it does is in the preprocessed text
  kText,      // other options of the preprocessor
  kCode,      // of the compiler proper
  kDebug,
  kLink,    // of the linker: without effect before it
  kNoTrace  // without effect on any output
};
enum class Form {
  kAlone,
  kJoined,    // the value follows in the same word
  kSeparate,  // in the next one
  kEither,    // in the same, else in the next
};
struct Option {
  std::string_view name;
  Form form;
  Use use;
};

// Searched in order: an option stands before those that it begins with.
constexpr auto kOptions = std::to_array<Option>({
    {"-c", Form::kAlone, Use::kCompile},
    {"-shared", Form::kAlone, Use::kShared},
    {"-o", Form::kEither, Use::kOutput},
    {"-x", Form::kEither, Use::kLanguage},
    {"-pipe", Form::kAlone, Use::kNoTrace},

    {"-MD", Form::kAlone, Use::kDepend},
    {"-MMD", Form::kAlone, Use::kDepend},
    {"-MP", Form::kAlone, Use::kDependOn},
    {"-MT", Form::kEither, Use::kDependOn},
    {"-MQ", Form::kEither, Use::kDependOn},
    {"-MF", Form::kEither, Use::kDependIn},

    {"-I", Form::kEither, Use::kSearch},
    {"-isystem", Form::kEither, Use::kSearch},
    {"-iquote", Form::kEither, Use::kSearch},
    {"-idirafter", Form::kEither, Use::kSearch},
    {"-D", Form::kEither, Use::kText},
    {"-U", Form::kEither, Use::kText},
    {"-include", Form::kEither, Use::kText},
    {"-imacros", Form::kEither, Use::kText},
    {"-nostdinc", Form::kAlone, Use::kText},
    {"-nostdinc++", Form::kAlone, Use::kText},
    {"-undef", Form::kAlone, Use::kText},
    {"-Wp,-D", Form::kJoined, Use::kText},
    {"-Wp,-U", Form::kJoined, Use::kText},

    {"-Wl,", Form::kJoined, Use::kLink},
    {"-Wa,--noexecstack", Form::kAlone, Use::kCode},
    {"-Wa,", Form::kJoined, Use::kPass},
    {"-Wp,", Form::kJoined, Use::kPass},
    {"-Wmissing-include-dirs", Form::kAlone, Use::kPass},
    {"-W", Form::kJoined, Use::kCode},
    {"-w", Form::kAlone, Use::kCode},
    {"-ansi", Form::kAlone, Use::kCode},
    {"-std=", Form::kJoined, Use::kCode},
    {"-pedantic", Form::kAlone, Use::kCode},
    {"-pedantic-errors", Form::kAlone, Use::kCode},
    {"-pthread", Form::kAlone, Use::kCode},
    {"-O", Form::kJoined, Use::kCode},
    {"--param=", Form::kJoined, Use::kCode},
    {"--param", Form::kSeparate, Use::kCode},
    {"-gsplit-dwarf", Form::kJoined, Use::kPass},
    {"-g0", Form::kAlone, Use::kCode},
    {"-g", Form::kJoined, Use::kDebug},
    {"-mllvm", Form::kJoined, Use::kPass},
    {"-m", Form::kJoined, Use::kCode},
    {"-f", Form::kJoined, Use::kCode},

    {"-L", Form::kEither, Use::kLink},
    {"-l", Form::kEither, Use::kLink},
    {"-z", Form::kEither, Use::kLink},
    {"-u", Form::kEither, Use::kLink},
    {"-s", Form::kAlone, Use::kLink},
    {"-rdynamic", Form::kAlone, Use::kLink},
    {"-nostartfiles", Form::kAlone, Use::kLink},
    {"-nodefaultlibs", Form::kAlone, Use::kLink},
    {"-nostdlib", Form::kAlone, Use::kLink},
    {"-nolibc", Form::kAlone, Use::kLink},
    {"-static-libgcc", Form::kAlone, Use::kLink},
});

// -f options that read or write files beside the source and the output, or that make output that no two compiles have
// in common.
constexpr auto kOwnFiles = std::to_array<std::string_view>({"plugin",
                                                            "profile",
                                                            "auto-profile",
                                                            "branch-probabilities",
                                                            "test-coverage",
                                                            "dump",
                                                            "opt-info",
                                                            "save-opt",
                                                            "stack-usage",
                                                            "callgraph-info",
                                                            "compare-debug",
                                                            "modules",
                                                            "module",
                                                            "pch",
                                                            "lto",
                                                            "syntax-only",
                                                            "record-gcc",
                                                            "preprocessed",
                                                            "directives",
                                                            "sanitize-black",
                                                            "instrument",
                                                            "deps",
                                                            "diagnostics-add",
                                                            "diagnostics-format",
                                                            "sanitize-cov",
                                                            "use-ld",
                                                            "ada",
                                                            "dbg",
                                                            "self-test",
                                                            "wpa",
                                                            "ltrans",
                                                            "offload",
                                                            "openacc",
                                                            "working-directory",
                                                            "no-working-directory",
                                                            "rust",
                                                            "go",
                                                            "gnu-unit",
                                                            "vtable",
                                                            "repo"});

// Those whose value is no file.
constexpr auto kPlainValues = std::to_array<std::string_view>({"abi-version",
                                                               "align-",
                                                               "cf-protection",
                                                               "constexpr-",
                                                               "debug-prefix-map",
                                                               "diagnostics-color",
                                                               "diagnostics-column",
                                                               "diagnostics-urls",
                                                               "diagnostics-show-",
                                                               "excess-precision",
                                                               "exec-charset",
                                                               "file-prefix-map",
                                                               "fp-contract",
                                                               "fp-int-builtin",
                                                               "inline-limit",
                                                               "input-charset",
                                                               "ivar-",
                                                               "lifetime-dse",
                                                               "macro-prefix-map",
                                                               "max-errors",
                                                               "message-length",
                                                               "pack-struct",
                                                               "parallelize-loops",
                                                               "patchable-function-entry",
                                                               "permitted-flt-eval",
                                                               "random-seed",
                                                               "sanitize",
                                                               "sched-",
                                                               "simd-cost-model",
                                                               "stack-clash",
                                                               "stack-protector",
                                                               "strict-",
                                                               "tabstop",
                                                               "template-",
                                                               "tls-model",
                                                               "tree-parallelize",
                                                               "trivial-auto-var-init",
                                                               "vect-cost-model",
                                                               "visibility",
                                                               "wide-exec-charset",
                                                               "zero-call-used-regs"});

template <class List>
bool begins_with_one(const List& list, std::string_view text) {
  return std::ranges::any_of(list, [text](std::string_view one) { return text.starts_with(one); });
}

bool is_plain_code_option(std::string_view option) {
  if (!option.starts_with("-f")) return true;
  std::string_view name = option.substr(2);
  if (begins_with_one(kOwnFiles, name)) return false;
  if (name.starts_with("no-") && begins_with_one(kOwnFiles, name.substr(3))) name = {};
  return name.find('=') == name.npos || begins_with_one(kPlainValues, name);
}

const Option* find_option(std::string_view word) {
  for (const Option& option : kOptions) {
    const bool whole = word == option.name;
    if (whole || (option.form != Form::kAlone && option.form != Form::kSeparate && word.starts_with(option.name)))
      return &option;
  }
  return nullptr;
}

enum class Input { kC, kOther, kObject, kUnknown };

std::string_view suffix_of(std::string_view name) {
  const auto dot = name.rfind('.');
  const auto slash = name.rfind('/');
  return dot == name.npos || (slash != name.npos && dot < slash) ? std::string_view() : name.substr(dot);
}

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool is_shared_library(std::string_view name) {
  const auto base = name.substr(name.rfind('/') + 1);
  return base.ends_with(".so") || base.find(".so.") != base.npos;
}

Input input_of(std::string_view name) {
  constexpr auto kSources = std::to_array<std::string_view>({".c", ".cc", ".cp", ".cxx", ".cpp", ".CPP", ".c++", ".C"});
  constexpr auto kOthers = std::to_array<std::string_view>(
      {".i",   ".ii",  ".s", ".S",  ".sx", ".h", ".hh", ".H",   ".hpp", ".hxx", ".f",  ".F", ".f90",
       ".F90", ".for", ".m", ".mm", ".mi", ".d", ".go", ".adb", ".ads", ".cu",  ".ll", ".bc"});
  constexpr auto kObjects = std::to_array<std::string_view>({".o", ".lo", ".os", ".obj", ".a", ".so"});
  const auto suffix = suffix_of(name);
  if (is_one_of(kSources, suffix)) return Input::kC;
  if (is_one_of(kOthers, suffix)) return Input::kOther;
  if (is_one_of(kObjects, suffix) || is_shared_library(name)) return Input::kObject;
  return Input::kUnknown;
}

std::string base_with(std::string_view source, std::string_view suffix) {
  const auto base = source.substr(source.rfind('/') + 1);
  return std::string(base.substr(0, base.size() - suffix_of(base).size())) + std::string(suffix);
}

// Reads the words one by one; the first one that is not understood ends it.
class Reader {
 public:
  CcPlan read(const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i < arguments.size() && why_.empty(); ++i) take(arguments, i);
    if (why_.empty()) decide();
    if (why_.empty()) return std::move(plan_);
    CcPlan pass;
    pass.why = std::move(why_);
    return pass;
  }

 private:
  void take(const std::vector<std::string>& arguments, std::size_t& i) {
    const std::string& word = arguments[i];
    if (word.empty()) return pass("an empty word");
    if (word == "-" || !word.starts_with('-')) return take_input(word);
    const Option* option = find_option(word);
    if (option == nullptr) return pass("option " + word);
    words_ = {word};
    value_ = word.substr(option->name.size());
    const bool next = option->form == Form::kSeparate || (option->form == Form::kEither && value_.empty());
    if (next) {
      if (++i == arguments.size()) return pass(word + " without a value");
      value_ = arguments[i];
      if (value_.empty()) return pass(word + " with an empty value");
      words_.push_back(value_);
    }
    take_option(*option, word);
  }

  void take_option(const Option& option, const std::string& word) {
    switch (option.use) {
      case Use::kPass:
        return pass("option " + word);
      case Use::kCompile:
        compile_ = true;
        return append(plan_.command);
      case Use::kShared:
        shared_ = true;
        return append(plan_.command);
      case Use::kOutput:
        plan_.output = value_;
        return;
      case Use::kLanguage:
        if (value_ != "c" && value_ != "c++") return pass("language " + value_);
        if (!plan_.source.empty()) return pass("a language behind the source");
        language_ = value_;
        return keep_for_text();
      case Use::kDepend:
        depends_ = true;
        return append(dependencies_.options);
      case Use::kDependOn:
        has_target_ |= option.name == "-MT" || option.name == "-MQ";
        return append(dependencies_.options);
      case Use::kDependIn:
        dependencies_.file = value_;
        return;
      case Use::kSearch:
        append(plan_.command);
        return append(plan_.preprocess);
      case Use::kText:
        return keep_for_text();
      case Use::kDebug:
        plan_.debug = true;
        return keep_for_text();
      case Use::kCode:
        if (!is_plain_code_option(word)) return pass("option " + word);
        if (word == "-g0") plan_.debug = false;
        plan_.for_this_cpu |= word.starts_with("-m") && word.ends_with("=native");
        plan_.chooses_colours |= word.find("diagnostics-color") != word.npos;
        return keep_for_text();
      case Use::kLink:
        linked_ = true;
        return append(plan_.command);
      case Use::kNoTrace:
        return append(plan_.command);
    }
  }

  void take_input(const std::string& word) {
    Input input = language_.empty() ? input_of(word) : Input::kC;
    if (word == "-" || word.starts_with('@')) input = Input::kUnknown;
    words_ = {word};
    if (input == Input::kObject) {
      linked_ = objects_ = true;
      return append(plan_.command);
    }
    if (input != Input::kC) return pass("input " + word);
    if (!plan_.source.empty()) return pass("several sources");
    plan_.source = word;
    keep_for_text();
  }

  void decide() {
    if (plan_.output == "-") return pass("an output that the assembler has its own mind about");
    if (compile_) {
      if (plan_.source.empty()) return pass("nothing to compile");
      if (objects_ || linked_ || shared_) return pass("-c and something to link");
      plan_.kind = CcPlan::Kind::kCompile;
      if (plan_.output.empty()) plan_.output = base_with(plan_.source, ".o");
    } else {
      if (!shared_) return pass("a program");
      if (plan_.source.empty() && !objects_) return pass("nothing to link");
      if (!language_.empty()) return pass("a language, and something to link");
      plan_.kind = plan_.source.empty() ? CcPlan::Kind::kLink : CcPlan::Kind::kCompileAndLink;
      if (plan_.output.empty()) plan_.output = "a.out";
    }
    decide_dependencies();
  }

  void decide_dependencies() {
    if (!depends_) {
      if (!dependencies_.options.empty() || !dependencies_.file.empty()) pass("a dependency file that nothing makes");
      return;
    }
    if (plan_.kind != CcPlan::Kind::kCompile) return pass("a dependency file of a link");
    if (dependencies_.file == "-") return pass("dependencies to standard output");
    if (dependencies_.file.empty()) {
      const auto dot = plan_.output.size() - suffix_of(plan_.output).size();
      dependencies_.file = plan_.output.substr(0, dot) + ".d";
    }
    if (!has_target_) dependencies_.options.insert(dependencies_.options.end(), {"-MQ", plan_.output});
    plan_.dependencies = std::move(dependencies_);
  }

  void append(std::vector<std::string>& list) const { list.insert(list.end(), words_.begin(), words_.end()); }
  void keep_for_text() {
    append(plan_.command);
    append(plan_.preprocess);
    append(plan_.keyed);
  }
  void pass(std::string why) { why_ = std::move(why); }

  CcPlan plan_;
  std::string why_;
  std::vector<std::string> words_;  // of the option at hand
  std::string value_;
  std::string language_;
  bool compile_ = false, shared_ = false, linked_ = false, objects_ = false;
  bool depends_ = false, has_target_ = false;
  CcPlan::Dependencies dependencies_;
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr int kMostFiles = 2000;  // as GCC's

}  // namespace

CcPlan plan_of(const std::vector<std::string>& arguments) { return Reader().read(arguments); }

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false, escaped = false;
  char quote = 0;
  for (const char c : text) {
    if (is_space(c) && quote == 0 && !escaped) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (escaped) {
      escaped = false;
      words.back() += c;
    } else if (c == '\\') {
      escaped = true;
    } else if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? '\0' : c;
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::optional<std::vector<std::string>> expanded_arguments(
    const std::vector<std::string>& arguments,
    const std::function<std::optional<std::string>(const std::string&)>& read) {
  std::vector<std::string> expanded = arguments;
  int files = 0;
  for (std::size_t i = 0; i < expanded.size();) {
    const auto text = expanded[i].starts_with('@') ? read(expanded[i].substr(1)) : std::nullopt;
    if (!text) {
      ++i;
      continue;
    }
    if (++files > kMostFiles) return std::nullopt;
    const auto words = words_of(*text);
    const auto at = expanded.erase(expanded.begin() + static_cast<std::ptrdiff_t>(i));
    expanded.insert(at, words.begin(), words.end());
  }
  return expanded;
}

bool is_input_name(std::string_view name) { return input_of(name) != Input::kUnknown; }

bool is_source_name(std::string_view name) { return input_of(name) == Input::kC || input_of(name) == Input::kOther; }

}  // namespace jitc::cli
