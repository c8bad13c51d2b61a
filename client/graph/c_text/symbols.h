// What names mean: keywords, the C library's mathematics, and what a translation unit declares.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "client/graph/c_text/lexer.h"
#include "client/graph/c_text/value.h"

namespace jitc::graph::c {

enum class Keyword : std::uint8_t {
  kIf,
  kElse,
  kReturn,
  kConst,
  kRestrict,
  kStatic,
  kInline,
  kExtern,
  kTypedef,
  kAttribute,
  kOther,  // loops, storage classes ...
  kDouble,
  kInt,
  kLong,
  kSigned,
  kVoid,
  kBool,
  kOtherType,  // float, unsigned, volatile, struct ...
};

struct Symbol {
  enum Kind : std::uint8_t {
    kNone,
    kKeyword,    // index: a Keyword
    kType,       // a typedef of `type`
    kFunction,   // of math.h; index: of functions()
    kNumber,     // of math.h; index: of numbers()
    kHelper,     // a function of the text that can be put in place of its calls; index: of the unit's helpers
    kParameter,  // an array; index: of the scope's arrays
    kVariable,   // index: of the scope's variables
    kUnknown,    // a global variable, a function that is not understood
    kMacro,
  };
  Kind kind = kNone;
  Type type = Type::kOther;
  std::uint32_t index = 0;
};

// An identifier that stands nowhere in the text.
Token name_token(std::string_view name);

// Names to symbols; names are views of the text.
class SymbolTable {
 public:
  SymbolTable();
  Symbol find(const Token& identifier) const { return entries_[place_of(identifier)].symbol; }
  // Returns what the name meant before.
  Symbol set(const Token& identifier, const Symbol& symbol);

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::string_view name;
    Symbol symbol;
  };
  std::size_t place_of(const Token& identifier) const;
  void grow();

  std::vector<Entry> entries_;
  std::size_t used_ = 0;
};

// The words of a type, in any order: `const long int`, `PetscReal`.
class TypeWords {
 public:
  // False for what is no part of a type, or names one where there is one already.
  bool take(const Symbol& symbol);
  bool has_any() const { return doubles_ + ints_ + longs_ + others_ > 0; }
  bool is_const() const { return is_const_; }
  Type type() const;

 private:
  std::uint32_t doubles_ = 0;
  std::uint32_t ints_ = 0;
  std::uint32_t longs_ = 0;
  std::uint32_t others_ = 0;
  Type named_ = Type::kOther;
  bool is_const_ = false;
};

struct MathFunction {
  std::string_view name;
  Op op;  // kCall: a pure function that the graph has no operator for
  std::uint8_t arity;
  bool is_exact;  // the correctly rounded value, whoever computes it: at compile time or at run time
};
const MathFunction& math_function(std::uint32_t index);
double math_number(std::uint32_t index);

void add_keywords(SymbolTable& table);
void add_math(SymbolTable& table);      // what math.h declares
void add_integers(SymbolTable& table);  // what stdint.h declares

}  // namespace jitc::graph::c
