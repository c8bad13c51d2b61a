#include "client/graph/c_text/function.h"

namespace jitc::graph::c {
namespace {

// What a body may cost beyond its own bytes, so that the time for a text stays linear in it.
constexpr std::size_t kWorkPerByte = 64;
constexpr std::size_t kFreeWork = 10000;

class BodyReader {
 public:
  BodyReader(Reader& reader, const Declarations& declarations, const Signature& signature,
             std::span<const std::int64_t> reaches)
      : reader_(reader),
        signature_(signature),
        arithmetic_(*body_.graph),
        scope_(*body_.graph, arithmetic_, signature.parameters, reaches),
        expressions_(reader, declarations, *body_.graph, arithmetic_, scope_) {}

  std::expected<Body, Refusal> read();
  std::optional<std::vector<std::int64_t>> reaches() const { return scope_.reaches(); }

 private:
  // What encloses a statement.
  enum class Frame : std::uint8_t { kBlock, kThen, kElse };

  bool statements();
  bool statement();
  bool complete();
  bool begin_if();
  bool declaration();
  bool variable(Type type, bool is_const);
  bool assignment();
  bool void_cast();
  bool return_statement();
  bool finish();
  bool check_arrays();
  std::optional<Value> expression();
  bool expect(char punctuator);
  bool starts_with(Keyword keyword) const;
  bool refuse(std::string_view reason) { return refuse(reader_.position(), reason); }
  bool refuse(std::size_t position, std::string_view reason);

