// Counting stand-ins for the root's store and daemon.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "client/gate/gate.h"
#include "tests/support/test_artifact.h"

namespace jitc::testing {

inline common::Request request_for(std::string source, std::string name = "residual.c") {
  common::Request request;
  request.origin = std::move(source);
  request.name = std::move(name);
  return request;
}

// The key that the fakes give a request.
inline common::Digest key_of(const common::Request& request) { return common::request_digest(request); }

class FakeStore : public gate::StoreLookup {
 public:
  using Work = std::function<std::optional<gate::Obtained>(const common::Request&)>;
  std::optional<gate::Obtained> look_up(const common::Request& request) override {
    ++lookups;
    if (work) return work(request);
    if (!has_it) return std::nullopt;
    return gate::Obtained{make_artifact("answer", key_of(request), isa_needed), key_of(request), gate::Origin::kStore};
  }
  std::atomic<int> lookups = 0;
  bool has_it = false;
  common::IsaMask isa_needed = 1;
  Work work;
};

class FakeCompiler : public gate::Compiler {
 public:
  using Work = std::function<common::Result<gate::Obtained>(const common::Request&, const gate::Report&)>;
  common::Result<gate::Obtained> compile(const common::Request& request, const gate::Report& report) override {
    ++compiles;
    {
      const std::lock_guard lock(mutex_);  // a call for several modules compiles them at the same time
      isa_level = request.isa_level;
    }
    if (work) return work(request, report);
    return gate::Obtained{
        make_artifact("answer", key_of(request)), key_of(request), gate::Origin::kCompiled, false, 0.25, 1000};
  }
  std::atomic<int> compiles = 0;
  std::string isa_level;
  Work work;

 private:
  std::mutex mutex_;
};

// Services over what the test owns and keeps.
inline gate::GateServices services_of(gate::ModuleTable& modules, FakeStore& store, FakeCompiler& compiler) {
  const std::shared_ptr<void> nobody;
  return {modules, {nobody, &store}, {nobody, &compiler}};
}

}  // namespace jitc::testing
