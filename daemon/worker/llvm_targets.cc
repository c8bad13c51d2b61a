// lld initialises every target that LLVM was built with, and Clang's code generator asks for Polly. The worker compiles
// for this machine only: with these empty definitions the other targets' archives are never pulled in (they would be
// 100 MB of code that no child uses).
#include <llvm/Passes/PassPlugin.h>

extern "C" {

#define JITC_NO_TARGET(name)                 \
  void LLVMInitialize##name##TargetInfo();   \
  void LLVMInitialize##name##Target();       \
  void LLVMInitialize##name##TargetMC();     \
  void LLVMInitialize##name##AsmPrinter();   \
  void LLVMInitialize##name##AsmParser();    \
  void LLVMInitialize##name##TargetInfo() {} \
  void LLVMInitialize##name##Target() {}     \
  void LLVMInitialize##name##TargetMC() {}   \
  void LLVMInitialize##name##AsmPrinter() {} \
  void LLVMInitialize##name##AsmParser() {}

JITC_NO_TARGET(AArch64)
JITC_NO_TARGET(AMDGPU)
JITC_NO_TARGET(ARM)
JITC_NO_TARGET(AVR)
JITC_NO_TARGET(BPF)
JITC_NO_TARGET(Hexagon)
JITC_NO_TARGET(Lanai)
JITC_NO_TARGET(LoongArch)
JITC_NO_TARGET(Mips)
JITC_NO_TARGET(MSP430)
JITC_NO_TARGET(NVPTX)
JITC_NO_TARGET(PowerPC)
JITC_NO_TARGET(RISCV)
JITC_NO_TARGET(Sparc)
JITC_NO_TARGET(SystemZ)
JITC_NO_TARGET(VE)
JITC_NO_TARGET(WebAssembly)
JITC_NO_TARGET(XCore)
JITC_NO_TARGET(M68k)
JITC_NO_TARGET(Xtensa)

}  // extern "C"

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "", [](llvm::PassBuilder&) {}};
}
