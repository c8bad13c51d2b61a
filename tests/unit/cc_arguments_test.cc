// The command lines of `jitc cc`: what is taken for what.
#include "client/cli/cc_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "client/cli/cc_text.h"

namespace {

using jitc::cli::CcPlan;
using jitc::cli::plan_of;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using Words = std::vector<std::string>;
using Kind = CcPlan::Kind;

TEST(CcArguments, CompileOnly) {
  const CcPlan plan = plan_of({"-O2", "-Iinc", "-I", "other", "-DA=1", "-c", "dir/a.c", "-Wall", "-ob.o"});
  ASSERT_EQ(plan.kind, Kind::kCompile) << plan.why;
  EXPECT_EQ(plan.source, "dir/a.c");
  EXPECT_EQ(plan.output, "b.o");
  EXPECT_THAT(plan.command, ElementsAre("-O2", "-Iinc", "-I", "other", "-DA=1", "-c", "dir/a.c", "-Wall"));
  EXPECT_THAT(plan.preprocess, ElementsAre("-O2", "-Iinc", "-I", "other", "-DA=1", "dir/a.c", "-Wall"));
  EXPECT_THAT(plan.keyed, ElementsAre("-O2", "-DA=1", "dir/a.c", "-Wall"));
  EXPECT_FALSE(plan.debug);
}

TEST(CcArguments, OrderDoesNotMatterForWhatItIs) {
  for (const Words& words :
       {Words{"-c", "a.c", "-o", "a.o"}, Words{"-o", "a.o", "a.c", "-c"}, Words{"a.c", "-oa.o", "-c"}}) {
    const CcPlan plan = plan_of(words);
    EXPECT_EQ(plan.kind, Kind::kCompile);
    EXPECT_EQ(plan.output, "a.o");
    EXPECT_THAT(plan.keyed, ElementsAre("a.c"));
  }
}

TEST(CcArguments, OrderOfOptionsStays) {
  EXPECT_NE(plan_of({"-c", "a.c", "-O1", "-O2"}).keyed, plan_of({"-c", "a.c", "-O2", "-O1"}).keyed);
  EXPECT_NE(plan_of({"-c", "a.c", "-DA", "-DB"}).keyed, plan_of({"-c", "a.c", "-DA-DB"}).keyed);
}

TEST(CcArguments, OutputThatNobodyNames) {
  EXPECT_EQ(plan_of({"-c", "some/where/a.b.c"}).output, "a.b.o");
  EXPECT_EQ(plan_of({"-c", "-x", "c", "text"}).output, "text.o");
  EXPECT_EQ(plan_of({"-shared", "a.o"}).output, "a.out");
}

TEST(CcArguments, Links) {
  const CcPlan link =
      plan_of({"-shared", "-fPIC", "a.o", "-L/lib", "b.o", "-lm", "libx.a", "liby.so.3", "-Wl,-z,now", "-o", "m.so"});
  ASSERT_EQ(link.kind, Kind::kLink) << link.why;
  EXPECT_EQ(link.output, "m.so");
  EXPECT_THAT(link.command, Not(Contains("m.so")));
  EXPECT_EQ(plan_of({"-shared", "a.c", "b.o", "-lm"}).kind, Kind::kCompileAndLink);
  EXPECT_EQ(plan_of({"-shared", "a.c"}).source, "a.c");
}

TEST(CcArguments, Dependencies) {
  const CcPlan plan = plan_of({"-MMD", "-MP", "-MF", "x.d", "-MT", "t", "-c", "a.c"});
  ASSERT_TRUE(plan.dependencies);
  EXPECT_EQ(plan.dependencies->file, "x.d");
  EXPECT_THAT(plan.dependencies->options, ElementsAre("-MMD", "-MP", "-MT", "t"));
  EXPECT_THAT(plan.command, ElementsAre("-c", "a.c"));
  EXPECT_THAT(plan.keyed, ElementsAre("a.c"));

  const CcPlan usual = plan_of({"-MD", "-c", "a.c", "-o", "out/b.c.o"});
  EXPECT_EQ(usual.dependencies->file, "out/b.c.d");
  EXPECT_THAT(usual.dependencies->options, ElementsAre("-MD", "-MQ", "out/b.c.o"));
}

TEST(CcArguments, Debug) {
  EXPECT_TRUE(plan_of({"-c", "-g", "a.c"}).debug);
  EXPECT_TRUE(plan_of({"-c", "-g0", "-ggdb3", "a.c"}).debug);
  EXPECT_FALSE(plan_of({"-c", "-g", "-g0", "a.c"}).debug);
}

TEST(CcArguments, ThisCpu) {
  EXPECT_TRUE(plan_of({"-c", "-march=native", "a.c"}).for_this_cpu);
  EXPECT_TRUE(plan_of({"-c", "-mtune=native", "a.c"}).for_this_cpu);
  EXPECT_FALSE(plan_of({"-c", "-march=x86-64-v3", "a.c"}).for_this_cpu);
}

TEST(CcArguments, WhatIsPassedOn) {
  const std::vector<Words> lines = {
      {},
      {"--version"},
      {"-v"},
      {"-###", "-c", "a.c"},
      {"-E", "a.c"},
      {"-S", "a.c"},
      {"-M", "a.c"},
      {"-MM", "a.c"},
      {"-c", "-"},
      {"-c", "-x", "c", "-"},
      {"-c", "a.c", "b.c"},
      {"-c", "a.c", "b.o"},
      {"-c", "a.c", "-lm"},
      {"-c", "a.c", "-shared"},
      {"-c"},
      {"a.c"},
      {"a.c", "-o", "program"},
      {"-shared", "a.c", "b.c"},
      {"-shared", "-x", "c", "a"},
      {"-shared", "-MD", "a.c"},
      {"-shared"},
      {"-c", "a.S"},
      {"-c", "a.s"},
      {"-c", "a.i"},
      {"-c", "a.f90"},
      {"-c", "a.c", "-o"},
      {"-c", "a.c", "-save-temps"},
      {"-c", "a.c", "-fprofile-generate"},
      {"-c", "a.c", "-fprofile-use=x"},
      {"-c", "a.c", "--coverage"},
      {"-c", "a.c", "-fplugin=x.so"},
      {"-c", "a.c", "-specs=x"},
      {"-c", "a.c", "-B", "dir"},
      {"-c", "a.c", "-wrapper", "gdb"},
      {"-c", "a.c", "-fdump-tree-all"},
      {"-c", "a.c", "-fstack-usage"},
      {"-c", "a.c", "-flto"},
      {"-c", "a.c", "-gsplit-dwarf"},
      {"-c", "a.c", "-Wa,-adhln=x"},
      {"-c", "a.c", "-Wp,-MD,x"},
      {"-c", "a.c", "-fsyntax-only"},
      {"-c", "a.c", "-fnothing-known=value"},
      {"-c", "a.c", "-MF", "x.d"},
      {"-c", "a.c", "-MD", "-MF", "-"},
      {"-c", "a.c", "-o", ""},
      {"-c", "a.c", "-I", ""},
      {"-c", "", "a.c"},
      {"-c", "a.c", "-o", "-"},
      {"-c", "a.c", "-Wmissing-include-dirs"},
      {"-c", "a.c", "--unheard-of"},
      {"-c", "a.c", "@file"},
      {"-x", "assembler", "-c", "a.c"},
      {"a.c", "-x", "c", "-c"},
  };
  for (const Words& words : lines) {
    const CcPlan plan = plan_of(words);
    EXPECT_EQ(plan.kind, Kind::kPass) << testing::PrintToString(words);
    EXPECT_NE(plan.why, "") << testing::PrintToString(words);
  }
}

TEST(CcArguments, NamesOfInputs) {
  for (const char* name : {"a.c", "dir/a.cpp", "a.f90", "x.s"}) EXPECT_TRUE(jitc::cli::is_source_name(name)) << name;
  for (const char* name : {"a.o", "liba.a", "liba.so", "liba.so.1.2", "gcc", "g++-12", "a.b/gcc"})
    EXPECT_FALSE(jitc::cli::is_source_name(name)) << name;
  for (const char* name : {"a.o", "liba.so.1.2", "a.c"}) EXPECT_TRUE(jitc::cli::is_input_name(name)) << name;
  for (const char* name : {"gcc", "gcc-4.9", "/usr/bin/g++", "a.b/gcc"})
    EXPECT_FALSE(jitc::cli::is_input_name(name)) << name;
}

TEST(CcArguments, WordsOfAFile) {
  using jitc::cli::words_of;
  EXPECT_THAT(words_of("-c  a.c\n\t-O2 "), ElementsAre("-c", "a.c", "-O2"));
  EXPECT_THAT(words_of("'a b' \"c d\" e\\ f"), ElementsAre("a b", "c d", "e f"));
  EXPECT_THAT(words_of("-DX='\"y\"' \"it's\" 'a\\'b'"), ElementsAre("-DX=\"y\"", "it's", "a'b"));
  EXPECT_THAT(words_of("'' \"\""), ElementsAre("", ""));
  EXPECT_THAT(words_of(" \n"), ElementsAre());
}

TEST(CcArguments, FilesOfArguments) {
  const std::map<std::string, std::string> files = {{"a", "-c @b 'x y.c'"}, {"b", "-O2"}, {"endless", "@endless"}};
  const auto read = [&files](const std::string& name) {
    const auto file = files.find(name);
    return file == files.end() ? std::nullopt : std::optional(file->second);
  };
  EXPECT_THAT(*jitc::cli::expanded_arguments({"-g", "@a", "@none"}, read),
              ElementsAre("-g", "-c", "-O2", "x y.c", "@none"));
  EXPECT_EQ(jitc::cli::expanded_arguments({"@endless"}, read), std::nullopt);
}

TEST(CcText, MarkersAndWorkingDirectory) {
  const auto text = jitc::cli::read_preprocessed(
      "# 0 \"a b.c\"\n# 1 \"/home/me//\"\n# 0 \"<built-in>\"\n# 1 \"q\\\"\\\\\\303\\244.h\" 1 3 4\nint x;\n# 2 \"a "
      "b.c\" 2\n");
  EXPECT_THAT(text.files, ElementsAre("a b.c", "q\"\\\303\244.h"));
  EXPECT_EQ(text.keyed.find("/home/me"), std::string::npos);
  EXPECT_EQ(text.directory, "/home/me");
  EXPECT_FALSE(text.reads_more);
}

TEST(CcText, FilesThatTheAssemblerReads) {
  const auto reads = [](std::string_view text) { return jitc::cli::read_preprocessed(text).reads_more; };
  EXPECT_TRUE(reads("asm(\".incbin \\\"x\\\"\");\n"));
  EXPECT_TRUE(reads("asm(\".include \\\"x\\\"\");"));
  EXPECT_TRUE(reads("asm(\".inc\" \"bin \\\"x\\\"\");"));
  EXPECT_TRUE(reads("asm(\".\" \"in\"\n# 3 \"a.c\"\n  \"clude \\\"x\\\"\");"));
  EXPECT_TRUE(reads("asm volatile(\n  \".in\\143bin\");\n"));
  EXPECT_TRUE(reads("char c = '\"'; __asm__ (\".\" \"\\x69ncbin\");"));
  EXPECT_TRUE(reads("#pragma GCC pch_preprocess \"a.h.gch\"\n"));
  EXPECT_FALSE(reads("extern int f(void) __asm__ (\"\" \"g\"); char t[] = \"\\033[0m\";\n"));
  EXPECT_FALSE(reads("asm(\"nop\\n\\tnop\" : : \"r\"(f(1))); char t[] = \"\\x1b\";\n"));
  EXPECT_FALSE(reads("const char* t = \".i\";\nint n = a.increment;\n"));
  EXPECT_FALSE(reads("# 1 \"table.inc\" 1\nint f(struct s* a) { return a.increment; }\n"));
}

TEST(CcText, TheLinkThatADriverShows) {
  const std::string shown =
      "Using built-in specs.\nCOLLECT_GCC=gcc\n /usr/lib/cc1 -quiet a.c -o /tmp/ccA.s\n as -o /tmp/ccB.o /tmp/ccA.s\n"
      "COLLECT_GCC_OPTIONS='-shared'\n /usr/lib/collect2 -plugin /liblto_plugin.so "
      "\"-plugin-opt=-fresolution=/tmp/ccC.res\" "
      "\"-plugin-opt=-pass-through=-lc\" --build-id -m elf_x86_64 -shared -o \"a b.so\" /crti.o -L/one -L /two \"x "
      "y.o\" -lm "
      "-z now\nCOLLECT_GCC_OPTIONS='-shared'\n";
  const auto words = jitc::cli::link_command_in(shown);
  ASSERT_TRUE(words);
  const auto link = jitc::cli::read_link(*words);
  ASSERT_TRUE(link);
  EXPECT_THAT(link->directories, ElementsAre("/one", "/two"));
  std::vector<std::string> files, libraries;
  for (const auto& item : link->items) {
    if (item.kind == jitc::cli::CcLink::Item::Kind::kFile) files.push_back(item.text);
    if (item.kind == jitc::cli::CcLink::Item::Kind::kLibrary) libraries.push_back(item.text);
    EXPECT_EQ(item.text.find("ccC"), std::string::npos);
    EXPECT_NE(item.text, "a b.so");
  }
  EXPECT_THAT(files, ElementsAre("/crti.o", "x y.o"));
  EXPECT_THAT(libraries, ElementsAre("m"));
}

TEST(CcText, LinksThatAreNotUnderstood) {
  const auto reads = [](Words words) {
    words.insert(words.begin(), {"collect2", "-shared"});
    return jitc::cli::read_link(words).has_value();
  };
  EXPECT_TRUE(reads({"a.o"}));
  for (const Words& words : {Words{"--version-script=x"}, Words{"-z", "defs"}, Words{"-Map=x"}, Words{"-T", "x"},
                             Words{"--no-undefined"}, Words{"-Bstatic"}, Words{"-plugin", "/own.so"}, Words{"-o"}}) {
    EXPECT_FALSE(reads(words)) << words[0];
  }
  EXPECT_FALSE(jitc::cli::read_link({"collect2", "-shared", "-o", "a", "a.o", "-o", "b"}));
  EXPECT_FALSE(jitc::cli::read_link({"collect2", "a.o"}));  // a program
  EXPECT_FALSE(jitc::cli::link_command_in("gcc: nothing\n"));
}

TEST(CcText, LibraryScripts) {
  using jitc::cli::files_of_script;
  EXPECT_THAT(*files_of_script("/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( /lib/libc.so.6 /lib/n.a "
                               "AS_NEEDED ( /lib64/ld.so.2 ) -lq )\n"),
              ElementsAre("/lib/libc.so.6", "/lib/n.a", "/lib64/ld.so.2", "-lq"));
  EXPECT_THAT(*files_of_script("GROUP ( libgcc_s.so.1 -lgcc )"), ElementsAre("libgcc_s.so.1", "-lgcc"));
  EXPECT_FALSE(files_of_script("INPUT(-Tx)"));
  EXPECT_FALSE(files_of_script("SECTIONS { }"));
  EXPECT_FALSE(files_of_script("GROUP ( /a"));
  EXPECT_FALSE(files_of_script(""));
}

}  // namespace
