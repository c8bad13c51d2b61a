#include "common/capsule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/json.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using ::testing::HasSubstr;

Capsule sample() {
  Capsule capsule;
  capsule.created = "2026-01-02T03:04:05Z";
  capsule.jitc = "9.9";
  capsule.host = "node7";
  capsule.request.origin = "int f(void) { return \"\\\n\"; }\n";
  capsule.request.code = "int f(void);\n";
  capsule.request.flags = {"-O2", "-DX=\"y z\""};
  capsule.request.compiler = "/opt/icx";
  capsule.request.abi_tag = "petsc 3.18";
  capsule.request.share = "0";
  capsule.request.cse = "1";
  capsule.request.emitter_version = 3;
  capsule.request.isa_wish = "native";
  capsule.request.isa_level = "x86-64-v3";
  capsule.request.headers = {{"a/b.h", "#define B 1\n"}, {"c.h", ""}};
  capsule.request.exact_flags = true;
  capsule.request.name = "f.c";
  capsule.key = std::string(64, 'a');
  capsule.request_digest = request_digest(capsule.request).hex();
  capsule.compiler = {"icx", "/opt/icx", "digest"};
  capsule.target = {"x86_64-pc-linux-gnu", "znver3 +avx2"};
  capsule.command = {"/opt/icx", "-O2", "source.c"};
  capsule.environment = {"LANG=C"};
  capsule.memory_bytes = std::uint64_t{5} << 40;
  capsule.cpu_seconds = 600;
  capsule.compilers = 4;
  capsule.budget_bytes = std::uint64_t{6} << 40;
  capsule.predicted_bytes = 7;
  capsule.peak_bytes = 8;
  capsule.seconds = 1.5;
  capsule.attempts = 2;
  capsule.signal = 11;
  capsule.error = {ErrorKind::kCompilerCrashed, "ended by signal 11", "f.c"};
  capsule.error.diagnostics = {{"error", 3, 4, "no", "x\n^"}};
  capsule.error.log = "words";
  capsule.error.rungs = {"tried again"};
  return capsule;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Capsule, IsReadAsItWasWritten) {
  const Capsule capsule = sample();
  const auto back = capsule_from_json(to_json(capsule), "capsule.json");
  ASSERT_TRUE(back) << to_line(back.error());
  EXPECT_EQ(to_json(*back), to_json(capsule));
  EXPECT_EQ(back->request, capsule.request);
  EXPECT_EQ(request_digest(back->request).hex(), back->request_digest);
  EXPECT_EQ(back->error, capsule.error);
  EXPECT_EQ(back->memory_bytes, capsule.memory_bytes);
  EXPECT_EQ(back->signal, 11);
  EXPECT_EQ(back->compiler.path, "/opt/icx");
}

TEST(Capsule, WhatIsUnknownIsTakenForALaterAddition) {
  const auto back = capsule_from_json(replaced(to_json(sample()), "\"host\"", "\"later\": [1], \"host\""), "c");
  EXPECT_TRUE(back) << to_line(back.error());
}

TEST(Capsule, SaysWhatIsWrongWithIt) {
  const std::string good = to_json(sample());
  const auto error_of = [](const std::string& text) {
    const auto read = capsule_from_json(text, "c.json");
    return read ? std::string("read") : to_line(read.error());
  };
  EXPECT_THAT(error_of(""), HasSubstr("c.json: not a capsule"));
  EXPECT_THAT(error_of("[]"), HasSubstr("not a capsule"));
  EXPECT_THAT(error_of("{\"format\": \"other\"}"), HasSubstr("not a capsule"));
  EXPECT_THAT(error_of(good.substr(0, good.size() / 2)), HasSubstr("cut short"));
  EXPECT_THAT(error_of(replaced(good, "\"version\": 1", "\"version\": 2")),
              HasSubstr("VERSION_SKEW: c.json: a capsule of version 2"));
  EXPECT_THAT(error_of(replaced(good, "\"version\": 1", "\"version\": \"1\"")), HasSubstr("'version'"));
  EXPECT_THAT(error_of(replaced(good, "\"memory_bytes\": ", "\"memory_bytes\": -")), HasSubstr("'memory_bytes'"));
  EXPECT_THAT(error_of(replaced(good, "\"cpu_seconds\": 600", "\"cpu_seconds\": 99999999999")),
              HasSubstr("'cpu_seconds'"));
  EXPECT_THAT(error_of(replaced(good, "\"exact_flags\": true", "\"exact_flags\": 1")), HasSubstr("'exact_flags'"));
  EXPECT_THAT(error_of(replaced(good, "\"-O2\"", "7")), HasSubstr("'command'"));
  EXPECT_THAT(error_of(replaced(good, "\"request\"", "\"demand\"")), HasSubstr("'request'"));
  EXPECT_THAT(error_of(replaced(good, "\"error\"", "\"mishap\"")), HasSubstr("'error'"));
}

// Within the size of a capsule whoever reads it without a bound runs out of stack.
TEST(Capsule, OneThatNestsWithoutEndIsNone) {
  const std::string good = to_json(sample()), key = "\"x\": ";
  for (const char* member : {"\"format\": ", "\"error\": {", "\"request\": {", "\"later\": "}) {
    for (const bool is_object : {false, true}) {
      for (const std::size_t depth : {std::size_t{kDeepestJson}, std::size_t{300'000}}) {
        std::string nest;
        for (std::size_t i = 0; i < depth; ++i) nest += is_object ? "{\"a\":" : "[";
        nest += "0" + std::string(depth, is_object ? '}' : ']');
        const bool is_inside = std::string_view(member).ends_with('{');
        const std::string text = is_inside ? replaced(good, member, member + key + nest + ", ")
                                           : replaced(good, "\"created\"", member + nest + ", \"created\"");
        const auto read = capsule_from_json(text, "c.json");
        ASSERT_FALSE(read) << member << depth;
        EXPECT_THAT(to_line(read.error()), HasSubstr("not a capsule"));
      }
    }
  }
}

TEST(Capsule, OnlyRegularFilesOfABoundedSizeAreRead) {
  const testing::TemporaryDirectory directory;
  const auto kind_of = [](const std::string& path) {
    const auto read = read_capsule(path);
    return read ? ErrorKind::kInternal : read.error().kind;
  };
  EXPECT_EQ(kind_of(directory.path() + "/none"), ErrorKind::kUsage);
  EXPECT_EQ(kind_of(directory.path()), ErrorKind::kUsage);
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(kind_of(fifo), ErrorKind::kUsage);
  const std::string huge = directory.path() + "/huge";
  std::ofstream(huge).put('{');
  std::filesystem::resize_file(huge, kLargestCapsule + 1);
  const auto read = read_capsule(huge);
  ASSERT_FALSE(read);
  EXPECT_THAT(to_line(read.error()), HasSubstr("a capsule at most"));
}

}  // namespace
}  // namespace jitc::common
