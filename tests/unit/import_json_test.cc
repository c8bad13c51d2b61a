#include "client/graph/import_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "client/graph/evaluate.h"
#include "client/graph/operators.h"
#include "client/graph/parse_number.h"

namespace jitc::graph {
namespace {

// A problem of one scalar field in two dimensions with two constants and these nodes; f0 is node `entry`.
std::string problem_text(const std::string& nodes, int entry = 0, const std::string& more = "") {
  return R"({"format":"jitc-corpus-problem-1","name":"p","dim":2,"where":"volume",
    "fields":[{"name":"T","components":1,"first":0}],"aux_fields":[],
    "constants":[{"name":"k","default":1.5},{"name":"m","default":2}],
    "residual":[{"name":"f0_0","kind":"f0","field":0,"size":1,"entries":[)" +
         std::to_string(entry) + R"(]}],)" + more + R"("nodes":[)" + nodes + "]}";
}

constexpr const char* kTwoLeaves =
    R"({"id":0,"op":"leaf","leaf":"u","index":[0]},{"id":1,"op":"leaf","leaf":"u_x","index":[0,1]},)";

// f0 at u = 2, u_x = (3, 5), constants (7, 11), everything else 0.5.
double value_of(const Problem& problem) {
  const auto leaf = [](const Node& node) {
    if (node.argument == kU) return 2.0;
    if (node.argument == kUx) return node.args[0] == 0 ? 3.0 : 5.0;
    if (node.argument == kConstants) return node.args[0] == 0 ? 7.0 : 11.0;
    return 0.5;
  };
  return evaluate(problem.graph, problem.residuals[0].entries, leaf)[0];
}

double value_of(const std::string& nodes, int entry) {
  const auto problem = import_json(problem_text(nodes, entry));
  EXPECT_TRUE(problem) << common::to_line(problem.error());
  return problem ? value_of(*problem) : std::nan("");
}

// The error's line, or "fine".
std::string fault(const std::string& text) {
  const auto problem = import_json(text);
  if (problem) return "fine";
  EXPECT_EQ(problem.error().kind, common::ErrorKind::kInvalidSource);
  EXPECT_LT(common::to_line(problem.error()).size(), 400U);
  return common::to_line(problem.error());
}

std::string fault_of_nodes(const std::string& nodes, int entry = 0) { return fault(problem_text(nodes, entry)); }

#define EXPECT_NAMES(line, ...)                                                                \
  do {                                                                                         \
    const std::string told = line;                                                             \
    for (const std::string_view part : {__VA_ARGS__})                                          \
      EXPECT_NE(told.find(part), std::string::npos) << "'" << part << "' is not in: " << told; \
  } while (false)

TEST(ImportJson, BuildsEveryKindOfNode) {
  const std::string leaves = kTwoLeaves;
  EXPECT_EQ(value_of(leaves + R"({"id":2,"op":"add","args":[0,1,0]})", 2), 9.0);
  EXPECT_EQ(value_of(leaves + R"({"id":2,"op":"number","value":"-1"},{"id":3,"op":"mul","args":[2,0,1]})", 3), -10.0);
  EXPECT_EQ(value_of(leaves + R"({"id":2,"op":"number","value":"-1"},{"id":3,"op":"pow","args":[1,2]},
                                {"id":4,"op":"mul","args":[0,3]})",
                     4),
            0.4);
  EXPECT_EQ(value_of(leaves + R"({"id":2,"op":"max","args":[0,1,0]},{"id":3,"op":"min","args":[2,0]})", 3), 2.0);
  EXPECT_EQ(value_of(leaves + R"({"id":2,"op":"lt","args":[0,1]},{"id":3,"op":"true"},{"id":4,"op":"not","args":[2]},
                                {"id":5,"op":"piecewise","pieces":[[4,0],[2,1],[3,0]]})",
                     5),
            5.0);
  EXPECT_EQ(value_of(R"({"id":0,"op":"leaf","leaf":"constants","index":[1]},{"id":1,"op":"leaf","leaf":"t","index":[]},
                       {"id":2,"op":"add","args":[0,1]})",
                     2),
            11.5);
  EXPECT_EQ(value_of(R"({"id":0,"op":"pi"})", 0), M_PI);
  EXPECT_EQ(value_of(R"({"id":0,"op":"e"})", 0), M_E);
  EXPECT_EQ(value_of(leaves + R"({"id":2,"op":"named","name":"flux","args":[1]})", 2), 5.0);
}

TEST(ImportJson, KeepsTheAssociationOfSums) {
  // (1e16 + 1) - 1e16 is 0 in this order and 1 in the other.
  const std::string numbers =
      R"({"id":0,"op":"number","value":"10000000000000000"},{"id":1,"op":"leaf","leaf":"t","index":[]},
    {"id":2,"op":"number","value":"-10000000000000000"},)";
  EXPECT_EQ(value_of(numbers + R"({"id":3,"op":"add","args":[0,1,2]})", 3), 0.0);
  EXPECT_EQ(value_of(numbers + R"({"id":3,"op":"add","args":[0,2,1]})", 3), 0.5);
}

