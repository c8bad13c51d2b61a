// Builds before they are asked for: a run is recorded, its plan built into a site's store, carried as an archive, and
// read by a job whose daemon then compiles nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "client/graph/emit.h"
#include "common/files.h"
#include "common/plan.h"
#include "tests/support/daemon_fixture.h"
#include "tests/support/process.h"
#include "tests/support/snapshot.h"

namespace jitc::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class WarmTest : public ::testing::Test {
 protected:
  std::string in(const std::string& name) const { return directory.path() + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(in(name), std::ios::binary) << text;
    return in(name);
  }
  static std::string read(const std::string& path) { return common::read_file(path).value_or(""); }

  static StartOptions with(std::vector<std::string> environment, std::string store = {}) {
    StartOptions options;
    options.environment = std::move(environment);
    options.store = std::move(store);
    return options;
  }
  Finished jitc(const TestDaemon& daemon, std::vector<std::string> arguments, Environment more = {},
                const std::string& input = {}) const {
    more.insert({{"JITC_RUNTIME_DIR", daemon.runtime_dir()}, {"JITC_AUTOSTART", "0"}, {"HOME", directory.path()}});
    return run_alone(std::move(arguments), std::move(more), input);
  }
  // No daemon is needed.
  Finished cache(std::vector<std::string> arguments, const std::string& input = {}) const {
    arguments.insert(arguments.begin(), "cache");
    return run_alone(std::move(arguments), {{"JITC_RUNTIME_DIR", in("nobody")}, {"HOME", directory.path()}}, input);
  }
  // Two sources, recorded.
  std::string recorded() const {
    const TestDaemon daemon;
    const auto done = jitc(daemon, {"submit", sources[0], sources[1], sources[0]}, {{"JITC_RECORD", in("plan")}});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return in("plan");
  }
  // A store with both of them for this level.
  std::string warmed() const {
    const TestDaemon daemon(with({}, in("site")));
    const auto done = jitc(daemon, {"warm", "--isa", "x86-64-v2", recorded()});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return in("site");
  }
  static std::vector<std::string> artifacts(const std::string& store) {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(store + "/v1", none))
      if (entry.path().extension() == ".so") names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  TemporaryDirectory directory;
  const std::vector<std::string> sources = {write("a.c", "int a(void);\n"), write("b.c", "int b(void);\n")};

 private:
  static Finished run_alone(std::vector<std::string> arguments, Environment environment, const std::string& input) {
    arguments.insert(arguments.begin(), JITC_BIN_DIR "/jitc");
    return run(arguments, environment, input);
  }
};

// ---- layers ---------------------------------------------------------------------------------------------------------

TEST_F(WarmTest, AJobThatReadsAWarmStoreStartsNoCompiler) {
  const std::string plan = recorded(), site = in("site");
  EXPECT_EQ(common::plan_from_text(read(plan), plan)->requests.size(), 2U);
  {
    const TestDaemon daemon(with({}, site));
    const auto first = jitc(daemon, {"warm", plan, "--isa", "x86-64-v2,x86-64", "--store", site, "-j", "2"});
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.out, "4 compiled, 0 already there, 0 failed\n");
    EXPECT_EQ(daemon.stats().at("compiles_started"), 4U);
    const auto second = jitc(daemon, {"warm", plan, "--isa", "x86-64-v2,x86-64"});
    EXPECT_EQ(second.out, "0 compiled, 4 already there, 0 failed\n") << second.err;
    EXPECT_EQ(daemon.stats().at("compiles_started"), 4U);
  }
  EXPECT_EQ(artifacts(site).size(), 4U);
  const auto before = snapshot(site);
  // Its CPUs are of level 2.
  const TestDaemon job(with({"JITC_STORE_READONLY=" + site, "JITC_TEST_ISA_MASK=3"}));
  const auto hits = jitc(job, {"submit", sources[0], sources[1]}, {{"JITC_TEST_ISA_MASK", "3"}});
  EXPECT_EQ(hits.exit_code, 0) << hits.err;
  EXPECT_THAT(hits.out, ::testing::StartsWith(site + "/v1/"));
  // And by the daemon itself.
  EXPECT_EQ(jitc(job, {"warm", plan}, {{"JITC_TEST_ISA_MASK", "3"}}).out, "0 compiled, 2 already there, 0 failed\n");
  EXPECT_EQ(job.stats().at("compiles_started"), 0U);
  EXPECT_TRUE(artifacts(job.store()).empty());
  EXPECT_EQ(snapshot(site), before);
}

