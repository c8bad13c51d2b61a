// A translation unit at file scope: what it declares, and where its functions are.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/graph/c_text/function.h"
#include "client/graph/c_text/local_functions.h"
#include "client/graph/c_text/print.h"
#include "client/graph/c_text/share.h"

namespace jitc::graph::c {

// Reads a text once, and copies it into `shared().text` with the bodies that became shorter printed anew.
class Unit {
 public:
  explicit Unit(std::string_view text);
  SharedText share();

 private:
  void read();
  bool guard(const Token& token);
  void directive(std::string_view line);
  void include(std::string_view line);
  void define(std::string_view rest);
  void declaration();
  bool type_definition();
  void function(const Signature& signature, std::size_t body);
  void print(const Body& body, const Signature& signature, std::size_t begin, std::size_t end);
  std::optional<Printed> settle(Printed printed, const Signature& signature) const;
  bool keep_helper(Body&& body, const Signature& signature);
  std::size_t position_of(const Token& token) const;
  // Where what stands there in the text as given comes to stand in the shared one.
  std::size_t printed_place(std::size_t position) const { return result_.text.size() + position - copied_; }
  void note_local(std::string_view name, Place given, Place printed);
  void note_prototype();
  void drop_unused();
  void skip_block();
  void block(std::string_view reason);
  std::string place(std::size_t position);
  std::size_t line_of(std::size_t position);

  std::string_view text_;
  Lexer lexer_;
  Reader reader_;
  Declarations declarations_;
  std::vector<Token> tokens_;     // of the external declaration so far
  std::size_t underscores_ = 0;   // that printed names need beside the macros
  std::string blocked_;           // why nothing from here on is understood; empty: it is
  std::size_t conditionals_ = 0;  // #if that are open
  bool has_directives_ = false;   // other than #include
  bool is_guarded_ = false;       // the text itself holds the guard, in front of all functions
  // Static helpers, in the text as given and in the shared one; the names' places in both lists.
  std::vector<LocalFunction> given_, printed_;
  std::unordered_map<std::string_view, std::size_t> locals_;
  std::size_t copied_ = 0;
  std::size_t counted_ = 0;  // lines up to here
  std::size_t line_ = 1;
  std::size_t line_begin_ = 0;
  SharedText result_;
};

}  // namespace jitc::graph::c
