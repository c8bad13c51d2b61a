/* Not run: that it compiles as strict C99 is the test. */
#include <jitc/jitc.h>

int uses_the_header(void) {
  jitc_context* context = 0;
  jitc_request request = {sizeof request};
  jitc_module* module = 0;
  request.source = "int a;";
  if (jitc_context_open(0, 0, &context, 0) != JITC_OK) return 1;
  if (jitc_compile(context, &request, &module, 0) == JITC_OK) jitc_module_release(module);
  jitc_context_close(context);
  return 0;
}
