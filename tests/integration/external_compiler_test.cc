// The real jitc-worker with compilers that are processes: gcc, and one that misbehaves on order (support/fakecc.cc).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/graph/emit.h"
#include "common/owner.h"
#include "daemon/worker/channel.h"
#include "daemon/worker/compiler_text.h"
#include "daemon/worker/process_tree.h"
#include "tests/support/worker_client.h"

namespace jitc::testing {
namespace {

using Finished = v1::WorkerReport::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kFakeCompiler = JITC_BIN_DIR "/jitc-fakecc";

class ExternalCompilerTest : public ::testing::Test {
 protected:
  static v1::WorkerCommand::Start gcc(std::vector<std::string> flags = {}) {
    auto start = WorkerClient::request(std::move(flags));
    start.set_compiler_path("/usr/bin/gcc");
    return start;
  }
  static v1::WorkerCommand::Start fake() {
    auto start = WorkerClient::request();
    start.set_compiler_path(kFakeCompiler);
    return start;
  }
  static std::string orders(std::initializer_list<std::string> orders) {
    std::string text;
    for (const std::string& order : orders) text += "// fakecc: " + order + "\n";
    return text + "int f(void) { return 1; }\n";
  }
  // Only the files of this test are in the worker's temporary directory.
  void expect_no_files_left() {
    for (const auto& entry : std::filesystem::directory_iterator(worker_.temporary_directory())) {
      if (!entry.path().filename().string().starts_with("jitc-worker-")) continue;
      EXPECT_TRUE(std::filesystem::is_empty(entry.path())) << entry.path();
    }
  }
  std::string place(const char* name) const { return worker_.temporary_directory() + "/" + name; }
  bool exists(const char* name) const { return std::filesystem::exists(place(name)); }
  // Usage reports come while the compiler runs, so this waits for events.
  void wait_for_file(const char* name) {
    while (!exists(name)) worker_.next();
  }

  WorkerClient worker_;
};

TEST_F(ExternalCompilerTest, GccCompilesWhatCanBeCalled) {
  const Answer answer = worker_.compile("#include <math.h>\ndouble f(double x) { return cos(x); }", gcc({"-Wall"}));
  ASSERT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
  void* module = dlopen(("/proc/self/fd/" + std::to_string(answer.elf.get())).c_str(), RTLD_NOW);
  ASSERT_NE(module, nullptr) << dlerror();
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(dlsym(module, "f"))(0.0), 1.0);
  dlclose(module);
  ASSERT_EQ(answer.finished.functions_size(), 1);
  EXPECT_EQ(answer.finished.functions(0).name(), "f");
  EXPECT_GT(answer.finished.peak_bytes(), 1u << 20);
  EXPECT_GT(answer.finished.cpu_seconds(), 0);
  expect_no_files_left();
}

TEST_F(ExternalCompilerTest, FastMathDoesNotChangeTheFloatingPointState) {
  const unsigned before = _mm_getcsr();
  const Answer answer = worker_.compile("double f(double x) { return x; }", gcc({"-ffast-math"}));
  ASSERT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
  void* module = dlopen(("/proc/self/fd/" + std::to_string(answer.elf.get())).c_str(), RTLD_NOW);
  ASSERT_NE(module, nullptr) << dlerror();
  EXPECT_EQ(_mm_getcsr(), before);
  dlclose(module);
}

TEST_F(ExternalCompilerTest, GccsDiagnosticsArePlaced) {
  const Answer answer = worker_.compile("int f(void) {\n  return missing;\n}\n", gcc());
  EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE);
  ASSERT_GE(answer.finished.diagnostics_size(), 1);
  EXPECT_EQ(answer.finished.diagnostics(0).line(), 2u);
  EXPECT_EQ(answer.finished.diagnostics(0).column(), 10u);
  EXPECT_THAT(answer.finished.diagnostics(0).message(), HasSubstr("missing"));
  EXPECT_THAT(answer.finished.diagnostics(0).excerpt(), HasSubstr("^"));
  const Answer undefined = worker_.compile("int nowhere(void); int f(void) { return nowhere(); }", gcc());
  EXPECT_EQ(undefined.finished.outcome(), Finished::INVALID_SOURCE);
  EXPECT_THAT(undefined.finished.message(), HasSubstr("nowhere"));
  expect_no_files_left();
}