TEST_F(WarmTest, ACorruptArtifactOfALayerIsBuiltPrivately) {
  const std::string site = warmed();
  const std::string broken = artifacts(site).front();
  std::ofstream(site + "/v1/" + broken.substr(0, 2) + "/" + broken) << "broken";
  const auto before = snapshot(site);
  const TestDaemon job(with({"JITC_STORE_READONLY=" + in("absent") + ":" + site, "JITC_TEST_ISA_MASK=3"}));
  for (int i = 0; i < 2; ++i) {
    const auto done = jitc(job, {"submit", sources[0], sources[1]}, {{"JITC_TEST_ISA_MASK", "3"}});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr(site + "/v1/"));
    EXPECT_THAT(done.out, HasSubstr(job.store() + "/v1/" + broken.substr(0, 2) + "/" + broken));
  }
  EXPECT_EQ(job.stats().at("compiles_started"), 1U);
  EXPECT_EQ(job.stats().at("quarantined"), 0U);
  EXPECT_EQ(snapshot(site), before);
}

// ---- warm -----------------------------------------------------------------------------------------------------------

TEST_F(WarmTest, WhatDoesNotCompileIsNamedAndTheRestBuilt) {
  common::Request invalid;
  invalid.name = "broken.c";
  invalid.origin = "//! invalid\n";
  const std::string plan = recorded();
  std::ofstream(plan, std::ios::app) << *common::plan_line(invalid) << common::plan_line(invalid)->substr(0, 50);
  const TestDaemon daemon;
  const auto done = jitc(daemon, {"warm", plan, "--json", "--isa", "x86-64"});
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_THAT(done.err, HasSubstr("broken.c (x86-64)"));
  EXPECT_THAT(done.err, HasSubstr("plan:4: cut short"));
  std::istringstream lines(done.out);
  std::vector<json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
  ASSERT_EQ(objects.size(), 4U);
  EXPECT_EQ(objects[0]["name"], sources[0] + " (x86-64)");
  EXPECT_EQ(objects[2]["error"]["kind"], "INVALID_SOURCE");
  EXPECT_EQ(objects[3], (json{{"compiled", 2}, {"hits", 0}, {"failed", 1}}));
}

TEST_F(WarmTest, WhatIsNotKeptHasFailed) {
  const std::string plan = recorded();
  const TestDaemon daemon(with({}, write("file", "") + "/store"));
  const auto done = jitc(daemon, {"warm", plan, "--isa", "x86-64"});
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_EQ(done.out, "0 compiled, 0 already there, 2 failed\n");
  EXPECT_THAT(done.err, HasSubstr("compiled, but not kept in the store"));
  EXPECT_THAT(done.err, HasSubstr("warm the plan again"));
}

TEST_F(WarmTest, SaysWhatIsWrongBeforeItBuilds) {
  const std::string plan = recorded();
  const TestDaemon daemon;
  const auto refused = [&](int code, const std::vector<std::string>& arguments, const std::string& words) {
    const auto done = jitc(daemon, arguments);
    EXPECT_EQ(done.exit_code, code) << done.err;
    EXPECT_THAT(done.err, HasSubstr(words));
  };
  refused(2, {"warm", plan, "--store", in("other")}, "not the one that --store names");
  refused(2, {"warm", plan, "--isa", "x86-64-v9"}, "x86-64-v4");
  refused(2, {"warm", write("empty", "\n")}, "holds no request");
  refused(2, {"warm", write("else", "{}\n")}, "else:1");
  refused(2, {"warm", in("absent")}, "absent");
  EXPECT_EQ(daemon.stats().at("compiles_started"), 0U);
}

// A problem's text has the digest of its request in its symbols.
TEST_F(WarmTest, AProblemsTextIsBuiltAsItWasPrinted) {
  common::Request problem;
  problem.name = "diffusion";
  problem.origin = "a description";
  problem.code = "int diffusion(void);\n";
  problem.share = "0";
  problem.emitter_version = graph::kEmitterVersion;
  const std::string plan = write("plan", *common::plan_line(problem));
  const TestDaemon daemon;
  EXPECT_EQ(jitc(daemon, {"warm", plan, "--isa", "x86-64-v3"}).out, "1 compiled, 0 already there, 0 failed\n");
  const auto names = artifacts(daemon.store());
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(read(daemon.store() + "/v1/" + names[0].substr(0, 2) + "/" + names[0]), HasSubstr(problem.code));
  const auto native = jitc(daemon, {"warm", plan, "--isa", "native"});
  EXPECT_EQ(native.exit_code, 2);
  EXPECT_THAT(native.err, HasSubstr("record the run with JITC_ISA=native"));
  problem.emitter_version = graph::kEmitterVersion + 1;
  const auto later = jitc(daemon, {"warm", write("plan", *common::plan_line(problem))});
  EXPECT_EQ(later.exit_code, 3);
  EXPECT_THAT(later.err, HasSubstr("record the run again"));
}

