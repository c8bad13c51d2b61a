// What the opaque types of jitc.h are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "client/gate/failure.h"
#include "client/include/jitc/jitc.h"
#include "client/loader/module.h"

// Texts are made once, since the caller keeps pointers to them.
struct jitc_error {
  explicit jitc_error(jitc::gate::Failure from, const std::string& name = "source.c")
      : failure(std::move(from)),
        kind_name(jitc::common::name_of(failure.error.kind)),
        text(jitc::common::to_text(failure.error, name)),
        json(jitc::common::to_json(failure.error)) {}

  jitc::gate::Failure failure;
  std::string kind_name;
  std::string text;
  std::string json;
};

struct jitc_module {
  std::shared_ptr<jitc::loader::Module> module;
  std::string manifest;
  jitc_origin origin = JITC_FROM_MEMORY;
};

struct jitc_text {
  std::string source;
  std::string failure;
};

namespace jitc::api {

// Hands the failure out, if the caller wants it, and gives the status that goes with it.
jitc_kind hand_out(gate::Failure failure, jitc_error** error, const std::string& name = "source.c") noexcept;

// For the catch clause at the ABI: memory, or a bug. No exception crosses it.
gate::Failure failure_of_exception() noexcept;

// A structure whose first member says how much of it the caller knows: the rest is zeros.
template <class T>
T from_sized(const T* given) {
  T whole{};
  if (!given) return whole;
  const std::size_t known = given->size < sizeof(T) ? given->size : sizeof(T);
  std::copy_n(reinterpret_cast<const unsigned char*>(given), known, reinterpret_cast<unsigned char*>(&whole));
  return whole;
}

}  // namespace jitc::api