TEST_F(ExternalCompilerTest, TheSameRefusalsHold) {
  for (const char* source :
       {"#include \"/etc/passwd\"\n", "#include <stdio.h>\n", "__asm__(\"nop\");",
        "#ifndef __clang__\n__asm__(\"nop\");\n#endif\n", "__attribute__((constructor)) void f(void) {}",
        "const char *f(void) { return __TIME__; }"}) {
    EXPECT_EQ(worker_.compile(source, gcc()).finished.outcome(), Finished::REFUSED) << source;
  }
  const Answer option = worker_.compile("int x;", gcc({"-fno-such-thing"}));
  EXPECT_EQ(option.finished.outcome(), Finished::REFUSED);
  EXPECT_THAT(option.finished.message(), HasSubstr("-fno-such-thing"));
  auto start = WorkerClient::request();
  start.set_compiler_path("/no/such/compiler");
  EXPECT_THAT(worker_.compile("int x;", start).finished.message(), HasSubstr("/no/such/compiler cannot be run"));
}

TEST_F(ExternalCompilerTest, AMissingHeaderIsRefusedByEveryCompiler) {
  v1::Headers headers;
  auto& header = *headers.add_headers();
  header.set_name("law.h");
  header.set_text("#include \"deeper.h\"\n");
  for (const char* compiler : {"", "/usr/bin/gcc", "/usr/lib/llvm-19/bin/clang"}) {
    if (*compiler != '\0' && !std::filesystem::exists(compiler)) continue;
    auto start = WorkerClient::request();
    start.set_compiler_path(compiler);
    const Answer missing = worker_.compile("#include \"nowhere.h\"\nint x;\n", start);
    EXPECT_EQ(missing.finished.outcome(), Finished::REFUSED) << compiler << missing.finished.DebugString();
    EXPECT_THAT(missing.finished.message(), HasSubstr("include of \"nowhere.h\": not in the request")) << compiler;
    ASSERT_GE(missing.finished.diagnostics_size(), 1) << compiler;
    EXPECT_EQ(missing.finished.diagnostics(0).line(), 1u);
    const Answer deeper = worker_.compile("#include \"law.h\"\nint x;\n", start, &headers);
    EXPECT_EQ(deeper.finished.outcome(), Finished::REFUSED) << compiler << deeper.finished.DebugString();
    EXPECT_THAT(deeper.finished.message(), HasSubstr("include of \"deeper.h\"")) << compiler;
    for (const char* said : {"#error 'a.h' file not found\n", "#error a.h: No such file or directory\n",
                             "#error a.h:1:1: fatal error: a.h: No such file or directory\n"}) {
      EXPECT_EQ(worker_.compile(said, start).finished.outcome(), Finished::INVALID_SOURCE) << compiler << said;
    }
  }
}

TEST_F(ExternalCompilerTest, WhatTheCompilerSeesIsWhatIsInspected) {
  const std::string secret = place("secret.h");
  std::ofstream(secret) << "#define SECRET 42\n";
  const std::string include = "#include \"" + secret + "\"\nint f(void) { return SECRET; }\n";
  const std::string bytes = "__asm__(\".incbin \\\"" + secret + "\\\"\");\nint f(void) { return 1; }\n";
  for (const char* guard : {"#if __GNUC__ > 4", "#ifdef __OPTIMIZE__", "#ifdef __AVX2__", "#ifdef __FAST_MATH__",
                            "#ifndef __clang__", "#if !defined(__DATE__) || 1", "#ifdef NEVER_SAID\n#else"}) {
    for (const std::string& text : {include, bytes}) {
      const std::string source = std::string(guard) + "\n" + text + "#endif\n";
      const Answer answer = worker_.compile(source, gcc({"-mavx2", "-ffast-math", "-D__clang__=1", "-U__clang__"}));
      EXPECT_EQ(answer.finished.outcome(), Finished::REFUSED) << source << answer.finished.DebugString();
    }
  }
  EXPECT_EQ(worker_.compile("#ifdef __clang__\n" + include + "#endif\n", gcc({"-D__clang__"})).finished.outcome(),
            Finished::REFUSED);
}

