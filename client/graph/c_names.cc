#include "client/graph/c_names.h"

#include <algorithm>
#include <array>
#include <string>

namespace jitc::graph {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

// asm and typeof are keywords in the gnu dialects.
constexpr auto kKeywords = std::to_array<std::string_view>(
    {"_Alignas",  "_Alignof",       "_Atomic",       "_Bool",    "_Complex", "_Generic", "_Imaginary",
     "_Noreturn", "_Static_assert", "_Thread_local", "asm",      "auto",     "break",    "case",
     "char",      "const",          "continue",      "default",  "do",       "double",   "else",
     "enum",      "extern",         "float",         "for",      "goto",     "if",       "inline",
     "int",       "long",           "register",      "restrict", "return",   "short",    "signed",
     "sizeof",    "static",         "struct",        "switch",   "typedef",  "typeof",   "union",
     "unsigned",  "void",           "volatile",      "while"});
constexpr auto kKeywordsOfC23 =
    std::to_array<std::string_view>({"alignas", "alignof", "bool", "constexpr", "false", "nullptr", "static_assert",
                                     "thread_local", "true", "typeof_unqual"});

// Macros and types of math.h, and macros of the gnu dialects: no identifier can be called like them.
constexpr auto kMacros = std::to_array<std::string_view>(
    {"FP_FAST_FMA",    "FP_FAST_FMAF", "FP_FAST_FMAL",     "FP_ILOGB0",   "FP_ILOGBNAN",   "FP_INFINITE", "FP_NAN",
     "FP_NORMAL",      "FP_SUBNORMAL", "FP_ZERO",          "HUGE_VAL",    "HUGE_VALF",     "HUGE_VALL",   "INFINITY",
     "MATH_ERREXCEPT", "MATH_ERRNO",   "M_1_PI",           "M_2_PI",      "M_2_SQRTPI",    "M_E",         "M_LN10",
     "M_LN2",          "M_LOG10E",     "M_LOG2E",          "M_PI",        "M_PI_2",        "M_PI_4",      "M_SQRT1_2",
     "M_SQRT2",        "NAN",          "double_t",         "float_t",     "fpclassify",    "isfinite",    "isgreater",
     "isgreaterequal", "isinf",        "isless",           "islessequal", "islessgreater", "isnan",       "isnormal",
     "isunordered",    "linux",        "math_errhandling", "signbit",     "unix"});

// What math.h declares (with a suffix f or l too), and functions that compilers know without a header.
constexpr auto kMath = std::to_array<std::string_view>(
    {"abs",     "acos",     "acosh",   "asin",        "asinh",  "atan",      "atan2",     "atanh",     "cbrt",
     "ceil",    "copysign", "cos",     "cosh",        "drem",   "erf",       "erfc",      "exp",       "exp10",
     "exp2",    "expm1",    "fabs",    "fdim",        "finite", "floor",     "fma",       "fmax",      "fmin",
     "fmod",    "frexp",    "gamma",   "hypot",       "ilogb",  "isinff",    "isinfl",    "isnanf",    "isnanl",
     "j0",      "j1",       "jn",      "labs",        "ldexp",  "lgamma",    "lgamma_r",  "lgammaf_r", "lgammal_r",
     "llabs",   "llogb",    "llrint",  "llround",     "log",    "log10",     "log1p",     "log2",      "logb",
     "lrint",   "lround",   "main",    "modf",        "nan",    "nearbyint", "nextafter", "nextdown",  "nexttoward",
     "nextup",  "pow",      "pow10",   "remainder",   "remquo", "rint",      "round",     "roundeven", "scalb",
     "scalbln", "scalbn",   "signgam", "significand", "sin",    "sincos",    "sinh",      "sqrt",      "tan",
     "tanh",    "tgamma",   "trunc",   "y0",          "y1",     "yn"});

static_assert(std::ranges::is_sorted(kKeywords) && std::ranges::is_sorted(kKeywordsOfC23) &&
              std::ranges::is_sorted(kMacros) && std::ranges::is_sorted(kMath));

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_of_math(std::string_view name) {
  if (std::ranges::binary_search(kMath, name)) return true;
  const bool has_suffix = name.ends_with('f') || name.ends_with('l');
  return has_suffix && std::ranges::binary_search(kMath, name.substr(0, name.size() - 1));
}

std::unexpected<common::Error> refuse(std::string message, std::string_view name) {
  constexpr std::size_t kShown = 60;
  std::string shown(name.substr(0, kShown));
  if (name.size() > kShown) shown += "...";
  return fail(ErrorKind::kInvalidSource, std::move(message), std::move(shown), "choose another name");
}

}  // namespace

Result<void> check_identifier(std::string_view name) {
  if (name.size() > kLongestName)
    return refuse(
        "a name of " + std::to_string(name.size()) + " characters; " + std::to_string(kLongestName) + " are allowed",
        name);
  const bool is_identifier = !name.empty() && is_letter(name.front()) &&
                             std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c); });
  if (!is_identifier) return refuse("is no identifier of C", name);
  if (std::ranges::binary_search(kKeywords, name) || std::ranges::binary_search(kKeywordsOfC23, name))
    return refuse("is a keyword of C", name);
  if (std::ranges::binary_search(kMacros, name)) return refuse("is a macro or a type of math.h", name);
  return {};
}

Result<void> check_function_name(std::string_view name) {
  if (auto checked = check_identifier(name); !checked) return checked;
  const bool is_reserved =
      name.starts_with("__") || (name.size() > 1 && name[0] == '_' && name[1] < 'a' && name[1] >= 'A');
  if (is_reserved) return refuse("is reserved in C", name);
  if (is_of_math(name)) return refuse("is a function of C's library", name);
  if (name.starts_with("jitc_") || name.starts_with("Petsc"))
    return refuse("is a name that the printed text may use", name);
  return {};
}

}  // namespace jitc::graph
