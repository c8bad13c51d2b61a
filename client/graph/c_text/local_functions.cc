#include "client/graph/c_text/local_functions.h"

#include <algorithm>
#include <unordered_map>

#include "client/graph/c_text/lexer.h"

namespace jitc::graph::c {
namespace {

bool is_part(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// May a word of a directive come from pieces that do not show it?
bool makes_words(std::string_view directive) {
  if (directive.find("##") != std::string_view::npos || directive.find("%:%:") != std::string_view::npos) return true;
  for (std::size_t at = directive.find('\\'); at != std::string_view::npos; at = directive.find('\\', at + 1))
    if (at > 0 && is_part(directive[at - 1])) return true;  // it may go on in the next line
  return false;
}

class Search {
 public:
  Search(std::string_view text, std::span<const LocalFunction> functions)
      : text_(text), calls_(functions.size() + 1), outside_(functions.size()) {
    for (std::size_t i = 0; i < functions.size(); ++i) {
      known_.emplace(functions[i].name, i);
      for (const Place& place : functions[i].places) owners_.push_back({place, i});
    }
    std::ranges::sort(owners_, {}, [](const Owner& owner) { return owner.place.begin; });
  }

  std::vector<bool> unused() {
    std::vector<bool> unused(outside_, true);
    if (!read()) return std::vector<bool>(outside_, false);
    std::vector<std::size_t> reached = {outside_};
    while (!reached.empty()) {
      const std::size_t from = reached.back();
      reached.pop_back();
      for (const std::size_t to : calls_[from]) {
        if (!unused[to]) continue;
        unused[to] = false;
        reached.push_back(to);
      }
    }
    return unused;
  }

 private:
  struct Owner {
    Place place;
    std::size_t function = 0;
  };

  bool read() {
    Lexer lexer(text_);
    for (Token token = lexer.next(); token.kind != Token::kEnd; token = lexer.next()) {
      if (token.kind == Token::kIdentifier) {
        word(token.text);
      } else if (token.kind == Token::kDirective || token.kind == Token::kOther) {
        if (token.kind == Token::kDirective ? makes_words(token.text) : token.symbol == '\\') return false;
        words(token.text);
      }
    }
    return true;
  }

  void words(std::string_view text) {
    for (auto at = text.begin(); at != text.end();) {
      const auto begin = std::find_if(at, text.end(), is_part);
      at = std::find_if_not(begin, text.end(), is_part);
      word({begin, at});
    }
  }

  void word(std::string_view word) {
    const auto known = known_.find(word);
    if (known == known_.end()) return;
    const auto position = static_cast<std::size_t>(word.data() - text_.data());
    while (owner_ < owners_.size() && owners_[owner_].place.end <= position) ++owner_;
    const bool is_inside = owner_ < owners_.size() && owners_[owner_].place.begin <= position;
    calls_[is_inside ? owners_[owner_].function : outside_].push_back(known->second);
  }

  std::string_view text_;
  std::unordered_map<std::string_view, std::size_t> known_;
  std::vector<Owner> owners_;  // by their places
  std::size_t owner_ = 0;      // the first that does not end before what is read
  std::vector<std::vector<std::size_t>> calls_;
  std::size_t outside_;  // the caller that is none of them
};

}  // namespace

std::vector<bool> find_unused(std::string_view text, std::span<const LocalFunction> functions) {
  return Search(text, functions).unused();
}

std::string without(std::string_view text, std::vector<Place> places) {
  std::ranges::sort(places, {}, &Place::begin);
  std::string left;
  left.reserve(text.size());
  std::size_t copied = 0;
  for (const Place& place : places) {
    left.append(text.substr(copied, place.begin - copied));
    copied = place.end;
    if (copied < text.size() && text[copied] == '\n' && (left.empty() || left.back() == '\n')) ++copied;
  }
  return left.append(text.substr(copied));
}

}  // namespace jitc::graph::c
