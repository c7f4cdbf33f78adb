#include "frontend/file_bytes.h"

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/file.h"

namespace tinygrad::frontend {

FileBytes FileBytes::map(const std::string& path) {
  const auto file = std::make_shared<MappedFile>(path, MappedFile::Access::copy_on_write);
  return {file, {file->writable_data(), file->size()}, path};
}

FileBytes FileBytes::of(const Tensor& tensor) {
  if (tensor.dtype() != DType::uint8) throw DTypeError(fmt::format("a file's bytes: got {}, expects uint8", tensor.to_string()));
  if (tensor.ndim() != 1) throw ShapeError(fmt::format("a file's bytes: got {}, expects one axis", tensor.to_string()));
  const std::shared_ptr<std::byte> memory = tensor.to("CPU").host_memory();
  return {memory, {memory.get(), static_cast<size_t>(tensor.numel())}, tensor.to_string()};
}

Tensor tensor_over(const FileBytes& file, std::span<std::byte> bytes, DType dtype, const Sizes& shape) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % itemsize(dtype) != 0) return Tensor(bytes, dtype, shape, {.device = "CPU"});
  return Tensor::from_blob(bytes.data(), shape, {.dtype = dtype, .device = "CPU"}, file.owner);
}

}  // namespace tinygrad::frontend
