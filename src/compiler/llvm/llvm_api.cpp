#include "compiler/llvm/llvm_api.h"

#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale() is of POSIX
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "base/log.h"
#include "base/options.h"
#include "compiler/llvm/llvm.h"

namespace tinygrad::compiler {
namespace {

struct OpenLibrary {
  LlvmApi api;
  std::set<std::string_view> processors;  ///< that were made known to it
};

struct OpenLibraries {
  std::mutex mutex;
  bool ended = false;  ///< exit() has begun to destroy LLVM's own objects
  std::map<std::pair<std::string, bool>, OpenLibrary> by_path;
  std::list<DynamicLibrary> kept;  // LLVM does not survive being unloaded
};

// Never destroyed: LLVM's own state must not outlive the library, nor threads that compile.
OpenLibraries& libraries() {
  static OpenLibraries& l = *new OpenLibraries;
  return l;
}

std::optional<DynamicLibrary> open_library(const std::string& path, std::string* why) {
  const auto open = libraries().ended ? DynamicLibrary::try_open_apart : DynamicLibrary::try_open;
  if (!path.empty()) return open({path}, why);
  return open(
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
  api.handle = &libraries().kept.back();
  if (log_enabled(1)) log_line(fmt::format("opened {}", api.library));
  return api;
}

/// LLVM has global objects, which exit() destroys before those of the user that were made before LLVM was opened. Their destructors may
/// still compute: they get another copy of it. To be called behind each opening, so that the note is taken before the first object goes.
void note_end() {
  std::atexit([] {
    const std::lock_guard lock(libraries().mutex);
    libraries().ended = true;
  });
}

/// The C library of the other copy knows only threads that it has made itself: until they have a locale there, isalpha() and its like have
/// no tables.
void greet_thread(const OpenLibrary& library) {
  if (const auto set_locale = library.api.handle->find<locale_t(locale_t)>("uselocale")) set_locale(LC_GLOBAL_LOCALE);
}

/// Called with the lock held.
OpenLibrary& library_of_option() {
  const std::pair key(current_options().llvm_path, libraries().ended);
  auto found = libraries().by_path.find(key);
  if (found == libraries().by_path.end()) {
    found = libraries().by_path.emplace(key, OpenLibrary{open_api(key.first), {}}).first;
    if (!libraries().ended) note_end();
  }
  if (libraries().ended) greet_thread(found->second);
  return found->second;
}

/// What LLVM's functions call the processors of a triple.
std::string_view family_of(std::string_view triple) {
  constexpr std::pair<std::string_view, std::string_view> families[] = {
      {"x86_64", "X86"}, {"aarch64", "AArch64"}, {"riscv64", "RISCV"}, {"hexagon", "Hexagon"}};
  for (const auto& [architecture, family] : families)
    if (triple.starts_with(architecture)) return family;
  throw InternalError(fmt::format("LLVM: no processors are known for {}", triple));
}

}  // namespace

const LlvmApi& llvm_api() {
  std::lock_guard lock(libraries().mutex);
  return library_of_option().api;
}

void need_processors_of(std::string_view triple) {
  const std::string_view family = family_of(triple);
  std::lock_guard lock(libraries().mutex);
  OpenLibrary& library = library_of_option();
  if (library.processors.contains(family)) return;
  for (const std::string_view part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter", "Disassembler"}) {
    const auto initialize = library.api.handle->find<void()>(fmt::format("LLVMInitialize{}{}", family, part).c_str());
    if (!initialize) throw CompileError(fmt::format("LLVM: {} was built without the processors of {}", library.api.library, triple));
    initialize();
  }
  library.processors.insert(family);
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
