#include <memory>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/llvm/llvm.h"
#include "compiler/llvm/llvm_api.h"
#include "target/target.h"

namespace tinygrad::compiler {
namespace {

/// The bytes of the object's code.
std::vector<uint8_t> text_section(const LlvmApi& llvm, const std::string& object) {
  const std::unique_ptr<LLVMOpaqueMemoryBuffer, void (*)(LLVMMemoryBufferRef)> buffer(
      llvm.CreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "object"), llvm.DisposeMemoryBuffer);
  char* message = nullptr;
  const std::unique_ptr<LLVMOpaqueBinary, void (*)(LLVMBinaryRef)> binary(llvm.CreateBinary(buffer.get(), nullptr, &message),
                                                                          llvm.DisposeBinary);
  if (!binary) {
    const std::string text = message;
    llvm.DisposeMessage(message);
    throw CompileError(fmt::format("disassemble: not an object: {}", text));
  }
  const std::unique_ptr<LLVMOpaqueSectionIterator, void (*)(LLVMSectionIteratorRef)> section(
      llvm.ObjectFileCopySectionIterator(binary.get()), llvm.DisposeSectionIterator);
  std::vector<uint8_t> bytes;
  for (; !llvm.ObjectFileIsSectionIteratorAtEnd(binary.get(), section.get()); llvm.MoveToNextSection(section.get())) {
    const char* name = llvm.GetSectionName(section.get());
    if (!name || !std::string_view(name).starts_with(".text")) continue;  // functions may have sections of their own
    const char* contents = llvm.GetSectionContents(section.get());
    bytes.insert(bytes.end(), contents, contents + llvm.GetSectionSize(section.get()));
  }
  return bytes;
}

}  // namespace

std::string disassemble_llvm(const std::string& object, std::string_view arch) {
  const LlvmApi& llvm = llvm_api();
  const auto [triple, cpu, features] = processor_names(arch);
  need_processors_of(triple);
  std::vector<uint8_t> code = text_section(llvm, object);
  const std::unique_ptr<void, void (*)(LLVMDisasmContextRef)> disassembler(
      llvm.CreateDisasmCPUFeatures(triple, cpu.c_str(), features.c_str(), nullptr, 0, nullptr, nullptr), llvm.DisasmDispose);
  if (!disassembler) throw CompileError(fmt::format("disassemble: LLVM has no disassembler for {}", arch));
  std::string text;
  char line[256];
  for (size_t at = 0; at < code.size();) {
    size_t size = llvm.DisasmInstruction(disassembler.get(), code.data() + at, code.size() - at, at, line, sizeof line);
    if (size == 0) {
      text += fmt::format("{:6x}: .byte {:#04x}\n", at, code[at]);
      size = 1;
    } else {
      text += fmt::format("{:6x}:{}\n", at, line);
    }
    at += size;
  }
  return text;
}

}  // namespace tinygrad::compiler
