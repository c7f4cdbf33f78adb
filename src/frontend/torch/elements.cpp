#include "frontend/torch/elements.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/torch/strided.h"

namespace tinygrad::frontend::torch {

namespace {

constexpr int64_t most_elements = int64_t{1} << 60;

/// In elements of the tensor, from the beginning of the whole storage.
int64_t begin_of(const TensorRecord& t) {
  return t.offset + (t.storage->view ? t.storage->view->offset * t.storage->type->bytes / t.type->bytes : 0);
}

std::optional<int64_t> count_of(const Sizes& sizes) {
  int64_t count = 1;
  for (const int64_t s : sizes)
    if (__builtin_mul_overflow(count, s, &count)) return {};
  return count;
}

/// The elements follow one another in the order of the tensor.
bool is_row_major(const TensorRecord& t) {
  int64_t expected = 1;
  for (size_t i = t.sizes.size(); i-- > 0;) {
    if (t.sizes[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.sizes[i];
  }
  return true;
}

Tensor of_numbers(const TensorRecord* record, const std::vector<double>& list, const auto& values) {
  return record ? values(*record) : Tensor(std::span<const double>(list), {.device = "CPU"});
}

}  // namespace

std::span<std::byte> Elements::part_of_file(std::span<const std::byte> bytes) const {
  return bytes.empty() ? std::span<std::byte>{} : file_.bytes.subspan(static_cast<size_t>(bytes.data() - file_.bytes.data()), bytes.size());
}

void Elements::add(const Text* key, const archive::ZipFile& member) {
  // A checksum would read all of the file; PyTorch does not look at it, either, and may have left it out.
  if (!member.is_deflated)
    add(key, member.packed);
  else
    held_[key] = {{}, member};
}

void Elements::check(const std::string& name, const TensorRecord& t) const {
  const std::string field = fmt::format("'{}'", name);
  const Place place{file_.name, field, t.at};
  const Storage& storage = *t.storage;
  const auto held = held_.find(storage.key);
  if (held == held_.end()) place.fail(fmt::format("its storage '{}' is not in the file", storage.key->text));
  if (static_cast<uint64_t>(storage.bytes()) > held->second.size())
    place.fail(fmt::format("its storage '{}' has {} bytes, {} are in the file", storage.key->text, storage.bytes(), held->second.size()));
  if (storage.view && storage.view->offset * storage.type->bytes % t.type->bytes != 0)
    place.fail(fmt::format("a view of its storage begins within an element, at {}", storage.view->offset));
  const std::optional<int64_t> count = count_of(t.sizes), end = strided_end(t.offset, t.sizes, t.strides);
  const int64_t room = (storage.view ? storage.view->count * storage.type->bytes : storage.bytes()) / t.type->bytes;
  if (!count || *count > most_elements || !end || *end > room)
    place.fail(fmt::format("the sizes ({}), strides ({}) and offset {} do not fit a storage of {} elements", fmt::join(t.sizes, ", "),
                           fmt::join(t.strides, ", "), t.offset, room));
}

formats::TensorInfo Elements::describe(const std::string& name, const TensorRecord& t) const {
  formats::TensorInfo info{.name = name, .type = std::string(t.type->name), .dtype = t.type->dtype, .shape = t.sizes};
  if (!t.storage) {
    info.type = fmt::format("{} {}", t.layout, info.type);
    info.dtype.reset();
    return info;
  }
  if (t.quantizer && info.dtype) info.dtype = DType::float32;
  check(name, t);
  if (t.quantizer)
    for (const TensorRecord* of : {t.quantizer->scales, t.quantizer->zero_points})
      if (of) check(name, *of);
  const Held& held = held_.at(t.storage->key);
  const int64_t end = strided_end(t.offset, t.sizes, t.strides).value();
  info.bytes = end == 0 ? 0 : (end - t.offset) * t.type->bytes;
  if (!held.packed && !t.quantizer && end != 0 && is_row_major(t))
    info.offset = held.bytes.data() - file_.bytes.data() + begin_of(t) * t.type->bytes;
  return info;
}

Tensor Elements::vector_of(const Storage& storage, const ScalarType& type) const {
  const std::lock_guard lock(mutex_);
  Tensor& known = vectors_[{storage.key, &type}];
  if (known.defined()) return known;
  const Held& held = held_.at(storage.key);
  FileBytes file = file_;
  std::span<std::byte> bytes = held.bytes;
  if (held.packed) {
    const auto unpacked = std::make_shared<std::vector<std::byte>>(held.packed->unpack(file_.name));
    file = {unpacked, *unpacked, file_.name};
    bytes = *unpacked;
  }
  if (type.dtype == DType::bool_) {
    const auto bad = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
    if (bad != bytes.end())
      throw FormatError(fmt::format("{}: the storage '{}' has the boolean {} at its byte {}", file_.name, storage.key->text,
                                    static_cast<int>(*bad), bad - bytes.begin()));
  }
  const size_t count = bytes.size() / static_cast<size_t>(type.bytes);
  known = tensor_over(file, bytes.first(count * static_cast<size_t>(type.bytes)), type.dtype.value(), {static_cast<int64_t>(count)});
  return known;
}

Tensor Elements::values(const TensorRecord& t) const { return strided(vector_of(*t.storage, *t.type), begin_of(t), t.sizes, t.strides); }

Tensor Elements::dequantized(const TensorRecord& t) const {
  const Quantizer& q = *t.quantizer;
  const Tensor integers = values(t);
  if (!q.axis) return (integers.cast(DType::int32) - q.zero_point).cast(DType::float32) * static_cast<float>(q.scale);
  Sizes along(t.sizes.size(), 1);
  along[static_cast<size_t>(*q.axis)] = t.sizes[static_cast<size_t>(*q.axis)];
  const auto read = [&](const TensorRecord& record) { return values(record); };
  const Tensor scales = of_numbers(q.scales, q.scale_list, read).reshape(along);
  const Tensor zero_points = of_numbers(q.zero_points, q.zero_point_list, read).reshape(along);
  if (q.zero_points && is_float(zero_points.dtype()))  // of per_channel_affine_float_qparams
    return (integers.cast(DType::float32) - zero_points.cast(DType::float32)) * scales.cast(DType::float32);
  // PyTorch rounds once here, and a single scale before.
  return ((integers.cast(DType::int32) - zero_points.cast(DType::int32)).cast(DType::float64) * scales.cast(DType::float64))
      .cast(DType::float32);
}

Tensor Elements::tensor(const std::string& name, const TensorRecord& t) const {
  if (!t.storage)
    throw FormatError(fmt::format("{}: '{}' is a {} tensor of {}, which is not read", file_.name, name, t.layout, t.type->name));
  if (!t.type->dtype)
    throw FormatError(fmt::format("{}: '{}' has the element type {}, which no dtype holds", file_.name, name, t.type->name));
  return t.quantizer ? dequantized(t) : values(t);
}

}  // namespace tinygrad::frontend::torch
