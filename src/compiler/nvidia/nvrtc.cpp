#include "compiler/nvidia/nvrtc.h"

#include <filesystem>
#include <mutex>
#include <set>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "base/disk_cache.h"
#include "base/hash.h"
#include "base/profile.h"
#include "compiler/nvidia/toolkit.h"

namespace tinygrad::compiler {
namespace {

// Part of every cache key beside the options. It stands for the version of NVRTC too, which a warm start does not know.
constexpr std::string_view kVersion = "nvrtc-1";
constexpr int kOldestMajor = 12, kOldestMinor = 4;  // the tensor cores of fp8

// nvrtc.h, as much of it as is used: a program is a pointer, results are 0 for success.
using Program = void*;

struct Nvrtc {
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  const char* (*error_string)(int) = nullptr;

  explicit Nvrtc(const DynamicLibrary& library) {
    const auto bind = [&]<class F>(F*& function, const char* name) { function = library.symbol<F>(name); };
    bind(create, "nvrtcCreateProgram");
    bind(destroy, "nvrtcDestroyProgram");
    bind(compile, "nvrtcCompileProgram");
    bind(cubin_size, "nvrtcGetCUBINSize");
    bind(cubin, "nvrtcGetCUBIN");
    bind(log_size, "nvrtcGetProgramLogSize");
    bind(log, "nvrtcGetProgramLog");
    bind(error_string, "nvrtcGetErrorString");
  }
};

void check_version(const DynamicLibrary& library) {
  int major = 0, minor = 0;
  const auto version = library.find<int(int*, int*)>("nvrtcVersion");
  if (!version || version(&major, &minor) != 0) throw CompileError(fmt::format("NVRTC: {} does not tell its version", library.name()));
  if (std::pair(major, minor) >= std::pair(kOldestMajor, kOldestMinor)) return;
  throw CompileError(fmt::format("NVRTC: {} has version {}.{}, expected {}.{} or newer. {}", library.name(), major, minor, kOldestMajor,
                                 kOldestMinor, how_to_install_toolkit()));
}

/// What NVRTC opens itself by its name, which the loader finds in a folder of its own only if it is open.
void open_builtins(const std::string& nvrtc) {
  namespace fs = std::filesystem;
  if (nvrtc.find('/') == nvrtc.npos) return;  // where the system has libraries
  std::error_code none;
  for (const auto& file : fs::directory_iterator(fs::path(nvrtc).parent_path(), none)) {
    if (!file.path().filename().string().starts_with("libnvrtc-builtins.so.")) continue;
    if (auto library = DynamicLibrary::try_open({file.path().string()})) keep_open(std::move(*library));  // as NVRTC is
  }
}

const DynamicLibrary& nvrtc_library() {
  static std::mutex& mutex = *new std::mutex;
  static auto& prepared = *new std::set<std::string>;
  const DynamicLibrary& library = toolkit_library("nvrtc");
  check_version(library);
  const std::lock_guard lock(mutex);
  if (prepared.insert(library.name()).second) open_builtins(library.name());
  return library;
}

/// One compilation, ended with the object.
class Compilation {
 public:
  Compilation(const Nvrtc& api, const std::string& source) : api_(api) {
    check(api_.create(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr));
  }
  ~Compilation() { api_.destroy(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  std::string run(const std::vector<std::string>& options) {
    std::vector<const char*> arguments;
    for (const std::string& o : options) arguments.push_back(o.c_str());
    check(api_.compile(program_, static_cast<int>(arguments.size()), arguments.data()));
    size_t size = 0;
    check(api_.cubin_size(program_, &size));
    std::string cubin(size, '\0');
    check(api_.cubin(program_, cubin.data()));
    return cubin;
  }

 private:
  void check(int result) {
    if (result != 0) throw CompileError(fmt::format("NVRTC failed ({}): {}", api_.error_string(result), log()));
  }
  std::string log() {
    size_t size = 0;
    if (!program_ || api_.log_size(program_, &size) != 0 || size == 0) return "no log";
    std::string text(size, '\0');
    if (api_.log(program_, text.data()) != 0) return "no log";
    return text.substr(0, text.find('\0'));
  }

  const Nvrtc& api_;
  Program program_ = nullptr;
};

}  // namespace

std::string nvrtc_missing() {
  try {
    check_version(toolkit_library("nvrtc"));
    return {};
  } catch (const CompileError& e) {
    return e.what();
  }
}

std::string compile_cuda(const std::string& source, std::string_view arch) {
  const std::vector<std::string> options{fmt::format("--gpu-architecture={}", arch), "--std=c++17"};
  const std::string key = ContentHasher().add(kVersion).add(fmt::format("{}", fmt::join(options, " "))).add(source).finish().to_hex();
  if (std::optional<std::string> known = disk_cache().get("nvrtc_cubin", key)) return std::move(*known);
  ProfileSpan span("nvrtc", "compile");
  std::string cubin;
  try {
    const Nvrtc api(nvrtc_library());
    cubin = Compilation(api, source).run(options);
  } catch (const CompileError& e) {
    throw CompileError(fmt::format("{}\n{}", e.what(), source));
  }
  disk_cache().put("nvrtc_cubin", key, cubin);
  return cubin;
}

}  // namespace tinygrad::compiler
