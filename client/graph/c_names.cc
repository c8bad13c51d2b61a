#include "client/graph/c_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "client/graph/emit.h"
#include "client/graph/shown.h"
#include "client/graph/signature.h"

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

// Functions of math.h from doubles to a double, by the number of arguments. Each has variants with a suffix, such as f.
constexpr auto kMathOfOne = std::to_array<std::string_view>(
    {"acos",      "acosh",    "asin",   "asinh",  "atan",   "atanh", "cbrt",      "ceil",        "cos",
     "cosh",      "erf",      "erfc",   "exp",    "exp10",  "exp2",  "expm1",     "fabs",        "floor",
     "gamma",     "j0",       "j1",     "lgamma", "log",    "log10", "log1p",     "log2",        "logb",
     "nearbyint", "nextdown", "nextup", "pow10",  "rint",   "round", "roundeven", "significand", "sin",
     "sinh",      "sqrt",     "tan",    "tanh",   "tgamma", "trunc", "y0",        "y1"});
constexpr auto kMathOfTwo = std::to_array<std::string_view>(
    {"atan2", "copysign", "drem", "fdim", "fmax", "fmin", "fmod", "hypot", "nextafter", "pow", "remainder", "scalb"});
constexpr auto kMathOfThree = std::to_array<std::string_view>({"fma"});
constexpr auto kSuffixes =
    std::to_array<std::string_view>({"f", "l", "f16", "f32", "f64", "f128", "f32x", "f64x", "d32", "d64", "d128"});

// Other functions that math.h declares, or that gcc or clang know without a header: none is a function of doubles, and
// a declaration that says so draws at least a warning.
constexpr std::string_view kLibrary =
    " _exit _longjmp _setjmp abort abs aligned_alloc alloca asprintf bcmp bcopy bzero cabs cacos cacosh calloc carg "
    "casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow cproj creal csin csinh csqrt ctan ctanh "
    "dcgettext dgettext execl execle execlp execv execve execvp exit feclearexcept fegetenv fegetexceptflag "
    "fegetround feholdexcept feraiseexcept fesetenv fesetexceptflag fesetround fetestexcept feupdateenv ffs ffsl "
    "ffsll finite fopen fork fprintf fputc fputc_unlocked fputs fputs_unlocked fread free frexp fscanf fwrite "
    "fwrite_unlocked getcontext gettext ilogb imaxabs index isalnum isalpha isascii isblank iscntrl isdigit isgraph "
    "isinff isinfl islower isnanf isnanl isprint ispunct isspace isupper iswalnum iswalpha iswblank iswcntrl "
    "iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit isxdigit jn labs ldexp lgamma_r "
    "lgammaf_r lgammal_r llabs llogb llrint llround longjmp lrint lround main malloc memalign memccpy memchr memcmp "
    "memcpy memmove mempcpy memset modf nan nexttoward posix_memalign printf pthread_create putc putc_unlocked "
    "putchar putchar_unlocked puts realloc remquo rindex savectx scalbln scalbn scanf setjmp siglongjmp signbit "
    "signgam sigsetjmp sincos snprintf sprintf sscanf stpcpy stpncpy strcasecmp strcat strchr strcmp strcpy strcspn "
    "strdup strerror strfmon strftime strlcat strlcpy strlen strncasecmp strncat strncmp strncpy strndup strnlen "
    "strpbrk strrchr strspn strstr strtod strtof strtok strtol strtold strtoul strtoull strxfrm toascii tolower "
    "toupper towlower towupper va_arg va_copy va_end va_start vasprintf vfork vfprintf vfscanf vprintf vscanf "
    "vsnprintf vsprintf vsscanf wcschr wcscmp wcslen wcsncmp wmemchr wmemcmp wmemcpy wmemmove yn ";

static_assert(std::ranges::is_sorted(kKeywords) && std::ranges::is_sorted(kKeywordsOfC23) &&
              std::ranges::is_sorted(kMacros) && std::ranges::is_sorted(kMathOfOne) &&
              std::ranges::is_sorted(kMathOfTwo) && std::ranges::is_sorted(kMathOfThree));

constexpr auto kPetscTypes = std::to_array<std::string_view>({"PetscInt", "PetscReal", "PetscScalar"});

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Of a function of math.h from doubles to a double: how many it takes.
std::optional<std::uint32_t> arity_in_math(std::string_view name) {
  if (std::ranges::binary_search(kMathOfOne, name)) return 1;
  if (std::ranges::binary_search(kMathOfTwo, name)) return 2;
  if (std::ranges::binary_search(kMathOfThree, name)) return 3;
  return std::nullopt;
}

bool is_of_library(std::string_view name) {
  const auto is_known = [](std::string_view base) {
    return arity_in_math(base) || kLibrary.contains(" " + std::string(base) + " ");
  };
  return is_known(name) || std::ranges::any_of(kSuffixes, [&](std::string_view suffix) {
           return name.ends_with(suffix) && is_known(name.substr(0, name.size() - suffix.size()));
         });
}

std::unexpected<common::Error> refuse(std::string message, std::string_view name) {
  return fail(ErrorKind::kInvalidSource, std::move(message), shown(name), "choose another name");
}

Result<void> check_reserved(std::string_view name) {
  const bool is_reserved =
      name.starts_with("__") || (name.size() > 1 && name[0] == '_' && name[1] < 'a' && name[1] >= 'A');
  if (is_reserved) return refuse("is reserved in C", name);
  if (name.starts_with("jitc_")) return refuse("is a name that the printed text may use", name);
  return {};
}

}  // namespace

bool is_temporary(std::string_view name) {
  const std::string prefix = BodyOptions{}.temporary;
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

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
  if (auto checked = check_reserved(name); !checked) return checked;
  if (is_of_library(name)) return refuse("is a function of C's library", name);
  if (name.starts_with("Petsc")) return refuse("is a name that the printed text may use", name);
  return {};
}

Result<void> check_called_name(std::string_view name, std::uint32_t arity) {
  if (auto checked = check_identifier(name); !checked) return checked;
  if (auto checked = check_reserved(name); !checked) return checked;
  if (is_temporary(name)) return refuse("the printed text gives such names to its temporaries", name);
  if (std::ranges::find(kPetscTypes, name) != kPetscTypes.end() ||
      std::ranges::find(kParameters, name, &Parameter::name) != kParameters.end())
    return refuse("is a type or a parameter of the printed functions", name);
  if (const auto in_math = arity_in_math(name); in_math && *in_math != arity)
    return refuse(
        "is a function of math.h that takes " + std::to_string(*in_math) + " arguments, not " + std::to_string(arity),
        name);
  if (!arity_in_math(name) && is_of_library(name))
    return refuse("is a function of C's library that is not one of doubles", name);
  return {};
}

}  // namespace jitc::graph
