// libjitc as a file that programs open for themselves.
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace jitc {
namespace {

// Helper threads that were given up may still run its code.
TEST(Library, StaysLoadedWhenItIsClosed) {
  void* library = ::dlopen(JITC_LIB_DIR "/libjitc.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_EQ(::dlclose(library), 0);
  EXPECT_NE(::dlopen(JITC_LIB_DIR "/libjitc.so", RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace jitc
