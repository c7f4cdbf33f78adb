#include "compiler/llvm/llvm_api.h"

#include <map>
#include <mutex>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "base/log.h"
#include "base/options.h"
#include "compiler/llvm/llvm.h"

namespace tinygrad::compiler {
namespace {

struct OpenLibraries {
  std::mutex mutex;
  std::map<std::string, LlvmApi> by_path;
  std::vector<DynamicLibrary> kept;  // LLVM does not survive being unloaded
};

// Never destroyed: LLVM's own state must not outlive the library, nor threads that compile.
OpenLibraries& libraries() {
  static OpenLibraries& l = *new OpenLibraries;
  return l;
}

std::optional<DynamicLibrary> open_library(const std::string& path, std::string* why) {
  if (!path.empty()) return DynamicLibrary::try_open({path}, why);
  return DynamicLibrary::try_open(
      {"libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM-19.so", "libLLVM.so.20.1", "libLLVM.so.18.1", "libLLVM-18.so.1", "libLLVM-17.so.1"},
      why);
}

[[noreturn]] void fail(const std::string& why) {
  throw CompileError(
      fmt::format("LLVM: no library to compile kernels with: {}. Install it (`apt-get install libllvm19`), set LLVM_PATH to a libLLVM of "
                  "version 17 or newer, or use DEV=INTERP",
                  why));
}

LlvmApi functions_of(const DynamicLibrary& library) {
  LlvmApi api;
  try {
#define X(name) api.name = library.symbol<std::remove_pointer_t<decltype(api.name)>>("LLVM" #name);
    TG_LLVM_FUNCTIONS(X)
#undef X
  } catch (const DeviceError& e) {
    fail(e.what());
  }
  api.library = library.name();
  return api;
}

LlvmApi open_api(const std::string& path) {
  std::string why;
  std::optional<DynamicLibrary> library = open_library(path, &why);
  if (!library) fail(why);
  LlvmApi api = functions_of(*library);
  libraries().kept.push_back(std::move(*library));
  api.InitializeX86TargetInfo();
  api.InitializeX86Target();
  api.InitializeX86TargetMC();
  api.InitializeX86AsmPrinter();
  api.InitializeX86Disassembler();
  if (log_enabled(1)) log_line(fmt::format("opened {}", api.library));
  return api;
}

}  // namespace

const LlvmApi& llvm_api() {
  const std::string& path = current_options().llvm_path;
  std::lock_guard lock(libraries().mutex);
  auto found = libraries().by_path.find(path);
  if (found == libraries().by_path.end()) found = libraries().by_path.emplace(path, open_api(path)).first;
  return found->second;
}

bool llvm_is_open() {
  std::lock_guard lock(libraries().mutex);
  return !libraries().by_path.empty();
}

std::string llvm_missing() {
  try {
    llvm_api();
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace tinygrad::compiler
