// jitc_error and jitc_text.
#include <exception>
#include <new>

#include "client/api/handles.h"
#include "common/identity.h"

namespace jitc::api {

using common::ErrorKind;

static_assert(JITC_INTERNAL == static_cast<int>(ErrorKind::kInternal));
static_assert(JITC_MISCOMPILED == static_cast<int>(ErrorKind::kMiscompiled));
static_assert(JITC_NOT_LOADED == static_cast<int>(ErrorKind::kNotLoaded));
static_assert(JITC_INVALID_SOURCE == static_cast<int>(ErrorKind::kInvalidSource));

jitc_kind hand_out(gate::Failure failure, jitc_error** error, const char* name) noexcept {
  const auto kind = static_cast<jitc_kind>(failure.error.kind);
  try {
    if (error) *error = new jitc_error(std::move(failure), name);
  } catch (const std::bad_alloc&) {
    *error = nullptr;  // the status alone must do
  }
  return kind;
}

gate::Failure failure_of_exception() noexcept {
  const auto internal = [](const char* message) { return gate::Failure{{ErrorKind::kInternal, message}, {}}; };
  try {
    throw;
  } catch (const std::exception& thrown) {
    return internal(thrown.what());
  } catch (...) {  // nothing of ours throws anything else; a callback written in C++ may
    return internal("a callback threw something that is not a std::exception");
  }
}

}  // namespace jitc::api

jitc_kind jitc_error_kind(const jitc_error* error) { return static_cast<jitc_kind>(error->failure.error.kind); }
const char* jitc_error_kind_name(const jitc_error* error) { return error->kind_name.c_str(); }
const char* jitc_error_message(const jitc_error* error) { return error->failure.error.message.c_str(); }
const char* jitc_error_thing(const jitc_error* error) { return error->failure.error.thing.c_str(); }
const char* jitc_error_remedy(const jitc_error* error) { return error->failure.error.remedy.c_str(); }
const char* jitc_error_text(const jitc_error* error) { return error->text.c_str(); }
const char* jitc_error_json(const jitc_error* error) { return error->json.c_str(); }

const int* jitc_error_ranks(const jitc_error* error, size_t* count) {
  const std::vector<int>& ranks = error->failure.ranks;
  if (count) *count = ranks.size();
  return ranks.empty() ? nullptr : ranks.data();
}

int jitc_error_is_broken(const jitc_error* error) { return error->failure.is_broken; }
void jitc_error_free(jitc_error* error) { delete error; }

// A text that runs out of memory is a failure of the source, not of the process.
void jitc_text_append(jitc_text* text, const char* bytes, size_t length) {
  try {
    text->source.append(bytes, length);
  } catch (const std::bad_alloc&) {
    text->source.clear();
    text->failure = "out of memory";  // short enough to need none
  }
}

void jitc_text_fail(jitc_text* text, const char* message) {
  try {
    text->failure = message && *message ? message : "no reason given";
  } catch (const std::bad_alloc&) {
    text->failure = "out of memory";
  }
}

const char* jitc_version(void) { return jitc::common::build_version(); }
