#include "nn/datasets/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tinygrad/errors.h>

namespace tinygrad::nn::datasets {

namespace {

constexpr int classes = 10;

void check_class(std::byte label, const std::string& name, size_t at) {
  if (static_cast<int>(label) >= classes)
    throw FormatError(fmt::format("{}: label {} at {}, expected 0 to {}", name, static_cast<int>(label), at, classes - 1));
}

}  // namespace

IdxView parse_idx(std::span<const std::byte> file, const std::string& name) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(file[i]); };
  if (file.size() < 4) throw FormatError(fmt::format("{}: {} bytes, too short for an IDX file", name, file.size()));
  if (byte(0) || byte(1)) throw FormatError(fmt::format("{}: no IDX file, which begins with two zero bytes", name));
  constexpr uint8_t unsigned_byte = 0x08;
  if (byte(2) != unsigned_byte)
    throw FormatError(fmt::format("{}: elements of type {:#04x}, expected unsigned bytes (0x08)", name, byte(2)));
  const size_t axes = byte(3), header = 4 + 4 * axes;
  if (axes < 1 || axes > 3) throw FormatError(fmt::format("{}: {} axes, expected 1 to 3", name, axes));
  if (file.size() < header) throw FormatError(fmt::format("{}: {} bytes, the header alone has {}", name, file.size(), header));
  IdxView view;
  const uint64_t rest = file.size() - header;
  uint64_t count = 1;
  bool too_many = false;
  for (size_t a = 0; a < axes; ++a) {
    const size_t at = 4 + 4 * a;
    const uint32_t size = uint32_t{byte(at)} << 24 | uint32_t{byte(at + 1)} << 16 | uint32_t{byte(at + 2)} << 8 | byte(at + 3);
    too_many = __builtin_mul_overflow(count, uint64_t{size}, &count) || too_many;
    view.shape.push_back(size);
  }
  if (too_many || count != rest)
    throw FormatError(fmt::format("{}: {} bytes of elements, the header says ({})", name, rest, fmt::join(view.shape, ", ")));
  view.elements = file.subspan(header);
  return view;
}

void check_images(const IdxView& images, const std::string& images_name, const IdxView& labels, const std::string& labels_name,
                  int64_t height, int64_t width) {
  if (images.shape.size() != 3) throw FormatError(fmt::format("{}: {} axes, pictures have 3", images_name, images.shape.size()));
  if (labels.shape.size() != 1) throw FormatError(fmt::format("{}: {} axes, labels have 1", labels_name, labels.shape.size()));
  if (images.shape[0] != labels.shape[0])
    throw FormatError(fmt::format("{} has {} pictures, {} has {} labels", images_name, images.shape[0], labels_name, labels.shape[0]));
  if (images.elements.empty()) throw FormatError(fmt::format("{}: no pictures", images_name));
  if (images.shape[1] != height || images.shape[2] != width)
    throw FormatError(fmt::format("{}: pictures of {}x{}, expected {}x{}", images_name, images.shape[1], images.shape[2], height, width));
  for (size_t i = 0; i < labels.elements.size(); ++i) check_class(labels.elements[i], labels_name, i);
}

int64_t check_cifar(std::span<const std::byte> file, const std::string& name) {
  if (file.empty() || file.size() % cifar_record != 0)
    throw FormatError(fmt::format("{}: {} bytes, expected records of {} bytes", name, file.size(), cifar_record));
  for (size_t at = 0; at < file.size(); at += cifar_record) check_class(file[at], name, at);
  return static_cast<int64_t>(file.size()) / cifar_record;
}

}  // namespace tinygrad::nn::datasets
