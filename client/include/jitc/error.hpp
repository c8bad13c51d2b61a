// jitc::Error. Part of <jitc/jitc.hpp>.
#ifndef JITC_ERROR_HPP
#define JITC_ERROR_HPP

#include <jitc/jitc.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace jitc {

// What went wrong: on every rank the same, for collective calls. what() is the whole text for people.
class Error : public std::runtime_error {
 public:
  // One of this library's own that has a kind and a message alone.
  Error(jitc_kind error_kind, const std::string& error_message)
      : std::runtime_error(error_message), kind(error_kind), message(error_message) {}
  // Takes the error over and frees it. `status` is what the function returned, for errors that have no object.
  static Error take(jitc_kind status, jitc_error* error) {
    std::unique_ptr<jitc_error, void (*)(jitc_error*)> owner(error, jitc_error_free);
    return error ? Error(error) : Error(status, "jitc failed without an error object");
  }

  jitc_kind kind;          // never JITC_OK
  std::string kind_name;   // "INVALID_SOURCE"
  std::string message;     // what happened
  std::string thing;       // to which thing
  std::string remedy;      // what to do
  std::string json;        // all of it
  std::vector<int> ranks;  // where it happened; empty: not of particular ranks
  bool is_broken = false;  // the context cannot be used any more

 private:
  explicit Error(const jitc_error* error)
      : std::runtime_error(jitc_error_text(error)),
        kind(jitc_error_kind(error)),
        kind_name(jitc_error_kind_name(error)),
        message(jitc_error_message(error)),
        thing(jitc_error_thing(error)),
        remedy(jitc_error_remedy(error)),
        json(jitc_error_json(error)),
        is_broken(jitc_error_is_broken(error) != 0) {
    std::size_t count = 0;
    const int* first = jitc_error_ranks(error, &count);
    ranks.assign(first, first + count);
  }
};

}  // namespace jitc

#endif  // JITC_ERROR_HPP
