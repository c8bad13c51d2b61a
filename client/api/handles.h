// What the opaque types of jitc.h are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/gate/failure.h"
#include "client/include/jitc/jitc.h"
#include "client/loader/module.h"

// Texts are made once, since the caller keeps pointers to them.
struct jitc_error {
  // Diagnostics stand under `name`; nullptr: that of the source that they are of.
  jitc_error(jitc::gate::Failure from, const char* name)
      : failure(std::move(from)),
        kind_name(jitc::common::name_of(failure.error.kind)),
        text(jitc::common::to_text(failure.error, name ? name : source_in(failure.error))),
        json(jitc::common::to_json(failure.error)) {}

  jitc::gate::Failure failure;
  std::string kind_name;
  std::string text;
  std::string json;

 private:
  static std::string source_in(const jitc::common::Error& error) {
    const bool is_named = error.kind == jitc::common::ErrorKind::kInvalidSource && !error.thing.empty();
    return is_named ? error.thing : "source.c";
  }
};

struct jitc_module {
  std::shared_ptr<jitc::loader::Module> module;
  std::string manifest;
  jitc_origin origin = JITC_FROM_MEMORY;
  // When it was made from a problem: by which request, and its own table, which fused functions have none of.
  std::optional<jitc::common::Digest> problem;
  const jitc_table* table = nullptr;
};

struct jitc_text {
  std::string source;
  std::string failure;
};

namespace jitc::api {

// Hands the failure out, if the caller wants it, and gives the status that goes with it. `name`: as for jitc_error.
jitc_kind hand_out(gate::Failure failure, jitc_error** error, const char* name = nullptr) noexcept;

// For the catch clause at the ABI: memory, or a bug. No exception crosses it.
gate::Failure failure_of_exception() noexcept;

// A call that gives a status. `body()` gives a Result<void>.
template <class Body>
jitc_kind attempt(jitc_error** error, const Body& body) noexcept {
  if (error) *error = nullptr;
  try {
    common::Result<void> done = body();
    return done ? JITC_OK : hand_out({std::move(done.error()), {}}, error);
  } catch (...) {  // the ABI carries no exceptions
    return hand_out(failure_of_exception(), error);
  }
}

inline std::unexpected<common::Error> null_pointer(const char* call) {
  return common::fail(common::ErrorKind::kUsage, "a null pointer was given", call);
}

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
