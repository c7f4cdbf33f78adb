#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::runtime {

/// Where code finds a function of the process: nullptr for one that it may not call.
using SymbolResolver = void* (*)(std::string_view name);

/// A relocatable x86-64 ELF object, as compilers emit, mapped into memory: its code is executable and nothing is both writable and
/// executable. Unmapped with the object.
class LoadedObject {
 public:
  /// Any bytes may be given: what does not follow the format, or uses a part of it that is not supported, throws FormatError; a symbol
  /// that `resolve` does not know throws CompileError; too little memory throws OutOfMemoryError.
  LoadedObject(std::span<const std::byte> object, SymbolResolver resolve);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  /// The address of a function that the object defines; throws CompileError if it does not.
  void* function(std::string_view name) const;

 private:
  struct Function {
    std::string name;
    void* address;
  };
  class Loading;

  std::byte* memory_ = nullptr;
  size_t size_ = 0;
  std::vector<Function> functions_;
};

}  // namespace tinygrad::runtime