TEST(ImportJson, ReadsExactNumbers) {
  EXPECT_EQ(parse_number("3"), 3.0);
  EXPECT_EQ(parse_number("-1"), -1.0);
  EXPECT_EQ(parse_number("1/3"), 1.0 / 3.0);
  EXPECT_EQ(parse_number("-2/7"), -2.0 / 7.0);
  EXPECT_EQ(parse_number("0x1.8p+1"), 3.0);
  EXPECT_EQ(parse_number("-0x1.999999999999ap-4"), -0.1);
  EXPECT_EQ(parse_number("0x0.0000000000001p-1022"), 0x1p-1074);
  EXPECT_EQ(parse_number("0.1"), 0.1);
  EXPECT_EQ(parse_number("123456789012345678901234567890"), 123456789012345678901234567890.0);
  EXPECT_TRUE(std::signbit(*parse_number("-0")));
  for (const char* text :
       {"",    "-",     "--1", "+1",  "1/0",  "1/", "/3", "1/-3", "1.5/2", "0x", "0x-1p0",   "0x1p+99999",
        "0xg", "1e999", "inf", "nan", "-inf", " 1", "1 ", "1,5",  "one",   "1e", "0x1.8p+1f"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

TEST(ImportJson, NamesTheNodeThatIsWrong) {
  const std::string u = R"({"id":0,"op":"leaf","leaf":"u","index":[0]},)";
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"exp","args":[2]},{"id":2,"op":"sin","args":[0]})"), "nodes[1]",
               "node 2");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"exp","args":[1]})"), "nodes[1]", "node 1");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":0,"op":"exp","args":[0]})"), "nodes[1]", "id 0");
  EXPECT_NAMES(fault_of_nodes(u + R"({"op":"exp","args":[0]})"), "nodes[1]", "'id' is missing");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"args":[0]})"), "nodes[1]", "'op' is missing");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":7})"), "nodes[1]", "'op' must be a string");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":-1,"op":"pi"})"), "nodes[1]", "'id' must be an integer");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1.0,"op":"pi"})"), "nodes[1]", "'id' must be an integer");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"gamma","args":[0]})"), "nodes[1]", "gamma", "no such operator");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"exp","args":[0,0]})"), "nodes[1]", "exp", "takes 1 argument, not 2");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"add","args":[0]})"), "nodes[1]", "add", "2 arguments or more");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"add","args":"00"})"), "nodes[1]", "'args' must be an array");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"add","args":[0,"0"]})"), "nodes[1]", "no id of a node");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"not","args":[0]})"), "nodes[1]", "not", "a value, not a condition");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"lt","args":[0,0]},{"id":2,"op":"add","args":[0,1]})"), "nodes[2]",
               "argument 2 is a condition");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"number","value":"1/0"})"), "nodes[1]", "1/0");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"number","value":3})"), "nodes[1]", "'value' must be a string");
  EXPECT_NAMES(fault_of_nodes(u + R"({"id":1,"op":"number","value":"1e99999999"})"), "nodes[1]", "a double can hold");
  EXPECT_NAMES(fault_of_nodes(u + R"([1])"), "nodes[1]", "no object");
}

