#include "daemon/worker/canary.h"

#include <dlfcn.h>
#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/canary.h"
#include "daemon/worker/channel.h"

namespace jitc::worker {
namespace {

using Argument = v1::Canary::Argument;
using Word = std::uint64_t;

constexpr std::size_t kMostWords = common::Canary::kMostArguments;
constexpr std::size_t kUsualWords = 24;
constexpr std::uint32_t kMostCopies = 1024;
constexpr std::size_t kGuards = 4;          // doubles behind each output, which stay what they are
constexpr double kGuard = 0x1.8765p+251;    // a value that nobody computes
constexpr unsigned kExceptionFlags = 0x3f;  // of MXCSR: these may change

// The symbol <prefix>table of a module, as client/include/jitc/problem.h describes it.
struct Table {
  int version;
  int groups;
  const int* counts;
  void (*const* functions)(void);
  const char* const* names;
};

unsigned control_bits() { return _mm_getcsr() & ~kExceptionFlags; }

std::string text_of(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string hex_of(unsigned value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%04x", value);
  return text.data();
}

Outcome refused(std::string thing, std::string message) {
  Outcome outcome = failed(Finished::MISCOMPILED, std::move(message));
  outcome.finished.set_thing(std::move(thing));
  return outcome;
}

// As the psABI of x86-64 passes them: integers and pointers in one sequence of 64-bit words, doubles in
// another, and who calls clears the stack, so that more words than the function takes do no harm.
template <std::size_t... I>
void call_with(void* function, const Word* words, double t, double u_t_shift, std::index_sequence<I...>) {
  using Function = void (*)(decltype(static_cast<void>(I), Word{})..., double, double);
  reinterpret_cast<Function>(function)(words[I]..., t, u_t_shift);
}

class Caller {
 public:
  explicit Caller(const v1::Canary& canary) : canary_(canary), control_(control_bits()) {}

  std::optional<Outcome> load(int object) {
    const std::string path = "/proc/self/fd/" + std::to_string(object);
    module_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module_ == nullptr) {
      // No memory, or no leave to map code: that says nothing of what it computes. Who cannot load it either says so.
      const char* words = dlerror();
      return failed(Finished::REFUSED, std::string("the module cannot be loaded here: ") + (words ? words : "?"));
    }
    return check_control("loading it");
  }

  std::optional<Outcome> run() {
    for (const auto& call : canary_.calls()) {
      void* function = find(call.function());
      if (function == nullptr) return refused("function '" + call.function() + "'", "the module does not have it");
      for (int point = 0; point < canary_.points_size(); ++point) {
        if (auto wrong = run(call, function, point)) return wrong;
      }
    }
    return std::nullopt;
  }

 private:
  std::size_t copies() const { return std::max<std::size_t>(canary_.copies(), 1); }

  void* find(const std::string& name) const {
    if (canary_.table().empty()) return dlsym(module_, name.c_str());
    const auto* table = static_cast<const Table*>(dlsym(module_, canary_.table().c_str()));
    if (table == nullptr) return nullptr;
    std::size_t functions = 0;
    for (int group = 0; group < table->groups; ++group) functions += static_cast<std::size_t>(table->counts[group]);
    for (std::size_t i = 0; i < functions; ++i) {
      if (name == table->names[i]) return reinterpret_cast<void*>(table->functions[i]);
    }
    return nullptr;
  }

  std::optional<Outcome> check_control(const std::string& after) const {
    if (control_bits() == control_) return std::nullopt;
    const unsigned now = control_bits();
    _mm_setcsr((_mm_getcsr() & kExceptionFlags) | control_);
    return refused("the module", "after " + after + " MXCSR is " + hex_of(now) + ", it was " + hex_of(control_) +
                                     ": rounding, subnormal numbers or exceptions are treated otherwise in the whole "
                                     "solver");
  }

  std::optional<Outcome> run(const v1::Canary::Call& call, void* function, int point) {
    std::vector<std::vector<double>> outputs;
    for (const auto& output : call.outputs()) {
      const std::size_t entries = static_cast<std::size_t>(output.want_size() / canary_.points_size());
      std::vector<double>& room = outputs.emplace_back(entries * copies(), std::numeric_limits<double>::quiet_NaN());
      room.insert(room.end(), kGuards, kGuard);
    }
    const std::array<Word, kMostWords> words = this->words(call, point, outputs);
    const auto& at = canary_.points(point);
    if (call.arguments_size() <= static_cast<int>(kUsualWords)) {
      call_with(function, words.data(), at.t(), at.u_t_shift(), std::make_index_sequence<kUsualWords>());
    } else {
      call_with(function, words.data(), at.t(), at.u_t_shift(), std::make_index_sequence<kMostWords>());
    }
    if (auto changed = check_control("a call of '" + call.function() + "'")) return changed;
    for (int i = 0; i < call.outputs_size(); ++i) {
      if (auto wrong = compare(call.outputs(i), outputs[static_cast<std::size_t>(i)], point)) return wrong;
    }
    return std::nullopt;
  }

  std::array<Word, kMostWords> words(const v1::Canary::Call& call, int point,
                                     std::vector<std::vector<double>>& outputs) {
    std::array<Word, kMostWords> words{};
    arrays_.clear();
    arrays_.reserve(static_cast<std::size_t>(call.arguments_size()));
    for (int i = 0; i < call.arguments_size(); ++i) {
      words[static_cast<std::size_t>(i)] = word(call.arguments(i), canary_.points(point), outputs);
    }
    return words;
  }

  Word word(const Argument& argument, const v1::Canary::Point& point, std::vector<std::vector<double>>& outputs) {
    const auto first = static_cast<std::ptrdiff_t>(argument.value());
    switch (argument.kind()) {
      case Argument::INTEGERS:
        return integers(first);
      case Argument::NUMBERS:
      case Argument::CONSTANTS: {
        const auto numbers = std::span(point.numbers().data() + first, argument.count());
        std::vector<double>& array = arrays_.emplace_back();
        const std::size_t times = argument.kind() == Argument::NUMBERS ? copies() : 1;
        for (const double number : numbers) array.insert(array.end(), times, number);
        array.push_back(0);  // an empty array has an address, too
        return reinterpret_cast<Word>(array.data());
      }
      case Argument::OUTPUT:
        return reinterpret_cast<Word>(outputs[static_cast<std::size_t>(first)].data());
      default:
        return static_cast<Word>(argument.value());
    }
  }

  Word integers(std::ptrdiff_t first) {
    if (canary_.int_bits() == 64) return reinterpret_cast<Word>(canary_.integers().data() + first);
    if (narrow_.empty()) narrow_.assign(canary_.integers().begin(), canary_.integers().end());
    return reinterpret_cast<Word>(narrow_.data() + first);
  }

  std::optional<Outcome> compare(const v1::Canary::Output& output, const std::vector<double>& got, int point) const {
    const std::size_t entries = (got.size() - kGuards) / copies();
    for (std::size_t i = 0; i < entries * copies(); ++i) {
      const std::size_t entry = i / copies();
      const int place = point * static_cast<int>(entries) + static_cast<int>(entry);
      const double want = output.want(place), allowed = output.allowed(place);
      if (!std::isfinite(allowed) || got[i] == want || std::fabs(got[i] - want) <= allowed) continue;
      return refused(name_of(output, entry), "at point " + std::to_string(point + 1) + " it gives " + text_of(got[i]) +
                                                 " instead of " + text_of(want) + ", which may differ by " +
                                                 text_of(allowed));
    }
    if (std::ranges::all_of(std::span(got).last(kGuards), [](double guard) { return guard == kGuard; })) {
      return std::nullopt;
    }
    return refused(name_of(output, entries),
                   "the function writes there, behind its " + std::to_string(entries) + " entries");
  }

  // "g3[2][0][1][1] of block u-p"
  static std::string name_of(const v1::Canary::Output& output, std::size_t entry) {
    std::string indices;
    for (int i = output.shape_size() - 1; i > 0; --i) {
      const std::size_t extent = std::max<std::size_t>(output.shape(i), 1);
      indices.insert(0, "[" + std::to_string(entry % extent) + "]");
      entry /= extent;
    }
    return output.kind() + "[" + std::to_string(entry) + "]" + indices + " of " + output.of();
  }

  const v1::Canary& canary_;
  unsigned control_;
  void* module_ = nullptr;  // stays loaded: the process ends
  std::vector<std::vector<double>> arrays_;
  std::vector<std::int32_t> narrow_;
};

bool is_sound(const v1::Canary& canary) {
  const auto is_output_sound = [&](const v1::Canary::Output& output) {
    return canary.points_size() > 0 && output.want_size() == output.allowed_size() &&
           output.want_size() % canary.points_size() == 0;
  };
  const auto is_argument_sound = [&](const v1::Canary::Call& call, const Argument& argument) {
    if (argument.kind() == Argument::INTEGER) return true;
    if (argument.value() < 0) return false;
    if (argument.kind() == Argument::INTEGERS) return argument.value() < canary.integers_size();
    if (argument.kind() == Argument::OUTPUT) return argument.value() < call.outputs_size();
    return std::ranges::all_of(canary.points(), [&](const v1::Canary::Point& point) {
      return argument.value() <= point.numbers_size() - std::int64_t{argument.count()};
    });
  };
  return canary.copies() <= kMostCopies && std::ranges::all_of(canary.calls(), [&](const v1::Canary::Call& call) {
           return call.arguments_size() <= static_cast<int>(kMostWords) &&
                  std::ranges::all_of(call.outputs(), is_output_sound) &&
                  std::ranges::all_of(call.arguments(),
                                      [&](const Argument& one) { return is_argument_sound(call, one); });
         });
}

}  // namespace

Outcome run_canary(const std::vector<common::Fd>& descriptors) {
  if (descriptors.size() != 2) return failed(Finished::REFUSED, "a check needs an object and what it must give");
  const auto payload = read_payload(descriptors[1], "canary");
  v1::Canary canary;
  if (!payload || !canary.ParseFromString(*payload) || !is_sound(canary)) {
    return failed(Finished::REFUSED, "what the module must give cannot be read");
  }
  Caller caller(canary);
  if (auto refusal = caller.load(descriptors[0].get())) return std::move(*refusal);
  if (auto refusal = caller.run()) return std::move(*refusal);
  Outcome done;
  done.finished.set_outcome(Finished::DONE);
  return done;
}

}  // namespace jitc::worker
