#include "common/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using testing::ScopedEnvironment;
using testing::TemporaryDirectory;

// Nothing of the caller's reaches the test.
class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() : environment_(cleared(directory_.path())) {}
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() + "/" + name) << text;
  }

  TemporaryDirectory directory_;

 private:
  static std::vector<ScopedEnvironment::Variable> cleared(const std::string& home) {
    std::vector<ScopedEnvironment::Variable> variables{{"HOME", home.c_str()},
                                                       {"XDG_CONFIG_HOME", home.c_str()},
                                                       {"XDG_CACHE_HOME", nullptr},
                                                       {"JITC_JOB_FILE", nullptr}};
    for (const auto& info : settings_table()) variables.emplace_back(info.environment, nullptr);
    return variables;
  }
  ScopedEnvironment environment_;
};

TEST_F(SettingsTest, DefaultsAreValid) {
  const auto settings = Settings::load();
  ASSERT_TRUE(settings) << to_line(settings.error());
  EXPECT_EQ(settings->text("store"), directory_.path() + "/.cache/jitc");
  EXPECT_EQ(settings->bytes("store_max"), std::uint64_t{10} << 30);
  EXPECT_EQ(settings->seconds("idle_exit"), 1800);
  EXPECT_FALSE(settings->is_set("cc"));
}

TEST_F(SettingsTest, WhatMustBeOneOrMoreIsNotZero) {
  for (const char* name : {"queue_length", "tries"}) {
    EXPECT_TRUE(Settings::load({{name, "1"}}));
    for (const char* wrong : {"0", "-1", "x", ""}) {
      const auto settings = Settings::load({{name, wrong}});
      ASSERT_FALSE(settings) << name << " " << wrong;
      EXPECT_NE(settings.error().remedy.find("1 or more"), std::string::npos);
    }
  }
}