TEST_F(ExternalCompilerTest, NothingReachesTheAssemblerAsItIs) {
  const std::string file = ".incbin \\\"" + place("secret") + "\\\"\\n";
  std::ofstream(place("secret")) << "very secret bytes";
  for (const std::string& source : std::initializer_list<std::string>{
           "__attribute__((section(\".data\\n " + file + "#\"))) int x = 1;",
           "[[gnu::section(\".data\\n " + file + "#\")]] int x = 1;",
           "int x __asm__(\"x\\n" + file + "\");",
           "int f(void) { int g(void) { __asm__(\"" + file + "\"); return 1; } return g(); }",
           "int f(int a) { int g(void) { return a; } return g(); }",
           "#ident \"x\\\"\\n" + file + "#\"\nint x;",
           "#pragma GCC pch_preprocess \"" + place("secret") + "\"\nint x;",
           "__attribute__((symver(\"x@V\\n" + file + "\"))) int f(void) { return 1; }",
           "# 1 \"/usr/include/math.h\" 1 3 4\n#include <stdio.h>\nint x;",
           "/* */ %: 1 \"/usr/include/math.h\" 1 3\n#include <stdio.h>\nint x;",
           "#li\\\nne 3\nint x;",
           "const char *f(void) { return R\"(\"/*)\"; } /* */",
           "#if __has_include(\"/etc/passwd\")\n#endif\nint x;",
       }) {
    const Answer answer = worker_.compile(source, gcc({"-std=gnu2x"}));
    EXPECT_EQ(answer.finished.outcome(), Finished::REFUSED) << source << answer.finished.DebugString();
    EXPECT_FALSE(answer.elf);
  }
  const Answer nested = worker_.compile("int f(int a) {\n  int g(void) { return a; }\n  return g();\n}", gcc());
  EXPECT_THAT(nested.finished.message(), HasSubstr("a function within a function"));
  ASSERT_GE(nested.finished.diagnostics_size(), 1);
  EXPECT_EQ(nested.finished.diagnostics(0).line(), 2u);
  // What is harmless stays possible.
  const Answer label = worker_.compile(
      "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n#include <tgmath.h>\n"
      "double other(double) __asm__(\"cos\"); __attribute__((section(\".text.hot\"), deprecated(\"say: no\")))\n"
      "double f(double x) { return other(x) + strlen(\"asm(\\\"x y\\\")\") + abs(-1); }",
      gcc());
  EXPECT_EQ(label.finished.outcome(), Finished::DONE) << label.finished.DebugString();
}

TEST_F(ExternalCompilerTest, TheInstructionSetStaysAsAgreed) {
  for (const char* source : {"__attribute__((target(\"avx512f\"))) int f(void) { return 1; }",
                             "__attribute__((__target__(\"arch=sapphirerapids\"))) int f(void) { return 1; }",
                             "__attribute__((target_clones(\"avx2\",\"default\"))) int f(void) { return 1; }",
                             "#pragma GCC target(\"avx512f\")\nint f(void) { return 1; }",
                             "_Pragma(\"GCC target(\\\"avx512f\\\")\") int f(void) { return 1; }"}) {
    EXPECT_EQ(worker_.compile(source, gcc()).finished.outcome(), Finished::REFUSED) << source;
  }
}

