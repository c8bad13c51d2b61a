// C expressions to nodes: operator precedence on an explicit stack, in one pass over the tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/graph/c_text/lexer.h"
#include "client/graph/c_text/memo.h"
#include "client/graph/c_text/scope.h"

namespace jitc::graph::c {

// Why a text is not understood, and where.
struct Refusal {
  std::size_t position = 0;  // in the text
  std::string reason;
};

// A function of the text that may stand in place of its calls.
struct Helper {
  std::string name;
  Graph graph;
  Value result;
  std::vector<NodeId> parameters;  // leaves of the graph, all doubles
  bool calls_library = false;      // functions whose value a compiler may know better than the library
};

// What a translation unit has declared so far.
struct Declarations {
  SymbolTable names;
  std::vector<Helper> helpers;
};

// The tokens of one function's body, one ahead.
class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(text), begin_(text.data()) {}
  void start(std::size_t position) {
    lexer_.seek(position);
    advance();
  }
  const Token& token() const { return token_; }
  void advance() { token_ = lexer_.next(); }
  char next_character() const { return lexer_.peek(); }  // behind the present token
  std::string_view text() const { return lexer_.text(); }
  // Where the present token begins.
  std::size_t position() const { return static_cast<std::size_t>(token_.text.data() - begin_); }

 private:
  Lexer lexer_;
  const char* begin_;
  Token token_;
};

class Expressions {
 public:
  Expressions(Reader& reader, const Declarations& declarations, Graph& graph, Arithmetic& arithmetic, Scope& scope)
      : reader_(reader), declarations_(declarations), graph_(graph), arithmetic_(arithmetic), scope_(scope) {}

  // The longest expression from the present token on; what follows it becomes the present token. Nothing when it is not
  // understood: see refusal().
  std::optional<Value> parse();
  const Refusal& refusal() const { return refusal_; }
  bool calls_library() const { return calls_library_; }
  std::size_t inlined() const { return inlined_; }  // nodes that helpers have added
  TypeWords type_words();                           // consumes them
  bool begins_type(const Token& token) const;
  Symbol find(const Token& identifier) const;

 private:
  enum class Kind : std::uint8_t { kParenthesis, kCall, kIndex, kQuestion, kColon, kBinary, kUnary, kCast };
  struct Pending {
    Kind kind = Kind::kParenthesis;
    Op op = Op::kAdd;
    Type type = Type::kOther;
    std::uint8_t precedence = 0;
    bool is_helper = false;
    std::uint32_t index = 0;   // of a function or array
    std::size_t operands = 0;  // on the stack when it began
    std::size_t position = 0;
    std::size_t open = 0;  // position of the bracket
    Opening opening() const {
      return kind == Kind::kParenthesis ? 0 : (std::uint64_t{index} << 2) | (is_helper ? 2U : 1U);
    }
  };

  bool operand();
  bool name();
  bool element(const Symbol& symbol);
  bool open_parenthesis();
  bool recall(const Pending& bracket);
  void remember(const Pending& bracket, std::size_t end);
  bool operators(bool& is_done);
  bool binary_operator(Op op, std::uint8_t precedence);
  bool question();
  bool colon();
  bool close();
  bool close_index();
  bool reduce(std::uint8_t precedence);
  bool apply(const Pending& pending);
  bool call_math(const Pending& call);
  bool call_helper(const Pending& call);
  bool push(const Or<Value>& value, std::size_t position);
  void push_pending(Kind kind, std::uint8_t precedence, Op op = Op::kAdd);
  bool refuse(std::size_t position, std::string reason);
  bool refuse_here(std::string reason) { return refuse(reader_.position(), std::move(reason)); }

  Reader& reader_;
  const Declarations& declarations_;
  Graph& graph_;
  Arithmetic& arithmetic_;
  Scope& scope_;
  std::vector<Value> operands_;
  std::vector<Pending> pending_;
  std::vector<NodeId> nodes_;  // of a helper's copy
  Memo memo_;
  Refusal refusal_;
  bool calls_library_ = false;
  std::size_t inlined_ = 0;
};

}  // namespace jitc::graph::c
