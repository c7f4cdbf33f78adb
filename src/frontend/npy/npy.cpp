#include "frontend/npy/npy.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/archive/gzip.h"
#include "base/archive/zip.h"
#include "frontend/npy/header.h"

namespace tinygrad::frontend {

namespace {

static_assert(std::endian::native == std::endian::little, "elements are used in place");

constexpr std::string_view extension = ".npy";

/// An array of a file.
struct Array {
  std::string name;
  NpyHeader header;
  std::span<std::byte> bytes;              // of the file that holds it, in which the header is the first
  std::optional<archive::ZipFile> packed;  // where they have to be unpacked
};

/// Checks that the elements fill what follows the header.
void check_size(const NpyHeader& header, uint64_t file_bytes, const std::string& name) {
  if (header.item_bytes == 0 && !header.data_bytes()) return;  // of objects and records nothing is read
  const std::optional<int64_t> bytes = header.data_bytes();
  const uint64_t there = file_bytes - header.data_start;
  if (!bytes || static_cast<uint64_t>(*bytes) != there)
    throw FormatError(fmt::format("{}: the elements at byte {}: {} bytes, where '{}' and the shape ask for {}", name, header.data_start,
                                  there, header.descr, bytes ? fmt::format("{}", *bytes) : "more than 63 bits"));
}

std::vector<std::byte> byte_swapped(std::span<const std::byte> bytes, size_t width) {
  std::vector<std::byte> out(bytes.begin(), bytes.end());
  for (size_t i = 0; i + width <= out.size(); i += width)
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(i), out.begin() + static_cast<std::ptrdiff_t>(i + width));
  return out;
}

FileBytes in_memory(std::vector<std::byte> bytes, const std::string& name) {
  const auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return {owner, *owner, name};
}

Tensor tensor_of(FileBytes file, std::span<std::byte> elements, const NpyHeader& header) {
  const DType dtype = header.dtype.value();
  if (header.is_big_endian && itemsize(dtype) > 1) {
    file = in_memory(byte_swapped(elements, itemsize(dtype)), file.name);
    elements = file.bytes;
  }
  if (dtype == DType::bool_) {
    const auto bad = std::ranges::find_if(elements, [](std::byte b) { return b > std::byte{1}; });
    if (bad != elements.end())
      throw FormatError(fmt::format("{}: the elements at byte {}: the boolean {}", file.name,
                                    header.data_start + static_cast<uint64_t>(bad - elements.begin()), static_cast<int>(*bad)));
  }
  if (!header.is_column_major) return tensor_over(file, elements, dtype, header.shape);
  const Sizes reversed(header.shape.rbegin(), header.shape.rend());
  std::vector<int> order;
  for (size_t i = header.shape.size(); i-- > 0;) order.push_back(static_cast<int>(i));
  return tensor_over(file, elements, dtype, reversed).permute(order);
}

class NpyReader final : public formats::Reader {
 public:
  NpyReader(std::string_view format, FileBytes file, std::vector<Array> arrays)
      : format_(format), file_(std::move(file)), arrays_(std::move(arrays)) {
    for (const Array& a : arrays_) infos_.push_back(info_of(a));
  }

  std::string_view format() const override { return format_; }
  const formats::Metadata& metadata() const override { return metadata_; }
  const std::vector<formats::TensorInfo>& tensors() const override { return infos_; }
  Tensor tensor(size_t place) const override {
    const std::string& name = tensors_at(place).name;
    const Array& array = arrays_[place];
    const NpyHeader& header = array.header;
    if (!header.dtype)
      throw FormatError(fmt::format("{}: '{}' has the element type {}, which no dtype holds", file_.name, name, header.descr));
    const FileBytes held = array.packed ? in_memory(array.packed->unpack(file_.name), file_.name) : file_;
    const std::span<std::byte> bytes = array.packed ? held.bytes : array.bytes;
    return tensor_of(held, bytes.subspan(static_cast<size_t>(header.data_start)), header);
  }

 private:
  formats::TensorInfo info_of(const Array& array) const {
    const NpyHeader& header = array.header;
    formats::TensorInfo info{
        .name = array.name, .type = header.descr, .dtype = header.dtype, .shape = header.shape, .bytes = header.data_bytes().value_or(0)};
    if (header.dtype && !array.packed && !header.is_column_major && !(header.is_big_endian && header.item_bytes > 1))
      info.offset = (array.bytes.empty() ? 0 : array.bytes.data() - file_.bytes.data()) + static_cast<int64_t>(header.data_start);
    return info;
  }

  const std::string_view format_;
  const FileBytes file_;
  const std::vector<Array> arrays_;
  const formats::Metadata metadata_;
  std::vector<formats::TensorInfo> infos_;
};

/// The header of a member of an archive, of which no more is unpacked than that.
NpyHeader header_of(const archive::ZipFile& member, const std::string& name) {
  NpyHeader header;
  if (!member.is_deflated) {
    header = parse_npy_header(member.packed, name);
  } else {
    constexpr uint64_t before = 12;  // of the header's text, at most
    const auto first = [&](uint64_t count) {
      return archive::inflate_first(member.packed, static_cast<size_t>(std::min(count, member.size)), name);
    };
    header = parse_npy_header(first(npy_header_bytes(first(before), name)), name);
  }
  check_size(header, member.size, name);
  return header;
}

}  // namespace

std::unique_ptr<formats::Reader> open_npy(const FileBytes& file) {
  const NpyHeader header = parse_npy_header(file.bytes, file.name);
  check_size(header, file.bytes.size(), file.name);
  return std::make_unique<NpyReader>("npy", file, std::vector<Array>{{"arr_0", header, file.bytes, {}}});
}

std::unique_ptr<formats::Reader> open_npz(const FileBytes& file) {
  std::vector<Array> arrays;
  for (const archive::ZipFile& member : archive::read_zip(file.bytes, file.name)) {
    Array array{.name = member.name, .header = {}, .bytes = {}, .packed = {}};
    if (member.is_deflated)
      array.packed = member;
    else if (!member.packed.empty())
      array.bytes = file.bytes.subspan(static_cast<size_t>(member.packed.data() - file.bytes.data()), member.packed.size());
    if (member.name.ends_with(extension)) {
      array.name.resize(member.name.size() - extension.size());
      array.header = header_of(member, fmt::format("{}: '{}'", file.name, member.name));
    } else {
      array.header = {.descr = "bytes", .dtype = DType::uint8, .item_bytes = 1, .shape = {static_cast<int64_t>(member.size)}};
    }
    arrays.push_back(std::move(array));
  }
  return std::make_unique<NpyReader>("npz", file, std::move(arrays));
}

}  // namespace tinygrad::frontend
