#include "run/program.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

namespace tinygrad::apps {

std::string text_of(DType dtype) { return std::string(repr(dtype).substr(std::string_view("dtypes.").size())); }

bool has_fixed_row(const std::vector<DeclaredSize>& shape) {
  const auto last = std::find_if(shape.rbegin(), shape.rend(), [](const DeclaredSize& d) { return d.size != 1; });
  return last != shape.rend() && last->size > 1;
}

std::unique_ptr<Program> open_program(const std::string& path) {
  if (path.ends_with(".onnx")) return open_onnx(path);
  const std::string format(formats::open(path)->format());
  if (format == "onnx") return open_onnx(path);
  if (format == "torch.export") return open_exported(path);
  throw ValueError(
      fmt::format("{}: {} holds tensors and no graph, so there is nothing to run. Export the network by torch.export or as ONNX "
                  "(torch.onnx.export), or build it in C++ or Python and load these tensors into it (nn::state::load_state_dict); "
                  "`tg inspect` lists them",
                  path, format));
}

}  // namespace tinygrad::apps
