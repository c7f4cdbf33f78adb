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

/// Folders of the toolkit, the one asked for first.
std::vector<std::string> folders() {
  std::vector<std::string> out;
  if (const std::string& chosen = current_options().cuda_path; !chosen.empty()) out.push_back(chosen);
  out.emplace_back(kUsualFolder);
  return out;
}

/// What dlopen() is asked for, in this order.
std::vector<std::string> library_names(std::string_view stem) {
  std::vector<std::string> names;
  const auto add_versions = [&](const std::string& folder) {
    for (const std::string_view version : {".13", ".12"}) names.push_back(fmt::format("{}lib{}.so{}", folder, stem, version));
  };
  bool system = current_options().cuda_path.empty();
  if (system) add_versions("");
  for (const std::string& folder : folders()) {
    for (const std::string_view lib : {"/lib64/", "/lib/"}) add_versions(folder + std::string(lib));
    if (!system) add_versions(""), system = true;
  }
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
  const auto in = [&](const std::string& folder) {
    const std::string path = fmt::format("{}/bin/{}", folder, name);
    return ::access(path.c_str(), X_OK) == 0 ? path : std::string();
  };
  if (const std::string& chosen = current_options().cuda_path; !chosen.empty())
    if (std::string path = in(chosen); !path.empty()) return path;
  if (std::string path = find_program(name); !path.empty()) return path;
  return in(std::string(kUsualFolder));
}

std::string toolkit_headers() {
  for (const std::string& folder : folders())
    if (const std::string path = folder + "/include"; ::access((path + "/cuda_fp16.h").c_str(), R_OK) == 0) return path;
  return {};
}

std::string how_to_install_toolkit() {
  return "Install the CUDA toolkit of version 12.4 or newer (`pip install nvidia-cuda-nvrtc nvidia-nvjitlink nvidia-cuda-nvcc` has its "
         "compilers) and set CUDA_PATH to its folder";
}

}  // namespace tinygrad::compiler
