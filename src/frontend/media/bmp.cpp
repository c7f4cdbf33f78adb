// BMP without compression: BITMAPCOREHEADER, BITMAPINFOHEADER and what begins as it (learn.microsoft.com, "Bitmap Storage").
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "frontend/byte_cursor.h"
#include "frontend/media/picture.h"

namespace tinygrad::media {

namespace {

constexpr uint64_t file_header_bytes = 14, core_header_bytes = 12, info_header_bytes = 40;
constexpr uint32_t plain = 0, with_masks = 3;

struct Header {
  uint64_t pixels_at = 0, palette_at = 0;
  int64_t width = 0, height = 0;
  bool from_top = false;
  uint32_t bits = 0, colours = 0, colour_bytes = 4;
  std::array<uint32_t, 3> masks = {};  ///< of red, green and blue, for 16 and 32 bits
};

Header read_header(const Source& source) {
  frontend::ByteCursor cursor(source.bytes, source.name, 10);
  Header h;
  h.pixels_at = cursor.number<uint32_t>("place of the pixels");
  const auto size = cursor.number<uint32_t>("size of the header");
  const bool is_core = size == core_header_bytes;
  if (!is_core && size < info_header_bytes) cursor.fail("size of the header", fmt::format("{}, expects 12, 40 or more", size));
  h.width = is_core ? cursor.number<uint16_t>("width") : cursor.number<int32_t>("width");
  const int64_t height = is_core ? cursor.number<uint16_t>("height") : cursor.number<int32_t>("height");
  h.height = std::abs(height);
  h.from_top = height < 0;
  if (h.width < 0) cursor.fail("width", fmt::format("{}", h.width));
  cursor.number<uint16_t>("planes");
  h.bits = cursor.number<uint16_t>("bits of a pixel");
  const uint32_t compression = is_core ? plain : cursor.number<uint32_t>("compression");
  if (compression != plain && compression != with_masks) cursor.fail("compression", "packed pixels are not supported");
  if (!is_core) {
    cursor.take(12, "sizes");
    h.colours = cursor.number<uint32_t>("number of colours");
    cursor.number<uint32_t>("number of important colours");
  }
  h.colour_bytes = is_core ? 3 : 4;
  h.palette_at = file_header_bytes + size;
  if (h.bits == 16) h.masks = {0x7c00, 0x3e0, 0x1f};
  if (h.bits == 32) h.masks = {0xff0000, 0xff00, 0xff};
  if (compression == with_masks)
    for (uint32_t& mask : h.masks) mask = cursor.number<uint32_t>("mask of a colour");
  constexpr std::array<uint32_t, 6> known{1, 4, 8, 16, 24, 32};
  if (std::ranges::find(known, h.bits) == known.end()) source.fail(fmt::format("BMP: {} bits a pixel", h.bits));
  return h;
}

/// The bits of a mask as a number from 0 to 255.
uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const uint64_t top = mask >> std::countr_zero(mask);
  return uint8_t(uint64_t((pixel & mask) >> std::countr_zero(mask)) * 255 / top);
}

}  // namespace

Picture decode_bmp(const Source& source) {
  const Header h = read_header(source);
  std::span<const std::byte> palette;
  if (h.bits <= 8) {
    const uint32_t most = 1U << h.bits, count = h.colours == 0 ? most : std::min(h.colours, most);
    palette = frontend::ByteCursor(source.bytes, source.name, h.palette_at).take(uint64_t(count) * h.colour_bytes, "palette");
  }
  const uint64_t row_bytes = (uint64_t(h.width) * h.bits + 31) / 32 * 4;
  const auto pixels = frontend::ByteCursor(source.bytes, source.name, h.pixels_at).take(row_bytes * uint64_t(h.height), "pixels");
  const auto* bytes = reinterpret_cast<const uint8_t*>(pixels.data());
  Picture out = source.picture(uint64_t(h.height), uint64_t(h.width), 3);
  for (int64_t y = 0; y < h.height; ++y) {
    const uint8_t* row = bytes + uint64_t(h.from_top ? y : h.height - 1 - y) * row_bytes;
    uint8_t* to = out.row(y);
    for (int64_t x = 0; x < h.width; ++x, to += 3) {
      if (h.bits <= 8) {
        const uint64_t bit = uint64_t(x) * h.bits;
        const uint32_t colour = uint32_t(row[bit / 8]) >> (8 - h.bits - bit % 8) & ((1U << h.bits) - 1);
        const uint64_t at = uint64_t(colour) * h.colour_bytes;
        if (at >= palette.size()) source.fail(fmt::format("BMP: the colour {}, which the palette lacks", colour));
        for (size_t k = 0; k < 3; ++k) to[k] = uint8_t(palette[at + 2 - k]);
      } else if (h.bits == 24) {
        for (int64_t k = 0; k < 3; ++k) to[k] = row[x * 3 + 2 - k];
      } else {
        uint32_t pixel = 0;
        std::memcpy(&pixel, row + x * (h.bits / 8), h.bits / 8);
        for (size_t k = 0; k < 3; ++k) to[k] = masked(pixel, h.masks[k]);
      }
    }
  }
  return out;
}

void encode_bmp(const Picture& picture, const Sink& sink) {
  if (picture.channels == 1) return encode_bmp(with_pixels(picture, Pixels::rgb), sink);
  const uint64_t row_bytes = (uint64_t(picture.width) * 3 + 3) / 4 * 4;
  const uint64_t pixels_at = file_header_bytes + info_header_bytes, size = pixels_at + row_bytes * uint64_t(picture.height);
  std::string header = "BM";
  const auto put = [&](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) header += char(value >> (8 * i));
  };
  put(size, 4), put(0, 4), put(pixels_at, 4);
  put(info_header_bytes, 4), put(uint64_t(picture.width), 4), put(uint64_t(picture.height), 4), put(1, 2), put(24, 2);
  put(plain, 4), put(row_bytes * uint64_t(picture.height), 4), put(0, 8), put(0, 8);
  sink(std::as_bytes(std::span(header)));
  std::vector<uint8_t> row(row_bytes);
  for (int64_t y = picture.height - 1; y >= 0; --y) {
    for (int64_t x = 0; x < picture.width; ++x)
      for (int64_t k = 0; k < 3; ++k) row[size_t(x * 3 + k)] = picture.row(y)[x * 3 + 2 - k];
    sink(std::as_bytes(std::span(row)));
  }
}

}  // namespace tinygrad::media
