#include "compiler/nvidia/toolkit.h"

#include <unistd.h>

#include <map>
#include <mutex>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/log.h"
#include "base/options.h"
#include "base/subprocess.h"

namespace tinygrad::compiler {
namespace {

struct OpenLibraries {
  std::mutex mutex;
  std::map<std::string, DynamicLibrary, std::less<>> by_name;  // by folder and stem
};

// Never destroyed: threads that compile may end late.
OpenLibraries& libraries() {
  static OpenLibraries& l = *new OpenLibraries;
  return l;
}

constexpr std::string_view kUsualFolder = "/usr/local/cuda";

/// Where the toolkit may be.
std::string folder() {
  const std::string& chosen = current_options().cuda_path;
  return chosen.empty() ? std::string(kUsualFolder) : chosen;
}

/// What dlopen() is asked for, in this order.
std::vector<std::string> library_names(std::string_view stem) {
  std::vector<std::string> names;
  const auto add_versions = [&](const std::string& where) {
    for (const std::string_view version : {".13", ".12"}) names.push_back(fmt::format("{}lib{}.so{}", where, stem, version));
  };
  if (current_options().cuda_path.empty()) add_versions("");
  for (const std::string_view lib : {"/lib64/", "/lib/"}) add_versions(folder() + std::string(lib));
  return names;
}

DynamicLibrary open_library(std::string_view stem) {
  std::string first_reason, reason;
  for (const std::string& name : library_names(stem)) {
    if (auto library = DynamicLibrary::try_open({name}, &reason)) {
      if (log_enabled(1)) log_line(fmt::format("opened {}", library->name()));
      return std::move(*library);
    }
    if (first_reason.empty()) first_reason = reason;
  }
  throw CompileError(fmt::format("lib{}: {} and other places. {}", stem, first_reason, how_to_install_toolkit()));
}

}  // namespace

const DynamicLibrary& toolkit_library(std::string_view stem) {
  const std::string key = fmt::format("{}:{}", current_options().cuda_path, stem);
  std::lock_guard lock(libraries().mutex);
  auto found = libraries().by_name.find(key);
  if (found == libraries().by_name.end()) found = libraries().by_name.emplace(key, open_library(stem)).first;
  return found->second;
}

std::string toolkit_program(std::string_view name) {
  if (current_options().cuda_path.empty())
    if (std::string path = find_program(name); !path.empty()) return path;
  const std::string path = fmt::format("{}/bin/{}", folder(), name);
  return ::access(path.c_str(), X_OK) == 0 ? path : std::string();
}

std::string how_to_install_toolkit() {
  return "Install the CUDA toolkit of version 12.4 or newer (`pip install nvidia-cuda-nvrtc nvidia-nvjitlink nvidia-cuda-nvcc` has its "
         "compilers) and set CUDA_PATH to its folder";
}

}  // namespace tinygrad::compiler