TEST_F(SettingsTest, FlagBeforeEnvironmentBeforeJobFileBeforeUserFile) {
  write("job.toml", "cc = 'from job'\nmax_compilers = 5\ninclude_roots = ['/a', '/b']\n");
  ASSERT_EQ(::system(("mkdir -p " + directory_.path() + "/jitc").c_str()), 0);
  write("jitc/jitc.toml", "cc = 'from user'\nmax_compilers = 4\ncse = '1'\n");
  const ScopedEnvironment job{{"JITC_JOB_FILE", (directory_.path() + "/job.toml").c_str()},
                              {"JITC_CC", "from environment"}};
  const auto settings = Settings::load({{"store", "/from/flag"}});
  ASSERT_TRUE(settings) << to_line(settings.error());
  EXPECT_EQ(settings->text("store"), "/from/flag");
  EXPECT_EQ(settings->value("store").origin, "--store");
  EXPECT_EQ(settings->text("cc"), "from environment");
  EXPECT_EQ(settings->value("cc").origin, "JITC_CC");
  EXPECT_EQ(settings->count("max_compilers"), 5u);
  EXPECT_EQ(settings->list("include_roots"), (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(settings->text("cse"), "1");
  EXPECT_EQ(settings->value("cse").origin, directory_.path() + "/jitc/jitc.toml");
}

TEST_F(SettingsTest, ErrorsSayWhoGaveTheText) {
  EXPECT_NE(Settings::load({{"share", "2"}}).error().message.find("'2' (from --share)"), std::string::npos);
  EXPECT_NE(Settings::load({{"share", "2"}}, "jitc_options").error().message.find("'2' (from jitc_options)"),
            std::string::npos);
  const ScopedEnvironment wrong{{"JITC_SHARE", "2"}};
  EXPECT_NE(Settings::load().error().message.find("'2' (from JITC_SHARE)"), std::string::npos);
}

TEST_F(SettingsTest, WrongValuesNameKeyValueOriginAndWhatIsAllowed) {
  const ScopedEnvironment wrong{{"JITC_CSE", "maybe"}};
  const auto settings = Settings::load();
  ASSERT_FALSE(settings);
  const std::string line = to_line(settings.error());
  for (const char* part : {"cse", "maybe", "JITC_CSE", "0 1 auto"})
    EXPECT_NE(line.find(part), std::string::npos) << line;
}

TEST_F(SettingsTest, WrongFilesSayWhere) {
  write("job.toml", "cc = \n");
  const ScopedEnvironment job{{"JITC_JOB_FILE", (directory_.path() + "/job.toml").c_str()}};
  const auto broken = Settings::load();
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().thing.find("job.toml:1"), std::string::npos) << broken.error().thing;
  write("job.toml", "[[#\n");  // fails an assertion of the parser
  EXPECT_FALSE(Settings::load());
  write("job.toml", "colour = 'red'\n");
  EXPECT_NE(to_line(Settings::load().error()).find("colour"), std::string::npos);
  write("job.toml", "cc = 1.5\n");
  EXPECT_FALSE(Settings::load());
  const ScopedEnvironment missing{{"JITC_JOB_FILE", "/nowhere.toml"}};
  EXPECT_FALSE(Settings::load());
}

TEST_F(SettingsTest, FilesThatAreNoneOrTooLargeAreRefused) {
  const auto refused = [](const std::string& path) {
    const ScopedEnvironment job{{"JITC_JOB_FILE", path.c_str()}};
    const auto settings = Settings::load();
    EXPECT_FALSE(settings) << path;
    return settings ? std::string() : to_line(settings.error());
  };
  EXPECT_NE(refused(directory_.path()).find("not a regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo((directory_.path() + "/fifo").c_str(), 0600), 0);  // nobody writes: reading would never end
  EXPECT_NE(refused(directory_.path() + "/fifo").find("not a regular file"), std::string::npos);
  EXPECT_NE(refused("/dev/zero").find("not a regular file"), std::string::npos);
  std::string deep;
  for (int i = 0; i < 500'000; ++i) deep += "a.";
  write("job.toml", deep + "b = 1\n");
  EXPECT_NE(refused(directory_.path() + "/job.toml").find("more than 65536 bytes"), std::string::npos);
  write("job.toml", deep.substr(0, 65'000) + "b = 1\n");
  EXPECT_NE(refused(directory_.path() + "/job.toml").find("more than 1000 dots"), std::string::npos);
  write("job.toml", deep.substr(0, 2000) + "b = 1\n");
  EXPECT_NE(refused(directory_.path() + "/job.toml").find("no setting has the name 'a'"), std::string::npos);
}

TEST_F(SettingsTest, AStoresModeIsOneThatWorks) {
  for (const char* right : {"0600", "0640", "644", "00604"})
    EXPECT_TRUE(Settings::load({{"store_mode", right}})) << right;
  for (const char* wrong : {"0400", "0000", "0440", "0060", "0700", "7777", "02660", "0609", "60", "rw", "-600"}) {
    for (const char* shared : {"0", "1"}) {
      const auto settings = Settings::load({{"store_mode", wrong}, {"store_allow_shared", shared}});
      ASSERT_FALSE(settings) << wrong;
      EXPECT_EQ(settings.error().thing, "setting store_mode");
    }
  }
  for (const char* loose : {"0620", "0660", "0602", "0666"}) {
    const auto settings = Settings::load({{"store_mode", loose}});
    ASSERT_FALSE(settings) << loose;
    EXPECT_NE(to_line(settings.error()).find("setting store_mode"), std::string::npos);
    EXPECT_NE(settings.error().remedy.find("JITC_STORE_ALLOW_SHARED"), std::string::npos);
    EXPECT_TRUE(Settings::load({{"store_mode", loose}, {"store_allow_shared", "1"}})) << loose;
  }
}

TEST_F(SettingsTest, NumbersAreDigitsAlone) {
  EXPECT_EQ(parse_count("0").value_or(1), 0U);
  EXPECT_EQ(parse_count("4294967295").value_or(0), 4294967295U);
  for (const char* wrong :
       {"", "-1", "+1", " 1", "1 ", "010", "0x2", "1e3", "1.0", "4294967296", "99999999999999999999"}) {
    EXPECT_FALSE(parse_count(wrong)) << wrong;
    EXPECT_FALSE(Settings::load({{"store_max_entries", wrong}})) << wrong;
    EXPECT_FALSE(Settings::load({{"tries", wrong}})) << wrong;
  }
  EXPECT_FALSE(parse_positive("0"));
  EXPECT_EQ(parse_positive("1").value_or(0), 1U);
}

TEST_F(SettingsTest, AShortTimeIsNotNone) {
  EXPECT_EQ(rounded_up(0).count(), 0);
  EXPECT_EQ(rounded_up(*parse_seconds("500ms")).count(), 1);
  EXPECT_EQ(rounded_up(*parse_seconds("1.5s")).count(), 2);
  EXPECT_EQ(rounded_up(*parse_seconds("30d")).count(), 30 * 86400);
}

TEST_F(SettingsTest, TextsAreUtf8WhereverTheyComeFrom) {
  const ScopedEnvironment store{{"JITC_STORE", "/tmp/\xff"}};
  const auto settings = Settings::load();
  ASSERT_FALSE(settings);
  EXPECT_NE(to_line(settings.error()).find("'/tmp/?' (from JITC_STORE)"), std::string::npos)
      << to_line(settings.error());
  EXPECT_FALSE(Settings::load({{"cflags", "\xc0\x80"}}));
  const ScopedEnvironment home{{"JITC_STORE", nullptr}, {"HOME", "/home/\xe4"}, {"XDG_CACHE_HOME", nullptr}};
  EXPECT_NE(to_line(Settings::load().error()).find("(from default)"), std::string::npos);
  EXPECT_TRUE(Settings::load({{"store", "/tmp/\xc3\xa4"}}));
}

// UBSan sees what the parser does with them where it looks for blanks.
TEST_F(SettingsTest, LettersBeyondAsciiAreNoBlanks) {
  const ScopedEnvironment job{{"JITC_JOB_FILE", (directory_.path() + "/job.toml").c_str()}};
  for (const std::string letter : {"\xc3\xa9", "\xd0\x96", "\xe2\x82\xac", "\xe6\xbc\xa2", "\xf0\x9f\x98\x80"}) {
    write("job.toml", "cflags = \"\"\"-DX=\\\n  " + letter + "\"\"\"  # " + letter + "\n");
    const auto settings = Settings::load();
    ASSERT_TRUE(settings) << to_line(settings.error());
    EXPECT_EQ(settings->text("cflags"), "-DX=" + letter);
    for (const std::string& wrong :
         {"cc" + letter + " = 'gcc'\n", letter + "\n", "cc = " + letter + "\n", "cc = 'gcc' " + letter}) {
      write("job.toml", wrong);
      const auto refused = Settings::load();
      ASSERT_FALSE(refused) << wrong;
      EXPECT_NE(refused.error().thing.find("job.toml:1"), std::string::npos) << to_line(refused.error());
    }
  }
}

TEST_F(SettingsTest, EveryEntryHasItsOwnNamesAndAHelp) {
  std::set<std::string_view> names;
  for (const auto& info : settings_table()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(names.insert(info.environment).second) << info.environment;
    EXPECT_TRUE(info.environment.starts_with("JITC_"));
    EXPECT_FALSE(info.help.empty());
  }
}

TEST(Units, Bytes) {
  EXPECT_EQ(parse_bytes("400M"), std::uint64_t{400} << 20);
  EXPECT_EQ(parse_bytes("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("17"), 17u);
  for (const char* wrong : {"", "M", "-1", "1.5G", "4X", "4MM", "99999999999999999999", "99999999999T"})
    EXPECT_FALSE(parse_bytes(wrong)) << wrong;
}

TEST(Units, Seconds) {
  EXPECT_EQ(parse_seconds("1.5s"), 1.5);
  EXPECT_EQ(parse_seconds("10min"), 600);
  EXPECT_EQ(parse_seconds("250ms"), 0.25);
  for (const char* wrong : {"", "s", "-1", "1w", "nan", "inf", "1e30"}) EXPECT_FALSE(parse_seconds(wrong)) << wrong;
}

}  // namespace
}  // namespace jitc::common
