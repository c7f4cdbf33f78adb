// WebP by libwebp, of which these declarations are used (https://developers.google.com/speed/webp/docs/api).
#include <memory>

#include <tinygrad/errors.h>

#include "frontend/media/library.h"
#include "frontend/media/picture.h"

namespace tinygrad::media {

namespace {

struct WebP {
  const DynamicLibrary library = DynamicLibrary::open({"libwebp.so.7"});
  using DecodeInto = uint8_t*(const uint8_t*, size_t, uint8_t*, size_t, int);
  using Encode = size_t(const uint8_t*, int, int, int, uint8_t**);
  int (*const info)(const uint8_t*, size_t, int*, int*) = library.symbol<int(const uint8_t*, size_t, int*, int*)>("WebPGetInfo");
  DecodeInto* const rgb_into = library.symbol<DecodeInto>("WebPDecodeRGBInto");
  DecodeInto* const rgba_into = library.symbol<DecodeInto>("WebPDecodeRGBAInto");
  Encode* const encode_rgb = library.symbol<Encode>("WebPEncodeLosslessRGB");
  Encode* const encode_rgba = library.symbol<Encode>("WebPEncodeLosslessRGBA");
  void (*const release)(void*) = library.symbol<void(void*)>("WebPFree");

  static const WebP& get() { return opened<WebP>("WebP", "libwebp7"); }
};

}  // namespace

Picture decode_webp(const Source& source) {
  const WebP& lib = WebP::get();
  int width = 0, height = 0;
  if (lib.info(source.data(), source.bytes.size(), &width, &height) == 0) source.fail("WebP: the header is damaged");
  const bool has_alpha = source.options.pixels == Pixels::rgba;
  Picture out = source.picture(uint64_t(height), uint64_t(width), has_alpha ? 4 : 3);
  const int stride = int(out.width * out.channels);
  if (!(has_alpha ? lib.rgba_into : lib.rgb_into)(source.data(), source.bytes.size(), out.bytes.data(), out.bytes.size(), stride))
    source.fail("WebP: the picture is damaged, ends too early or is an animation");
  return out;
}

void encode_webp(const Picture& picture, const Sink& sink) {
  const WebP& lib = WebP::get();
  if (picture.channels == 1) return encode_webp(with_pixels(picture, Pixels::rgb), sink);
  uint8_t* bytes = nullptr;
  const int width = int(picture.width), height = int(picture.height), stride = int(picture.width * picture.channels);
  const size_t size = (picture.channels == 4 ? lib.encode_rgba : lib.encode_rgb)(picture.bytes.data(), width, height, stride, &bytes);
  const std::unique_ptr<void, void (*)(void*)> owner(bytes, lib.release);
  if (size == 0) throw ValueError(fmt::format("save_image: WebP: {} x {} pixels; sides have at most 16383", width, height));
  sink(std::as_bytes(std::span(bytes, size)));
}

}  // namespace tinygrad::media