// Ids of the file, not of the graph: node 1 is the same as node 0, node 3 makes two nodes of the graph.
TEST(ImportJson, LaterErrorsNameTheNodeOfTheFile) {
  const std::string many =
      R"({"id":0,"op":"leaf","leaf":"u","index":[0]},{"id":1,"op":"leaf","leaf":"u","index":[0]},
         {"id":2,"op":"number","value":"3"},{"id":3,"op":"pow","args":[0,2]},
         {"id":4,"op":"call","function":"law","args":[3]},{"id":5,"op":"exp","args":[4]})";
  const std::string functions = R"("functions":[{"name":"law","arity":1}],
    "jacobian":[{"name":"g0_0_0","kind":"g0","test":0,"trial":0}],)";
  auto problem = import_json(problem_text(many, 5, functions));
  ASSERT_TRUE(problem) << common::to_line(problem.error());
  const auto lowered = lower(*problem);
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().thing, "f0_0[0], nodes[4]");
  EXPECT_NAMES(lowered.error().message, "law");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"pi"},{"id":1,"op":"pi"},{"id":2,"op":"leaf","leaf":"n","index":[0]},
                                 {"id":3,"op":"exp","args":[2]},{"id":4,"op":"exp","args":[0]})",
                              3),
               "f0_0[0], nodes[2]", "normal");
  // What is built on an imported graph is no node of the file.
  const auto next = static_cast<NodeId>(problem->graph.size());
  problem->residuals[0].entries = {problem->graph.leaf(kU, 7)};
  EXPECT_EQ(check(*problem).error().thing, "f0_0[0], node " + std::to_string(next));
}

TEST(ImportJson, RefusesLeavesOutsideTheLayout) {
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"u","index":[1]})"), "nodes[0]", "index 1 of 'u'", "has 1");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"u_x","index":[0,2]})"), "nodes[0]", "direction 2 of 2");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"u_x","index":[4294967295,0]})"), "nodes[0]", "4294967295");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"u_x","index":[0]})"), "nodes[0]",
               "takes 2 indices, not 1");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"a","index":[0]})"), "nodes[0]", "'a', which has 0");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"constants","index":[2]})"), "nodes[0]", "has 2");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"w","index":[0]})"), "nodes[0]", "'w'", "u_x");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"n","index":[0]})"), "f0_0[0]", "normal");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"leaf","leaf":"u_tShift","index":[]})"), "f0_0[0]", "u_tShift");
}

TEST(ImportJson, RefusesPiecewiseWithoutAnEnd) {
  const std::string before = R"({"id":0,"op":"leaf","leaf":"u","index":[0]},{"id":1,"op":"lt","args":[0,0]},)";
  EXPECT_NAMES(fault_of_nodes(before + R"({"id":2,"op":"piecewise","pieces":[[1,0]]})"), "nodes[2]", "last condition");
  EXPECT_NAMES(fault_of_nodes(before + R"({"id":2,"op":"piecewise","pieces":[]})"), "nodes[2]", "no pieces");
  EXPECT_NAMES(fault_of_nodes(before + R"({"id":2,"op":"piecewise","pieces":[[1]]})"), "nodes[2]", "no pair");
  EXPECT_NAMES(fault_of_nodes(before + R"({"id":2,"op":"piecewise","pieces":[[0,0]]})"), "nodes[2]",
               "condition of piece 1 is a value");
  EXPECT_NAMES(fault_of_nodes(before + R"({"id":2,"op":"piecewise"})"), "nodes[2]", "'pieces' is missing");
}

