#include "client/graph/c_text/memo.h"

#include "client/graph/c_text/lexer.h"

namespace jitc::graph::c {
namespace {

constexpr std::size_t kStep = 256;  // bytes that are compared at once
// What may be compared in vain, in bytes and for each byte that was found.
constexpr std::size_t kFreeBytes = 65536;
constexpr std::size_t kVain = 4;

}  // namespace

Memo::Row& Memo::row(Opening opening, std::string_view rest) {
  return rows_[(hash_of(rest.substr(0, kHead)) + opening * 0x9e3779b97f4a7c15U) % rows_.size()];
}

const Value* Memo::find(Opening opening, std::string_view rest, std::size_t state, std::size_t& size) {
  if (rows_.empty() || compared_ > kVain * found_ + kFreeBytes) return nullptr;
  for (const Known& known : row(opening, rest).known) {
    if (known.text.empty() || known.opening != opening || known.state != state) continue;
    size = known.text.size();
    std::size_t same = 0;
    while (same < size && rest.substr(same, kStep).starts_with(known.text.substr(same, kStep))) same += kStep;
    if (same >= size) {
      found_ += size;
      return &known.value;
    }
    compared_ += same + kStep;
  }
  return nullptr;
}

void Memo::keep(Opening opening, std::string_view rest, std::size_t size, std::size_t state, const Value& value) {
  if (size < kLeast) return;
  if (++kept_ > rows_.size() * kWays && rows_.size() < kMostRows)
    rows_.assign(rows_.empty() ? kFirstRows : rows_.size() * 2, {});
  Row& place = row(opening, rest);
  place.known[place.next++ % kWays] = {opening, rest.substr(0, size), state, value};
}

}  // namespace jitc::graph::c
