#include "frontend/outgoing.h"

#include <algorithm>
#include <utility>

#include <tinygrad/helpers.h>

namespace tinygrad::frontend {

int64_t OutgoingTensor::bytes() const {
  const auto* format = std::get_if<formats::BlockFormat>(&type);
  const int64_t elements = format ? formats::layout_of(*format).elements : 1;
  int64_t out = format ? formats::layout_of(*format).bytes : static_cast<int64_t>(itemsize(std::get<DType>(type)));
  for (const int64_t size : shape) out *= size;
  return out / elements;
}

TensorAt realized_together(std::vector<Tensor> tensors) {
  return [tensors = std::move(tensors), is_realized = false](size_t place) mutable {
    if (!std::exchange(is_realized, true)) Tensor::realize(tensors);
    return tensors[place];
  };
}

void write_in_pieces(AtomicFile& file, std::span<const std::byte> bytes) {
  for (constexpr size_t most = size_t{64} << 20; !bytes.empty(); bytes = bytes.subspan(std::min(most, bytes.size()))) {
    check_interrupt();
    file.write(bytes.first(std::min(most, bytes.size())));
  }
}

HostElements::HostElements(const Tensor& tensor)
    : memory(tensor.to("CPU").host_memory()), bytes(memory.get(), static_cast<size_t>(tensor.nbytes())) {}

}  // namespace tinygrad::frontend
