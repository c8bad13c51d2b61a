// One function definition: its signature, and its body as the values of what it stores and returns.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/graph/c_text/expression.h"

namespace jitc::graph::c {

struct Signature {
  Token name;
  Type result = Type::kOther;
  bool is_local = false;  // static or inline: what its name calls is this definition
  std::vector<Parameter> parameters;
  std::optional<Refusal> refusal;  // why no body of it can be understood
};

// Of the tokens of an external declaration in `text`, without the `{` behind them; nothing when it is no function's.
std::optional<Signature> read_signature(std::span<const Token> tokens, const SymbolTable& names, std::string_view text);

struct Body {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<Array> arrays;
  std::vector<Scope::Stored> stores;
  std::optional<Value> result;           // of the type that the function returns
  std::vector<std::string_view> voided;  // (void)name; statements
  std::vector<NodeId> scalars;           // leaves of the scalar parameters in order
  bool calls_library = false;
  bool has_arms = false;  // something is read under a condition
};

// Reads from behind the `{` to the closing brace, which becomes the present token.
std::expected<Body, Refusal> read_body(Reader& reader, const Declarations& declarations, const Signature& signature);

}  // namespace jitc::graph::c
