// Tensors from and to safetensors files.
#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>
#include <tinygrad/state.h>

#include "frontend/file_bytes.h"
#include "frontend/safetensors/header.h"
#include "frontend/safetensors/write.h"
#include "tensor/storage.h"

namespace tinygrad::nn::state {

using frontend::FileBytes;

namespace {

StateDict load(const FileBytes& file) {
  const SafeMetadata header = frontend::parse_safetensors_header(file.bytes, file.bytes.size(), file.name);
  const std::span<std::byte> data = file.bytes.subspan(static_cast<size_t>(header.data_start));
  StateDict out;
  for (const auto& [name, e] : header.tensors) {
    const auto bytes = data.subspan(static_cast<size_t>(e.begin), static_cast<size_t>(e.end - e.begin));
    const DType dtype = frontend::safetensors_dtype(e, name, file.name);
    if (dtype == DType::bool_) frontend::check_bools(bytes, name, file.name);
    out.emplace(name, frontend::tensor_over(file, bytes, dtype, e.shape));
  }
  return out;
}

/// A vector of bytes that nothing but copies can read: a file, as Tensor::from_file() gives it.
bool is_on_storage(const Tensor& bytes) { return tensor::is_storage(Symbol(bytes.device())); }

/// Reads nothing but the header.
SafeMetadata header_on_storage(const Tensor& file) {
  const std::string name = file.to_string();
  const auto size = static_cast<size_t>(file.numel());
  const auto up_to = [&](size_t end) { return FileBytes::of(file[{Slice{.stop = static_cast<int64_t>(end)}}]); };
  const size_t data = frontend::safetensors_data_start(up_to(std::min<size_t>(size, 8)).bytes, size, name);
  return frontend::parse_safetensors_header(up_to(data).bytes, size, name);
}

/// Views of a vector of bytes on storage.
StateDict load_on_storage(const Tensor& file) {
  const SafeMetadata header = header_on_storage(file);
  StateDict out;
  for (const auto& [name, e] : header.tensors) {
    const Tensor bytes = file[{Slice{.start = header.data_start + e.begin, .stop = header.data_start + e.end}}];
    const DType dtype = frontend::safetensors_dtype(e, name, file.to_string());
    if (dtype == DType::bool_) frontend::check_bools(FileBytes::of(bytes).bytes, name, file.to_string());
    out.emplace(name, bytes.bitcast(dtype).reshape(e.shape));
  }
  return out;
}

}  // namespace

SafeMetadata safe_load_metadata(const std::string& path) {
  const FileBytes file = FileBytes::map(path);
  return frontend::parse_safetensors_header(file.bytes, file.bytes.size(), path);
}

SafeMetadata safe_load_metadata(const Tensor& bytes) {
  if (is_on_storage(bytes)) return header_on_storage(bytes);
  const FileBytes file = FileBytes::of(bytes);
  return frontend::parse_safetensors_header(file.bytes, file.bytes.size(), file.name);
}

StateDict safe_load(const std::string& path) { return load(FileBytes::map(path)); }
StateDict safe_load(const Tensor& bytes) { return is_on_storage(bytes) ? load_on_storage(bytes) : load(FileBytes::of(bytes)); }

void safe_save(const StateDict& tensors, const std::string& path, const std::map<std::string, std::string>& metadata) {
  safe_save(std::vector<std::pair<std::string, Tensor>>(tensors.begin(), tensors.end()), path, metadata);
}

void safe_save(std::span<const std::pair<std::string, Tensor>> tensors, const std::string& path,
               const std::map<std::string, std::string>& metadata) {
  std::vector<frontend::OutgoingTensor> entries;
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    if (!frontend::safetensors_name(tensor.dtype()))
      throw DTypeError(fmt::format("safe_save: '{}' is {}, which safetensors lacks; cast it", name, tensor.to_string()));
    entries.push_back({name, tensor.dtype(), tensor.shape()});
    values.push_back(tensor);
  }
  frontend::write_safetensors(entries, path, metadata, frontend::realized_together(std::move(values)));
}

}  // namespace tinygrad::nn::state
