/* Not run: that it compiles as strict C99 is the test. */
#include <jitc/jitc.h>

int uses_the_header(void) {
  jitc_context* context = 0;
  jitc_request request = {sizeof request};
  jitc_module* module = 0;
  request.source = "int a;";
  if (jitc_context_open(0, 0, &context, 0) != JITC_OK) return 1;
  if (jitc_compile(context, &request, &module, 0) == JITC_OK) jitc_module_release(module);
  jitc_item item = {sizeof item};
  item.request = &request;
  if (jitc_compile_all(context, &item, 1, &module, 0) == JITC_OK) jitc_module_release(module);
  jitc_context_close(context);
  return 0;
}

int builds_a_problem(void) {
  jitc_problem* problem = jitc_problem_open("poisson", 2);
  const uint32_t u = jitc_problem_field(problem, "u", 1);
  jitc_block block = {sizeof block};
  jitc_text* text = 0;
  jitc_node flux[2];
  flux[0] = jitc_node_field(problem, JITC_LEAF_U_X, u, 0, 0);
  flux[1] = jitc_node_field(problem, JITC_LEAF_U_X, u, 0, 1);
  jitc_problem_residual(problem, "f1_0", JITC_F1, u, 0, flux, 2);
  block.name = "g3_0_0";
  block.kind = JITC_G3;
  jitc_problem_block(problem, &block);
  if (flux[0] == JITC_NONE || jitc_problem_emit(problem, 0, &text, 0) != JITC_OK) return 1;
  jitc_text_free(text);
  jitc_problem_free(problem);
  return 0;
}
