// `jitc lower` as a process: what goes where, and its exit codes. What it prints is checked in lower_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command.h"

namespace jitc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CliLowerTest : public testing::CommandTest {
 protected:
  // One scalar field in the plane, f1 = k u_x; two constants.
  static std::string problem(const std::string& last_node = R"({"id":3,"op":"mul","args":[0,1]})") {
    return R"({"format":"jitc-corpus-problem-1","dim":2,"fields":[{"name":"T","components":1,"first":0}],
      "constants":[{"name":"z"},{"name":"a"}],"sort_constants":true,
      "residual":[{"name":"f1_0","kind":"f1","field":0,"entries":[3,2]}],
      "jacobian":[{"name":"g2_0_0","kind":"g2","test":0,"trial":0},{"name":"g3_0_0","kind":"g3","test":0,"trial":0}],
      "nodes":[{"id":0,"op":"leaf","leaf":"constants","index":[0]},{"id":1,"op":"leaf","leaf":"u_x","index":[0,0]},
               {"id":2,"op":"leaf","leaf":"u_x","index":[0,1]},)" +
           last_node + "]}";
  }
};

TEST_F(CliLowerTest, DefinesEveryFunctionUnderItsOwnName) {
  const auto printed = jitc({"lower", write("p.json", problem())});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.err, "");
  EXPECT_THAT(printed.out, HasSubstr("void f1_0("));
  EXPECT_THAT(printed.out, HasSubstr("void g2_0_0("));  // identically zero
  EXPECT_THAT(printed.out, HasSubstr("void g3_0_0("));
  EXPECT_THAT(printed.out, HasSubstr("constants[1]"));  // z comes after a
  EXPECT_EQ(jitc({"lower", "-"}, problem()).out, printed.out);
}

TEST_F(CliLowerTest, WritesTheFileAndTheFigures) {
  const std::string output = directory.path() + "/out.c";
  const auto written = jitc({"lower", write("p.json", problem()), "-o", output, "--stats"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_THAT(written.err, HasSubstr("functions 3, nodes "));
  EXPECT_EQ(read(output), jitc({"lower", write("p.json", problem())}).out);
}

TEST_F(CliLowerTest, PrintsTheManifestAlone) {
  const auto manifest = jitc({"lower", "--manifest", write("p.json", problem())});
  EXPECT_EQ(manifest.out, "[{\"slot\":0,\"name\":\"a\"},{\"slot\":1,\"name\":\"z\"}]\n");
}

TEST_F(CliLowerTest, PrintsTheBlocksThatAreNamed) {
  const std::string file = write("p.json", problem());
  const auto one = jitc({"lower", file, "--blocks=g3_0_0"});
  EXPECT_THAT(one.out, HasSubstr("void f1_0("));
  EXPECT_THAT(one.out, HasSubstr("void g3_0_0("));
  EXPECT_THAT(one.out, Not(HasSubstr("g2_0_0")));
  EXPECT_THAT(jitc({"lower", file, "--blocks=none"}).out, Not(HasSubstr("g3_0_0")));
  const auto unknown = jitc({"lower", file, "--blocks=g3_0_0,g9"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("'g9'"));
}

TEST_F(CliLowerTest, TypesAndIntegersFollowTheFlags) {
  const std::string file = write("p.json", problem());
  EXPECT_THAT(jitc({"lower", file}).out, HasSubstr("PetscScalar"));
  EXPECT_THAT(jitc({"lower", file, "--types=plain"}).out, Not(HasSubstr("Petsc")));
  EXPECT_NE(jitc({"lower", file, "--int=64"}).out, jitc({"lower", file}).out);
  EXPECT_EQ(jitc({"lower", file, "--int=16"}).exit_code, 2);
}

TEST_F(CliLowerTest, SharingIsTheSettingOrTheFlag) {
  const std::string file =
      write("p.json", problem(R"({"id":3,"op":"exp","args":[1]},{"id":4,"op":"mul","args":[3,3]})"));
  const auto trees = jitc({"lower", file, "--cse=0"});
  EXPECT_EQ(trees.exit_code, 0) << trees.err;
  auto with_variable = environment;
  with_variable["JITC_CSE"] = "0";
  EXPECT_EQ(run_in(with_variable, {"lower", file}).out, trees.out);
  EXPECT_EQ(jitc({"lower", file, "--cse=2"}).exit_code, 2);
}

TEST_F(CliLowerTest, ExitCodesTellTheProblemFromTheUsage) {
  const auto wrong = jitc({"lower", write("p.json", problem(R"({"id":3,"op":"mul","args":[0,9]})"))});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, HasSubstr("nodes[3]"));
  EXPECT_EQ(jitc({"lower", "-"}, "{").exit_code, 1);
  EXPECT_EQ(jitc({"lower", directory.path() + "/none.json"}).exit_code, 2);
  EXPECT_EQ(jitc({"lower", write("p.json", problem()), "-o", directory.path()}).exit_code, 2);
  EXPECT_EQ(jitc({"lower"}).exit_code, 2);
  for (const char* guard : {"nan", "inf", "-1e-36"}) {
    const auto refused = jitc({"lower", write("p.json", problem()), std::string("--guard=") + guard});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("--guard: is no finite number"), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace jitc
