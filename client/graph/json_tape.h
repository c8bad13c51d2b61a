// JSON text as one flat list of tokens: 16 bytes each, no allocation per value, no recursion on depth.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace jitc::graph {

class JsonTape;

// A value on a tape, which must outlive it. Asking for a type that it is not gives nothing.
class JsonValue {
 public:
  std::optional<std::string_view> text() const;
  std::optional<std::uint32_t> index() const;  // an integer from 0 to 2^32 - 1
  std::optional<double> number() const;
  std::optional<bool> truth() const;
  bool is_array() const;
  bool is_object() const;
  // Of an array or object: its values. Of anything else: 0.
  std::size_t size() const;

  // Of an object: the value of the key.
  std::optional<JsonValue> find(std::string_view key) const;

  // Of an array: its values. An object's are its keys and values in turn.
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = JsonValue;
    JsonValue operator*() const { return {*tape_, place_}; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const { return place_ == other.place_; }

   private:
    friend class JsonValue;
    Iterator(const JsonTape& tape, std::size_t place) : tape_(&tape), place_(place) {}
    const JsonTape* tape_;
    std::size_t place_;
  };
  Iterator begin() const;
  Iterator end() const;

 private:
  friend class JsonTape;
  JsonValue(const JsonTape& tape, std::size_t place) : tape_(&tape), place_(place) {}
  const JsonTape* tape_;
  std::size_t place_;
};

class JsonTape {
 public:
  // Fails (kInvalidSource) on malformed text, with the place in it, on values nested deeper than kDeepest and on a key
  // that an object has twice.
  static common::Result<JsonTape> parse(std::string_view text);
  static constexpr std::size_t kDeepest = 32;
  JsonValue root() const { return {*this, 0}; }

 private:
  friend class JsonValue;
  friend class JsonTapeWriter;
  enum class Type : std::uint8_t { kNull, kTruth, kIndex, kNumber, kText, kArray, kObject };
  struct Token {
    Type type = Type::kNull;
    std::uint32_t size = 0;  // of a text: bytes; of an array or object: values
    // Of a text: where it begins in texts_. Of an array or object: the token after its last. Else the value: of a
    // number its bits.
    std::uint64_t value = 0;
  };
  std::string_view text(const Token& token) const;
  std::size_t after(std::size_t place) const;  // the value at that token

  std::vector<Token> tokens_;
  std::string texts_;
};

}  // namespace jitc::graph
