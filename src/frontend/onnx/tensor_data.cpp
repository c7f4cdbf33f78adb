#include "frontend/onnx/tensor_data.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <filesystem>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>

namespace tinygrad::onnx {

namespace fs = std::filesystem;
using proto::fail;
using proto::Numbers;
using proto::TensorProto;

namespace {

constexpr size_t most_host_bytes = 1 << 20;       // of what is copied to be known on the host, whatever its alignment
constexpr int64_t most_dense = int64_t{1} << 25;  // bytes that a sparse tensor may have with its zeros

std::string shown(const TensorProto& t) { return fmt::format("'{}', {} ({})", t.name, name(t.type), fmt::join(t.dims, ", ")); }

[[noreturn]] void fail_count(const Files& files, const TensorProto& t, const char* what, int64_t got, int64_t expected) {
  fail(files.source, t.message, fmt::format("the tensor {} has {} {}, expected {}", shown(t), got, what, expected));
}

/// The least significant bits first, as many as `bits` an element.
std::vector<std::byte> unpacked(std::span<const std::byte> packed, size_t count, int bits, bool is_signed_type) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = i * size_t(bits);
    uint32_t word = uint32_t(packed[at / 8]);
    if (at / 8 + 1 < packed.size()) word |= uint32_t(packed[at / 8 + 1]) << 8;
    uint32_t element = (word >> (at % 8)) & ((1U << bits) - 1);
    if (is_signed_type && (element >> (bits - 1)) != 0) element |= ~((1U << bits) - 1);
    out[i] = std::byte(element & 255);
  }
  return out;
}

/// The elements of 4 or 2 bits, as operations on the packed ones.
Tensor unpacked(const Tensor& packed, const TensorProto& t) {
  const int bits = bits_of(t.type), per_byte = 8 / bits;
  std::vector<Tensor> parts;
  for (int i = 0; i < per_byte; ++i) parts.push_back((packed >> (i * bits)) & ((1 << bits) - 1));
  Tensor x = Tensor::stack(parts, 1).flatten();
  if (x.numel() != t.count) x = x.shrink_to({t.count});
  if (is_signed(dtype_of(t.type))) x = ((x ^ (1 << (bits - 1))).cast(DType::int8) - (1 << (bits - 1)));
  return x.reshape(t.dims);
}

/// Over bytes of a file, known on the host as long as they are few.
Value over_bytes(const frontend::FileBytes& file, std::span<std::byte> bytes, const TensorProto& t) {
  if (is_low_bit(t.type) && t.type != ElementType::float8e8m0) {
    const bool fits_host = t.count <= int64_t(most_host_bytes);
    if (fits_host || 8 % bits_of(t.type) != 0)
      return host_value(
          HostArray::of_bytes(t.type, t.dims, unpacked(bytes, size_t(t.count), bits_of(t.type), is_signed(dtype_of(t.type)))));
    return {unpacked(frontend::tensor_over(file, bytes, DType::uint8, {int64_t(bytes.size())}).to(default_device()), t), t.type};
  }
  if (t.type == ElementType::bool_)
    for (const std::byte& b : bytes)
      if (b > std::byte{1})
        throw FormatError(
            fmt::format("{}: byte {}: the tensor {} has the boolean {}", file.name, &b - file.bytes.data(), shown(t), int(b)));
  const DType dtype = dtype_of(t.type);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % itemsize(dtype) != 0 || bytes.size() <= most_host_bytes / 256)
    return host_value(HostArray::of_bytes(t.type, t.dims, bytes));
  Sizes shape = t.dims;
  if (t.type == ElementType::complex64 || t.type == ElementType::complex128) shape.push_back(2);
  Value v(frontend::tensor_over(file, bytes, dtype, shape).to(default_device()), t.type);
  detail::ValueAccess::set_host(v, {t.type, t.dims, std::shared_ptr<const std::byte>(file.owner, bytes.data()), bytes.size()});
  return v;
}