  Reader& reader_;
  const Signature& signature_;
  Body body_;
  Arithmetic arithmetic_;
  Scope scope_;
  Expressions expressions_;
  std::vector<Frame> frames_;
  std::size_t begin_ = 0;
  Refusal refusal_;
  bool is_complete_ = false;  // the statement, when begin_if or a block has not just opened one
};

bool BodyReader::refuse(std::size_t position, std::string_view reason) {
  refusal_ = {position, std::string(reason)};
  return false;
}

bool BodyReader::expect(char punctuator) {
  if (!reader_.token().is(punctuator)) return refuse(std::string("'") + punctuator + "' was expected");
  reader_.advance();
  return true;
}

bool BodyReader::starts_with(Keyword keyword) const {
  if (reader_.token().kind != Token::kIdentifier) return false;
  const Symbol symbol = expressions_.find(reader_.token());
  return symbol.kind == Symbol::kKeyword && static_cast<Keyword>(symbol.index) == keyword;
}

std::optional<Value> BodyReader::expression() {
  auto value = expressions_.parse();
  if (!value) refusal_ = expressions_.refusal();
  return value;
}

// ---- statements ---------------------------------------------------------------------------------------------------

bool BodyReader::statements() {
  begin_ = reader_.position();
  frames_.push_back(Frame::kBlock);
  for (;;) {
    is_complete_ = true;
    if (!statement()) return false;
    if (frames_.empty()) return true;
    if (is_complete_ && !complete()) return false;
    const std::size_t budget = kFreeWork + kWorkPerByte * (reader_.position() - begin_);
    if (scope_.work() + expressions_.inlined() > budget)
      return refuse("branches or calls of helpers that are nested too deeply");
  }
}

bool BodyReader::statement() {
  const Token& token = reader_.token();
  if (token.is('{')) {
    frames_.push_back(Frame::kBlock);
    scope_.open_block();
    is_complete_ = false;
    reader_.advance();
    return true;
  }
  if (token.is('}')) {
    if (frames_.back() != Frame::kBlock) return refuse("a statement was expected");
    frames_.pop_back();
    if (frames_.empty()) return true;  // the function's own
    scope_.close_block();
    reader_.advance();
    return true;
  }
  if (token.is(';')) {
    reader_.advance();
    return true;
  }
  if (token.is('(')) return void_cast();
  if (token.kind != Token::kIdentifier) return refuse("a statement that is not understood");
  if (starts_with(Keyword::kIf)) return begin_if();
  if (starts_with(Keyword::kReturn)) return return_statement();
  return expressions_.begins_type(token) ? declaration() : assignment();
}

// A statement has ended, and with it the branches that it ends.
bool BodyReader::complete() {
  while (frames_.back() != Frame::kBlock) {
    if (frames_.back() == Frame::kThen && starts_with(Keyword::kElse)) {
      scope_.begin_else();
      frames_.back() = Frame::kElse;
      reader_.advance();
      return true;
    }
    if (auto ended = scope_.end_if(); !ended) return refuse(ended.error());
    frames_.pop_back();
  }
  return true;
}

bool BodyReader::begin_if() {
  reader_.advance();
  if (!expect('(')) return false;
  const auto condition = expression();
  if (!condition || !expect(')')) return false;
  scope_.begin_if(arithmetic_.truth(*condition));
  frames_.push_back(Frame::kThen);
  is_complete_ = false;
  return true;
}

bool BodyReader::declaration() {
  if (frames_.back() != Frame::kBlock) return refuse("a declaration is no statement of an if");
  const std::size_t position = reader_.position();
  const TypeWords words = expressions_.type_words();
  const Type type = words.type();
  if (type == Type::kOther || type == Type::kVoid)
    return refuse(position, "a variable whose type is neither double nor int nor long");
  for (;;) {
    if (!variable(type, words.is_const())) return false;
    if (!reader_.token().is(',')) return expect(';');
    reader_.advance();
  }
}

bool BodyReader::variable(Type type, bool is_const) {
  const Token name = reader_.token();
  if (name.kind != Token::kIdentifier || expressions_.find(name).kind == Symbol::kKeyword)
    return refuse("a variable that is no plain double, int or long");
  // A macro would be replaced by something else.
  const Symbol known = expressions_.find(name);
  if (known.kind == Symbol::kMacro || known.kind == Symbol::kNumber) return refuse("a variable with a macro's name");
  const auto index = scope_.declare(name, type, is_const);
  if (!index) return refuse(index.error());
  const std::size_t position = reader_.position();
  reader_.advance();
  if (!reader_.token().is('=')) return true;
  reader_.advance();
  const auto value = expression();
  if (!value) return false;
  if (auto written = scope_.write(*index, *value, true); !written) return refuse(position, written.error());
  return true;
}

bool BodyReader::assignment() {
  const std::size_t position = reader_.position();
  const Symbol symbol = expressions_.find(reader_.token());
  std::uint32_t variable = symbol.index;
  std::int64_t element = 0;
  if (symbol.kind == Symbol::kParameter) {
    reader_.advance();
    if (!expect('[')) return false;
    const auto index = expression();
    if (!index || !expect(']')) return false;
    if (index->form != Value::kConstant) return refuse(position, "an index that is not constant");
    element = index->low;
  } else if (symbol.kind == Symbol::kVariable) {
    reader_.advance();
  } else {
    return refuse("a statement other than declarations, assignments, if and return");
  }
  const Token operation = reader_.token();
  const bool is_compound = operation.kind == Token::kAssignOperator;
  if (!is_compound && !operation.is('=')) return refuse("'=' was expected");
  reader_.advance();
  std::optional<Value> value = expression();
  if (!value) return false;
  if (is_compound) {
    const Or<Value> before =
        symbol.kind == Symbol::kParameter ? scope_.read_element(symbol.index, element) : scope_.read(variable);
    if (!before) return refuse(position, before.error());
    const Op op = operation.symbol == '+'   ? Op::kAdd
                  : operation.symbol == '-' ? Op::kSub
                  : operation.symbol == '*' ? Op::kMul
                                            : Op::kDiv;
    const Or<Value> after = arithmetic_.binary(op, *before, *value);
    if (!after) return refuse(position, after.error());
    value = *after;
  }
  if (symbol.kind == Symbol::kParameter) {
    const auto place = scope_.element(symbol.index, element);
    if (!place) return refuse(position, place.error());
    variable = *place;
  }
  if (auto written = scope_.write(variable, *value, false); !written) return refuse(position, written.error());
  return expect(';');
}

// (void)name;
bool BodyReader::void_cast() {
  reader_.advance();
  if (!starts_with(Keyword::kVoid)) return refuse("a statement that is not understood");
  reader_.advance();
  if (!expect(')')) return false;
  const Symbol symbol = expressions_.find(reader_.token());
  if (symbol.kind != Symbol::kVariable && symbol.kind != Symbol::kParameter)
    return refuse("a cast to void of something other than a variable");
  for (const Parameter& parameter : signature_.parameters)
    if (parameter.name.text == reader_.token().text) body_.voided.push_back(parameter.name.text);
  reader_.advance();
  return expect(';');
}

bool BodyReader::return_statement() {
  if (frames_.size() != 1) return refuse("a return other than at the end");
  reader_.advance();
  if (!reader_.token().is(';')) {
    const std::size_t position = reader_.position();
    const auto value = expression();
    if (!value) return false;
    const Or<Value> converted = arithmetic_.convert(*value, signature_.result);
    if (!converted) return refuse(position, converted.error());
    body_.result = *converted;
  }
  return expect(';') && (reader_.token().is('}') ? true : refuse("statements behind a return"));
}

// ---- the whole ----------------------------------------------------------------------------------------------------

// All stores come last, so that none may change what is read: the arrays that are read are const, or what is written is
// restrict.
bool BodyReader::check_arrays() {
  const Array* written = nullptr;
  for (const Array& array : scope_.arrays()) {
    if (!array.is_written) continue;
    if (written != nullptr && !(written->parameter.is_restrict && array.parameter.is_restrict))
      return refuse(begin_, "two arrays that are written and may overlap: declare them restrict");
    written = &array;
  }
  if (written == nullptr || written->parameter.is_restrict) return true;
  for (const Array& array : scope_.arrays())
    if (&array != written && array.is_read && !array.parameter.is_const && !array.parameter.is_restrict)
      return refuse(begin_, "an array that is read and may overlap one that is written: declare it const");
  return true;
}

bool BodyReader::finish() {
  if ((signature_.result == Type::kVoid) == body_.result.has_value())
    return refuse("a return that does not fit the function");
  if (!check_arrays()) return false;
  const auto stores = scope_.stores();
  if (!stores) return refuse(begin_, stores.error());
  body_.stores = *stores;
  body_.arrays.assign(scope_.arrays().begin(), scope_.arrays().end());
  for (std::uint32_t i = 0, scalar = 0; i < signature_.parameters.size(); ++i)
    if (const Parameter& parameter = signature_.parameters[i]; !parameter.is_array)
      body_.scalars.push_back(parameter.name.text.empty() ? NodeId{0}
                                                          : body_.graph->leaf(scope_.argument_of(scalar++)));
  body_.has_arms = scope_.has_arms();
  body_.calls_library = expressions_.calls_library();
  return true;
}

std::expected<Body, Refusal> BodyReader::read() {
  if (!statements() || !finish()) return std::unexpected(std::move(refusal_));
  return std::move(body_);
}

}  // namespace

std::expected<Body, Refusal> read_body(Reader& reader, const Declarations& declarations, const Signature& signature) {
  const std::size_t begin = reader.position();
  BodyReader first(reader, declarations, signature, {});
  auto body = first.read();
  const auto reaches = first.reaches();
  if (!body || !reaches) return body;
  reader.start(begin);
  return BodyReader(reader, declarations, signature, *reaches).read();
}

}  // namespace jitc::graph::c
