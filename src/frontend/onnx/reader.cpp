// The weights of a model, as those of any other model file.
#include "frontend/onnx/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "frontend/onnx/tensor_data.h"

namespace tinygrad::frontend {

namespace {

using namespace onnx;
using formats::TensorInfo;

/// The dtype that has all values of the type; elements that are numbers of more than one float, or only bits, have none.
std::optional<DType> dtype_to_read(ElementType type) {
  const bool is_complex = type == ElementType::complex64 || type == ElementType::complex128;
  const bool is_bits = is_low_bit(type) && is_float_type(type);
  const DType dtype = dtype_of(type);
  return is_complex || is_bits || dtype == DType::void_ ? std::nullopt : std::optional(dtype);
}

class OnnxReader final : public formats::Reader {
 public:
  OnnxReader(const FileBytes& file, const std::string& folder) : files_(Files::of(file)) {
    files_.folder = folder;
    model_ = proto::read_model(files_.source, {files_.source.begin, files_.file.bytes.size()});
    for (const auto& [name, value] : model_.metadata) metadata_.push_back({name, {value}});
    for (const auto& [domain, version] : model_.opsets) metadata_.push_back({"opset." + domain, {version}});
    for (const proto::TensorProto& t : model_.graph.initializers) tensors_.push_back(info_of(t));
    for (const proto::SparseTensorProto& t : model_.graph.sparse_initializers) {
      tensors_.push_back({t.values.name, "sparse " + std::string(name(t.values.type)), dtype_to_read(t.values.type), t.dims});
      tensors_.back().bytes = stored_bytes(files_, t.values) + stored_bytes(files_, t.indices);
    }
  }

  std::string_view format() const override { return "onnx"; }
  const formats::Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  Tensor tensor(size_t place) const override {
    const TensorInfo& info = tensors_at(place);
    if (!info.dtype)
      throw FormatError(fmt::format("{}: the tensor '{}' is {}, for which there is no dtype", files_.source.name, info.name, info.type));
    const std::vector<proto::TensorProto>& all = model_.graph.initializers;
    const std::lock_guard lock(mutex_);
    const Value value =
        place < all.size() ? read_value(files_, all[place]) : read_value(files_, model_.graph.sparse_initializers[place - all.size()]);
    return value.tensor().to("CPU");
  }

 private:
  TensorInfo info_of(const proto::TensorProto& t) const {
    TensorInfo info{t.name, std::string(name(t.type)), dtype_to_read(t.type), t.dims};
    if (t.type == ElementType::string || t.type == ElementType::undefined) return info;
    info.bytes = stored_bytes(files_, t);
    if (t.raw && !t.is_external && info.bytes > 0) info.offset = t.raw->data() - files_.source.begin;
    return info;
  }

  mutable std::mutex mutex_;
  mutable Files files_;  ///< opens files of external data as they are needed
  proto::Model model_;
  formats::Metadata metadata_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

std::unique_ptr<formats::Reader> open_onnx(const FileBytes& file, const std::string& folder) {
  return std::make_unique<OnnxReader>(file, folder);
}

bool is_onnx(std::span<const std::byte> bytes) {
  // The fields of ModelProto come in the order of their numbers: the first is ir_version, the second a text, a number or the graph.
  constexpr std::byte ir_version{0x08}, newest{64};
  constexpr std::array second{std::byte{0x12}, std::byte{0x1a}, std::byte{0x22}, std::byte{0x28},
                              std::byte{0x32}, std::byte{0x3a}, std::byte{0x42}};
  return bytes.size() > 2 && bytes[0] == ir_version && bytes[1] > std::byte{0} && bytes[1] < newest &&
         std::ranges::find(second, bytes[2]) != second.end();
}

}  // namespace tinygrad::frontend
