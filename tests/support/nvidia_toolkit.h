#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include <tinygrad/context.h>

namespace tinygrad::test {

/// The folder of NVIDIA's compilers in the project's virtual environment; empty where `tools/venv --cuda` has not installed them.
inline std::string installed_nvidia_toolkit() {
  namespace fs = std::filesystem;
  const fs::path lib = fs::path(TINYGRAD_DATA_DIR) / ".." / "build" / "venv" / "lib";
  std::error_code none;
  for (const auto& python : fs::directory_iterator(lib, none))
    if (const fs::path folder = python.path() / "site-packages" / "nvidia" / "cu13"; fs::exists(folder)) return fs::canonical(folder);
  return {};
}

/// While it lives those compilers are used, if they are there, and nothing that they made before.
class NvidiaToolkit {
 public:
  NvidiaToolkit() {
    if (const std::string folder = installed_nvidia_toolkit(); !folder.empty()) toolkit_.emplace(ContextArgs{.cuda_path = folder});
  }

 private:
  Context uncached_{{.ccache = false}};
  std::optional<Context> toolkit_;
};

}  // namespace tinygrad::test
