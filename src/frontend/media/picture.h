#pragma once
/// What decoders take and give; one function for each format.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/media.h>

namespace tinygrad::media {

/// Pixels of 1 (grey), 3 (red, green, blue) or 4 bytes (and alpha), rows from the top.
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> bytes = {};

  uint8_t* row(int64_t y) { return bytes.data() + y * width * channels; }
  const uint8_t* row(int64_t y) const { return bytes.data() + y * width * channels; }
};

/// The bytes of a file, and what is asked for.
struct Source {
  std::span<const std::byte> bytes;
  std::string name;
  ImageOptions options;

  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(bytes.data()); }
  /// Throws FormatError: "NAME: WHAT".
  [[noreturn]] void fail(std::string_view what) const;
  /// Black. Throws FormatError for sizes of 0 and for more pixels than are allowed.
  Picture picture(uint64_t height, uint64_t width, int64_t channels) const;
};

Picture decode_png(const Source& source);
Picture decode_jpeg(const Source& source);
Picture decode_webp(const Source& source);
Picture decode_tiff(const Source& source);
Picture decode_jpeg2000(const Source& source);
Picture decode_bmp(const Source& source);
Picture decode_pnm(const Source& source);

/// Takes the bytes of a file in pieces.
using Sink = std::function<void(std::span<const std::byte>)>;
void encode_png(const Picture& picture, const Sink& sink);
void encode_jpeg(const Picture& picture, int quality, const Sink& sink);
void encode_webp(const Picture& picture, const Sink& sink);
void encode_bmp(const Picture& picture, const Sink& sink);
void encode_pnm(const Picture& picture, const Sink& sink);

/// What load_image() gives.
Tensor read_image(const Source& source);

/// With these channels.
Picture with_pixels(Picture picture, Pixels pixels);

}  // namespace tinygrad::media
