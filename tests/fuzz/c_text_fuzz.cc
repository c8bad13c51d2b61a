// C texts, mutated: sharing neither fails nor hangs, sharing twice is sharing once, and now and then the text as given
// and the shared one are compiled and must give the same bits.
#include <dlfcn.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "client/graph/c_text/share.h"
#include "tests/fuzz/fuzz.h"

namespace {

using jitc::fuzz::Mutator;
using jitc::graph::SharedText;

constexpr std::size_t kCompiledOnceIn = 64;   // inputs: compilers take long
constexpr std::size_t kMostCompiled = 20000;  // bytes
constexpr int kPoints = 20;

constexpr std::string_view kAuthored = "/* author ";

// A text of random straight-line statements, most of which are understood and compile. It begins with its seed.
class Author {
 public:
  explicit Author(std::uint64_t seed) : seed_(seed), random_(seed, {}, {}) {}

  std::string text() {
    std::string body;
    for (std::size_t i = 0; i < 3 + random_.below(5); ++i) body += statement(2);
    for (int i = 0; i < 3; ++i) body += "  out[" + std::to_string(i) + "] = " + expression(4) + ";\n";
    return std::string(kAuthored) + std::to_string(seed_) +
           " */\n#include <math.h>\nstatic double ramp(double x, double m) { return x < 0 ? 0 : x > m ? m : x; }\n"
           "void f(double s, int k, const double u[], const double w[], double out[]) {\n"
           "  double a = u[0], b = s, c = w[1]*u[2];\n" +
           body + "}\n";
  }

 private:
  std::string statement(int depth) {
    const std::string name(1, "abc"[random_.below(3)]);
    if (depth > 0 && random_.below(3) == 0)
      return "  if (" + condition(2) + ") {\n" + statement(depth - 1) + "  } else {\n" + statement(depth - 1) + "  }\n";
    constexpr std::array kAssignments = {" = ", " += ", " -= ", " *= ", " /= "};
    return "  " + name + kAssignments[random_.below(kAssignments.size())] + expression(3) + ";\n";
  }

  std::string condition(int depth) {
    constexpr std::array kCompare = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    if (depth > 0 && random_.below(3) == 0)
      return "(" + condition(depth - 1) + (random_.below(2) == 0 ? " && " : " || ") + condition(depth - 1) + ")";
    if (random_.below(6) == 0) return "!(" + condition(0) + ")";
    return expression(1) + kCompare[random_.below(kCompare.size())] + expression(1);
  }

  std::string atom() {
    constexpr std::array kAtoms = {"a",       "b",     "c",    "s",   "u[0]", "u[1]",  "u[3]", "w[0]",
                                   "w[2]",    "k",     "1",    "2",   "3",    "0",     "-1",   "0.5",
                                   "1.0/2.0", "1e-18", "M_PI", "1/2", "2.0",  "(0.0)", "1e300"};
    return kAtoms[random_.below(kAtoms.size())];
  }

  std::string expression(int depth) {
    if (depth == 0 || random_.below(6) == 0) return atom();
    constexpr std::array kOperators = {" + ", " - ", "*", "/"};
    constexpr std::array kFunctions = {"sqrt", "exp", "sin", "fabs", "tanh", "floor"};
    constexpr std::array kPairs = {"pow", "fmax", "fmin", "atan2", "ramp"};
    const std::string left = expression(depth - 1);
    switch (random_.below(12)) {
      case 0:
        return std::string(kFunctions[random_.below(kFunctions.size())]) + "(" + left + ")";
      case 1:
        return std::string(kPairs[random_.below(kPairs.size())]) + "(" + left + ", " + expression(depth - 1) + ")";
      case 2:
        return "(" + condition(1) + " ? " + left + " : " + expression(depth - 1) + ")";
      case 3:
        return "-(" + left + ")";
      case 4:
        return "((" + left + " > 0) - (" + left + " < 0))";
      case 5:
        return "(" + left + ")*(" + left + ")";
      case 6:
        return "-!(" + left + ")";
      case 7:
        return "((" + condition(1) + ") - (" + condition(0) + "))";
      case 8:
        return "pow(" + left + ", -1)";
      default:
        return "(" + left + kOperators[random_.below(kOperators.size())] + expression(depth - 1) + ")";
    }
  }

