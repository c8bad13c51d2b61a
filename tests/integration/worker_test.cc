// The real jitc-worker over a socket pair: the embedded compiler.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "daemon/worker/channel.h"
#include "tests/support/worker_client.h"

namespace jitc::testing {
namespace {

using Finished = v1::WorkerReport::Finished;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A module loaded from its memory file.
class Module {
 public:
  explicit Module(const Answer& answer)
      : handle_(dlopen(("/proc/self/fd/" + std::to_string(answer.elf.get())).c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~Module() { dlclose(handle_); }
  Module(const Module&) = delete;
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

class WorkerTest : public ::testing::Test {
 protected:
  Finished refuse(std::string_view source, const v1::WorkerCommand::Start& start = WorkerClient::request()) {
    Answer answer = worker_.compile(source, start);
    EXPECT_EQ(answer.finished.outcome(), Finished::REFUSED) << answer.finished.DebugString();
    EXPECT_FALSE(answer.elf);
    return answer.finished;
  }
  // The worker still compiles.
  void expect_unharmed() {
    const Answer answer = worker_.compile("int seven(void) { return 7; }");
    ASSERT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
    EXPECT_EQ(Module(answer).function<int()>("seven")(), 7);
  }

  WorkerClient worker_;
};

std::string nested(int levels) {
  return "double f(double x) { return " + std::string(levels, '(') + "x" + std::string(levels, ')') + " + 1; }";
}

// Code generation for it takes long: a chain of dependent calls with much to simplify.
std::string slow_source(int terms) {
  std::string text = "#include <math.h>\ndouble f(double x) {\n  double s = 0;\n";
  for (int i = 0; i < terms; ++i) {
    const std::string n = std::to_string(i);
    text += "  s += x > " + n + " ? sqrt(s * s + x * " + n + ".5) : pow(s, 1.5) / (x + " + n + ".25);\n";
  }
  return text + "  return s;\n}\n";
}

TEST_F(WorkerTest, SaysWhatItIs) {
  EXPECT_THAT(worker_.ready().embedded_identity(), HasSubstr("clang version 19"));
  EXPECT_THAT(worker_.ready().target_triple(), HasSubstr("linux"));
  EXPECT_THAT(worker_.ready().host_cpu(), Not(IsEmpty()));
  EXPECT_THAT(worker_.ready().host_features(), HasSubstr("sse2"));
}

TEST_F(WorkerTest, CompilesWhatCanBeLoadedAndCalled) {
  const Answer answer = worker_.compile(R"(#include <math.h>
static double twice(double x) { return 2 * x; }
double f(const double *restrict x) { return twice(sin(x[0])) + pow(x[1], 1.5) + M_PI; }
)");
  ASSERT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
  const Module module(answer);
  const double x[] = {0.3, 2.0};
  EXPECT_DOUBLE_EQ(module.function<double(const double*)>("f")(x), 2 * std::sin(0.3) + std::pow(2.0, 1.5) + M_PI);
  ASSERT_EQ(answer.finished.functions_size(), 1);
  EXPECT_EQ(answer.finished.functions(0).name(), "f");
  EXPECT_EQ(answer.finished.functions(0).signature(), "double f(const double *restrict x)");
  EXPECT_EQ(answer.finished.counts().functions(), 2u);
  EXPECT_EQ(answer.finished.counts().calls(), 3u);
  EXPECT_GT(answer.finished.counts().largest_function_nodes(), 10u);
  EXPECT_GT(answer.finished.peak_bytes(), 10u << 20);
  EXPECT_GT(answer.finished.cpu_seconds(), 0);
}

TEST_F(WorkerTest, TheModuleIsSealed) {
  const Answer answer = worker_.compile("int f(void) { return 1; }");
  ASSERT_TRUE(answer.elf);
  EXPECT_EQ(pwrite(answer.elf.get(), "x", 1, 0), -1);
  EXPECT_EQ(ftruncate(answer.elf.get(), 0), -1);
}

TEST_F(WorkerTest, PlacesDiagnosticsWithCaret) {
  const Answer answer = worker_.compile("int f(void) {\n  return 1 +;\n}\n");
  EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE);
  ASSERT_EQ(answer.finished.diagnostics_size(), 1);
  const auto& diagnostic = answer.finished.diagnostics(0);
  EXPECT_EQ(diagnostic.severity(), "error");
  EXPECT_EQ(diagnostic.line(), 2u);
  EXPECT_EQ(diagnostic.column(), 13u);
  EXPECT_EQ(diagnostic.message(), "expected expression");
  EXPECT_EQ(diagnostic.excerpt(), "  return 1 +;\n            ^");
  EXPECT_THAT(answer.finished.log(), HasSubstr("source.c:2:13: error: expected expression"));
}

TEST_F(WorkerTest, WarningsDoNotFailUnlessAsked) {
  const char* source = "int f(void) { int unused; return 1; }";
  const Answer warned = worker_.compile(source, WorkerClient::request({"-Wall"}));
  EXPECT_EQ(warned.finished.outcome(), Finished::DONE);
  ASSERT_EQ(warned.finished.diagnostics_size(), 1);
  EXPECT_EQ(warned.finished.diagnostics(0).severity(), "warning");
  EXPECT_EQ(worker_.compile(source, WorkerClient::request({"-Wall", "-Werror"})).finished.outcome(),
            Finished::INVALID_SOURCE);
}

TEST_F(WorkerTest, NamesUndefinedSymbols) {
  const Answer answer = worker_.compile("double nowhere(double); double f(double x) { return nowhere(x); }");
  EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE);
  EXPECT_THAT(answer.finished.message(), HasSubstr("nowhere"));
}

TEST_F(WorkerTest, RefusesFilesThatAreNotInTheRequest) {
  EXPECT_THAT(refuse("#include \"/etc/passwd\"\n").message(), HasSubstr("/etc/passwd"));
  EXPECT_THAT(refuse("#include \"../../../../etc/passwd\"\n").message(), HasSubstr("etc/passwd"));
  EXPECT_THAT(refuse("#include <stdio.h>\n").message(), HasSubstr("send it with the request"));
  EXPECT_THAT(refuse("const char a[] = {\n#embed \"/etc/passwd\"\n};\n").message(), HasSubstr("/etc/passwd"));
  const Answer blind =
      worker_.compile("#if __has_include(\"/etc/passwd\")\n#error seen\n#endif\nint f(void){return 1;}");
  EXPECT_EQ(blind.finished.outcome(), Finished::DONE);
}

TEST_F(WorkerTest, RefusesWhatRunsAtLoadTimeOrReadsTheClock) {
  EXPECT_THAT(refuse("__attribute__((constructor)) void f(void) {}").message(), HasSubstr("constructor"));
  EXPECT_THAT(refuse("void f(void) __attribute__((destructor)); void f(void) {}").message(), HasSubstr("destructor"));
  EXPECT_THAT(refuse("void g(void){}\n__attribute__((section(\".init_array\"))) void (*p)(void) = g;").message(),
              HasSubstr(".init_array"));
  EXPECT_THAT(refuse("void _init(void) {}").message(), HasSubstr("INIT"));
  EXPECT_THAT(refuse("static int g(void){return 1;} static void *r(void){return g;}\n"
                     "int f(void) __attribute__((ifunc(\"r\")));")
                  .message(),
              HasSubstr("load"));
  EXPECT_THAT(refuse("__asm__(\".incbin \\\"/etc/passwd\\\"\");").message(), HasSubstr("assembler"));
  EXPECT_THAT(refuse("void f(void) { __asm__ volatile(\"nop\"); }").message(), HasSubstr("assembler"));
  EXPECT_THAT(refuse("const char *f(void) { return __DATE__; }").message(), HasSubstr("__DATE__"));
  EXPECT_THAT(
      refuse("#pragma clang diagnostic ignored \"-Wdate-time\"\nconst char *f(void) { return __TIME__; }").message(),
      HasSubstr("__TIME__"));
}

TEST_F(WorkerTest, RefusesToRaiseTheInstructionSet) {
  for (const char* source : {"__attribute__((target(\"avx512f\"))) int f(void) { return 1; }",
                             "#pragma clang attribute push(__attribute__((target(\"avx512f\"))), apply_to = function)\n"
                             "int f(void) { return 1; }\n#pragma clang attribute pop\n",
                             "__attribute__((target_clones(\"avx2\", \"default\"))) int f(void) { return 1; }"}) {
    EXPECT_THAT(refuse(source).message(), HasSubstr("--isa")) << source;
  }
  EXPECT_THAT(refuse("__attribute__((section(\".data\\n#\"))) int x = 1;").message(), HasSubstr("section names"));
}

// What the worker adds for its child, and what the child answers, may be larger than what came.
TEST_F(WorkerTest, WhatFitsNoDatagramFailsItsOwnJobAlone) {
  const auto other = worker_.start("int one(void) { return 1; }", WorkerClient::request());
  v1::WorkerCommand command;
  *command.mutable_start() = WorkerClient::request({"-DA="});
  command.mutable_start()->set_job(other + 1);
  auto& flag = *command.mutable_start()->mutable_flags(command.start().flags_size() - 1);
  while (command.ByteSizeLong() < worker::kMaxMessageBytes) flag += ' ';
  EXPECT_THAT(refuse("int x;", command.start()).message(), HasSubstr("too l"));
  EXPECT_EQ(worker_.wait_finished(other).finished.outcome(), Finished::DONE);
  expect_unharmed();
}

TEST_F(WorkerTest, RefusesUnknownFlagsByName) {
  EXPECT_THAT(refuse("int x;", WorkerClient::request({"-fno-such-thing"})).message(), HasSubstr("-fno-such-thing"));
  EXPECT_THAT(refuse("int x;", WorkerClient::request({"-emit-llvm"})).message(), HasSubstr("object code"));
}

TEST_F(WorkerTest, HeadersTravelWithTheRequest) {
  v1::Headers headers;
  auto& header = *headers.add_headers();
  header.set_name("physics/law.h");
  header.set_text("#define POWER 3\n");
  const Answer answer =
      worker_.compile("#include \"physics/law.h\"\n#include <physics/law.h>\nint f(void){return POWER;}",
                      WorkerClient::request(), &headers);
  ASSERT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
  EXPECT_EQ(Module(answer).function<int()>("f")(), 3);
  header.set_name("../law.h");
  EXPECT_EQ(worker_.compile("int x;", WorkerClient::request(), &headers).finished.outcome(), Finished::REFUSED);
}

TEST_F(WorkerTest, AnErrorInAHeaderIsPlacedAtItsInclude) {
  v1::Headers headers;
  auto& header = *headers.add_headers();
  header.set_name("bad.h");
  header.set_text("\nint x = ;\n");
  const Answer answer = worker_.compile("\n#include \"bad.h\"\n", WorkerClient::request(), &headers);
  ASSERT_EQ(answer.finished.diagnostics_size(), 1);
  EXPECT_EQ(answer.finished.diagnostics(0).line(), 2u);
  EXPECT_THAT(answer.finished.diagnostics(0).message(), HasSubstr("bad.h:2:9: expected expression"));
}

TEST_F(WorkerTest, IncludeRootsAreReadAndNotLeft) {
  const std::filesystem::path place = worker_.temporary_directory();
  std::filesystem::create_directories(place / "root");
  std::ofstream(place / "root/good.h") << "#define GOOD 5\n";
  std::ofstream(place / "outside.h") << "#define OUTSIDE 1\n";
  std::filesystem::create_symlink("../outside.h", place / "root/link.h");
  auto start = WorkerClient::request();
  start.add_include_roots((place / "root").string());
  const Answer answer = worker_.compile("#include <good.h>\nint f(void) { return GOOD; }", start);
  EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.DebugString();
  refuse("#include <link.h>\n", start);
  refuse("#include <../outside.h>\n", start);
  refuse("#include \"" + (place / "outside.h").string() + "\"\n", start);
}

TEST_F(WorkerTest, TenThousandNestedParentheses) {
  for (const char* level : {"-O0", "-O3"}) {
    const Answer answer = worker_.compile(nested(10'000), WorkerClient::request({level}));
    ASSERT_EQ(answer.finished.outcome(), Finished::DONE) << level << answer.finished.message();
    EXPECT_EQ(Module(answer).function<double(double)>("f")(2.0), 3.0);
    EXPECT_GE(answer.finished.counts().nesting(), 10'000u);
  }
}

TEST_F(WorkerTest, NestedCallsAndTernariesCompileDeeply) {
  std::string calls = "x", choices = "x";
  for (int i = 0; i < 2'000; ++i) calls = "g(" + calls + ")";
  for (int i = 0; i < 2'000; ++i) choices = "(x > 1 ? x : " + choices + ")";
  for (const std::string& expression : {calls, choices}) {
    const Answer answer =
        worker_.compile("double g(double x) { return x + 1; }\ndouble f(double x) { return " + expression + "; }",
                        WorkerClient::request({"-O1"}));
    EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.message();
  }
}

TEST_F(WorkerTest, WhatTheScanLetsThroughCompiles) {
  const auto repeated = [](std::string_view what, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += what;
    return text;
  };
  for (const std::string& source :
       {"int f(int x) { return " + repeated("- ", 10'000) + "x; }", "extern int " + repeated("*", 10'000) + "p;",
        "int f(int x) { " + repeated("{", 9'999) + "x = 1;" + repeated("}", 9'999) + " return x; }",
        "int f(int x) { return " + repeated("(int)", 9'999) + "x; }",
        "int f(int x) { " + repeated("x = ", 10'000) + "1; return x; }",
        "int f(int x) { " + repeated("while (x) ", 9'999) + "x = 0; return x; }",
        "int f(int a) { return " + repeated("a == 7 ? 1 : ", 10'000) + "1; }",
        "int f(int a) { if (a) return 1;" + repeated(" else if (a == 3) return 2;", 10'000) + " return 3; }",
        nested(10'000)}) {
    const Answer answer = worker_.compile(source, WorkerClient::request({"-O0"}));
    EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << source.substr(0, 60) << answer.finished.message();
  }
}

TEST_F(WorkerTest, AStackThatIsUsedUpIsTheSourcesFault) {
  // What no scan of the text sees: an expansion that nests. And what the scan, which the daemon makes, would stop.
  std::string macros = "#define m0 (int)-(int)-(int)-(int)-\n";
  for (int i = 1; i < 9; ++i) {
    const std::string inner = " m" + std::to_string(i - 1);
    macros += "#define m" + std::to_string(i) + inner + inner + inner + inner + inner + inner + "\n";
  }
  for (const std::string& source :
       {macros + "int f(int x) { return m8 x; }", "int f(int x) { return " + std::string(4'000'000, '~') + "x; }"}) {
    const Answer answer = worker_.compile(source, WorkerClient::request({"-O0"}));
    EXPECT_EQ(answer.finished.outcome(), Finished::INVALID_SOURCE) << answer.finished.DebugString();
    EXPECT_THAT(answer.finished.message(), HasSubstr("1024 MiB"));
    EXPECT_THAT(answer.finished.evidence(), HasSubstr("stack"));
  }
  expect_unharmed();
}

TEST_F(WorkerTest, LongSumsEndWithTheCpuLimit) {
  auto start = WorkerClient::request();
  start.set_cpu_seconds(1);
  std::string sum = "int f(int a) { return a";
  for (int i = 0; i < 400'000; ++i) sum += "+a";
  EXPECT_EQ(worker_.compile(sum + "; }", start).finished.outcome(), Finished::TIMED_OUT);
}

TEST(WorkerLimits, ASmallStackIsSaidBeforeItOverflows) {
  WorkerClient worker({.limits = {{RLIMIT_STACK, 8 << 20}}});
  const Answer deep = worker.compile(nested(9'900));
  EXPECT_EQ(deep.finished.outcome(), Finished::INVALID_SOURCE) << deep.finished.DebugString();
  EXPECT_THAT(deep.finished.message(), HasSubstr("8192 KiB"));
  for (const char* level : {"-O0", "-O3"}) {
    const Answer answer = worker.compile(nested(510), WorkerClient::request({level}));
    EXPECT_EQ(answer.finished.outcome(), Finished::DONE) << answer.finished.message();
    std::string chain = "int f(int a) { if (a) return 1;";
    for (int i = 0; i < 509; ++i) chain += " else if (a == " + std::to_string(i) + ") return 2;";
    EXPECT_EQ(worker.compile(chain + " return 3; }", WorkerClient::request({level})).finished.outcome(),
              Finished::DONE);
  }
}

TEST(WorkerLimits, WithoutDescriptorsForOneJobTheLimitIsNamed) {
  WorkerClient worker;
  worker.leave_descriptors(4);
  const Answer answer = worker.compile("int x;");
  EXPECT_EQ(answer.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(answer.finished.message(), HasSubstr("RLIMIT_NOFILE"));
}

TEST(WorkerLimits, IdleSparesAreReleased) {
  WorkerClient worker({.options = {"--idle-seconds", "1"}});
  worker.set_spares(1);
  worker.wait_usage([](const auto& usage) { return usage.spares() == 1 && usage.spare_bytes() > 0; });
  worker.wait_usage([](const auto& usage) { return usage.spares() == 0; });
  EXPECT_EQ(worker.compile("int f(void) { return 1; }").finished.outcome(), Finished::DONE);
  // With a job they come back.
  worker.wait_usage([](const auto& usage) { return usage.spares() == 1; });
}

TEST_F(WorkerTest, SameBytesFromSparesAndColdChildren) {
  const char* source = "#include <math.h>\ndouble f(double x) { return exp(x) * sqrt(x); }\n";
  const std::string cold = worker_.compile(source).bytes();
  ASSERT_FALSE(cold.empty());
  worker_.set_spares(2);
  for (int i = 0; i < 3; ++i) {
    worker_.wait_usage([](const auto& usage) { return usage.spares() >= 2; });
    EXPECT_EQ(worker_.compile(source).bytes(), cold);
    worker_.set_spares(2);
  }
  EXPECT_THAT(cold, Not(HasSubstr("/proc/")));
  EXPECT_THAT(cold, Not(HasSubstr("/jitc/")));
}

TEST_F(WorkerTest, SparesAreKeptAndFreed) {
  worker_.set_spares(1);
  const auto kept =
      worker_.wait_usage([](const auto& usage) { return usage.spares() == 1 && usage.spare_bytes() > 0; });
  EXPECT_GT(kept.spare_bytes(), 1u << 20);
  worker_.set_spares(0);
  EXPECT_EQ(worker_.wait_usage([](const auto& usage) { return usage.spares() == 0; }).spare_bytes(), 0u);
}

TEST_F(WorkerTest, OutOfMemoryIsProven) {
  auto start = WorkerClient::request();
  start.set_memory_limit_bytes(64 << 20);
  const Answer answer = worker_.compile(slow_source(20'000), start);
  EXPECT_EQ(answer.finished.outcome(), Finished::OUT_OF_MEMORY) << answer.finished.message();
  EXPECT_THAT(answer.finished.evidence(), Not(IsEmpty()));
  expect_unharmed();
}

TEST(WorkerLimits, ALinkThatRunsOutOfMemoryIsProven) {
  WorkerClient worker({.options = {"--control-groups", "0"}});  // a group would end it before it can speak
  auto start = WorkerClient::request();
  // Enough for the object's 30 MiB, not for the module's beside them.
  start.set_memory_limit_bytes(64 << 20);
  const char* source = "const unsigned char a[30 << 20] = {1}; int f(void) { return a[3]; }";
  const Answer answer = worker.compile(source, start);
  EXPECT_EQ(answer.finished.outcome(), Finished::OUT_OF_MEMORY) << answer.finished.DebugString();
  // On a busy machine a sample may come before the linker's own words.
  EXPECT_THAT(answer.finished.message(), AnyOf(HasSubstr("linker"), HasSubstr("beyond its memory limit")));
  EXPECT_THAT(answer.finished.evidence(), AnyOf(HasSubstr("Cannot allocate memory"), HasSubstr("sampled")));
  EXPECT_EQ(worker.compile("int f(void) { return 1; }").finished.outcome(), Finished::DONE);
}

TEST_F(WorkerTest, CpuLimitIsATimeOut) {
  auto start = WorkerClient::request();
  start.set_cpu_seconds(1);
  const Answer answer = worker_.compile(slow_source(100'000), start);
  EXPECT_EQ(answer.finished.outcome(), Finished::TIMED_OUT) << answer.finished.message();
  expect_unharmed();
}

TEST_F(WorkerTest, ACrashHurtsNobody) {
  const std::uint64_t bystander = worker_.start(slow_source(300), WorkerClient::request());
  const Answer crash = worker_.compile("#pragma clang __debug crash\n");
  EXPECT_EQ(crash.finished.outcome(), Finished::CRASHED) << crash.finished.message();
  EXPECT_THAT(crash.finished.message(), HasSubstr("SIG"));
  const Answer fatal = worker_.compile("#pragma clang __debug llvm_fatal_error\n");
  EXPECT_EQ(fatal.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(fatal.finished.message(), HasSubstr("LLVM"));
  EXPECT_EQ(worker_.wait_finished(bystander).finished.outcome(), Finished::DONE);
  expect_unharmed();
}

TEST_F(WorkerTest, AKillFromOutsideIsNotCalledOutOfMemory) {
  const std::uint64_t job = worker_.start(slow_source(100'000), WorkerClient::request());
  kill(worker_.wait_started(job), SIGKILL);
  const Answer answer = worker_.wait_finished(job);
  EXPECT_EQ(answer.finished.outcome(), Finished::CRASHED);
  EXPECT_THAT(answer.finished.message(), HasSubstr("signal 9 (SIGKILL, not sent by jitc"));
}

TEST_F(WorkerTest, SignalsToTheWholeTreeAreLeftToTheDaemon) {
  const std::uint64_t job = worker_.start(slow_source(300), WorkerClient::request());
  const pid_t child = worker_.wait_started(job);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    kill(child, signal);
    kill(worker_.pid(), signal);
  }
  EXPECT_EQ(worker_.wait_finished(job).finished.outcome(), Finished::DONE);
  expect_unharmed();
}

TEST_F(WorkerTest, CancelEndsTheCompile) {
  const std::uint64_t job = worker_.start(slow_source(100'000), WorkerClient::request());
  const pid_t pid = worker_.wait_started(job);
  worker_.cancel(job);
  EXPECT_EQ(worker_.wait_finished(job).finished.outcome(), Finished::CANCELLED);
  EXPECT_EQ(kill(pid, 0), -1);
  worker_.cancel(job);  // again, and unknown: nothing happens
  worker_.cancel(999);
  expect_unharmed();
}

TEST_F(WorkerTest, ReportsMemoryWhileItCompiles) {
  const std::uint64_t job = worker_.start(slow_source(100'000), WorkerClient::request());
  const auto usage = worker_.wait_usage([](const auto& report) { return report.jobs_size() == 1; });
  EXPECT_EQ(usage.jobs(0).job(), job);
  worker_.wait_usage([](const auto& report) { return report.jobs_size() == 1 && report.jobs(0).bytes() > 10u << 20; });
  worker_.cancel(job);
  worker_.wait_finished(job);
}

TEST_F(WorkerTest, ManyDiagnosticsAndFunctionsFitOneMessage) {
  std::string errors;
  for (int i = 0; i < 500; ++i) errors += "int e" + std::to_string(i) + " = \"" + std::string(300, 'x') + ";\n";
  const Answer many = worker_.compile(errors, WorkerClient::request({"-ferror-limit=0"}));
  EXPECT_EQ(many.finished.outcome(), Finished::INVALID_SOURCE);
  EXPECT_EQ(many.finished.diagnostics_size(), 50);
  EXPECT_THAT(many.finished.log(), HasSubstr("more diagnostics"));
  std::string functions;
  for (int i = 0; i < 5'000; ++i) {
    functions += "void function_" + std::to_string(i) + "(double long_name_of_an_argument, double another) {}\n";
  }
  const Answer listed = worker_.compile(functions, WorkerClient::request({"-O0"}));
  EXPECT_EQ(listed.finished.outcome(), Finished::DONE);
  EXPECT_THAT(listed.finished.log(), HasSubstr("functions are not listed"));
}

TEST_F(WorkerTest, SourcesAboveFourMegabytes) {
  std::string text = "int f(void) { return 2; }\n";
  while (text.size() < (5u << 20)) text += "// a long comment that somebody's generator left in its output\n";
  const Answer answer = worker_.compile(text);
  ASSERT_EQ(answer.finished.outcome(), Finished::DONE);
  EXPECT_EQ(Module(answer).function<int()>("f")(), 2);
}

}  // namespace
}  // namespace jitc::testing
