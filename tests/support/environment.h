// Sets (or, with nullptr, unsets) environment variables and puts them back.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace jitc::testing {

class ScopedEnvironment {
 public:
  using Variable = std::pair<std::string, const char*>;
  ScopedEnvironment(std::initializer_list<Variable> variables)
      : ScopedEnvironment(std::span<const Variable>(variables.begin(), variables.size())) {}
  explicit ScopedEnvironment(std::span<const Variable> variables) {
    for (const auto& [name, value] : variables) {
      const char* old = std::getenv(name.c_str());
      saved_.emplace_back(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
      set(name, value);
    }
  }
  ~ScopedEnvironment() {
    for (auto it = saved_.rbegin(); it != saved_.rend(); ++it) {
      const auto& [name, value] = *it;
      set(name, value ? value->c_str() : nullptr);
    }
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  static void set(const std::string& name, const char* value) {
    if (value == nullptr) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value, 1);
    }
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> saved_;
};

}  // namespace jitc::testing
