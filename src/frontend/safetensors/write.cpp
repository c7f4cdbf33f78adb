#include "frontend/safetensors/write.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/safetensors/header.h"

namespace tinygrad::frontend {

using nn::state::SafeMetadata;

namespace {

/// The order of their elements in a file: the widest first, so that all are aligned.
std::vector<size_t> order_of_data(std::span<const OutgoingTensor> tensors) {
  std::vector<size_t> out(tensors.size());
  std::iota(out.begin(), out.end(), size_t{0});
  std::ranges::stable_sort(out, std::greater(), [&](size_t i) { return itemsize(std::get<DType>(tensors[i].type)); });
  return out;
}

}  // namespace

void write_safetensors(std::span<const OutgoingTensor> tensors, const std::string& path, const std::map<std::string, std::string>& metadata,
                       const TensorAt& values) {
  SafeMetadata contents{.metadata = metadata};
  for (const OutgoingTensor& tensor : tensors) {
    const std::string& name = tensor.name;
    if (name == "__metadata__") throw ValueError("safe_save: no tensor can be named __metadata__");
    if (!contents.tensors.try_emplace(name).second) throw ValueError(fmt::format("safe_save: the name '{}' occurs twice", name));
    contents.names.push_back(name);
  }
  const std::vector<size_t> order = order_of_data(tensors);
  int64_t end = 0;
  for (const size_t i : order) {
    const auto dtype = std::get<DType>(tensors[i].type);
    const int64_t begin = end;
    end += tensors[i].bytes();
    contents.tensors[tensors[i].name] = {.dtype = dtype, .shape = tensors[i].shape, .begin = begin, .end = end};
  }
  const std::string header = make_safetensors_header(contents);
  AtomicFile file(path);
  file.write(header);
  for (const size_t i : order) write_in_pieces(file, HostElements(values(i)).bytes);
  file.commit();
}

}  // namespace tinygrad::frontend