  std::uint64_t seed_;
  Mutator random_;
};

// An unchanged text of an author's can be called: it neither loops nor leaves its arrays.
bool is_authored(const std::string& text) {
  return text.starts_with(kAuthored) &&
         Author(std::strtoull(text.c_str() + kAuthored.size(), nullptr, 10)).text() == text;
}

using Function = void (*)(double, int, const double*, const double*, double*);

bool compiles(const std::string& text, const std::string& name, const std::string& compiler) {
  std::ofstream(name + ".c", std::ios::binary) << text;
  const std::string command = compiler + " -std=gnu11 -ffp-contract=off -w -shared -fPIC -o ./" + name + ".so " + name +
                              ".c -lm 2>" + name + ".log";
  return std::system(command.c_str()) == 0;
}

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Values of f in both libraries at random points.
std::string compare(std::uint64_t seed) {
  Mutator random(seed, {}, {});
  constexpr std::array<double, 10> kSpecial = {0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, 1e308, HUGE_VAL, -HUGE_VAL, NAN};
  void* const libraries[2] = {::dlopen("./fuzz_given.so", RTLD_NOW | RTLD_LOCAL),
                              ::dlopen("./fuzz_shared.so", RTLD_NOW | RTLD_LOCAL)};
  std::string wrong;
  for (int point = 0; point < kPoints && wrong.empty(); ++point) {
    std::array<double, 16> in{};
    for (double& x : in)
      x = random.below(4) == 0 ? kSpecial[random.below(kSpecial.size())]
                               : static_cast<double>(random.below(2000001)) * 2e-6 - 2.0;
    double out[2][8] = {};
    for (int side = 0; side < 2; ++side) {
      const auto f = reinterpret_cast<Function>(::dlsym(libraries[side], "f"));
      f(in[0], point - 2, in.data() + 1, in.data() + 8, out[side]);
    }
    for (int i = 0; i < 8; ++i)
      if (!same(out[0][i], out[1][i])) wrong = "out[" + std::to_string(i) + "] differs";
  }
  for (void* library : libraries) ::dlclose(library);
  return wrong;
}

std::string check(const std::string& input) {
  const SharedText shared = jitc::graph::share(input);
  if (jitc::graph::share(shared.text).text != shared.text) return "shared twice is not shared once";
  for (const auto& function : shared.functions)
    if (function.is_shared != function.reason.empty()) return "a function without a reason";
  const std::size_t hash = std::hash<std::string>()(input);
  if (hash % kCompiledOnceIn != 0 || input.size() > kMostCompiled || shared.text == input) return {};
  const std::string compiler = hash / kCompiledOnceIn % 2 == 0 ? "gcc -O0" : "gcc -O3";
  if (!compiles(input, "fuzz_given", compiler)) return {};
  if (!compiles(shared.text, "fuzz_shared", compiler)) return "the shared text does not compile: fuzz_shared.c";
  return is_authored(input) ? compare(hash) : std::string();
}

void change(std::string& input, Mutator& mutator) {
  if (mutator.below(2) == 0) {
    input = Author(mutator.below(~std::size_t{0})).text();
  } else {
    mutator.change(input);
  }
}

std::vector<std::string> words() {
  return {"(",
          ")",
          "{",
          "}",
          "[",
          "]",
          ";",
          ",",
          "?",
          ":",
          "&&",
          "||",
          "!",
          "-",
          "+",
          "*",
          "/",
          "<",
          "==",
          "=",
          "+=",
          "if (",
          "else ",
          "return ",
          "const double ",
          "int ",
          "float ",
          "double q = ",
          "out[0]",
          "petsc_u[1]",
          "pow(",
          "1/2",
          "0x1p-3",
          "1e999",
          "07",
          "'",
          "\"",
          "/*",
          "*/",
          "//",
          "\\\n",
          "\n#define A 1\n",
          "\n#if 1\n",
          "\n#endif\n",
          "#",
          "typedef double T;",
          "static ",
          "(void)",
          "0.5"};
}

}  // namespace

jitc::fuzz::Target jitc::fuzz::target() {
  return {.name = "c_text_fuzz", .corpus = corpus_files("tree.c"), .words = words(), .check = check, .change = change};
}
