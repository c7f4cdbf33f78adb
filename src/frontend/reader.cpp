// What readers of all formats have in common.
#include <fmt/core.h>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

namespace tinygrad::formats {

std::optional<QuantizedTensor> Reader::quantized(size_t place) const {
  tensors_at(place);
  return {};
}

const TensorInfo& Reader::tensors_at(size_t place) const {
  const std::vector<TensorInfo>& all = tensors();
  if (place >= all.size()) throw IndexError(fmt::format("{}: a file of {} tensors has none at place {}", format(), all.size(), place));
  return all[place];
}

}  // namespace tinygrad::formats