/// Which field holds the elements where raw_data does not, and how wide they are there.
struct Field {
  uint32_t tag;
  Numbers form;
};
Field field_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64: return {4, Numbers::float32};
    case ElementType::float64:
    case ElementType::complex128: return {10, Numbers::float64};
    case ElementType::int64: return {7, Numbers::varint};
    case ElementType::uint32:
    case ElementType::uint64: return {11, Numbers::varint};
    default: return {5, Numbers::varint};
  }
}

/// Elements in the fields of the message, each of which is at least a byte there.
Value of_fields(Files& files, const TensorProto& t) {
  const Field field = field_of(t.type);
  const bool is_packed = bits_of(t.type) == 4 || bits_of(t.type) == 2;
  const bool is_complex = t.type == ElementType::complex64 || t.type == ElementType::complex128;
  const size_t size = is_packed ? 1 : itemsize(dtype_of(t.type));
  const int64_t expected = is_packed ? stored_bytes(files, t) : is_complex ? 2 * t.count : t.count;
  if (expected > int64_t(t.message.size())) fail_count(files, t, "bytes for its message", int64_t(t.message.size()), expected);
  std::vector<std::byte> bytes;
  proto::each_number(files.source, t.message, field.tag, field.form, [&](uint64_t bits) {
    const auto* begin = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), begin, begin + size);
  });
  if (int64_t(bytes.size() / size) != expected) fail_count(files, t, "numbers", int64_t(bytes.size() / size), expected);
  if (is_packed) bytes = unpacked(bytes, size_t(t.count), bits_of(t.type), is_signed(dtype_of(t.type)));
  if (t.type == ElementType::bool_)
    for (std::byte b : bytes)
      if (b > std::byte{1}) fail(files.source, t.message, fmt::format("the tensor {} has the boolean {}", shown(t), int(b)));
  return host_value(HostArray::of_bytes(t.type, t.dims, bytes));
}

Value of_texts(const Files& files, const TensorProto& t) {
  Strings out{.shape = t.dims};
  proto::each_text(files.source, t.message, 6, [&](std::string_view text) { out.values.emplace_back(text); });
  if (int64_t(out.values.size()) != t.count) fail_count(files, t, "texts", int64_t(out.values.size()), t.count);
  return out;
}

int64_t number_of(const Files& files, const TensorProto& t, const std::string& key) {
  const auto found = t.external.find(key);
  if (found == t.external.end()) return -1;
  int64_t number = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, number);
  if (error != std::errc() || stop != end || number < 0)
    fail(files.source, t.message, fmt::format("the tensor {} has the {} '{}' in its file", shown(t), key, found->second));
  return number;
}

Value of_external(Files& files, const TensorProto& t) {
  const frontend::FileBytes& file = files.external_file(t);
  const int64_t expected = stored_bytes(files, t), offset = std::max<int64_t>(number_of(files, t, "offset"), 0);
  const int64_t length = number_of(files, t, "length"), size = int64_t(file.bytes.size());
  if (length >= 0 && length != expected) fail_count(files, t, "bytes in its file", length, expected);
  if (offset > size || expected > size - offset)
    fail(files.source, t.message,
         fmt::format("the tensor {} lies in the bytes {} to {} of {}, which has {}", shown(t), offset,
                     offset + std::min(expected, std::numeric_limits<int64_t>::max() - offset), file.name, size));
  return over_bytes(file, file.bytes.subspan(size_t(offset), size_t(expected)), t);
}

bool leaves_folder(const fs::path& path) {
  if (path.empty() || path.is_absolute()) return true;
  return std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

}  // namespace

int64_t stored_bytes(const Files& files, const TensorProto& t) {
  int64_t bits = 0;
  if (__builtin_mul_overflow(t.count, int64_t(bits_of(t.type)), &bits) || bits > std::numeric_limits<int64_t>::max() - 8)
    fail(files.source, t.message, fmt::format("the tensor {} has more bytes than 64 bits count", shown(t)));
  const int64_t expected = (bits + 7) / 8;
  if (t.raw && !t.is_external && int64_t(t.raw->size()) != expected) fail_count(files, t, "bytes", int64_t(t.raw->size()), expected);
  return expected;
}

