// C texts that are shared, and those that are left as they are, with the reasons.
#include "client/graph/c_text/share.h"

#include <gtest/gtest.h>

#include <string>

#include "client/graph/emit.h"

namespace jitc::graph {
namespace {

using namespace std::string_literals;

constexpr const char* kHead = "#include <math.h>\n";
const std::string kGuard(kContractionGuard);

// A function of arrays u and w, long enough that its shared form is the shorter one.
std::string function(const std::string& body) {
  return kHead + "void f(double s, int k, const double u[], const double w[], double out[])\n{\n"s + body + "\n}\n";
}

struct Case {
  const char* name;
  std::string body;
  std::string expected;  // printed body, or the reason
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

SharedText shared(const std::string& text) {
  SharedText result = share(text);
  EXPECT_EQ(share(result.text).text, result.text) << "shared twice is not shared once";
  return result;
}

// The body's statements, without what stands around them.
std::string body_of(const std::string& text) {
  const std::size_t begin = text.find("{\n") + 2;
  return text.substr(begin, text.rfind('}') - begin);
}

// ---- what is understood -------------------------------------------------------------------------------------------

class Understood : public testing::TestWithParam<Case> {};

TEST_P(Understood, IsPrinted) {
  // The comment makes the text as given the longer one.
  const SharedText result = shared(function("/*" + std::string(400, '.') + "*/" + GetParam().body));
  ASSERT_EQ(result.functions.size(), 1U);
  EXPECT_TRUE(result.functions[0].is_shared) << result.functions[0].reason;
  EXPECT_EQ(body_of(result.text), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    CText, Understood,
    testing::Values(
        Case{"association", "out[0] = u[0] - (u[1] - u[2]) - u[3];", "  out[0] = u[0] - (u[1] - u[2]) - u[3];\n"},
        Case{"sharing", "out[0] = exp(u[0]) + 1; out[1] = 3*exp(u[0]);",
             "  const double t0 = exp(u[0]);\n  out[0] = 1.0 + t0;\n  out[1] = 3.0 * t0;\n"},
        Case{"power_stays", "out[0] = pow(u[0], 2);", "  out[0] = pow(u[0], 2.0);\n"},
        Case{"integer_division", "out[0] = 1/2*u[0] + 7/2;", "  out[0] = 3.0 + 0.0 * u[0];\n"},
        Case{"negative_division", "out[0] = -7/2 + u[0];", "  out[0] = -3.0 + u[0];\n"},
        Case{"real_division", "out[0] = 1.0/4.0*u[0];", "  out[0] = 0.25 * u[0];\n"},
        Case{"sign", "out[0] = (u[0] > 0) - (u[0] < 0);",
             "  out[0] = (u[0] > 0.0 ? 1.0 : 0.0) - (u[0] < 0.0 ? 1.0 : 0.0);\n"},
        Case{"differences_from_what_is_no_zero",
             "out[0] = 1.0/3.0 - fabs(u[0]); out[1] = u[0] + u[0] - u[1]; out[2] = (u[1] > 0) - fabs(u[1]);",
             "  out[0] = 0.3333333333333333 - fabs(u[0]);\n  out[1] = u[0] + u[0] - u[1];\n"
             "  out[2] = (u[1] > 0.0 ? 1.0 : 0.0) - fabs(u[1]);\n"},
        Case{"integer_product_has_one_zero", "out[0] = -1*(u[0] > 0);",
             "  out[0] = -(u[0] > 0.0 ? 1.0 : 0.0) + 0.0;\n"},
        Case{"integer_negation_has_one_zero", "out[0] = -!u[0]; out[1] = 0 - (u[0] > 0);",
             "  out[0] = -(!(0.0 != u[0]) ? 1.0 : 0.0) + 0.0;\n  out[1] = -(u[0] > 0.0 ? 1.0 : 0.0) + 0.0;\n"},
        Case{"comparisons_that_compilers_decide",
             "out[0] = (-3.0 > 0) - (u[0] > 0); out[1] = (1 < (u[2] > 0)) - (u[1] > 0);",
             "  const double t0 = u[0] > 0.0 ? 1.0 : 0.0;\n  const double t1 = u[1] > 0.0 ? 1.0 : 0.0;\n"
             "  out[0] = (-3.0 > 0.0 ? 1.0 : 0.0) - t0 + 0.0;\n"
             "  out[1] = (1.0 < (u[2] > 0.0 ? 1.0 : 0.0) ? 1.0 : 0.0) - t1 + 0.0;\n"},
        Case{"chosen_literals", "out[0] = exp(u[0] > 0 ? 1.0 : 2.0);", "  out[0] = exp(u[0] > 0.0 ? 1.0 : 2.0);\n"},
        Case{"literal_power", "out[0] = pow(u[0], -1);", "  out[0] = pow(u[0], -1.0);\n"},
        Case{"continued_comment", "out[0] = u[0]; // c:\\ \nout[0] = u[1];\nout[1] = u[2]; // c:\\\r\nout[1] = u[3];\n",
             "  out[0] = u[0];\n  out[1] = u[2];\n"},
        Case{"integers_become_doubles", "out[0] = k*u[0];", "  out[0] = (double)k * u[0];\n"},
        Case{"hexadecimal_and_octal", "out[0] = 0x1p-2*u[0] + 010 + 0x1F;", "  out[0] = 0.25 * u[0] + 8.0 + 31.0;\n"},
        Case{"subnormal", "out[0] = u[0]*4.9406564584124654e-324;", "  out[0] = 5e-324 * u[0];\n"},
        Case{"minimum", "out[0] = fmin(u[0], fmax(u[1], 0));", "  out[0] = fmin(u[0], fmax(u[1], 0.0));\n"},
        Case{"locals", "const double a = u[0]*u[1], b = a + s; double c; c = b; c += a; c *= 3; out[0] = c;",
             "  const double t0 = u[1] * u[0];\n  out[0] = 3.0 * (t0 + (t0 + s));\n"},
        Case{"branches", "double a = u[0]; if (u[1] > 0) { a = 2; } else if (u[1] < -1) a = 3; out[0] = a;",
             "  out[0] = u[1] > 0.0 ? 2.0 : u[1] < -1.0 ? 3.0 : u[0];\n"},
        Case{"outputs_in_branches", "if (u[0] < 0) { out[0] = 1; out[1] = u[0]; } else { out[0] = 2; out[1] = 3; }",
             "  out[0] = u[0] < 0.0 ? 1.0 : 2.0;\n  out[1] = u[0] < 0.0 ? u[0] : 3.0;\n"},
        Case{"conditions", "out[0] = u[3]; out[1] = u[0] > 0 && (u[1] != s || !(u[2] <= 1)) ? u[0] : u[1] > 2 ? 1 : 0;",
             "  out[0] = u[3];\n  out[1] = u[0] > 0.0 && (!(u[2] <= 1.0) || u[1] != s) ? u[0] : u[1] > 2.0 ? 1.0 : "
             "0.0;\n"},
        // u[3] is printed under a condition only, which says less about the length of u than the text as given.
        Case{"conditions_that_hide_reads", "double a = u[3]; out[0] = u[0] > 0 ? exp(u[2]) + a : exp(u[2]);",
             "  const double t0 = exp(u[2]);\n  out[0] = u[0] > 0.0 ? t0 + (u[0] > 0.0 ? u[3] : 0.0) : t0;\n"},
        Case{"what_was_written_is_read", "out[0] = u[0]; out[1] = out[0]*2; out[0] = 5;",
             "  out[0] = 5.0;\n  out[1] = u[0] + u[0];\n"},
        Case{"what_is_read_and_written", "out[0] += u[0]; out[1] = out[0];",
             "  const double t_out_0 = out[0];\n  const double t0 = t_out_0 + u[0];\n  out[0] = t0;\n  out[1] = t0;\n"},
        Case{"casts", "out[0] = (double)(3/2) + (const double)u[0]*(int)2;", "  out[0] = u[0] + u[0] + 1.0;\n"},
        Case{"voids_stay", "(void)s; (void)k; out[0] = u[0];", "  (void)s; (void)k;\n  out[0] = u[0];\n"},
        // w may be absent where u[0] is negative: it is not read there.
        Case{"absent_arrays", "out[0] = u[0] > 0 ? w[3] : 0; out[1] = u[0] > 0 ? sin(w[3]) : 1;",
             "  const double t0 = u[0] > 0.0 ? w[3] : 0.0;\n  out[0] = t0;\n  out[1] = u[0] > 0.0 ? sin(t0) : 1.0;\n"},
        Case{"present_arrays", "out[0] = u[0] > 0 ? w[3] : w[4]; out[1] = u[0] > 0 ? sin(w[3]) : 1;",
             "  out[0] = u[0] > 0.0 ? w[3] : !(u[0] > 0.0) ? w[4] : 0.0;\n"
             "  out[1] = u[0] > 0.0 ? sin(u[0] > 0.0 ? w[3] : 0.0) : 1.0;\n"}),
    name_of);

// ---- what is left as it is ----------------------------------------------------------------------------------------

class LeftAlone : public testing::TestWithParam<Case> {};

TEST_P(LeftAlone, ByteForByteWithTheReason) {
  const std::string text = function(GetParam().body);
  const SharedText result = shared(text);
  EXPECT_EQ(result.text, text);
  ASSERT_EQ(result.functions.size(), 1U);
  EXPECT_FALSE(result.functions[0].is_shared);
  EXPECT_EQ(result.functions[0].reason.substr(0, GetParam().expected.size()), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    CText, LeftAlone,
    testing::Values(
        Case{"loop", "for (int i = 0; i < 3; ++i) out[i] = u[i];", "4:1: a statement other than"},
        Case{"float_variable", "float a = u[0]; out[0] = a;", "4:1: a variable whose type is neither double"},
        Case{"float_literal", "out[0] = 1.5f*u[0];", "4:10: a literal that is not a double's"},
        Case{"long_double_literal", "out[0] = 1.5L*u[0];", "4:10: a literal that is not a double's"},
        Case{"unsigned_literal", "out[0] = 3u*u[0];", "4:10: a literal that is not a double's"},
        Case{"literal_out_of_range", "out[0] = 1e400*u[0];", "4:10: a literal that a double cannot hold"},
        Case{"overflow", "out[0] = 2147483647 + 1;", "4:21: an integer operation that may overflow"},
        Case{"unknown_integers", "out[0] = k + 1;", "4:12: an integer operation that may overflow"},
        Case{"division_by_zero", "out[0] = 1/0;", "4:11: an integer division by zero"},
        Case{"truncation", "int i = u[0]; out[0] = i;", "4:5: a double that becomes an integer"},
        Case{"pointer", "out[0] = *u;", "4:10: an expression was expected"},
        Case{"array_as_value", "out[0] = u;", "4:10: an array other than by its elements"},
        Case{"variable_index", "out[0] = u[k];", "4:10: an index that is not constant"},
        Case{"negative_index", "out[0] = u[-1];", "4:10: an index outside"},
        Case{"one_path_only", "if (u[0] > 0) out[0] = 1;", "4:1: an element is assigned on some paths only"},
        Case{"no_value", "double a; out[0] = a;", "4:20: a variable that may have no value"},
        Case{"const_variable", "const double a = 1; a = 2; out[0] = a;", "4:21: an assignment to what is const"},
        Case{"const_array", "u[0] = 1; out[0] = u[0];", "4:1: an assignment to what is const"},
        Case{"increment", "double a = 1; a++; out[0] = a;", "4:16: '=' was expected"},
        Case{"assignment_in_expression", "double a; out[0] = (a = 1);", "4:21: a variable that may have no value"},
        Case{"comma", "out[0] = (u[0], u[1]);", "4:15: an operator other than"},
        Case{"shift", "out[0] = 1 << 3;", "4:12: ';' was expected"},
        Case{"unknown_function", "out[0] = bessel(u[0]);", "4:10: 'bessel' is not known"},
        Case{"own_name", "out[0] = f(u[0]);", "4:10: 'f' is not known"},
        Case{"wrong_count", "out[0] = pow(u[0]);", "4:10: a wrong number of arguments"},
        Case{"constant_call", "double a = 0.1; out[0] = exp(a);", "4:26: a call whose arguments are constant"},
        Case{"call_of_chosen_constants", "out[0] = exp(u[0] > 0);", "4:10: a call whose arguments are constant"},
        Case{"constant_power", "double a = -1; out[0] = pow(u[0], a);", "4:25: a power -1 that is no literal"},
        Case{"difference_from_zero", "out[0] = 0.0 - u[0];", "4:14: 0 - x"},
        Case{"zero_after_a_negative", "out[0] = -fabs(u[0]) + 0.0;", "4:22: -x + 0"},
        Case{"zero_before_a_negative", "double a = fabs(u[0]); out[0] = 0 + -a;", "4:35: -x + 0"},
        Case{"difference_from_no_integer", "out[0] = ((u[0] > 0) - (u[0] > 0)) - fabs(u[1]);", "4:36: 0 - x"},
        Case{"difference_from_opposite_integers", "out[0] = (-(u[0] > 0) + (u[0] > 0)) - fabs(u[1]);", "4:37: 0 - x"},
        Case{"difference_from_a_product_with_zero", "out[0] = (u[0] > 0)*0 - fabs(u[1]);", "4:23: 0 - x"},
        Case{"difference_from_chosen_zeros", "out[0] = (s > 0 ? 0.0 : 0.0) - fabs(u[1]);", "4:30: 0 - x"},
        Case{"difference_from_an_arm", "out[0] = (fabs(s) < 0 ? 1.0 : 0.0) - fabs(u[1]);", "4:36: 0 - x"},
        Case{"difference_from_a_computed_zero", "out[0] = (1.0 - 1.0) - fabs(u[1]);", "4:22: 0 - x"},
        Case{"chosen_zeros_after_a_negative", "out[0] = -(fabs(u[1]) + 0.0) + (u[0] > s ? 0.0 : 0.0);", "4:30: -x + 0"},
        Case{"comment_that_a_line_ends", "out[0] = u[0]; /* *\\\n/ out[0] = u[1]; /* */", "4:16: a statement"},
        Case{"early_return", "if (u[0] > 0) return; out[0] = 1;", "4:15: a return other than at the end"},
        Case{"static_variable", "static double a = 1; out[0] = a;", "4:1: a statement other than"},
        Case{"volatile_variable", "volatile double a = 1; out[0] = a;", "4:1: a variable whose type"},
        Case{"redeclared", "double a = 1; double a = 2; out[0] = a;", "4:22: a name that is declared twice"},
        Case{"directive", "\n#define A 3\nout[0] = A;", "5:1: a statement that is not understood"},
        Case{"string", "out[0] = \"}\"[0];", "4:10: an expression was expected"}),
    name_of);

// ---- translation units --------------------------------------------------------------------------------------------

TEST(CText, KeepsEverythingElseByteForByte) {
  const std::string before =
      "// a { comment\r\n#include <math.h>\n#define TWO \\\n 2 {\ntypedef double real; /* } */\n"
      "struct pair { int a; };\nstatic const double table[] = {1, 2};\nreal g(real);\n";
  const std::string head = "__attribute__((visibility(\"default\")))\nvoid f(const real *restrict u, real\tout [2])";
  const std::string rest = "\nint after(void) { return TWO; }\n";
  const SharedText result =
      shared(before + head + "{ out[0] = sin(u[0])*sin(u[0]); out[1] = sin(u[0])/sin(u[0]); }" + rest);
  EXPECT_EQ(result.text, kGuard + before + head +
                             "{\n  const double t0 = sin(u[0]);\n  out[0] = t0 * t0;\n  out[1] = t0 / t0;\n}" + rest);
  ASSERT_EQ(result.functions.size(), 2U);
  EXPECT_EQ(result.functions[0].name, "f");
  EXPECT_EQ(result.functions[0].line, 10U);
  EXPECT_EQ(result.temporaries, 1U);
  EXPECT_EQ(result.functions[1].reason, "11:26: 'TWO' is not known here");
}

TEST(CText, PutsHelpersInPlaceOfTheirCalls) {
  const std::string helper =
      "static inline double step(double x, double m) { return x < 0 ? 0.0 : x > 0 ? 1.0 : m; }\n";
  const SharedText result =
      shared(kHead + helper + "void f(const double u[], double out[]) {\n  out[0] = step(u[0] - u[1], 1.0/2.0);\n" +
             "  out[1] = 2*step(u[0] - u[1], 1.0/2.0) + step(u[0] - u[1], 1.0/2.0)*step(u[0] - u[1], 1.0/2.0);\n}\n");
  EXPECT_NE(result.text.find(
                "  const double t0 = u[0] - u[1];\n  const double t1 = t0 < 0.0 ? 0.0 : t0 > 0.0 ? 1.0 : 0.5;\n"),
            std::string::npos)
      << result.text;
  EXPECT_TRUE(result.text.starts_with(kGuard + kHead + "void f(")) << "the helper stays: " << result.text;
}

// Compilers that are told to be strict refuse a static function that nothing calls.
TEST(CText, DropsHelpersThatNothingCallsAnyMore) {
  const std::string twice = "static double twice(double x) { return x + x; }\n";
  const std::string more = "static double more(double x) { return twice(x) + 1.0; }\n";
  const auto f = [](const std::string& called) {
    return "void f(const double u[], double out[]) { out[0] = exp(u[0])*exp(u[0])*exp(u[0])*" + called + "(u[0]); }\n";
  };
  const auto has = [](const std::string& text, const char* name) {
    return shared(kHead + text).text.find(std::string("double ") + name) != std::string::npos;
  };
  EXPECT_FALSE(has(twice + f("twice"), "twice"));
  EXPECT_FALSE(has(twice + more + f("more"), "twice")) << "only what is dropped itself calls it";
  EXPECT_FALSE(has("static double twice(double);\n" + twice + f("twice"), "twice")) << "nor is it declared";
  EXPECT_FALSE(has("/* twice() */\n" + twice + f("twice"), "twice")) << "a comment calls nothing";

  EXPECT_TRUE(has(twice + more + f("twice"), "more")) << "nothing called it before";
  EXPECT_TRUE(has("double twice(double x) { return x + x; }\n" + f("exp"), "twice")) << "others may call it";
  const std::string loop = "double g(int n) { double s = 0; for (; n > 0; --n) s += twice(n); return s; }\n";
  EXPECT_TRUE(has(twice + f("twice") + loop, "twice"));
  EXPECT_TRUE(has(twice + more + f("more") + "double (*table[])(double) = {more};\n", "twice")) << "of what is needed";
  EXPECT_TRUE(has("#define TWICE(x) twice(x)\n" + twice + f("twice"), "twice"));
  EXPECT_TRUE(has("#define CALL(a, b) a##b(1.0)\n" + twice + f("twice"), "twice")) << "a macro may put it together";
  EXPECT_TRUE(has("#define CALL tw\\\nice(1.0)\n" + twice + f("twice"), "twice"));
  EXPECT_TRUE(has(twice + f("twice") + "double g(double) __attribute__((alias(\"twice\")));\n", "twice"));
  EXPECT_TRUE(has("__attribute__((used)) " + twice + f("twice"), "twice"));
}

TEST(CText, GuardsWhatIsPrintedAgainstContractionOnce) {
  const std::string text = "void f(const double u[], double out[]) { out[0] = exp(u[0])*exp(u[0])*exp(u[0]); }\n";
  const std::string printed = shared(kHead + text).text;
  EXPECT_EQ(printed.substr(0, printed.find("void f")), kGuard + kHead);
  EXPECT_EQ(shared(kGuard + kHead + text).text, printed);
  EXPECT_EQ(shared("/* by hand */\n" + kGuard + kHead + text).text, "/* by hand */\n" + printed);
  EXPECT_EQ(shared(kHead + kGuard + text).text, kHead + kGuard + printed.substr(printed.find("void f")));

  const std::string nothing_to_share = kHead + "void f(const double u[], double out[]) { out[0] = u[0]; }\n"s;
  EXPECT_EQ(shared(nothing_to_share).text, nothing_to_share);

  // Where it does not act on every function, another one is needed.
  const std::string first = "void g(double out[]) { out[0] = 1.0; }\n";
  EXPECT_EQ(shared(kHead + first + kGuard + text).text.find(kGuard + kHead + first + kGuard), 0U);
  for (const std::string before : {"#undef __GNUC__\n", "#define __clang__ 1\n", "#if 0\n#endif\n"})
    EXPECT_EQ(shared(before + kGuard + kHead + text).text.find(kGuard + before + kGuard), 0U) << before;
  EXPECT_EQ(shared("#if 0\n" + kGuard + "#endif\n" + kHead + text).text.find(kGuard + "#if 0\n" + kGuard), 0U);
}

TEST(CText, RefusesHelpersThatCompilersMayEvaluateEitherWay) {
  const SharedText result = shared(kHead + "static double p(double x, double n) { return pow(x, n); }\n"s +
                                   "void f(const double u[], double out[]) { out[0] = p(u[0], 2.0); }\n");
  EXPECT_EQ(result.functions.at(1).reason.substr(0, 32), "3:51: a constant argument of 'p'");
}

TEST(CText, SharesFunctionsThatReturn) {
  const SharedText result =
      shared(kHead + "double f(double x) { double a = exp(sin(x)); return exp(sin(x))*a + a*a; }\n"s);
  EXPECT_NE(result.text.find("{\n  const double t0 = exp(sin(x));\n  const double t1 = t0 * t0;\n"
                             "  const double jitc_result = t1 + t1;\n  return jitc_result;\n}"),
            std::string::npos)
      << result.text;
}

TEST(CText, LeavesAloneWhatMayBeSomethingElse) {
  const std::string good =
      "void f(const double u[], double out[]) { out[0] = exp(u[0])*exp(u[0])*exp(u[0])*exp(u[0]); }\n";
  EXPECT_TRUE(shared(kHead + good).functions.at(0).is_shared);
  for (const std::string before :
       {"",
        "#pragma STDC FENV_ACCESS ON\n#include <math.h>\n",
        "#if defined(__GNUC__)\n#pragma GCC optimize(\"no-tree-slp-vectorize\")\n#endif\n#include <math.h>\n",
        "\xEF\xBB\xBFint x;\n#include <math.h>\n",
        "#include <math.h>\n#include \"other.h\"\n",
        "#include <math.h>\n#define exp(x) 3\n",
        "#define exp(x) 3\n#include <math.h>\n",
        "#include <tgmath.h>\n",
        "#include <math.h>\n#define double float\n",
        "#include <math.h>\n#define u v\n",
        "#include <math.h>\n#if A\n",
        "#include <math.h>\nstatic double exp(double);\n",
        "#include <math.h>\n_Pragma(\"STDC FP_CONTRACT ON\")\n",
        "#include <math.h>\n/* ?\?/ */\n",
        "#include <math.h>\nextern \"C\" { int x; }\n",
        "#include <math.h>\nvoid g(void) {\n#if A\n} void h(void) {\n#endif\n}\n",
        "#include <math.h>\n// one\r#undef exp\n",
        "#include <math.h>\n%:define u v\nint a;\n",
        "#include <math.h>\nstruct s {\n%:define u v\n};\n",
        "#include <math.h>\n#if A\nstatic\n#endif\n",
        "#include <math.h>\nint a\n#if A\n;\n#endif\n;\n__attribute__((optimize(\"fast-math\"))) void f();\n",
        "#include <math.h>\n#define A \"/*\"\n#define exp(x) 3 /* */\n",
        "#include <math.h>\n#define A \\ \n 3 /*\n*/\n#undef exp\n"}) {
    const SharedText result = shared(before + good);
    EXPECT_EQ(result.text, before + good);
    EXPECT_FALSE(result.functions.back().is_shared) << before;
  }
}

TEST(CText, ArraysThatMayOverlapAreLeftAlone) {
  const auto reason = [](const std::string& parameters) {
    return shared(kHead + "void f("s + parameters + ") { out[0] = sin(u[0]); out[1] = sin(u[0]); }\n")
        .functions.at(0)
        .reason;
  };
  EXPECT_EQ(reason("const double u[], double out[]"), "");
  EXPECT_EQ(reason("double u[], double *restrict out"), "");
  EXPECT_NE(reason("double u[], double out[]").find("may overlap"), std::string::npos);
  EXPECT_NE(reason("const float u[], double out[]").find("neither double"), std::string::npos);
  EXPECT_NE(reason("const PetscScalar u[], double out[]").find("neither double"), std::string::npos);
}

TEST(CText, TemporariesAvoidParametersAndMacros) {
  const SharedText result = shared(kHead + "#define t_7 3\nvoid f(const double t0[], double out[]) {"s +
                                   " out[0] = sin(t0[0])*sin(t0[0]); out[1] = sin(t0[0])/sin(t0[0]); }\n");
  EXPECT_NE(result.text.find("const double t__0 = sin(t0[0]);"), std::string::npos) << result.text;
  const std::string copies =
      shared(kHead + "void f(double t_out_0, double out[]) { out[0] += sin(t_out_0)*sin(t_out_0)*out[1]; }"s).text;
  EXPECT_NE(copies.find("const double t__out_0 = out[0];"), std::string::npos) << copies;
  const std::string results =
      shared(kHead + "#define jitc_result 3\ndouble f(double jitc_result_) { return sin(jitc_result_)*sin("s +
             "jitc_result_); }")
          .text;
  EXPECT_NE(results.find("const double jitc_result__ = t__0 * t__0;"), std::string::npos) << results;
}

TEST(CText, ReasonsHaveTheirPlaceInHeadsOfManyLines) {
  EXPECT_EQ(shared("#include <math.h>\n__attribute__((flatten))\n\ndouble f(double x) { return x; }")
                .functions.at(0)
                .reason.substr(0, 5),
            "2:16:");
}

// A bracket that was read before is not read again where it stands for the same value. The same texts with blanks of
// different numbers in their brackets (@) are read in full each time.
TEST(CText, RepeatedBracketsStandForWhatTheyStandForThere) {
  const std::string bodies[] = {
      "double a = u[0]; out[0] = exp(@a*u[1] + u[2]#); a = u[4]; out[1] = exp(@a*u[1] + u[2]#);",
      "out[0] = u[0]; out[1] = exp(@out[0]*u[1] + u[2]#); out[0] = u[5]; out[2] = exp(@out[0]*u[1] + u[2]#);",
      "out[0] = u[0]; out[1] = exp(@out[0]*u[1] + u[2]#); out[0] += exp(@out[0]*u[1] + u[2]#);"
      "out[2] = exp(@out[0]*u[1] + u[2]#);",
      "double a = u[0]; { double a = u[4]; out[0] = (@a*u[1] + u[2]#)*2; } out[1] = (@a*u[1] + u[2]#)*3;",
      "double a = u[0]; out[0] = (@a*u[1] + u[2]#); if (u[1] > 0) { a = u[4]; out[1] = (@a*u[1] + u[2]#); }"
      "else { a = u[5]; out[1] = (@a*u[1] + u[2]#); } out[2] = (@a*u[1] + u[2]#);",
      "out[0] = u[0] > 0 ? (@w[7]*u[1] + u[2]#) : 0; out[1] = u[0] < 1 ? (@w[7]*u[1] + u[2]#) : 2;",
      "out[0] = u[0] > 0 ? (@w[7]*u[1] + u[2]#) : 0; out[1] = (@w[7]*u[1] + u[2]#);",
      "out[0] = (@w[7]*u[1] + u[2]#); out[1] = u[0] > 0 ? (@w[7]*u[1] + u[2]#) : 0;",
      "out[0] = sin(@u[0]*u[1] + u[2]#) + cos(@u[0]*u[1] + u[2]#) + (@u[0]*u[1] + u[2]#);"
      "out[1] = pow(@u[0]*u[1] + u[2]#, 2.0) + pow(@u[0]*u[1] + u[2]#, 3.0);",
  };
  const std::string rest = "*u[3] + u[4]*u[5] + u[6]*u[7] + u[0]*u[2] + u[1]*u[3] + u[5]*u[6]";  // #
  for (const std::string& body : bodies) {
    std::string same;
    std::string different;
    std::size_t blanks = 0;
    for (const char c : body) {
      if (c != '@') same += c == '#' ? rest : std::string(1, c);
      different += c == '@' ? std::string(++blanks, ' ') : c == '#' ? rest : std::string(1, c);
    }
    const std::string comment = "/*" + std::string(400, '.') + "*/";
    const SharedText result = shared(function(comment + same));
    EXPECT_TRUE(result.functions[0].is_shared) << result.functions[0].reason;
    EXPECT_EQ(body_of(result.text), body_of(shared(function(comment + different)).text)) << body;
  }
}

TEST(CText, DepthAndLengthCostNoStack) {
  const std::size_t many = 300000;
  const std::string open = kHead + "void f(const double u[], double out[]) { out[0] = "s;
  std::string chain = "u[0]";
  for (std::size_t i = 0; i < many; ++i) chain += "+u[1]";
  EXPECT_TRUE(share(open + chain + "; }").functions.at(0).is_shared);
  EXPECT_TRUE(share(open + std::string(many, '(') + "u[0]" + std::string(many, ')') + "; }").functions.at(0).is_shared);
  EXPECT_TRUE(share(open + std::string(many, '-') + "u[0]; }").functions.at(0).reason.find("expression") !=
              std::string::npos);
  EXPECT_FALSE(share(open + std::string(many, '(')).functions.at(0).is_shared);
  std::string branches;
  for (std::size_t i = 0; i < many; ++i) branches += "if(u[0]<1){";
  EXPECT_FALSE(share(open + "1; " + branches).functions.at(0).is_shared);
  const std::string name(100000, 'x');
  EXPECT_TRUE(share(kHead + "void f(const double "s + name + "[], double out[]) { out[0] = " + name + "[0]; }")
                  .functions.at(0)
                  .is_shared);
}

TEST(CText, AnyBytesComeBack) {
  for (const std::string text :
       {"", "{", "}", "void f(", "void f() {", "/*", "\"", "#", "\\", "void f(double a[]) { a[0] = 1",
        "#include <math.h", "typedef", "'", "//", "void f(void) { return; } }"})
    EXPECT_EQ(shared(text).text, text);
  const std::string nul("void f(double a[]) { a[0] = \0 1; }", 34);
  EXPECT_EQ(shared(nul).text, nul);
}

}  // namespace
}  // namespace jitc::graph
