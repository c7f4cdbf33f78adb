// Tensors as files of NumPy.
#include <fmt/core.h>

#include <array>
#include <set>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

#include "base/archive/zip_writer.h"
#include "frontend/npy/header.h"
#include "frontend/npy/npy.h"

namespace tinygrad::frontend {

void write_npz(std::span<const OutgoingTensor> tensors, const std::string& path, const TensorAt& values) {
  constexpr size_t most_letters = 65000;
  std::vector<std::string> headers;
  std::set<std::string_view> names;
  for (const auto& [name, type, shape] : tensors) {
    if (name.size() > most_letters)
      throw ValueError(fmt::format("npz_save: a name of {} bytes, expects at most {}", name.size(), most_letters));
    if (!names.insert(name).second) throw ValueError(fmt::format("npz_save: the name '{}' occurs twice", name));
    headers.push_back(make_npy_header(std::get<DType>(type), shape));
  }
  AtomicFile file(path);
  archive::ZipWriter zip([&](std::span<const std::byte> bytes) { write_in_pieces(file, bytes); });
  for (size_t i = 0; i < tensors.size(); ++i) {
    const HostElements elements(values(i));
    const std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span(headers[i])), elements.bytes};
    zip.add(tensors[i].name + ".npy", parts);
  }
  zip.finish();
  file.commit();
}

}  // namespace tinygrad::frontend

namespace tinygrad::formats {

void npy_save(const Tensor& tensor, const std::string& path) {
  const std::string header = frontend::make_npy_header(tensor.dtype(), tensor.shape());
  const frontend::HostElements elements(tensor);
  AtomicFile file(path);
  file.write(header);
  frontend::write_in_pieces(file, elements.bytes);
  file.commit();
}

void npz_save(std::span<const std::pair<std::string, Tensor>> tensors, const std::string& path) {
  std::vector<frontend::OutgoingTensor> entries;
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    entries.push_back({name, tensor.dtype(), tensor.shape()});
    values.push_back(tensor);
  }
  frontend::write_npz(entries, path, frontend::realized_together(std::move(values)));
}

void npz_save(const nn::state::StateDict& tensors, const std::string& path) {
  npz_save(std::vector<std::pair<std::string, Tensor>>(tensors.begin(), tensors.end()), path);
}

}  // namespace tinygrad::formats