TEST_F(ExternalCompilerTest, PrintedTextsPassWithTheirGuard) {
  const std::string source =
      std::string(graph::kContractionGuard) + "#include <math.h>\ndouble f(double x) { return sin(x); }\n";
  for (const char* compiler : {"", "/usr/bin/gcc", "/usr/lib/llvm-19/bin/clang"}) {
    if (*compiler != '\0' && !std::filesystem::exists(compiler)) continue;
    auto start = WorkerClient::request({"-O3", "-std=c99", "-Wall", "-Wextra", "-Werror"});
    start.set_compiler_path(compiler);
    const Answer answer = worker_.compile(source, start);
    EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << compiler << answer.finished.DebugString();
    EXPECT_EQ(answer.finished.diagnostics_size(), 0) << compiler << answer.finished.DebugString();
  }
}

TEST_F(ExternalCompilerTest, StrictFlagsConcernTheSourceAlone) {
  const char* source = "#include <math.h>\nextern double f(double);\ndouble f(double x) { return sin(x); }\n";
  for (const char* compiler : {"", "/usr/bin/gcc", "/usr/lib/llvm-19/bin/clang"}) {
    if (*compiler != '\0' && !std::filesystem::exists(compiler)) continue;
    auto start = WorkerClient::request({"-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"});
    start.set_compiler_path(compiler);
    const Answer answer = worker_.compile(source, start);
    EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << compiler << answer.finished.DebugString();
    EXPECT_EQ(answer.finished.diagnostics_size(), 0) << compiler;
    for (const std::string& flag : answer.finished.flags_used()) EXPECT_EQ(flag.find("line-marker"), std::string::npos);
    const Answer extension = worker_.compile("int f(void) { int a[0]; return sizeof a; }\n", start);
    EXPECT_EQ(extension.finished.outcome(), Finished::INVALID_SOURCE) << compiler << " is not pedantic any more";
  }
}

TEST_F(ExternalCompilerTest, WordsOfTheSourceDecideNothing) {
  for (const char* line : {"/* bad value */ return y;", "/* std::bad_alloc */ return y;",
                           "/* signal terminated program */ return y; /* undefined reference to x */"}) {
    auto start = gcc();
    start.set_memory_limit_bytes(512 << 20);
    const Answer answer = worker_.compile("int f(void) {\n  " + std::string(line) + "\n}\n", start);
    EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE) << line << answer.finished.DebugString();
  }
  auto start = gcc();
  start.set_memory_limit_bytes(512 << 20);
  EXPECT_EQ(worker_.compile("#error memory exhausted\n", start).finished.outcome(), Finished::INVALID_SOURCE);
  v1::Headers headers;
  auto& header = *headers.add_headers();
  header.set_name("cc1");
  header.set_text("#error out of memory allocating\n");
  EXPECT_EQ(worker_.compile("#include \"cc1\"\n", start, &headers).finished.outcome(), Finished::INVALID_SOURCE);
  // A line of its own, before what is wrong.
  for (const char* line : {"virtual memory exhausted: b", "cc1: out of memory allocating 8 bytes",
                           "gcc: fatal error: Killed signal terminated program cc1"}) {
    header.set_name("words.h");
    header.set_text("#pragma message \"a\\n" + std::string(line) + "\"\nint x = undeclared;\n");
    const Answer answer = worker_.compile("#include \"words.h\"\n", start, &headers);
    EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE) << line << answer.finished.DebugString();
    EXPECT_THAT(answer.finished.message(), HasSubstr("undeclared"));
  }
}

TEST_F(ExternalCompilerTest, WordsMayBeOfAnyEncoding) {
  std::filesystem::create_directory(place("root"));
  std::ofstream(place("root/latin.h")) << "#error caf\xe9 \xff\n";
  for (const char* compiler : {"", "/usr/bin/gcc"}) {
    auto start = WorkerClient::request();
    start.set_compiler_path(compiler);
    start.add_include_roots(place("root"));
    const Answer answer = worker_.compile("#include \"" + place("root/latin.h") + "\"\n", start);
    EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE) << compiler << answer.finished.DebugString();
    EXPECT_THAT(answer.finished.message() + answer.finished.log(), HasSubstr("caf"));
  }
  const Answer answer = worker_.compile(orders({"latin", "exit 1"}), fake());
  EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE) << answer.finished.DebugString();
  EXPECT_EQ(answer.finished.message(), "caf?");
  ASSERT_EQ(answer.finished.diagnostics_size(), 1);
  EXPECT_EQ(answer.finished.diagnostics(0).excerpt(), "    1 | caf? \xc3\xa9");
}

