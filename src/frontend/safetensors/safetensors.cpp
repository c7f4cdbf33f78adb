// Tensors from and to safetensors files.
#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>
#include <tinygrad/state.h>

#include "base/file.h"
#include "frontend/file_bytes.h"
#include "frontend/safetensors/header.h"
#include "tensor/storage.h"

namespace tinygrad::nn::state {

using frontend::FileBytes;

namespace {

/// Anything but 0 and 1 is no bool, and arithmetic on it means nothing.
void check_bools(std::span<const std::byte> bytes, const std::string& tensor, const std::string& file) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end()) throw FormatError(fmt::format("{}: '{}' has the boolean {}", file, tensor, static_cast<int>(*bad)));
}

StateDict load(const FileBytes& file) {
  const SafeMetadata header = frontend::parse_safetensors_header(file.bytes, file.bytes.size(), file.name);
  const std::span<std::byte> data = file.bytes.subspan(static_cast<size_t>(header.data_start));
  StateDict out;
  for (const auto& [name, e] : header.tensors) {
    const auto bytes = data.subspan(static_cast<size_t>(e.begin), static_cast<size_t>(e.end - e.begin));
    if (e.dtype == DType::bool_) check_bools(bytes, name, file.name);
    out.emplace(name, frontend::tensor_over(file, bytes, e.dtype, e.shape));
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
    if (e.dtype == DType::bool_) check_bools(FileBytes::of(bytes).bytes, name, file.to_string());
    out.emplace(name, bytes.bitcast(e.dtype).reshape(e.shape));
  }
  return out;
}

/// The order of their elements in a file: the widest first, so that all are aligned.
std::vector<const std::pair<std::string, Tensor>*> order_of_data(std::span<const std::pair<std::string, Tensor>> tensors) {
  std::vector<const std::pair<std::string, Tensor>*> out;
  for (const auto& item : tensors) out.push_back(&item);
  std::ranges::stable_sort(out, std::greater(), [](const auto* item) { return item->second.element_size(); });
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
  SafeMetadata contents{.metadata = metadata};
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") throw ValueError("safe_save: no tensor can be named __metadata__");
    if (!contents.tensors.try_emplace(name).second) throw ValueError(fmt::format("safe_save: the name '{}' occurs twice", name));
    contents.names.push_back(name);
  }
  std::vector<Tensor> values;
  int64_t end = 0;
  for (const auto* item : order_of_data(tensors)) {
    const auto& [name, tensor] = *item;
    if (!frontend::safetensors_name(tensor.dtype()))
      throw DTypeError(fmt::format("safe_save: '{}' is {}, which safetensors lacks; cast it", name, tensor.to_string()));
    const int64_t begin = end;
    end += tensor.nbytes();
    contents.tensors[name] = {tensor.dtype(), tensor.shape(), begin, end};
    values.push_back(tensor);
  }
  const std::string header = frontend::make_safetensors_header(contents);
  Tensor::realize(values);
  AtomicFile file(path);
  file.write(header);
  for (const Tensor& t : values) {
    const Tensor here = t.to("CPU");
    const std::shared_ptr<std::byte> memory = here.host_memory();
    std::span<const std::byte> rest(memory.get(), static_cast<size_t>(t.nbytes()));
    for (constexpr size_t most = size_t{64} << 20; !rest.empty(); rest = rest.subspan(std::min(most, rest.size()))) {
      check_interrupt();
      file.write(rest.first(std::min(most, rest.size())));
    }
  }
  file.commit();
}

}  // namespace tinygrad::nn::state