Files Files::of(frontend::FileBytes file) {
  Files out;
  out.source = {reinterpret_cast<const char*>(file.bytes.data()), file.name};
  out.file = std::move(file);
  return out;
}

const frontend::FileBytes& Files::external_file(const TensorProto& t) {
  const auto found = t.external.find("location");
  if (found == t.external.end()) fail(source, t.message, fmt::format("the tensor {} lacks the location of its data", shown(t)));
  const std::string& location = found->second;
  if (const auto known = external.find(location); known != external.end()) return known->second;
  if (folder.empty())
    fail(source, t.message, fmt::format("the tensor {} lies in the file '{}', and the model in none", shown(t), location));
  if (location.find('\0') != std::string::npos || leaves_folder(location))
    fail(source, t.message, fmt::format("the tensor {} lies in '{}', expected a path below the model's folder", shown(t), location));
  fs::path at = folder;
  std::error_code error;
  for (const fs::path& part : fs::path(location)) {
    at /= part;
    if (!follow_links && fs::is_symlink(fs::symlink_status(at, error)))
      fail(source, t.message,
           fmt::format("the tensor {} lies in '{}', where '{}' is a link; LoadOptions::follow_links allows them", shown(t), location,
                       part.string()));
  }
  if (fs::is_other(fs::status(at, error)))
    fail(source, t.message, fmt::format("the tensor {} lies in '{}', which is no file", shown(t), location));
  return external.emplace(location, frontend::FileBytes::map(at.string())).first->second;
}

Value read_value(Files& files, const TensorProto& t) {
  if (t.type == ElementType::string) {
    if (t.raw || t.is_external) fail(files.source, t.message, fmt::format("the tensor {} has texts as raw data", shown(t)));
    return of_texts(files, t);
  }
  if (t.is_external) return of_external(files, t);
  if (!t.raw) return of_fields(files, t);
  const auto bytes = size_t(stored_bytes(files, t)), at = size_t(t.raw->data() - files.source.begin);
  return over_bytes(files.file, files.file.bytes.subspan(bytes == 0 ? 0 : at, bytes), t);
}

Value read_value(Files& files, const proto::SparseTensorProto& t) {
  const Value values = read_value(files, t.values), indices = read_value(files, t.indices);
  const HostArray *elements = host_of(values), *places = host_of(indices);
  if (!elements || !places || places->type != ElementType::int64)
    fail(files.source, t.values.message, fmt::format("the sparse tensor '{}' is not supported", t.values.name));
  const size_t size = itemsize(elements->dtype());
  int64_t count = 1;
  for (int64_t s : t.dims)
    if (__builtin_mul_overflow(count, s, &count) || count > most_dense / int64_t(size))
      fail(files.source, t.values.message,
           fmt::format("the sparse tensor '{}' has the shape ({})", t.values.name, fmt::join(t.dims, ", ")));
  std::vector<std::byte> bytes(size_t(count) * size);
  const std::vector<int64_t> flat = places->integers();
  const int64_t given = elements->numel(), axes = int64_t(t.dims.size());
  const bool is_flat = places->shape.size() == 1;
  if (int64_t(flat.size()) != (is_flat ? given : given * axes))
    fail(files.source, t.indices.message,
         fmt::format("the sparse tensor '{}' has {} indices for {} values", t.values.name, flat.size(), given));
  for (int64_t i = 0; i < given; ++i) {
    int64_t at = is_flat ? flat[size_t(i)] : 0;
    for (int64_t a = 0; a < axes && !is_flat; ++a) {
      const int64_t index = flat[size_t(i * axes + a)];
      if (index < 0 || index >= t.dims[size_t(a)]) at = -1;
      if (at >= 0) at = at * t.dims[size_t(a)] + index;
    }
    if (at < 0 || at >= count)
      fail(files.source, t.indices.message, fmt::format("the sparse tensor '{}' has an index outside of it", t.values.name));
    std::memcpy(bytes.data() + size_t(at) * size, elements->bytes.get() + size_t(i) * size, size);
  }
  return host_value(HostArray::of_bytes(elements->type, t.dims, bytes));
}

}  // namespace tinygrad::onnx
