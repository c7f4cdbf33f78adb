#include "mnist/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tinygrad/errors.h>

namespace tinygrad::apps {

IdxView parse_idx(std::string_view bytes, const std::string& name) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (bytes.size() < 4) throw FormatError(fmt::format("{}: {} bytes, too short for an IDX file", name, bytes.size()));
  if (byte(0) || byte(1)) throw FormatError(fmt::format("{}: no IDX file, which begins with two zero bytes", name));
  constexpr uint8_t unsigned_byte = 0x08;
  if (byte(2) != unsigned_byte)
    throw FormatError(fmt::format("{}: elements of type {:#04x}, expected unsigned bytes (0x08)", name, byte(2)));
  const size_t axes = byte(3), header = 4 + 4 * axes;
  if (axes < 1 || axes > 3) throw FormatError(fmt::format("{}: {} axes, expected 1 to 3", name, axes));
  if (bytes.size() < header) throw FormatError(fmt::format("{}: {} bytes, the header alone has {}", name, bytes.size(), header));
  IdxView view;
  const uint64_t rest = bytes.size() - header;
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
  view.elements = {reinterpret_cast<const uint8_t*>(bytes.data()) + header, static_cast<size_t>(rest)};
  return view;
}

ImageSet parse_images(std::string_view images, const std::string& images_name, std::string_view labels, const std::string& labels_name) {
  const IdxView pixels = parse_idx(images, images_name), classes = parse_idx(labels, labels_name);
  if (pixels.shape.size() != 3) throw FormatError(fmt::format("{}: {} axes, pictures have 3", images_name, pixels.shape.size()));
  if (classes.shape.size() != 1) throw FormatError(fmt::format("{}: {} axes, labels have 1", labels_name, classes.shape.size()));
  if (pixels.shape[0] != classes.shape[0])
    throw FormatError(fmt::format("{} has {} pictures, {} has {} labels", images_name, pixels.shape[0], labels_name, classes.shape[0]));
  if (pixels.elements.empty()) throw FormatError(fmt::format("{}: no pictures", images_name));
  const auto bad = std::find_if(classes.elements.begin(), classes.elements.end(), [](uint8_t c) { return c > 9; });
  if (bad != classes.elements.end())
    throw FormatError(fmt::format("{}: label {} at {}, expected 0 to 9", labels_name, *bad, bad - classes.elements.begin()));
  ImageSet set{.height = pixels.shape[1], .width = pixels.shape[2]};
  set.pixels.assign(pixels.elements.begin(), pixels.elements.end());
  set.labels.assign(classes.elements.begin(), classes.elements.end());
  return set;
}

}  // namespace tinygrad::apps