TEST_F(ExternalCompilerTest, AnEndByTheWorkerIsCalledSo) {
  const std::uint64_t job = worker_.start(orders({"note " + place("reached"), "hold " + place("never")}), fake());
  const pid_t supervisor = worker_.wait_started(job);
  wait_for_file("reached");
  constexpr int kChannel = 3;
  const common::Fd handle(static_cast<int>(syscall(SYS_pidfd_open, supervisor, 0)));
  const common::Fd channel(static_cast<int>(syscall(SYS_pidfd_getfd, handle.get(), kChannel, 0)));
  if (!channel) GTEST_SKIP() << "descriptors of other processes are out of reach here";
  ASSERT_TRUE(worker::send_datagram(channel.get(), "\xff"));
  const Finished finished = worker_.wait_finished(job).finished;
  EXPECT_EQ(finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(finished.message(), HasSubstr("cannot be read, and was ended by jitc"));
  EXPECT_TRUE(worker_.wait_alone());
}

TEST_F(ExternalCompilerTest, PlacesAreThoseOfTheSource) {
  const Answer answer =
      worker_.compile("#include <math.h>\n#define X 3\nint   f(int a) {\n\treturn   a + X +   missing;\n}\n", gcc());
  EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE);
  ASSERT_GE(answer.finished.diagnostics_size(), 1);
  EXPECT_EQ(answer.finished.diagnostics(0).line(), 4u);
  EXPECT_THAT(answer.finished.diagnostics(0).excerpt(), HasSubstr("a + X +   missing"));
}

TEST_F(ExternalCompilerTest, RootsDebugInformationAndOtherCompilers) {
  std::filesystem::create_directories(place("root/sub"));
  std::ofstream(place("root/sub/good.h")) << "#include <math.h>\n#define GOOD 5\n";
  for (const char* compiler : {"/usr/bin/gcc", "/usr/lib/llvm-19/bin/clang"}) {
    if (!std::filesystem::exists(compiler)) continue;
    auto start = WorkerClient::request({"-g", "-Wall", "-Werror", "-DX=2", "-I", place("root/sub")});
    start.set_compiler_path(compiler);
    start.add_include_roots(place("root"));
    const Answer answer =
        worker_.compile("#include <good.h>\ndouble f(double x) { return sin(x) + GOOD + X; }\n", start);
    EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
    EXPECT_EQ(worker_.compile("#include <stdio.h>\n", start).finished.outcome(), Finished::REFUSED);
    EXPECT_EQ(worker_.compile("const char *f(void) { return __DATE__; }", start).finished.outcome(), Finished::REFUSED);
  }
}

TEST_F(ExternalCompilerTest, DebugInformationKnowsNoPrivatePlace) {
  const char* source = "#include <math.h>\n#define HALF 0.5\ndouble f(double x) { return HALF * sin(x); }\n";
  for (const char* compiler : {"/usr/bin/gcc", "/usr/lib/llvm-19/bin/clang"}) {
    if (!std::filesystem::exists(compiler)) continue;
    auto start = WorkerClient::request({"-O2", "-g3"});
    start.set_compiler_path(compiler);
    const Answer here = worker_.compile(source, start);
    ASSERT_EQ(here.finished.outcome(), Finished::DONE) << here.finished.DebugString();
    EXPECT_THAT(here.bytes(), HasSubstr(".debug_info"));
    EXPECT_THAT(here.bytes(), Not(HasSubstr("jitc-worker-")));
    EXPECT_THAT(here.bytes(), Not(HasSubstr("/proc/")));
    WorkerClient elsewhere;
    EXPECT_EQ(elsewhere.compile(source, start).bytes(), here.bytes()) << compiler;
  }
}

