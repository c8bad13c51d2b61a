// What the tests of libjitc stand on: a runtime directory of their own, and a daemon that answers as it is told.
#pragma once

#include <gtest/gtest.h>

#include <jitc/jitc.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime_dir.h"
#include "tests/support/fake_daemon.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_artifact.h"

namespace jitc::testing {

inline constexpr const char* kSource = "double answer(double x);\n";

class Client : public ::testing::Test {
 protected:
  const std::string& runtime_dir() const { return directory_.path(); }
  std::string socket() const { return runtime_dir() + "/" + common::kSocketName; }

  Options options(std::vector<std::pair<std::string, std::string>> settings = {}) const {
    settings.emplace_back("runtime_dir", runtime_dir());
    return {std::move(settings), {}};
  }
  Request request(const std::string& source = kSource) const {
    Request made;
    made.source = source;
    made.name = "residual.c";
    made.manifest = "rho eta";
    return made;
  }

  // A daemon that has compiled `module` for whatever is asked.
  FakeDaemon::Script script(const std::string& module = "answer") {
    return {.compile = [module](const v1::CompileRequest& asked, FakeDaemon::Events& events) {
      const common::Digest key = common::sha256(asked.origin());
      v1::Artifact artifact;
      artifact.set_key(key.hex());
      artifact.set_compile_seconds(0.5);
      artifact.set_peak_bytes(123456);
      FakeDaemon::send_artifact(events, make_artifact(module, key), artifact);
      return grpc::Status::OK;
    }};
  }

  Error error_of(Context& context, const Request& asked) {
    try {
      context.compile(asked);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return Error(JITC_OK, "none");
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace jitc::testing