TEST(ImportJson, RefusesMalformedText) {
  EXPECT_NAMES(fault(""), "JSON", "parse error");
  EXPECT_NAMES(fault("{\"format\":"), "JSON", "line 1");
  EXPECT_NAMES(fault("[]"), "no object");
  EXPECT_NAMES(fault("{}"), "'format' is missing");
  EXPECT_NAMES(fault(R"({"format":"other"})"), "'other'", "jitc-corpus-problem-1");
  EXPECT_NAMES(fault("\xff\xfe{}"), "JSON");
  EXPECT_NAMES(fault(problem_text(R"({"id":0,"op":"pi"})", 5)), "entries[0]", "no id of a node");
  EXPECT_NAMES(fault(problem_text(R"({"id":0,"op":"true"})")), "f0_0[0]", "condition");
  EXPECT_NAMES(fault_of_nodes(R"({"id":0,"op":"pi"},{"id":1,"op":"pi","args":[],"op":"e"})"), "nodes[1]", "'op'",
               "twice");
  const std::string key = std::string(59, 'k') + "\u00e9";  // its last character goes over the 60th byte
  const std::string whole = "'" + std::string(59, 'k') + "...'";
  EXPECT_NAMES(fault("{\"" + key + "\":1,\"" + key + "\":2}"), whole.c_str(), "twice");
  EXPECT_NAMES(fault(R"({"format":1,"dim":2,"format":1})"), "JSON", "'format'", "twice");
  EXPECT_NAMES(fault(R"({"a":{"b":[0,{"c":{}},{"\u0064":1,"x":{"d":1},"d":1}]}})"), "a.b[2]", "'d'");
  std::string keys = "{";
  for (int i = 0; i < 200'000; ++i) keys += "\"" + std::to_string(i) + "\":0,";
  EXPECT_NAMES(fault(keys + R"("199999":0})"), "'199999'", "twice");
  EXPECT_NAMES(fault(keys + "\"" + std::string(100'000, 'k') + "\":0,\"" + std::string(100'000, 'k') + "\":0}"),
               "kkk...");
  // No stack is spent on depth.
  EXPECT_NAMES(fault(std::string(1'000'000, '[')), "nested deeper");
  std::string deep = R"({"format":)";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  EXPECT_NAMES(fault(deep), "nested deeper");
}

TEST(ImportJson, ChecksNamesOfFunctionsAndNotOfLabels) {
  const auto named = [](const std::string& name) {
    std::string text = problem_text(R"({"id":0,"op":"pi"})");
    return fault(text.replace(text.find("f0_0"), 4, name));
  };
  EXPECT_EQ(named("f0_0"), "fine");
  EXPECT_NAMES(named("while"), "while", "keyword");
  EXPECT_NAMES(named("nullptr"), "nullptr", "keyword");
  for (const char* macro : {"NAN", "INFINITY", "M_PI", "double_t", "islessequal", "isnan", "unix"})
    EXPECT_NAMES(named(macro), macro, "math.h");
  EXPECT_NAMES(named("sin"), "sin", "library");
  EXPECT_NAMES(named("jitc_max"), "jitc_max");
  EXPECT_NAMES(named("f-0"), "f-0", "no identifier");
  EXPECT_NAMES(named("0f"), "no identifier");
  EXPECT_NAMES(named("f) {} void g("), "no identifier");
  EXPECT_NAMES(named(""), "no identifier");
  EXPECT_NAMES(named(std::string(100'000, 'f')), "100000 characters");
  std::string text = problem_text(R"({"id":0,"op":"pi"})");
  text.replace(text.find("\"T\""), 3, "\"" + std::string(100'000, '*') + "\"");
  text.replace(text.find("\"k\""), 3, "\"int\"");
  EXPECT_EQ(fault(text), "fine");
}

TEST(ImportJson, ChecksNamesOfCalledFunctions) {
  const auto called = [](const std::string& name, int arity) {
    return fault(problem_text(R"({"id":0,"op":"pi"})", 0,
                              R"("functions":[{"name":")" + name + R"(","arity":)" + std::to_string(arity) + "}],"));
  };
  for (const auto& [name, arity] :
       {std::pair("law", 4), {"tgamma", 1}, {"atan2", 2}, {"fma", 3}, {"t", 1}, {"leaf", 1}})
    EXPECT_EQ(called(name, arity), "fine") << name;
  EXPECT_NAMES(called("sin", 2), "sin", "math.h that takes 1 arguments, not 2");
  EXPECT_NAMES(called("pow", 1), "pow", "2 arguments, not 1");
  for (const char* name : {"sinf",  "fabsl",    "cosf64x",    "frexp",    "abs",    "jn",      "malloc",   "strtol",
                           "exit",  "main",     "cexp",       "va_start", "va_end", "va_copy", "asprintf", "alloca",
                           "_exit", "signbitf", "signbitd32", "sinf16",   "nand64", "fabsd128"})
    EXPECT_NAMES(called(name, 1), name, "C's library");
  EXPECT_NAMES(called("while", 1), "keyword");
  EXPECT_NAMES(called("NAN", 1), "math.h");
  EXPECT_NAMES(called("__builtin_sin", 1), "reserved");
  EXPECT_NAMES(called("jitc_max", 2), "jitc_max", "printed text");
  EXPECT_NAMES(called("t12", 1), "temporaries");
  for (const char* name : {"PetscReal", "petsc_u", "out"}) EXPECT_NAMES(called(name, 1), name, "printed functions");
}

TEST(ImportJson, ReadsBlocksWithTheirTangents) {
  const std::string blocks = R"("ties":"first","guard":1e-36,"jacobian":[
    {"name":"g0_0_0","kind":"g0","test":0,"trial":0,"size":1},
    {"name":"g1_0_0","kind":"g1","test":0,"trial":0,"size":2,"tangent":"picard"},
    {"name":"c0","kind":"g0","test":0,"trial":0,"tangent":"continuation","continuation":1,"frozen":["eta"]},
    {"name":"p0","kind":"g0","test":0,"trial":0,"entries":[0]}],)";
  const std::string nodes = std::string(kTwoLeaves) + R"({"id":2,"op":"named","name":"eta","args":[0]})";
  const auto problem = import_json(problem_text(nodes, 2, blocks));
  ASSERT_TRUE(problem) << common::to_line(problem.error());
  EXPECT_EQ(problem->ties, Ties::kFirst);
  EXPECT_EQ(problem->guard, 1e-36);
  ASSERT_EQ(problem->blocks.size(), 4U);
  EXPECT_EQ(problem->blocks[1].tangent, Tangent::kPicard);
  EXPECT_EQ(problem->blocks[2].tangent, Tangent::kContinuation);
  EXPECT_EQ(problem->blocks[2].continuation, 1U);
  EXPECT_EQ(problem->blocks[2].frozen, std::vector<std::string>{"eta"});
  EXPECT_EQ(problem->blocks[3].entries.size(), 1U);

  const auto block = [&](const std::string& text) {
    return fault(problem_text(nodes, 2, "\"jacobian\":[" + text + "],"));
  };
  EXPECT_NAMES(block(R"({"name":"g0_0_0","kind":"g0","test":0,"trial":1})"), "g0_0_0", "no field 1");
  EXPECT_NAMES(block(R"({"name":"g0_0_0","kind":"f0","test":0,"trial":0})"), "jacobian[0]", "'f0'", "g3");
  EXPECT_NAMES(block(R"({"name":"g2_0_0","kind":"g2","test":0,"trial":0})"), "g2_0_0", "f1 of field 0");
  EXPECT_NAMES(block(R"({"name":"g0_0_0","kind":"g0","test":0,"trial":0,"size":4})"), "g0_0_0", "'size' is 4");
  EXPECT_NAMES(block(R"({"name":"f0_0","kind":"g0","test":0,"trial":0})"), "f0_0", "two functions");
  EXPECT_NAMES(block(R"({"name":"g","kind":"g0","test":0,"trial":0,"frozen":["zeta"]})"), "zeta");
  EXPECT_NAMES(block(R"({"name":"g","kind":"g0","test":0,"trial":0,"tangent":"continuation","continuation":2})"),
               "2 of 2");
  EXPECT_NAMES(block(R"({"name":"g","kind":"g0","test":0,"trial":0,"entries":[0,0]})"), "g", "2 entries");
}

TEST(ImportJson, ReadsOpaqueFunctions) {
  const std::string functions =
      R"("functions":[{"name":"law","arity":2,"partials":["law_1",null]},{"name":"law_1","arity":2}],)";
  const std::string call = std::string(kTwoLeaves) + R"({"id":2,"op":"call","function":"law","args":[0,1]})";
  const auto problem = import_json(problem_text(call, 2, functions));
  ASSERT_TRUE(problem) << common::to_line(problem.error());
  EXPECT_EQ(problem->graph.function(0).name, "law");
  EXPECT_EQ(problem->graph.function(*problem->graph.function(0).partials[0]).name, "law_1");
  EXPECT_NAMES(fault(problem_text(call, 2)), "nodes[2]", "no function 'law'");
  EXPECT_NAMES(fault(problem_text(std::string(kTwoLeaves) + R"({"id":2,"op":"call","function":"law","args":[0]})", 2,
                                  functions)),
               "nodes[2]", "takes 2 arguments, not 1");
  EXPECT_NAMES(fault(problem_text(call, 2, R"("functions":[{"name":"law","arity":2,"partials":["none",null]}],)")),
               "partials[0]", "'none'");
}

TEST(ImportJson, LayoutsThatCannotBeAreErrors) {
  const auto layout = [](const std::string& fields, const std::string& dim = "2") {
    return fault(R"({"format":"jitc-corpus-problem-1","dim":)" + dim + R"(,"fields":[)" + fields +
                 R"(],"residual":[],"nodes":[]})");
  };
  EXPECT_EQ(layout(R"({"name":"v","components":2,"first":0},{"name":"p","components":1,"first":2})"), "fine");
  EXPECT_NAMES(layout(R"({"name":"v","components":2,"first":0},{"name":"p","components":1,"first":1})"), "fields[1]",
               "overlaps");
  EXPECT_NAMES(layout(R"({"name":"v","components":0,"first":0})"), "fields[0]", "0 components");
  EXPECT_NAMES(layout(R"({"name":"v","components":1,"first":4294967295})"), "fields[0]", "too large");
  EXPECT_NAMES(layout(R"({"name":"v","components":4294967295,"first":0})"), "fields[0]", "4294967295 components");
  EXPECT_NAMES(layout("", "4"), "dim", "1 to 3");
  EXPECT_NAMES(layout("", "0"), "dim");
}

TEST(ImportJson, ChainsOfAMillionNodesNeedNoStack) {
  std::string nodes = R"({"id":0,"op":"leaf","leaf":"u","index":[0]})";
  constexpr int kNodes = 1'000'000;
  for (int i = 1; i < kNodes; ++i)
    nodes += R"(,{"id":)" + std::to_string(i) + (i % 2 != 0 ? R"(,"op":"sin","args":[)" : R"(,"op":"cos","args":[)") +
             std::to_string(i - 1) + "]}";
  auto problem =
      import_json(problem_text(nodes, kNodes - 1, R"("jacobian":[{"name":"g0_0_0","kind":"g0","test":0,"trial":0}],)"));
  ASSERT_TRUE(problem) << common::to_line(problem.error());
  EXPECT_EQ(problem->graph.size(), static_cast<std::size_t>(kNodes));
  EXPECT_GT(canonical_bytes(*problem).size(), static_cast<std::size_t>(kNodes));
  EXPECT_TRUE(lower(*problem));
}

// ---- operators.h ----------------------------------------------------------------------------------------------------

TEST(Operators, SumsAndProductsReadAsPeopleWriteThem) {
  Graph graph;
  const NodeId a = graph.leaf(kU, 0);
  const NodeId b = graph.leaf(kU, 1);
  const NodeId c = graph.leaf(kU, 2);
  const auto build = [&](std::string_view op, std::initializer_list<NodeId> arguments) {
    return *apply(graph, op, std::span(arguments.begin(), arguments.size()));
  };
  const NodeId minus_one = graph.number(-1.0);
  EXPECT_EQ(build("add", {a, build("mul", {minus_one, b})}), graph.binary(Op::kSub, a, b));
  EXPECT_EQ(build("add", {build("mul", {minus_one, b}), a}), graph.binary(Op::kSub, a, b));
  EXPECT_EQ(build("add", {a, minus_one}), graph.binary(Op::kSub, a, graph.number(1.0)));
  const NodeId over_b = build("pow", {b, minus_one});
  const NodeId over_c = build("pow", {c, minus_one});
  EXPECT_EQ(build("mul", {a, over_b}), graph.binary(Op::kDiv, a, b));
  EXPECT_EQ(build("mul", {over_b, a, over_c}), graph.binary(Op::kDiv, a, graph.binary(Op::kMul, b, c)));
  EXPECT_EQ(build("mul", {over_b, over_c}), graph.binary(Op::kDiv, graph.number(1.0), graph.binary(Op::kMul, b, c)));
  EXPECT_EQ(build("mul", {minus_one, a, over_b}), graph.unary(Op::kNeg, graph.binary(Op::kDiv, a, b)));
  EXPECT_EQ(build("add", {a, b, c}), graph.binary(Op::kAdd, graph.binary(Op::kAdd, a, b), c));
}

TEST(Operators, PowersAreProductsUpToTheLimit) {
  Graph graph;
  const NodeId x = graph.leaf(kU);
  const auto power = [&](double exponent) {
    const std::array<NodeId, 2> arguments{x, graph.number(exponent)};
    return *apply(graph, "pow", arguments);
  };
  EXPECT_EQ(power(0.0), graph.number(1.0));
  EXPECT_EQ(power(1.0), x);
  EXPECT_EQ(power(2.0), graph.binary(Op::kMul, x, x));
  EXPECT_EQ(power(-2.0), graph.binary(Op::kDiv, graph.number(1.0), power(2.0)));
  EXPECT_EQ(power(0.5), graph.unary(Op::kSqrt, x));
  EXPECT_EQ(power(-0.5), graph.binary(Op::kDiv, graph.number(1.0), power(0.5)));
  for (int n = -kLargestProduct; n <= kLargestProduct; ++n) {
    const std::array<NodeId, 1> output{power(n)};
    EXPECT_NEAR(evaluate(graph, output, [](const Node&) { return 1.25; })[0] / std::pow(1.25, n), 1.0, 1e-14) << n;
  }
  for (const double exponent : {kLargestProduct + 1.0, -33.0, 1.5, 1e300, 2.000000001})
    EXPECT_EQ(graph[power(exponent)].op, Op::kPow) << exponent;
}

TEST(Operators, RefusesWhatIsNoNode) {
  Graph graph;
  const std::array<NodeId, 1> arguments{7};
  const auto refused = apply(graph, "sin", arguments);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, common::ErrorKind::kUsage);
  EXPECT_NAMES(common::to_line(refused.error()), "sin", "argument 1 is no node");
}

}  // namespace
}  // namespace jitc::graph
