#pragma once
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Object.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <string>
#include <string_view>

#include "base/dylib.h"

namespace tinygrad::compiler {

// Every function of LLVM's C API that is used.
// clang-format off
#define TG_LLVM_FUNCTIONS(X) \
  X(GetVersion) X(ContextCreate) X(ContextDispose) X(ContextSetDiagnosticHandler) X(GetDiagInfoSeverity) X(GetDiagInfoDescription) X(DisposeMessage) \
  X(CreateMemoryBufferWithMemoryRangeCopy) X(DisposeMemoryBuffer) X(GetBufferStart) X(GetBufferSize) X(ParseIRInContext) \
  X(DisposeModule) X(SetModuleDataLayout) X(VerifyModule) X(CreateTargetDataLayout) X(DisposeTargetData) X(GetTargetFromTriple) \
  X(CreateTargetMachine) X(DisposeTargetMachine) X(TargetMachineEmitToMemoryBuffer) X(CreatePassBuilderOptions) \
  X(DisposePassBuilderOptions) X(RunPasses) X(GetErrorMessage) X(DisposeErrorMessage) X(CreateDisasmCPUFeatures) X(DisasmInstruction) \
  X(DisasmDispose) X(CreateBinary) X(DisposeBinary) X(ObjectFileCopySectionIterator) X(ObjectFileIsSectionIteratorAtEnd) \
  X(MoveToNextSection) X(GetSectionName) X(GetSectionContents) X(GetSectionSize) X(DisposeSectionIterator)
// clang-format on

/// LLVM's C API, from a library opened at run time.
struct LlvmApi {
#define X(name) decltype(&LLVM##name) name = nullptr;  // NOLINT(readability-identifier-naming): LLVM's names
  TG_LLVM_FUNCTIONS(X)
#undef X
  std::string library;                     ///< the name that opened
  const DynamicLibrary* handle = nullptr;  ///< never closed: LLVM does not survive that
};

/// The library of the option LLVM_PATH, or of the newest version found; opened at the first use and kept. Throws CompileError saying what
/// was tried and how to install it.
const LlvmApi& llvm_api();

/// Makes the processors of a triple known to it; cheap after the first time. Throws CompileError where the library was built without them.
void need_processors_of(std::string_view triple);

}  // namespace tinygrad::compiler
