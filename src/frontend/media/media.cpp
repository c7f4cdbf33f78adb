// Pictures: which decoder takes them, and what becomes of their channels.
#include <fmt/core.h>

#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>

#include <tinygrad/errors.h>

#include "base/file.h"
#include "frontend/file_bytes.h"
#include "frontend/media/picture.h"

namespace tinygrad::media {

using namespace std::string_view_literals;

void Source::fail(std::string_view what) const { throw FormatError(fmt::format("{}: {}", name, what)); }

Picture Source::picture(uint64_t height, uint64_t width, int64_t channels) const {
  if (height == 0 || width == 0) fail(fmt::format("a picture of {} x {} pixels", width, height));
  uint64_t pixels = 0;
  if (__builtin_mul_overflow(height, width, &pixels) || pixels > uint64_t(options.most_pixels))
    fail(fmt::format("a picture of {} x {} pixels, of which at most {} are read (ImageOptions::most_pixels)", width, height,
                     options.most_pixels));
  return {int64_t(height), int64_t(width), channels, std::vector<uint8_t>(size_t(pixels) * size_t(channels))};
}

namespace {

struct Format {
  size_t at;
  std::string_view text;
  Picture (*decode)(const Source&);
};
constexpr auto formats = std::to_array<Format>({
    {0, "\x89PNG\r\n\x1a\n"sv, decode_png},
    {0, "\xff\xd8\xff"sv, decode_jpeg},
    {8, "WEBP"sv, decode_webp},
    {0, "II*\0"sv, decode_tiff},
    {0, "MM\0*"sv, decode_tiff},
    {0, "II+\0"sv, decode_tiff},
    {0, "MM\0+"sv, decode_tiff},
    {0, "\0\0\0\x0cjP  \r\n\x87\n"sv, decode_jpeg2000},
    {0, "\xff\x4f\xff\x51"sv, decode_jpeg2000},
    {0, "BM"sv, decode_bmp},
});

struct Unread {
  size_t at;
  std::string_view text, what;
};
constexpr auto unread = std::to_array<Unread>({
    {0, "GIF8"sv, "a GIF"sv},
    {4, "ftypavif"sv, "AVIF"sv},
    {4, "ftyphei"sv, "HEIC"sv},
    {0, "<svg"sv, "SVG"sv},
    {0, "%PDF"sv, "a PDF"sv},
});

bool has_text(std::span<const std::byte> bytes, std::string_view text, size_t at) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

bool is_pnm(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{'P'} && bytes[1] >= std::byte{'1'} && bytes[1] <= std::byte{'6'} &&
         (std::isspace(int(bytes[2])) != 0 || bytes[2] == std::byte{'#'});
}

Picture decode(const Source& source) {
  for (const Format& f : formats)
    if (has_text(source.bytes, f.text, f.at)) return f.decode(source);
  if (is_pnm(source.bytes)) return decode_pnm(source);
  std::string_view what = source.bytes.empty() ? "an empty file" : "no picture of a known format";
  for (const Unread& u : unread)
    if (has_text(source.bytes, u.text, u.at)) what = u.what;
  source.fail(fmt::format("{}; the pictures that are read: PNG, JPEG, WebP, TIFF, JPEG 2000, BMP and PNM", what));
}

Tensor tensor_of(Picture picture) {
  const auto owner = std::make_shared<Picture>(std::move(picture));
  return Tensor::from_blob(owner->bytes.data(), {owner->height, owner->width, owner->channels}, {.device = "CPU"}, owner);
}

/// In 16 bits behind the point, rounded to the nearest; the sum of the weights is 1.
uint8_t luminance(const uint8_t* p) { return uint8_t((p[0] * 19595U + p[1] * 38470U + p[2] * 7471U + 0x8000U) >> 16); }

}  // namespace

Picture with_pixels(Picture picture, Pixels pixels) {
  const int64_t from = picture.channels, to = pixels == Pixels::grey ? 1 : pixels == Pixels::rgba ? 4 : 3;
  if (from == to && pixels != Pixels::bgr) return picture;
  Picture out{picture.height, picture.width, to, std::vector<uint8_t>(picture.bytes.size() / size_t(from) * size_t(to))};
  const uint8_t* p = picture.bytes.data();
  const uint8_t* const end = p + picture.bytes.size();
  const size_t green = from == 1 ? 0 : 1, blue = from == 1 ? 0 : 2;
  for (uint8_t* q = out.bytes.data(); p != end; p += from, q += to) {
    if (to == 1) {
      *q = luminance(p);
      continue;
    }
    q[0] = pixels == Pixels::bgr ? p[blue] : p[0];
    q[1] = p[green];
    q[2] = pixels == Pixels::bgr ? p[0] : p[blue];
    if (to == 4) q[3] = 255;
  }
  return out;
}

Tensor read_image(const Source& source) { return tensor_of(with_pixels(decode(source), source.options.pixels)); }

Tensor load_image(const std::string& path, const ImageOptions& options) {
  const frontend::FileBytes file = frontend::FileBytes::map(path);
  return read_image({file.bytes, path, options});
}

Tensor decode_image(const Tensor& bytes, const ImageOptions& options) {
  const frontend::FileBytes file = frontend::FileBytes::of(bytes);
  return read_image({file.bytes, file.name, options});
}

namespace {

Picture picture_of(const Tensor& image) {
  if (image.dtype() != DType::uint8) throw DTypeError(fmt::format("save_image: got {}, expects uint8", image.to_string()));
  const size_t axes = image.ndim();
  const int64_t channels = axes == 3 ? image.shape()[2] : 1;
  if (axes < 2 || axes > 3 || (channels != 1 && channels != 3 && channels != 4) || image.numel() == 0)
    throw ShapeError(fmt::format("save_image: got {}, expects (height, width) or (height, width, 1, 3 or 4)", image.to_string()));
  const std::vector<std::byte> bytes = image.data();
  Picture out{image.shape()[0], image.shape()[1], channels, std::vector<uint8_t>(bytes.size())};
  std::memcpy(out.bytes.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

void save_image(const Tensor& image, const std::string& path, const SaveImageOptions& options) {
  const Picture picture = picture_of(image);
  const std::string ending = std::filesystem::path(path).extension().string();
  const auto expect_channels = [&](bool fits, std::string_view has) {
    if (!fits) throw ValueError(fmt::format("save_image: {}: got {} channels, but {} has {}", path, picture.channels, ending, has));
  };
  if (options.quality < 1 || options.quality > 100)
    throw ValueError(fmt::format("save_image: quality {}, expects 1 to 100", options.quality));
  const bool is_jpeg = ending == ".jpg" || ending == ".jpeg";
  if (is_jpeg || ending == ".bmp") expect_channels(picture.channels != 4, "no alpha");
  if (ending == ".ppm") expect_channels(picture.channels == 3, "3");
  if (ending == ".pgm") expect_channels(picture.channels == 1, "1");
  AtomicFile file(path);
  const Sink sink = [&](std::span<const std::byte> bytes) { file.write(bytes); };
  if (ending == ".png")
    encode_png(picture, sink);
  else if (is_jpeg)
    encode_jpeg(picture, options.quality, sink);
  else if (ending == ".webp")
    encode_webp(picture, sink);
  else if (ending == ".bmp")
    encode_bmp(picture, sink);
  else if (ending == ".ppm" || ending == ".pgm")
    encode_pnm(picture, sink);
  else
    throw ValueError(fmt::format("save_image: {}: ends in none of .png, .jpg, .jpeg, .webp, .bmp, .ppm, .pgm", path));
  file.commit();
}

}  // namespace tinygrad::media
