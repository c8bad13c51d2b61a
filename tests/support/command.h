// `jitc` as a process, in a world of its own: runtime directory, store and settings of one test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/artifact.h"
#include "common/flags.h"
#include "common/identity.h"
#include "common/runtime_dir.h"
#include "common/settings.h"
#include "common/store_reader.h"
#include "tests/support/process.h"
#include "tests/support/temporary_directory.h"

namespace jitc::testing {

class CommandTest : public ::testing::Test {
 protected:
  static constexpr const char* kSource = "int f(void) { return 42; }\n";

  CommandTest() {
    std::filesystem::create_directory(runtime);
    std::filesystem::permissions(runtime, std::filesystem::perms::owner_all);
    identity.version = common::build_version();
    identity.pid = 1;
    identity.compilers = {{"clang", "", "test clang 1"}, {"gcc", "/usr/bin/gcc", "test gcc 1"}};
    identity.triple = "x86_64-test";
    identity.native_isa = "test";
    identity.store = store;
  }

  static Finished run_in(const Environment& environment, std::vector<std::string> arguments,
                         const std::string& input = {}) {
    arguments.insert(arguments.begin(), JITC_BIN_DIR "/jitc");
    return run(arguments, environment, input);
  }
  Finished jitc(const std::vector<std::string>& arguments, const std::string& input = {}) const {
    return run_in(environment, arguments, input);
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = directory.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // The key of a source as `jitc submit` asks for it without any option.
  common::Digest key_of(const std::string& text, const std::string& compiler = "clang") const {
    common::Request request;
    request.compiler = compiler;
    request.origin = text;
    for (const auto& info : common::settings_table())
      if (info.name == "cflags") request.flags = *common::split_flags(info.fallback);
    return common::resolve(request, identity)->key;
  }
  // The bytes of an artifact with this key.
  static std::string artifact(const common::Digest& key, const std::string& name) {
    const std::string elf = "\177ELF and the rest of " + name;
    common::Manifest manifest;
    manifest.key = key.hex();
    manifest.name = name;
    manifest.compile_seconds = 1.5;
    manifest.peak_bytes = 12345;
    return elf + common::make_tail(elf, manifest, key, common::host_isa());
  }
  // Puts the artifact of a source into the store; its path.
  std::string put(const std::string& text, const std::string& name, const std::string& compiler = "clang") const {
    const auto key = key_of(text, compiler);
    const std::string path = common::artifact_path(store, key);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << artifact(key, name);
    return path;
  }

  TemporaryDirectory directory;
  std::string runtime = directory.path() + "/run";
  std::string store = directory.path() + "/store";
  std::string socket = runtime + "/" + common::kSocketName;
  common::Identity identity;
  Environment environment = {
      {"JITC_RUNTIME_DIR", runtime}, {"JITC_STORE", store}, {"JITC_AUTOSTART", "0"}, {"HOME", directory.path()}};
};

}  // namespace jitc::testing

// What every test of the command calls by its short name.
namespace jitc {
namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::Process;
}  // namespace jitc