TEST_F(WarmTest, RequestsForALevelOfTheirOwnAreBuiltOnce) {
  common::Request request;
  request.name = "f.c";
  request.origin = "int f(void);\n";
  request.isa_wish = "x86-64-v2";
  std::string plan = *common::plan_line(request);
  request.isa_wish = "native";
  plan += *common::plan_line(request);
  const TestDaemon daemon;
  EXPECT_EQ(jitc(daemon, {"warm", "-", "--isa", "x86-64,x86-64-v3"}, {}, plan).out,
            "2 compiled, 0 already there, 0 failed\n");
  request.isa_wish = "common";
  EXPECT_EQ(jitc(daemon, {"warm", "-", "--isa", "native,x86-64"}, {}, *common::plan_line(request)).out,
            "1 compiled, 1 already there, 0 failed\n");
}

// ---- recording ------------------------------------------------------------------------------------------------------

TEST_F(WarmTest, WhatCannotBeRecordedIsCompiledAllTheSame) {
  const TestDaemon daemon;
  const auto done = jitc(daemon, {"submit", sources[0], sources[1]}, {{"JITC_RECORD", in("none/plan")}});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto at = done.err.find("not recorded");
  EXPECT_NE(at, std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("not recorded", at + 1), std::string::npos) << done.err;
}

// ---- export and import ----------------------------------------------------------------------------------------------

TEST_F(WarmTest, AnArchiveCarriesArtifactsFromStoreToStore) {
  const std::string site = warmed(), archive = in("site.tar"), other = in("other");
  const auto exported = cache({"export", "--all", "-o", archive, "--store", site});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(exported.err, HasSubstr("2 artifacts exported"));
  EXPECT_EQ(cache({"export", "--all", "-o", "-", "--store", site}).out, read(archive)) << "equal bytes";
  const auto imported = cache({"import", archive, "--store", other});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.err, HasSubstr("2 artifacts imported, 0 already there, 0 refused"));
  EXPECT_EQ(artifacts(other), artifacts(site));
  EXPECT_EQ(cache({"verify", "--store", other}).exit_code, 0);
  const auto again = cache({"import", "-", "--json", "--store", other}, read(archive));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out.substr(0, again.out.find('\n')))["state"], "present");
  // Another store, of one artifact alone.
  const std::string key = artifacts(site).front().substr(0, 64);
  EXPECT_EQ(cache({"export", key.substr(0, 20), key, "-o", archive, "--store", site}).exit_code, 0);
  EXPECT_EQ(cache({"import", archive, "--store", in("third")}).exit_code, 0);
  EXPECT_EQ(artifacts(in("third")), std::vector{key + ".so"});
}

TEST_F(WarmTest, WhatIsDamagedIsNotCarried) {
  const std::string site = warmed(), archive = in("site.tar");
  ASSERT_EQ(cache({"export", "--all", "-o", archive, "--store", site}).exit_code, 0);
  const std::string whole = read(archive), broken = artifacts(site).front();
  const auto cut = cache({"import", "-", "--store", in("other")}, whole.substr(0, whole.size() - 1500));
  EXPECT_EQ(cut.exit_code, 7);
  EXPECT_THAT(cut.err, HasSubstr("cut short"));
  EXPECT_EQ(artifacts(in("other")), std::vector{broken});
  std::ofstream(site + "/v1/" + broken.substr(0, 2) + "/" + broken) << "broken";
  const auto rest = cache({"export", "--all", "-o", archive, "--store", site});
  EXPECT_EQ(rest.exit_code, 7);
  EXPECT_THAT(rest.err, HasSubstr(broken));
  EXPECT_THAT(rest.err, HasSubstr("1 artifacts exported"));
  EXPECT_EQ(cache({"import", archive, "--store", in("third")}).exit_code, 0);
  EXPECT_EQ(artifacts(in("third")), std::vector{artifacts(site).back()});
}

TEST_F(WarmTest, ExportSaysWhatIsWrongAndLeavesNothing) {
  const std::string site = warmed(), archive = in("folder/site.tar");
  const auto refused = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"export", "--store", site, "-o", archive};
    all.insert(all.end(), arguments.begin(), arguments.end());
    EXPECT_EQ(cache(all).exit_code, 2);
  };
  refused({"--all"});
  fs::create_directory(in("folder"));
  refused({});
  refused({"--all", "ab"});
  refused({"0000000000000000"});
  EXPECT_TRUE(fs::is_empty(in("folder")));
  EXPECT_EQ(cache({"import", in("absent"), "--store", site}).exit_code, 2);
  EXPECT_EQ(cache({"import", write("text", std::string(2000, 'x')), "--store", site}).exit_code, 7);
}

}  // namespace
}  // namespace jitc::testing
