// Printed C functions as graphs, and back: straight-line pointwise functions are parsed, their common subexpressions
// shared, and printed again, with the same 64 bits for every result (any NaN equals any NaN) under the same compiler
// and flags, as long as these contract no products and allow no fast mathematics.
//
// Understood: declarations and assignments (= += -= *= /=) of doubles, ints and longs, + - * /, comparisons, ?:, && ||
// !, casts, if and else, elements of array arguments with constant indices, calls of math.h and of small static
// functions of the same text, a return at the end. Types are those that the text itself says. Integers are C's: 1/2 is
// 0; what may overflow is refused. Everything else (loops, pointers, float, macros, what a header may define) leaves
// its function as it is, byte for byte, as do functions in which nothing is to be shared.
//
// What a printed function asks for: all elements are stored last, so the arrays that it reads must not overlap the one
// that it writes. Arrays that are read must therefore be const (or the written one restrict), and a function that
// writes two needs restrict on both; PETSc passes them so. Signatures stay byte for byte: restrict is not added, since
// it would promise more than the author did. An element is read only where the text as given reads it, or one behind
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitc::graph {

struct SharedFunction {
  std::string name;
  std::size_t line = 0;    // of its definition
  bool is_shared = false;  // it is understood
  std::string reason;      // why it is not: line:column: text
};

struct SharedText {
  std::string text;  // the whole translation unit; what is not understood stands in it byte for byte
  std::vector<SharedFunction> functions;
  std::size_t nodes = 0;
  std::size_t temporaries = 0;
};

// Never fails: at worst the text comes back as it is. Time and memory are linear in the text.
SharedText share(std::string_view text);

}  // namespace jitc::graph