TEST_F(ExternalCompilerTest, HeadersTravelWithTheRequest) {
  v1::Headers headers;
  auto& header = *headers.add_headers();
  header.set_name("physics/law.h");
  header.set_text("#define POWER 3\n");
  const char* source = "#include \"physics/law.h\"\nint f(void) { return POWER; }\n";
  const Answer answer = worker_.compile(source, gcc({"-Werror"}), &headers);
  EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
  expect_no_files_left();
}

TEST_F(ExternalCompilerTest, WithoutMemoryNoFileIsLeft) {
  auto start = fake();
  start.set_memory_limit_bytes(256 << 20);
  const Answer answer = worker_.compile(orders({"fork", "allocate 500M"}), start);
  EXPECT_EQ(answer.finished.outcome(), Finished::OUT_OF_MEMORY) << answer.finished.message();
  expect_no_files_left();
}

TEST_F(ExternalCompilerTest, AnUnknownStatusIsACrash) {
  const Answer answer = worker_.compile(orders({"exit 3"}), fake());
  EXPECT_EQ(answer.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(answer.finished.message(), HasSubstr("status 3"));
}

TEST_F(ExternalCompilerTest, CpuLimitIsATimeOut) {
  auto start = fake();
  start.set_cpu_seconds(1);
  EXPECT_EQ(worker_.compile(orders({"spin"}), start).finished.outcome(), Finished::TIMED_OUT);
}

TEST(ExternalCompilerLimits, ACompilerThatSleepsIsEnded) {
  WorkerClient worker({.options = {"--stall-seconds", "1"}});
  auto start = WorkerClient::request();
  start.set_compiler_path(kFakeCompiler);
  const Answer answer =
      worker.compile("// fakecc: fork\n// fakecc: hold " + worker.temporary_directory() + "/never\nint x;\n", start);
  EXPECT_EQ(answer.finished.outcome(), Finished::TIMED_OUT) << answer.finished.DebugString();
  EXPECT_THAT(answer.finished.evidence(), HasSubstr("no CPU time"));
  EXPECT_TRUE(worker.wait_alone());
  start.set_cpu_seconds(3);
  EXPECT_THAT(worker.compile("// fakecc: spin\nint x;\n", start).finished.message(), HasSubstr("CPU time"));
}

TEST(ExternalCompilerLimits, JobsWaitForDescriptors) {
  constexpr std::size_t kDescriptors = 17;  // enough for several jobs, not for seven
  WorkerClient worker;
  worker.leave_descriptors(kDescriptors);
  auto start = WorkerClient::request();
  start.set_compiler_path(kFakeCompiler);
  const auto begin = [&](const std::string& go, std::size_t count) {
    std::vector<std::uint64_t> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back(worker.start("// fakecc: hold " + go + "\nint f(void) { return 1; }\n", start));
    }
    return jobs;
  };
  const auto expect_done = [&worker](const std::vector<std::uint64_t>& jobs) {
    for (const std::uint64_t job : jobs) {
      const Answer answer = worker.wait_finished(job);
      EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
    }
  };
  const std::string first = worker.temporary_directory() + "/first";
  auto jobs = begin(first, 7);
  worker.cancel(jobs.back());
  // Some run at once, not all. The last one waits, and can be cancelled: that comes after all starts.
  std::set<std::uint64_t> started;
  v1::WorkerReport report;
  for (report = worker.next(); !report.has_finished(); report = worker.next()) {
    if (report.has_started()) started.insert(report.started().job());
  }
  EXPECT_EQ(report.finished().job(), jobs.back());
  EXPECT_EQ(report.finished().outcome(), Finished::CANCELLED);
  EXPECT_GT(started.size(), 1);
  EXPECT_FALSE(started.contains(jobs.back()));
  jobs.pop_back();
  std::ofstream(first).put('\n');
  expect_done(jobs);
  // So many that their own descriptors have no room in the worker: they wait in its socket.
  const std::string second = worker.temporary_directory() + "/second";
  jobs = begin(second, kDescriptors + 1);
  worker.wait_started(jobs.front());
  std::ofstream(second).put('\n');
  expect_done(jobs);
}

