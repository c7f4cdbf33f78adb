#include "compiler/nvidia/assemble.h"

#include <cstdint>
#include <type_traits>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/disk_cache.h"
#include "base/hash.h"
#include "base/profile.h"
#include "base/subprocess.h"
#include "compiler/nvidia/toolkit.h"

namespace tinygrad::compiler {
namespace {

// Part of every cache key beside the architecture. It stands for the version of the assembler too, which a warm start does not know.
constexpr std::string_view kVersion = "cubin-1";

// nvJitLink.h, as much of it as is used: a handle is a pointer, results are 0 for success.
using Handle = void*;
constexpr int kInputPtx = 2;

struct NvJitLink {
  int (*create)(Handle*, uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add_data)(Handle, int, const void*, size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubin_size)(Handle, size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*error_log_size)(Handle, size_t*) = nullptr;
  int (*error_log)(Handle, char*) = nullptr;

  explicit NvJitLink(const DynamicLibrary& library) {
    const auto bind = [&]<class F>(F*& function, const char* name) { function = library.symbol<F>(name); };
    bind(create, "nvJitLinkCreate");
    bind(destroy, "nvJitLinkDestroy");
    bind(add_data, "nvJitLinkAddData");
    bind(complete, "nvJitLinkComplete");
    bind(cubin_size, "nvJitLinkGetLinkedCubinSize");
    bind(cubin, "nvJitLinkGetLinkedCubin");
    bind(error_log_size, "nvJitLinkGetErrorLogSize");
    bind(error_log, "nvJitLinkGetErrorLog");
  }
};

/// One link, ended with the object.
class Link {
 public:
  Link(const NvJitLink& api, std::string_view arch) : api_(api) {
    const std::string option = fmt::format("-arch={}", arch);
    const char* options[] = {option.c_str()};
    check(api_.create(&handle_, 1, options), "Create");
  }
  ~Link() { api_.destroy(&handle_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::string assemble(const std::string& source) {
    check(api_.add_data(handle_, kInputPtx, source.data(), source.size() + 1, "kernel.ptx"), "AddData");  // with the 0 at its end
    check(api_.complete(handle_), "Complete");
    size_t size = 0;
    check(api_.cubin_size(handle_, &size), "GetLinkedCubinSize");
    std::string cubin(size, '\0');
    check(api_.cubin(handle_, cubin.data()), "GetLinkedCubin");
    return cubin;
  }

 private:
  void check(int result, std::string_view step) {
    if (result != 0) throw CompileError(fmt::format("nvJitLink{} failed ({}): {}", step, result, log()));
  }
  std::string log() {
    size_t size = 0;
    if (!handle_ || api_.error_log_size(handle_, &size) != 0 || size == 0) return "no log";
    std::string text(size, '\0');
    if (api_.error_log(handle_, text.data()) != 0) return "no log";
    return text.substr(0, text.find('\0'));
  }

  const NvJitLink& api_;
  Handle handle_ = nullptr;
};

std::string with_ptxas(const std::string& source, std::string_view arch) {
  const std::string program = toolkit_program("ptxas");
  if (program.empty()) throw CompileError(ptx_assembler_missing());
  ProcessResult result = run_process({program, fmt::format("-arch={}", arch), "-O3", "-o", "/dev/stdout", "-"}, source);
  if (result.exit_code != 0 || result.out.empty())
    throw CompileError(fmt::format("{} failed ({}): {}", program, result.exit_code, result.err));
  return std::move(result.out);
}

const DynamicLibrary* find_nvjitlink(std::string* why = nullptr) {
  try {
    return &toolkit_library("nvJitLink");
  } catch (const CompileError& e) {
    if (why) *why = e.what();
    return nullptr;
  }
}

}  // namespace

std::string ptx_assembler_missing() {
  std::string why;
  if (find_nvjitlink(&why) || !toolkit_program("ptxas").empty()) return {};
  return fmt::format("PTX: neither nvJitLink nor ptxas to assemble kernels with; {}", why);
}

std::string assemble_ptx(const std::string& source, std::string_view arch) {
  const std::string key = ContentHasher().add(kVersion).add(arch).add(source).finish().to_hex();
  if (std::optional<std::string> known = disk_cache().get("cubin", key)) return std::move(*known);
  ProfileSpan span("ptx", "compile");
  std::string cubin;
  try {
    const DynamicLibrary* library = find_nvjitlink();
    cubin = library ? Link(NvJitLink(*library), arch).assemble(source) : with_ptxas(source, arch);
  } catch (const CompileError& e) {
    throw CompileError(fmt::format("{}\n{}", e.what(), source));
  }
  disk_cache().put("cubin", key, cubin);
  return cubin;
}

}  // namespace tinygrad::compiler
