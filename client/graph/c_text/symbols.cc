#include "client/graph/c_text/symbols.h"

#include <array>
#include <cmath>
#include <limits>

namespace jitc::graph::c {
namespace {

constexpr std::size_t kFirstSize = 64;

struct NamedKeyword {
  std::string_view name;
  Keyword keyword;
};

constexpr auto kKeywords = std::to_array<NamedKeyword>({
    {"if", Keyword::kIf},
    {"else", Keyword::kElse},
    {"return", Keyword::kReturn},
    {"const", Keyword::kConst},
    {"__const", Keyword::kConst},
    {"restrict", Keyword::kRestrict},
    {"__restrict", Keyword::kRestrict},
    {"__restrict__", Keyword::kRestrict},
    {"static", Keyword::kStatic},
    {"inline", Keyword::kInline},
    {"__inline", Keyword::kInline},
    {"__inline__", Keyword::kInline},
    {"extern", Keyword::kExtern},
    {"typedef", Keyword::kTypedef},
    {"__attribute__", Keyword::kAttribute},
    {"double", Keyword::kDouble},
    {"int", Keyword::kInt},
    {"long", Keyword::kLong},
    {"signed", Keyword::kSigned},
    {"void", Keyword::kVoid},
    {"_Bool", Keyword::kBool},
    {"auto", Keyword::kOtherType},
    {"break", Keyword::kOther},
    {"case", Keyword::kOther},
    {"char", Keyword::kOtherType},
    {"continue", Keyword::kOther},
    {"default", Keyword::kOther},
    {"do", Keyword::kOther},
    {"enum", Keyword::kOtherType},
    {"float", Keyword::kOtherType},
    {"for", Keyword::kOther},
    {"goto", Keyword::kOther},
    {"register", Keyword::kOtherType},
    {"short", Keyword::kOtherType},
    {"sizeof", Keyword::kOther},
    {"struct", Keyword::kOtherType},
    {"switch", Keyword::kOther},
    {"union", Keyword::kOtherType},
    {"unsigned", Keyword::kOtherType},
    {"volatile", Keyword::kOtherType},
    {"while", Keyword::kOther},
    {"_Alignas", Keyword::kOtherType},
    {"_Alignof", Keyword::kOther},
    {"_Atomic", Keyword::kOtherType},
    {"_Complex", Keyword::kOtherType},
    {"_Generic", Keyword::kOther},
    {"_Imaginary", Keyword::kOtherType},
    {"_Noreturn", Keyword::kOther},
    {"_Static_assert", Keyword::kOther},
    {"_Thread_local", Keyword::kOther},
    {"asm", Keyword::kOther},
    {"__asm__", Keyword::kOther},
    {"typeof", Keyword::kOther},
    {"_Pragma", Keyword::kOther},
});

// Functions whose value depends on their arguments alone, and not on the sign of a NaN.
constexpr auto kFunctions = std::to_array<MathFunction>({
    {"sqrt", Op::kSqrt, 1, true},      {"cbrt", Op::kCbrt, 1, false},      {"exp", Op::kExp, 1, false},
    {"expm1", Op::kExpm1, 1, false},   {"log", Op::kLog, 1, false},        {"log1p", Op::kLog1p, 1, false},
    {"log2", Op::kLog2, 1, false},     {"log10", Op::kLog10, 1, false},    {"sin", Op::kSin, 1, false},
    {"cos", Op::kCos, 1, false},       {"tan", Op::kTan, 1, false},        {"asin", Op::kAsin, 1, false},
    {"acos", Op::kAcos, 1, false},     {"atan", Op::kAtan, 1, false},      {"sinh", Op::kSinh, 1, false},
    {"cosh", Op::kCosh, 1, false},     {"tanh", Op::kTanh, 1, false},      {"asinh", Op::kAsinh, 1, false},
    {"acosh", Op::kAcosh, 1, false},   {"atanh", Op::kAtanh, 1, false},    {"erf", Op::kErf, 1, false},
    {"erfc", Op::kErfc, 1, false},     {"fabs", Op::kAbs, 1, true},        {"floor", Op::kFloor, 1, true},
    {"ceil", Op::kCeil, 1, true},      {"pow", Op::kPow, 2, false},        {"atan2", Op::kAtan2, 2, false},
    {"hypot", Op::kHypot, 2, false},   {"fmod", Op::kFmod, 2, true},       {"fmax", Op::kFmax, 2, false},
    {"fmin", Op::kFmin, 2, false},     {"exp2", Op::kCall, 1, false},      {"tgamma", Op::kCall, 1, false},
    {"trunc", Op::kCall, 1, true},     {"round", Op::kCall, 1, true},      {"fdim", Op::kCall, 2, true},
    {"remainder", Op::kCall, 2, true}, {"nextafter", Op::kCall, 2, false}, {"fma", Op::kCall, 3, true},
});

struct NamedNumber {
  std::string_view name;
  double value;
};

// POSIX's names, each the double nearest to the constant.
constexpr auto kNumbers = std::to_array<NamedNumber>({
    {"M_E", 0x1.5bf0a8b145769p+1},
    {"M_LOG2E", 0x1.71547652b82fep+0},
    {"M_LOG10E", 0x1.bcb7b1526e50ep-2},
    {"M_LN2", 0x1.62e42fefa39efp-1},
    {"M_LN10", 0x1.26bb1bbb55516p+1},
    {"M_PI", 0x1.921fb54442d18p+1},
    {"M_PI_2", 0x1.921fb54442d18p+0},
    {"M_PI_4", 0x1.921fb54442d18p-1},
    {"M_1_PI", 0x1.45f306dc9c883p-2},
    {"M_2_PI", 0x1.45f306dc9c883p-1},
    {"M_2_SQRTPI", 0x1.20dd750429b6dp+0},
    {"M_SQRT2", 0x1.6a09e667f3bcdp+0},
    {"M_SQRT1_2", 0x1.6a09e667f3bcdp-1},
    {"HUGE_VAL", std::numeric_limits<double>::infinity()},
});

// Macros that the text has defined already are what these names mean.
void add(SymbolTable& table, std::string_view name, const Symbol& symbol) {
  const Token token = name_token(name);
  if (table.find(token).kind == Symbol::kNone) table.set(token, symbol);
}

}  // namespace

Token name_token(std::string_view name) {
  Token token;
  token.kind = Token::kIdentifier;
  token.text = name;
  token.hash = hash_of(name);
  return token;
}

SymbolTable::SymbolTable() : entries_(kFirstSize) {}

std::size_t SymbolTable::place_of(const Token& identifier) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t place = identifier.hash & mask;
  while (!entries_[place].name.empty() &&
         (entries_[place].hash != identifier.hash || entries_[place].name != identifier.text))
    place = (place + 1) & mask;
  return place;
}

