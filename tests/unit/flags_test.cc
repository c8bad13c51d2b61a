#include "common/flags.h"

#include <gtest/gtest.h>

namespace jitc::common {
namespace {

Result<void> check(std::vector<std::string> flags, std::vector<std::string> roots = {}) {
  return check_flags(flags, roots);
}

TEST(Flags, CodeGenerationWarningsAndMacrosAreAllowed) {
  const auto allowed = check({"-O3",
                              "-Os",
                              "-Ofast",
                              "-g0",
                              "-g",
                              "-std=gnu11",
                              "-ffp-contract=off",
                              "-fno-math-errno",
                              "-fno-trapping-math",
                              "-Wall",
                              "-Wno-unused",
                              "-Werror=return-type",
                              "-DN=3",
                              "-D_GNU_SOURCE",
                              "-UNDEBUG",
                              "-march=x86-64-v3",
                              "-mavx2",
                              "-mtune=native",
                              "-fopenmp-simd",
                              "-funroll-loops",
                              "-w",
                              "-pedantic"});
  EXPECT_TRUE(allowed) << to_line(allowed.error());
}

TEST(Flags, WhatReadsWritesOrRunsSomethingElseIsRefusedByName) {
  for (const char* flag : {"-fplugin=x.so",
                           "-fplugin",
                           "-B/tmp",
                           "-B",
                           "-wrapper",
                           "@file",
                           "-specs=x",
                           "--specs=x",
                           "-o",
                           "-oout",
                           "-I/etc",
                           "-include",
                           "-imacros",
                           "-iquote",
                           "-isystem",
                           "-idirafter",
                           "-iprefix",
                           "--sysroot=/",
                           "-L/tmp",
                           "-lfoo",
                           "-Wl,-rpath=/x",
                           "-Wa,--x",
                           "-Wp,-MD,f",
                           "-Xlinker",
                           "-Xclang",
                           "-Xassembler",
                           "-Xpreprocessor",
                           "-mllvm",
                           "-fprofile-use=x",
                           "-fprofile-generate",
                           "-fauto-profile=x",
                           "-ftime-trace=x",
                           "-fsave-optimization-record",
                           "-fdump-tree-all",
                           "-save-temps",
                           "-fmodules-cache-path=x",
                           "-fmodule-file=x",
                           "-fpass-plugin=x",
                           "-fstack-usage",
                           "-fcallgraph-info",
                           "-x",
                           "-E",
                           "-S",
                           "-c",
                           "-M",
                           "-MD",
                           "-MF",
                           "-P",
                           "-dM",
                           "-flto",
                           "-fuse-ld=lld",
                           "-print-prog-name=ld",
                           "--version",
                           "-v",
                           "file.c",
                           "-",
                           "",
                           "-fcrash-diagnostics-dir=x",
                           "-fsanitize=address",
                           "-fsanitize-ignorelist=x",
                           "-fembed-bitcode",
                           "-gsplit-dwarf",
                           "-dumpdir",
                           "-T",
                           "-e",
                           "-rdynamic",
                           "-static",
                           "-D",
                           "-march=sapphirerapids",
                           "-mabi=ms"}) {
    const auto checked = check({"-O2", flag});
    ASSERT_FALSE(checked) << flag;
    EXPECT_EQ(checked.error().kind, ErrorKind::kRefused) << flag;
    EXPECT_NE((checked.error().thing + " ").find(flag), std::string::npos) << flag;
  }
}

TEST(Flags, IncludeDirectoriesOnlyInsideTheRoots) {
  EXPECT_TRUE(check({"-I/opt/petsc/include", "-I", "/opt/petsc"}, {"/opt/petsc"}));
  EXPECT_FALSE(check({"-I/opt/petsc2"}, {"/opt/petsc"}));
  EXPECT_FALSE(check({"-I/opt/petsc/../../etc"}, {"/opt/petsc"}));
  EXPECT_FALSE(check({"-I"}, {"/opt/petsc"}));
  EXPECT_FALSE(check({"-I", "/etc"}, {"/opt/petsc"}));
}

TEST(Flags, WhatLetsValuesDiffer) {
  using Flags = std::vector<std::string>;
  EXPECT_TRUE(keep_values(Flags{}));
  EXPECT_TRUE(keep_values(Flags{"-O3", "-march=x86-64-v3", "-ffp-contract=fast", "-fno-math-errno", "-fno-fast-math"}));
  for (const char* flag : {"-Ofast", "-ffast-math", "-funsafe-math-optimizations", "-fassociative-math",
                           "-freciprocal-math", "-ffinite-math-only", "-fno-signed-zeros", "-ffp-model=fast"})
    EXPECT_FALSE(keep_values(Flags{"-O1", flag})) << flag;
}

TEST(Flags, SplitAtBlanks) {
  EXPECT_EQ(split_flags("  -O3 -DX=1\t-g0 ").value(), (std::vector<std::string>{"-O3", "-DX=1", "-g0"}));
  EXPECT_TRUE(split_flags("").value().empty());
  EXPECT_FALSE(split_flags("-DX='a b'"));
}

TEST(Scan, CountsCallsFunctionsAndNesting) {
  const auto scan =
      scan_source("void f(void) { g(1); }\n/* h(2) { { */ // i(3)\nvoid k(void) { x = \"(((\"; long_call ( y ); }\n");
  EXPECT_EQ(scan.calls, 4u);  // f, g, k, long_call
  EXPECT_EQ(scan.nesting, 1u);
  EXPECT_EQ(scan.blocks, 1u);
  EXPECT_EQ(scan.lines, 3u);
  EXPECT_EQ(scan.largest_function, std::string("{ x = \"(((\"; long_call ( y ); }").size());
}

TEST(Scan, TenThousandLevelsPassAndOneMoreIsAnErrorWithItsPlace) {
  const auto nested = [](std::size_t levels) {
    return "double x =\n" + std::string(levels, '(') + "1" + std::string(levels, ')') + ";";
  };
  EXPECT_TRUE(check_source(nested(10'000)));
  const auto deeper = check_source(nested(10'001));
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().kind, ErrorKind::kInvalidSource);
  ASSERT_EQ(deeper.error().diagnostics.size(), 1u);
  EXPECT_EQ(deeper.error().diagnostics[0].line, 2u);
  EXPECT_EQ(deeper.error().diagnostics[0].column, 10'001u);
}

TEST(Scan, TheBracesAroundDoNotCountAsParentheses) {
  const auto nested = [](std::size_t levels) {
    return "void f(void) { { x = " + std::string(levels, '(') + "1" + std::string(levels, ')') + "; } }";
  };
  EXPECT_TRUE(check_source(nested(10'000)));
  EXPECT_FALSE(check_source(nested(10'001)));
  EXPECT_TRUE(check_source("void f(void) " + std::string(10'000, '{') + std::string(10'000, '}')));
  EXPECT_FALSE(check_source("void f(void) " + std::string(10'001, '{') + std::string(10'001, '}')));
}

TEST(Scan, RunsOfOperatorsBeforeAnOperandNest) {
  const auto repeated = [](std::string_view what, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += what;
    return text;
  };
  for (const char* one : {"*", "- ", "~", "! ", "+ /* x */", "*const ", "sizeof "}) {
    EXPECT_TRUE(check_source("int " + repeated(one, 4'000) + "x;")) << one;
    const auto checked = check_source("\nint " + repeated(one, 200'000) + "x;");
    ASSERT_FALSE(checked) << one;
    EXPECT_EQ(checked.error().kind, ErrorKind::kInvalidSource);
    EXPECT_EQ(checked.error().diagnostics.at(0).line, 2u);
  }
  EXPECT_EQ(check_source("int " + std::string(10'001, '*') + "x;").error().diagnostics.at(0).column, 10'005u);
  EXPECT_EQ(scan_source("x = ((- - -y)) + -z;").nesting, 5u);
  EXPECT_TRUE(check_source("int x = " + repeated("1 + ", 100'000) + "1;"));
}

TEST(Scan, RunsOfCastsCallsAndIndicesNest) {
  const auto repeated = [](std::string_view what, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += what;
    return text;
  };
  for (const char* one : {"(int)", "(double *) ", "!(int)", "[1]", "(f(x))", "(x)\n/* ) */"}) {
    EXPECT_TRUE(check_source("int x = y " + repeated(one, 5'000) + "x;")) << one;
    const auto checked = check_source("\nint x = y " + repeated(one, 10'002) + "x;");
    ASSERT_FALSE(checked) << one;
    EXPECT_EQ(checked.error().kind, ErrorKind::kInvalidSource);
  }
  EXPECT_EQ(scan_source("x = (int)(long)(char)y;").nesting, 2u);
  // Operators between operands, and operands, end a run.
  for (const char* one : {"(a)*(b) + ", "(a) - ", "(a) & (int)b | ", "f(a) + -", "a[1][2] * "}) {
    EXPECT_TRUE(check_source("double x = " + repeated(one, 50'000) + "1;")) << one;
  }
  // Nesting with an operator before each bracket nests no deeper than without.
  for (const char* one : {"(", "-(", "a - (", "(int)(", "f(", "a * f("}) {
    EXPECT_TRUE(check_source("int x = " + repeated(one, 10'000) + "1" + repeated(")", 10'000) + ";")) << one;
  }
}

TEST(Scan, ChainsAreBounded) {
  const auto repeated = [](std::string_view what, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += what;
    return text;
  };
  EXPECT_EQ(scan_source("x = a ? (b ? 1 : 2) : c ? 3 : 4; y = a ? 1 : 2;").chain, 2u);
  EXPECT_EQ(scan_source("if (a) {} else if (b) { if (c) d(); } else if (e) f(); if (g) h();").chain, 2u);
  EXPECT_TRUE(check_source("int x = " + repeated("a ? 1 : ", 10'000) + "1;"));
  EXPECT_FALSE(check_source("int x = " + repeated("a ? 1 : ", 10'001) + "1;"));
  EXPECT_TRUE(check_source("int x[] = {" + repeated("a ? 1 : 2, ", 50'000) + "1};"));
  EXPECT_TRUE(check_source("int x = " + repeated("(a ? 1 : 2) + ", 50'000) + "1;"));
  const std::string else_if = " else if (a) { b(); }";
  EXPECT_TRUE(check_source("void f(void) { if (a) {}" + repeated(else_if, 10'000) + "}"));
  EXPECT_FALSE(check_source("void f(void) { if (a) {}" + repeated(else_if, 10'001) + "}"));
  EXPECT_TRUE(check_source("void f(void) { " + repeated("if (a) {} else if (b) c(); ", 50'000) + "}"));
  for (const char* one : {"x = ", "x += ", "x <<= ", "x >>= ", "*p = "}) {
    EXPECT_TRUE(check_source("void f(void) { " + repeated(one, 10'000) + "1; }")) << one;
    EXPECT_FALSE(check_source("void f(void) { " + repeated(one, 10'001) + "1; }")) << one;
  }
  for (const char* one : {"x = 1; ", "x == 1 + ", "x <= 1 + ", "x >= 1 + ", "x != 1 + "}) {
    EXPECT_TRUE(check_source("void f(void) { " + repeated(one, 50'000) + "1; }")) << one;
  }
  EXPECT_TRUE(check_source("enum { " + repeated("a = 1, ", 50'000) + "};"));
  for (const char* one : {"if (a) ", "for (;;) ", "while (a) ", "do ", "switch (a) "}) {
    EXPECT_TRUE(check_source("void f(void) { " + repeated(one, 9'000) + "x = 1; }")) << one;
    EXPECT_FALSE(check_source("void f(void) { " + repeated(one, 10'001) + "x = 1; }")) << one;
  }
  EXPECT_TRUE(check_source("void f(void) { " + repeated("if (a) { for (;;) b(); } ", 50'000) + "}"));
}

TEST(Scan, NestingInsideMacrosCounts) {
  EXPECT_EQ(scan_source("#define X ((((1))))\nint y;").nesting, 4u);
  EXPECT_EQ(scan_source("#define X ( \\\n ( 1 ) )\n").nesting, 2u);
}

TEST(Scan, BytesThatAreNotTextAreInvalidSource) {
  using std::string_literals::operator""s;
  for (const std::string& bad :
       {"int x;\0"s, "\xff"s, "int \xc3("s, "\xed\xa0\x80"s, "\xc0\xaf"s, "\xf5\x80\x80\x80"s, "\xe2\x82"s}) {
    const auto checked = check_source(bad);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().kind, ErrorKind::kInvalidSource);
    EXPECT_EQ(checked.error().diagnostics.size(), 1u);
  }
  EXPECT_TRUE(check_source("/* \xe2\x82\xac \xf0\x9f\x98\x80 */ int x;"));
  EXPECT_FALSE(check_source(""));
  EXPECT_FALSE(check_source(" \n\t"));
}

TEST(Scan, UnfinishedTextEnds) {
  for (const char* text : {"/*", "//", "\"", "'\\", "#define \\", "((", "#", "\\"})
    EXPECT_LE(scan_source(text).nesting, 2u);
}

}  // namespace
}  // namespace jitc::common