TEST(ExternalCompilerLimits, WorkersThatShareAPlaceLeaveEachOtherAlone) {
  WorkerClient first;
  const std::string place = first.temporary_directory();
  auto start = WorkerClient::request();
  start.set_compiler_path(kFakeCompiler);
  const std::uint64_t job = first.start("// fakecc: hold " + place + "/go\nint f(void) { return 1; }\n", start);
  first.wait_started(job);
  first.wait_usage([](const auto& usage) { return usage.jobs_size() == 1; });
  const std::string prefix = place + "/jitc-worker-" + std::to_string(geteuid()) + "-";
  common::Owner dead = common::Owner::this_process(), elsewhere = dead;
  dead.start += 1;
  elsewhere.host = "elsewhere";
  const std::string left = prefix + common::temp_name(dead), foreign = prefix + common::temp_name(elsewhere);
  std::filesystem::create_directory(left);
  std::filesystem::create_directory(foreign);
  const WorkerClient second({.temporary_directory = place});
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(foreign));
  std::ofstream(place + "/go").put('\n');
  const Answer answer = first.wait_finished(job);
  EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
}

TEST_F(ExternalCompilerTest, BrokenModulesAreNotPassedOn) {
  EXPECT_THAT(worker_.compile(orders({"exit 0"}), fake()).finished.message(), HasSubstr("wrote no module"));
  const Answer half = worker_.compile(orders({"half"}), fake());
  EXPECT_EQ(half.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(half.finished.message(), HasSubstr("broken"));
  const Answer text = worker_.compile(orders({"text"}), fake());
  EXPECT_EQ(text.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(text.finished.message(), HasSubstr("broken"));
  EXPECT_FALSE(text.elf);
  const Answer crash = worker_.compile(orders({"crash 11"}), fake());
  EXPECT_EQ(crash.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(crash.finished.message(), HasSubstr("signal 11 (SIGSEGV)"));
  EXPECT_FALSE(half.elf);
  expect_no_files_left();
}

TEST_F(ExternalCompilerTest, ItsStatusDecidesNotItsWords) {
  EXPECT_EQ(worker_.compile(orders({"complain"}), fake()).finished.outcome(), Finished::DONE);
  EXPECT_EQ(worker_.compile(orders({"complain", "exit 1"}), fake()).finished.outcome(), Finished::INVALID_SOURCE);
}

TEST_F(ExternalCompilerTest, NoiseIsCut) {
  const Answer answer = worker_.compile(orders({"print 10M", "exit 1"}), fake());
  EXPECT_EQ(answer.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(answer.finished.log(), HasSubstr("more bytes"));
}

TEST_F(ExternalCompilerTest, CancelEndsTheWholeTree) {
  const std::string source = orders({"orphan", "fork", "note " + place("reached"), "hold " + place("never")});
  const std::uint64_t job = worker_.start(source, fake());
  const pid_t pid = worker_.wait_started(job);
  wait_for_file("reached");
  worker_.cancel(job);
  EXPECT_EQ(worker_.wait_finished(job).finished.outcome(), Finished::CANCELLED);
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_TRUE(worker_.wait_alone());
  expect_no_files_left();
}

TEST_F(ExternalCompilerTest, OrphansEndWithTheJobOrTheSupervisor) {
  EXPECT_EQ(worker_.compile(orders({"orphan"}), fake()).finished.outcome(), Finished::DONE);
  EXPECT_TRUE(worker_.wait_alone());
  const std::string source = orders({"orphan", "fork", "note " + place("reached"), "hold " + place("never")});
  const std::uint64_t job = worker_.start(source, fake());
  const pid_t supervisor = worker_.wait_started(job);
  wait_for_file("reached");
  kill(supervisor, SIGKILL);
  EXPECT_EQ(worker_.wait_finished(job).finished.outcome(), Finished::CRASHED);
  // The next answer comes after the strays were ended.
  EXPECT_EQ(worker_.compile("int f(void) { return 1; }").finished.outcome(), Finished::DONE);
  EXPECT_TRUE(worker_.wait_alone());
  expect_no_files_left();
}

// Nobody was left to end them: the worker's daemon is gone as well.
TEST(ExternalCompilerRestart, ProcessesThatADeadWorkerLeftAreEnded) {
  WorkerClient client;  // owns the directory
  WorkerClient::Setup setup{.options = {"--control-groups", "0"}, .temporary_directory = client.temporary_directory()};
  auto dead = std::make_unique<WorkerClient>(setup);
  const std::string reached = setup.temporary_directory + "/reached";
  auto start = WorkerClient::request();
  start.set_compiler_path(kFakeCompiler);
  const std::uint64_t job = dead->start("// fakecc: fork\n// fakecc: note " + reached + "\n// fakecc: hold " +
                                            setup.temporary_directory + "/never\nint f(void) { return 1; }\n",
                                        start);
  const pid_t supervisor = dead->wait_started(job);
  while (!std::filesystem::exists(reached)) dead->next();
  const std::vector<pid_t> processes = worker::descendants(supervisor);
  ASSERT_EQ(processes.size(), 2u);
  kill(dead->pid(), SIGKILL);
  dead.reset();  // reaps it
  const WorkerClient next(setup);
  for (const pid_t pid : processes) {
    const auto status = common::read_file("/proc/" + std::to_string(pid) + "/stat");
    EXPECT_TRUE(!status || status->find(") Z") != std::string::npos) << *status;
  }
}

TEST(CompilerText, TellsComplaintsApart) {
  EXPECT_EQ(worker::memory_complaint_in("x\ncc1: out of memory allocating 8 bytes after a total of 9 bytes\n"),
            "cc1: out of memory allocating 8 bytes after a total of 9 bytes");
  EXPECT_THAT(worker::memory_complaint_in("source.c:1:1: error: nothing of that kind\n"), IsEmpty());
  EXPECT_THAT(worker::dead_program_in("gcc: fatal error: Killed signal terminated program cc1\n"), HasSubstr("Killed"));
  // What a compiler says of a file may have lines of any words; a dying one says nothing of files any more.
  for (const char* excerpt : {"    1 | #pragma message\n      |         ^\n", "#pragma message\n        ^~~\n"}) {
    const std::string words =
        "cc1: out of memory allocating 8 bytes\ngcc: fatal error: Killed signal terminated program "
        "cc1\n";
    const std::string message = "a.h:1:9: note: '#pragma message: b\n" + words + "'\n" + excerpt;
    EXPECT_THAT(worker::memory_complaint_in(message), IsEmpty());
    EXPECT_THAT(worker::dead_program_in(message), IsEmpty());
    EXPECT_THAT(worker::memory_complaint_in(message + words), HasSubstr("8 bytes"));
    EXPECT_THAT(worker::dead_program_in(message + words + "compilation terminated.\n"), HasSubstr("Killed"));
  }
  EXPECT_THAT(worker::error_in_a_file("a.h:1:9: note: '#pragma message: b: error: c'\ncc1: error: d\n"), IsEmpty());
  EXPECT_EQ(worker::error_in_a_file("<command-line>: error: e\n"), "<command-line>: error: e");
  const auto found = worker::diagnostics_in(
      "source.c: In function 'f':\nsource.c:3:7: warning: w\n    3 | x\n      | ^\n"
      "source.c:4: error: e\nother.c:1:1: error: no\n");
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].column(), 7u);
  EXPECT_EQ(found[0].excerpt(), "    3 | x\n      | ^");
  EXPECT_EQ(found[1].line(), 4u);
  EXPECT_EQ(found[1].column(), 0u);
}

}  // namespace
}  // namespace jitc::testing
