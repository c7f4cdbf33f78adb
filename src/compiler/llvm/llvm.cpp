#include "compiler/llvm/llvm.h"

#include <memory>
#include <type_traits>

#include <fmt/core.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/disk_cache.h"
#include "base/hash.h"
#include "base/options.h"
#include "base/profile.h"
#include "compiler/llvm/llvm_api.h"
#include "target/target.h"

namespace tinygrad::compiler {
namespace {

// Part of every cache key: to be changed with the passes or the code generator's options. It stands for the version of LLVM too, which
// a warm start does not know.
constexpr std::string_view kVersion = "llvm-4";
// Kernels are one function whose vectors, unrolling and fusion are decided, so what is left is cleaning up and keeping addresses cheap:
// half the time of default<O2> for code that is as fast. The SLP vectorizer alone took a third of that, and made vectors of index
// arithmetic.
// (By default "instcombine" ends the process when it is not done after one round.)
constexpr const char* kPasses =
    "function("
    // Accumulators become registers.
    "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,reassociate,"
    // What does not change leaves its loop; indices become as wide as addresses; short loops unroll.
    "loop-mssa(loop-rotate,licm),simplifycfg,loop(indvars,loop-deletion,loop-unroll-full),"
    "sroa,vector-combine,gvn,loop-mssa(licm),early-cse,simplifycfg,"
    // Loops for which no vector axis was chosen.
    "loop-vectorize,loop-unroll,instcombine<no-verify-fixpoint>,loop-mssa(licm),loop-sink,simplifycfg)";

// What the default level adds is scheduling after register allocation, a tenth of the time of code generation, which processors that
// reorder instructions do not need.
constexpr LLVMCodeGenOptLevel kLevel = LLVMCodeGenLevelLess;

/// What an LLVM object is disposed with.
template <class Ref>
using Owned = std::unique_ptr<std::remove_pointer_t<Ref>, void (*)(Ref)>;

void collect_diagnostic(LLVMDiagnosticInfoRef info, void* text) {
  const LlvmApi& llvm = llvm_api();
  if (llvm.GetDiagInfoSeverity(info) != LLVMDSError) return;
  char* message = llvm.GetDiagInfoDescription(info);
  static_cast<std::string*>(text)->append(message).append("\n");
  llvm.DisposeMessage(message);
}

[[noreturn]] void refuse(std::string_view what, std::string_view message, const std::string& source) {
  throw CompileError(fmt::format("LLVM: {} failed: {}\n{}", what, message, source));
}

class Compilation {
 public:
  Compilation(const LlvmApi& llvm, const std::string& source, std::string_view arch)
      : llvm_(llvm), source_(source), processor_(processor_names(arch)), context_(llvm.ContextCreate(), llvm.ContextDispose) {
    llvm_.ContextSetDiagnosticHandler(context_.get(), collect_diagnostic, &diagnostics_);
  }

  std::string object() {
    const Owned<LLVMModuleRef> module = parse();
    const Owned<LLVMTargetMachineRef> machine = target_machine();
    const Owned<LLVMTargetDataRef> layout(llvm_.CreateTargetDataLayout(machine.get()), llvm_.DisposeTargetData);
    llvm_.SetModuleDataLayout(module.get(), layout.get());
    if (current_options().spec > 0) verify(module.get());
    check_interrupt();
    optimize(module.get(), machine.get());
    check_interrupt();
    return emit(module.get(), machine.get());
  }

 private:
  Owned<LLVMModuleRef> parse() {
    // The buffer becomes the parser's.
    LLVMMemoryBufferRef text = llvm_.CreateMemoryBufferWithMemoryRangeCopy(source_.data(), source_.size(), "kernel");
    LLVMModuleRef module = nullptr;
    char* message = nullptr;
    if (llvm_.ParseIRInContext(context_.get(), text, &module, &message)) refuse("parsing", take(message), source_);
    return {module, llvm_.DisposeModule};
  }

  Owned<LLVMTargetMachineRef> target_machine() {
    const auto& [triple, cpu, features] = processor_;
    need_processors_of(triple);
    LLVMTargetRef target = nullptr;
    char* message = nullptr;
    if (llvm_.GetTargetFromTriple(triple, &target, &message)) refuse(fmt::format("finding the target {}", triple), take(message), source_);
    return {llvm_.CreateTargetMachine(target, triple, cpu.c_str(), features.c_str(), kLevel, LLVMRelocPIC, LLVMCodeModelSmall),
            llvm_.DisposeTargetMachine};
  }

  void verify(LLVMModuleRef module) {
    char* message = nullptr;
    const bool broken = llvm_.VerifyModule(module, LLVMReturnStatusAction, &message);
    const std::string text = take(message);
    if (broken) refuse("verifying", text, source_);
  }

  void optimize(LLVMModuleRef module, LLVMTargetMachineRef machine) {
    const Owned<LLVMPassBuilderOptionsRef> options(llvm_.CreatePassBuilderOptions(), llvm_.DisposePassBuilderOptions);
    unsigned major = 0;
    llvm_.GetVersion(&major, nullptr, nullptr);
    const char* passes = major >= 18 ? kPasses : "default<O2>";  // 17 does not know the option of instcombine
    if (LLVMErrorRef error = llvm_.RunPasses(module, passes, machine, options.get())) {
      char* message = llvm_.GetErrorMessage(error);
      const std::string text = message;
      llvm_.DisposeErrorMessage(message);
      refuse("optimizing", text, source_);
    }
  }

  std::string emit(LLVMModuleRef module, LLVMTargetMachineRef machine) {
    LLVMMemoryBufferRef made = nullptr;
    char* message = nullptr;
    if (llvm_.TargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &made)) {
      refuse("generating code", take(message), source_);
    }
    const Owned<LLVMMemoryBufferRef> buffer(made, llvm_.DisposeMemoryBuffer);
    if (!diagnostics_.empty()) refuse("generating code", diagnostics_, source_);
    return {llvm_.GetBufferStart(made), llvm_.GetBufferSize(made)};
  }

  std::string take(char* message) {
    std::string text = message ? message : "";
    if (message) llvm_.DisposeMessage(message);
    return diagnostics_ + text;
  }

  const LlvmApi& llvm_;
  const std::string& source_;
  const ProcessorNames processor_;
  std::string diagnostics_;
  Owned<LLVMContextRef> context_;
};

}  // namespace

std::string compile_llvmir(const std::string& source, std::string_view arch) {
  const std::string key = ContentHasher().add(kVersion).add(arch).add(source).finish().to_hex();
  if (std::optional<std::string> known = disk_cache().get("llvm_object", key)) return std::move(*known);
  ProfileSpan span("llvm", "compile");
  std::string object = Compilation(llvm_api(), source, arch).object();
  disk_cache().put("llvm_object", key, object);
  return object;
}

}  // namespace tinygrad::compiler
