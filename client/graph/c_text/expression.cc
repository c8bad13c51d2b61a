#include "client/graph/c_text/expression.h"

#include <cmath>

#include "client/graph/c_text/literal.h"

namespace jitc::graph::c {
namespace {

// Of C's operators, from the loosest on.
enum Precedence : std::uint8_t {
  kBarrier,
  kConditional,
  kOrLevel,
  kAndLevel,
  kEquality,
  kRelation,
  kSum,
  kProduct,
  kUnaryLevel
};

struct BinaryOperator {
  Op op;
  std::uint8_t precedence;
};

std::optional<BinaryOperator> binary_of(const Token& token) {
  switch (token.kind) {
    case Token::kLessEqual:
      return BinaryOperator{Op::kLe, kRelation};
    case Token::kGreaterEqual:
      return BinaryOperator{Op::kGe, kRelation};
    case Token::kEqual:
      return BinaryOperator{Op::kEq, kEquality};
    case Token::kNotEqual:
      return BinaryOperator{Op::kNe, kEquality};
    case Token::kAnd:
      return BinaryOperator{Op::kAnd, kAndLevel};
    case Token::kOr:
      return BinaryOperator{Op::kOr, kOrLevel};
    case Token::kPunctuator:
      break;
    default:
      return std::nullopt;
  }
  switch (token.symbol) {
    case '+':
      return BinaryOperator{Op::kAdd, kSum};
    case '-':
      return BinaryOperator{Op::kSub, kSum};
    case '*':
      return BinaryOperator{Op::kMul, kProduct};
    case '/':
      return BinaryOperator{Op::kDiv, kProduct};
    case '<':
      return BinaryOperator{Op::kLt, kRelation};
    case '>':
      return BinaryOperator{Op::kGt, kRelation};
    default:
      return std::nullopt;
  }
}

bool is_arm(Op op) { return op == Op::kAnd || op == Op::kOr; }

}  // namespace

bool Expressions::refuse(std::size_t position, std::string reason) {
  refusal_ = {position, std::move(reason)};
  return false;
}

bool Expressions::push(const Or<Value>& value, std::size_t position) {
  if (!value) return refuse(position, std::string(value.error()));
  operands_.push_back(*value);
  return true;
}

void Expressions::push_pending(Kind kind, std::uint8_t precedence, Op op) {
  pending_.push_back(
      {.kind = kind, .op = op, .precedence = precedence, .operands = operands_.size(), .position = reader_.position()});
}

Symbol Expressions::find(const Token& identifier) const {
  const Symbol local = scope_.find(identifier);
  return local.kind != Symbol::kNone ? local : declarations_.names.find(identifier);
}

std::optional<Value> Expressions::parse() {
  operands_.clear();
  pending_.clear();
  bool is_done = false;
  while (!is_done)
    if (!operand() || !operators(is_done)) return std::nullopt;
  return operands_.back();
}

// ---- operands -----------------------------------------------------------------------------------------------------

// Up to and with one operand, with all that stands before it: signs, casts, opening parentheses.
bool Expressions::operand() {
  for (;;) {
    const Token& token = reader_.token();
    if (token.kind == Token::kIdentifier) {
      const std::size_t pending = pending_.size();
      if (!name()) return false;
      if (pending_.size() == pending) return true;  // else a call or an index has begun
      continue;
    }
    if (token.kind == Token::kNumber) {
      const Or<Literal> number = literal(token.text);
      if (!number) return refuse_here(std::string(number.error()));
      operands_.push_back(number->is_integer ? Arithmetic::integer(number->integer, number->is_long)
                                             : arithmetic_.real(graph_.number(number->real), true));
      reader_.advance();
      return true;
    }
    if (token.is('(')) {
      if (recall({.open = reader_.position()})) return true;
      if (!open_parenthesis()) return false;
    } else if (token.is('-') || token.is('+') || token.is('!')) {
      const Op op = token.symbol == '-' ? Op::kNeg : token.symbol == '!' ? Op::kNot : Op::kAdd;
      push_pending(Kind::kUnary, kUnaryLevel, op);
      reader_.advance();
    } else {
      return refuse_here("an expression was expected, or one of another kind than + - * / < > ?: && || !");
    }
  }
}

bool Expressions::name() {
  const Token& token = reader_.token();
  const Symbol symbol = find(token);
  switch (symbol.kind) {
    case Symbol::kVariable:
      if (!push(scope_.read(symbol.index), reader_.position())) return false;
      break;
    case Symbol::kParameter:
      return element(symbol);
    case Symbol::kNumber: {
      const double value = math_number(symbol.index);
      const NodeId node =
          std::isinf(value) ? graph_.binary(Op::kDiv, graph_.number(1.0), graph_.number(0.0)) : graph_.number(value);
      operands_.push_back(arithmetic_.real(node, true));
      break;
    }
    case Symbol::kFunction:
    case Symbol::kHelper: {
      push_pending(Kind::kCall, kBarrier);
      pending_.back().index = symbol.index;
      pending_.back().is_helper = symbol.kind == Symbol::kHelper;
      reader_.advance();
      if (!reader_.token().is('(')) return refuse_here("a function that is not called");
      pending_.back().open = reader_.position();
      if (recall(pending_.back())) {
        pending_.pop_back();
        return true;
      }
      break;
    }
    default:
      return refuse_here("'" + std::string(token.text.substr(0, 80)) + "' is not known here");
  }
  reader_.advance();
  return true;
}

// a[3] directly; other constant indices as the expressions they are.
bool Expressions::element(const Symbol& symbol) {
  const std::size_t position = reader_.position();
  reader_.advance();
  if (!reader_.token().is('[')) return refuse(position, "an array other than by its elements");
  reader_.advance();
  const Token& index = reader_.token();
  if (index.kind == Token::kNumber && index.text.size() == 1 && reader_.next_character() == ']') {
    const std::int64_t digit = index.text[0] - '0';
    reader_.advance();
    reader_.advance();
    return push(scope_.read_element(symbol.index, digit), position);
  }
  push_pending(Kind::kIndex, kBarrier);
  pending_.back().index = symbol.index;
  pending_.back().position = position;
  return true;
}

bool Expressions::begins_type(const Token& token) const {
  return token.kind == Token::kIdentifier && TypeWords().take(find(token));
}

TypeWords Expressions::type_words() {
  TypeWords words;
  while (reader_.token().kind == Token::kIdentifier && words.take(find(reader_.token()))) reader_.advance();
  return words;
}

// What this bracket stands for, if the same text was read before and nothing that it may mean has changed. It is then
// behind the reader.
bool Expressions::recall(const Pending& bracket) {
  std::size_t size = 0;
  const Value* const known =
      memo_.find(bracket.opening(), reader_.text().substr(bracket.open + 1), scope_.changes(), size);
  if (known == nullptr) return false;
  operands_.push_back(*known);
  reader_.start(bracket.open + 1 + size);
  return true;
}

// Only what is evaluated on every path: what it reads may be read anywhere behind it.
void Expressions::remember(const Pending& bracket, std::size_t end) {
  if (scope_.is_in_arm()) return;
  memo_.keep(bracket.opening(), reader_.text().substr(bracket.open + 1), end - bracket.open, scope_.changes(),
             operands_.back());
}

bool Expressions::open_parenthesis() {
  push_pending(Kind::kParenthesis, kBarrier);
  pending_.back().open = reader_.position();
  reader_.advance();
  if (!begins_type(reader_.token())) return true;
  const std::size_t position = reader_.position();
  const Type type = type_words().type();
  if (type == Type::kOther || type == Type::kVoid || !reader_.token().is(')'))
    return refuse(position, "a cast to a type other than double, int or long");
  reader_.advance();
  Pending& cast = pending_.back();
  cast.kind = Kind::kCast;
  cast.precedence = kUnaryLevel;
  cast.type = type;
  return true;
}

// ---- operators ----------------------------------------------------------------------------------------------------

// What follows an operand: up to and with the operator after which another operand must come, or the end.
bool Expressions::operators(bool& is_done) {
  for (;;) {
    const Token& token = reader_.token();
    if (const auto binary = binary_of(token)) return binary_operator(binary->op, binary->precedence);
    const char symbol = token.kind == Token::kPunctuator ? token.symbol : '\0';
    if (symbol == '?') return question();
    if (!reduce(kConditional)) return false;
    const bool is_open = !pending_.empty();
    if (symbol == ':' && is_open) return colon();
    if (symbol == ',' && is_open && pending_.back().kind == Kind::kCall) {
      reader_.advance();
      return true;
    }
    if (!is_open) {
      is_done = true;
      return true;
    }
    if (symbol == ')') {
      if (!close()) return false;
    } else if (symbol == ']') {
      if (!close_index()) return false;
    } else {
      return refuse_here("an operator other than + - * / < <= > >= == != && || ?:");
    }
  }
}

bool Expressions::binary_operator(Op op, std::uint8_t precedence) {
  if (!reduce(precedence)) return false;
  push_pending(Kind::kBinary, precedence, op);
  if (is_arm(op)) {
    operands_.back() = arithmetic_.truth(operands_.back());
    // The right side is evaluated where the left one does not decide.
    const Value& left = operands_.back();
    scope_.begin_arms(op == Op::kAnd ? left : arithmetic_.negate_truth(left));
  }
  reader_.advance();
  return true;
}

bool Expressions::question() {
  if (!reduce(kOrLevel)) return false;
  operands_.back() = arithmetic_.truth(operands_.back());
  push_pending(Kind::kQuestion, kBarrier);
  scope_.begin_arms(operands_.back());
  reader_.advance();
  return true;
}

bool Expressions::colon() {
  if (pending_.back().kind != Kind::kQuestion) return refuse_here("a ':' without its '?'");
  pending_.back().kind = Kind::kColon;
  pending_.back().precedence = kConditional;
  scope_.other_arm();
  reader_.advance();
  return true;
}

bool Expressions::close() {
  const Pending top = pending_.back();
  if (top.kind != Kind::kParenthesis && top.kind != Kind::kCall) return refuse_here("a ')' without its '('");
  const std::size_t end = reader_.position();
  reader_.advance();
  pending_.pop_back();
  if (top.kind == Kind::kCall && !(top.is_helper ? call_helper(top) : call_math(top))) return false;
  remember(top, end);
  return true;
}

bool Expressions::close_index() {
  const Pending top = pending_.back();
  if (top.kind != Kind::kIndex) return refuse_here("a ']' without its '['");
  const Value index = operands_.back();
  if (index.form != Value::kConstant) return refuse(top.position, "an index that is not constant");
  reader_.advance();
  pending_.pop_back();
  operands_.pop_back();
  return push(scope_.read_element(top.index, index.low), top.position);
}

// Applies all pending operators that bind at least as tightly.
bool Expressions::reduce(std::uint8_t precedence) {
  while (!pending_.empty() && pending_.back().precedence >= precedence && pending_.back().precedence != kBarrier) {
    const Pending top = pending_.back();
    pending_.pop_back();
    if (!apply(top)) return false;
  }
  return true;
}

bool Expressions::apply(const Pending& pending) {
  const Value last = operands_.back();
  operands_.pop_back();
  switch (pending.kind) {
    case Kind::kUnary:
      if (pending.op == Op::kNeg) return push(arithmetic_.negate(last), pending.position);
      operands_.push_back(pending.op == Op::kNot ? arithmetic_.negate_truth(arithmetic_.truth(last)) : last);
      return true;
    case Kind::kCast:
      return push(arithmetic_.convert(last, pending.type), pending.position);
    case Kind::kColon: {
      scope_.end_arms();
      const Value when_true = operands_.back();
      operands_.pop_back();
      operands_.back() = arithmetic_.select(operands_.back(), when_true, last);
      return true;
    }
    default: {
      if (is_arm(pending.op)) scope_.end_arms();
      const Value first = operands_.back();
      operands_.pop_back();
      return push(arithmetic_.binary(pending.op, first, is_arm(pending.op) ? arithmetic_.truth(last) : last),
                  pending.position);
    }
  }
}

// ---- calls --------------------------------------------------------------------------------------------------------

bool Expressions::call_math(const Pending& call) {
  const MathFunction& function = math_function(call.index);
  if (operands_.size() - call.operands != function.arity) return refuse(call.position, "a wrong number of arguments");
  bool is_constant = true;
  bool is_literal = true;
  nodes_.clear();
  for (std::size_t i = call.operands; i < operands_.size(); ++i) {
    const Value& argument = operands_[i];
    const NodeId node = arithmetic_.as_double(argument);
    is_constant = is_constant && argument.is_constant;
    is_literal = is_literal && !argument.is_stored && graph_.is_number(node);
    nodes_.push_back(node);
  }
  if (is_constant && !is_literal && !function.is_exact)
    return refuse(call.position,
                  "a call whose arguments are constant but no literals: compilers may compute it either way");
  // gcc divides where it sees the exponent, at -O0, too.
  const bool is_literal_exponent = operands_.back().is_constant && !operands_.back().is_stored;
  if (function.op == Op::kPow && !is_literal_exponent && graph_.is_number(nodes_.back(), -1.0))
    return refuse(call.position, "a power -1 that is no literal: compilers may compute it either way");
  operands_.resize(call.operands);
  calls_library_ = calls_library_ || !function.is_exact;
  Value result;
  result.is_constant = is_constant;
  if (function.op == Op::kCall) {
    result.node = graph_.call(graph_.declare({std::string(function.name), function.arity, {}}), nodes_);
  } else {
    result.node =
        function.arity == 1 ? graph_.unary(function.op, nodes_[0]) : graph_.binary(function.op, nodes_[0], nodes_[1]);
  }
  operands_.push_back(result);
  return true;
}

bool Expressions::call_helper(const Pending& call) {
  const Helper& helper = declarations_.helpers[call.index];
  if (operands_.size() - call.operands != helper.parameters.size())
    return refuse(call.position, "a wrong number of arguments");
  const Graph& body = helper.graph;
  bool is_constant = true;
  nodes_.assign(body.size(), 0);
  for (std::size_t i = 0; i < helper.parameters.size(); ++i) {
    const Value& argument = operands_[call.operands + i];
    if (argument.is_constant && helper.calls_library)
      return refuse(call.position, "a constant argument of '" + helper.name + "': compilers may compute it either way");
    is_constant = is_constant && argument.is_constant;
    nodes_[helper.parameters[i]] = arithmetic_.as_double(argument);
  }
  operands_.resize(call.operands);
  Value result = helper.result;
  std::vector<NodeId> arguments;
  for (NodeId id = 0; id < body.size(); ++id) {
    if (body[id].op == Op::kLeaf) continue;
    arguments.clear();
    for (const NodeId argument : body.arguments(id)) arguments.push_back(nodes_[argument]);
    nodes_[id] = graph_.rebuild(body, id, arguments);
  }
  inlined_ += body.size();
  calls_library_ = calls_library_ || helper.calls_library;
  if (result.form != Value::kConstant) result.node = nodes_[result.node];
  // To compilers that look into the helper.
  result.is_constant = result.is_constant || is_constant;
  result.is_stored = result.is_constant;
  operands_.push_back(result);
  return true;
}

}  // namespace jitc::graph::c