Symbol SymbolTable::set(const Token& identifier, const Symbol& symbol) {
  Entry& entry = entries_[place_of(identifier)];
  const Symbol before = entry.symbol;
  const bool is_new = entry.name.empty();
  entry = {identifier.hash, identifier.text, symbol};
  if (is_new && ++used_ * 2 > entries_.size()) grow();
  return before;
}

void SymbolTable::grow() {
  std::vector<Entry> entries(entries_.size() * 2);
  entries.swap(entries_);
  for (const Entry& entry : entries) {
    if (entry.name.empty()) continue;
    std::size_t place = entry.hash & (entries_.size() - 1);
    while (!entries_[place].name.empty()) place = (place + 1) & (entries_.size() - 1);
    entries_[place] = entry;
  }
}

bool TypeWords::take(const Symbol& symbol) {
  if (symbol.kind == Symbol::kType) {
    if (has_any()) return false;
    named_ = symbol.type;
    ++others_;
    return true;
  }
  if (symbol.kind != Symbol::kKeyword) return false;
  switch (static_cast<Keyword>(symbol.index)) {
    case Keyword::kConst:
      is_const_ = true;
      return true;
    case Keyword::kDouble:
      ++doubles_;
      return true;
    case Keyword::kInt:
    case Keyword::kSigned:
      ++ints_;
      return true;
    case Keyword::kLong:
      ++longs_;
      return true;
    case Keyword::kVoid:
    case Keyword::kBool:
      named_ = static_cast<Keyword>(symbol.index) == Keyword::kVoid ? Type::kVoid : Type::kBool;
      ++others_;
      return true;
    case Keyword::kOtherType:
      others_ += 2;
      return true;
    default:
      return false;
  }
}

Type TypeWords::type() const {
  if (others_ > 0) return others_ == 1 && doubles_ + ints_ + longs_ == 0 ? named_ : Type::kOther;
  if (doubles_ > 0) return doubles_ == 1 && ints_ + longs_ == 0 ? Type::kDouble : Type::kOther;
  if (longs_ > 0) return longs_ <= 2 ? Type::kLong : Type::kOther;
  return ints_ > 0 ? Type::kInt : Type::kOther;
}

const MathFunction& math_function(std::uint32_t index) { return kFunctions[index]; }
double math_number(std::uint32_t index) { return kNumbers[index].value; }

void add_keywords(SymbolTable& table) {
  for (const auto& [name, keyword] : kKeywords)
    add(table, name, {Symbol::kKeyword, Type::kOther, static_cast<std::uint32_t>(keyword)});
}

void add_math(SymbolTable& table) {
  for (std::uint32_t i = 0; i < kFunctions.size(); ++i)
    add(table, kFunctions[i].name, {Symbol::kFunction, Type::kDouble, i});
  for (std::uint32_t i = 0; i < kNumbers.size(); ++i) add(table, kNumbers[i].name, {Symbol::kNumber, Type::kDouble, i});
}

void add_integers(SymbolTable& table) {
  add(table, "int32_t", {Symbol::kType, Type::kInt, 0});
  add(table, "int64_t", {Symbol::kType, Type::kLong, 0});
}

}  // namespace jitc::graph::c
