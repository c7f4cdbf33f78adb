// JPEG by libjpeg-turbo, of which these declarations of the TurboJPEG API are used (https://libjpeg-turbo.org).
#include <memory>

#include <tinygrad/errors.h>

#include "frontend/media/library.h"
#include "frontend/media/picture.h"

namespace tinygrad::media {

namespace {

enum Layout : int { rgb = 0, grey = 6, rgba = 7 };
enum Colours : int { colours_grey = 2, colours_cmyk = 3, colours_ycck = 4 };
enum Sampling : int { sampling_444 = 0, sampling_grey = 3 };
constexpr int limit_scans = 32768, stop_on_warning = 8192, warning = 0;

struct TurboJpeg {
  using Handle = void*;
  const DynamicLibrary library = DynamicLibrary::open({"libturbojpeg.so.0"});
  Handle (*const create_decoder)() = library.symbol<Handle()>("tjInitDecompress");
  Handle (*const create_encoder)() = library.symbol<Handle()>("tjInitCompress");
  int (*const destroy)(Handle) = library.symbol<int(Handle)>("tjDestroy");
  int (*const header)(Handle, const uint8_t*, unsigned long, int*, int*, int*,
                      int*) = library.symbol<int(Handle, const uint8_t*, unsigned long, int*, int*, int*, int*)>("tjDecompressHeader3");
  int (*const decode)(Handle, const uint8_t*, unsigned long, uint8_t*, int, int, int, int,
                      int) = library.symbol<int(Handle, const uint8_t*, unsigned long, uint8_t*, int, int, int, int, int)>("tjDecompress2");
  int (*const encode)(Handle, const uint8_t*, int, int, int, int, uint8_t**, unsigned long*, int, int, int) =
      library.symbol<int(Handle, const uint8_t*, int, int, int, int, uint8_t**, unsigned long*, int, int, int)>("tjCompress2");
  void (*const release)(uint8_t*) = library.symbol<void(uint8_t*)>("tjFree");
  const char* (*const error_text)(Handle) = library.symbol<const char*(Handle)>("tjGetErrorStr2");
  int (*const error_code)(Handle) = library.symbol<int(Handle)>("tjGetErrorCode");

  static const TurboJpeg& get() { return opened<TurboJpeg>("JPEG", "libturbojpeg0"); }
};

using Owned = std::unique_ptr<void, int (*)(void*)>;

}  // namespace

Picture decode_jpeg(const Source& source) {
  const TurboJpeg& lib = TurboJpeg::get();
  const Owned decoder(lib.create_decoder(), lib.destroy);
  if (!decoder) throw OutOfMemoryError("JPEG: libjpeg-turbo has no memory");
  const auto fail = [&] { source.fail(fmt::format("JPEG: {}", lib.error_text(decoder.get()))); };
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (lib.header(decoder.get(), source.data(), source.bytes.size(), &width, &height, &sampling, &colours) != 0) fail();
  if (colours == colours_cmyk || colours == colours_ycck)
    source.fail("JPEG: colours for printing (CMYK) are not supported; convert it to RGB");
  const bool is_grey = colours == colours_grey;
  Picture out = source.picture(uint64_t(height), uint64_t(width), is_grey ? 1 : 3);
  const auto decode = [&](int flags) {
    return lib.decode(decoder.get(), source.data(), source.bytes.size(), out.bytes.data(), width, 0, height, is_grey ? grey : rgb,
                      limit_scans | flags) == 0;
  };
  // Warnings are of pixels that are lost, but for bytes that some cameras write behind the last of them.
  const auto has_only_bytes_behind = [&] {
    const std::string_view what = lib.error_text(decoder.get());
    return lib.error_code(decoder.get()) == warning && what.find("extraneous bytes before marker 0xd9") != what.npos;
  };
  if (!decode(stop_on_warning) && (!has_only_bytes_behind() || (!decode(0) && !has_only_bytes_behind()))) fail();
  return out;
}

void encode_jpeg(const Picture& picture, int quality, const Sink& sink) {
  const TurboJpeg& lib = TurboJpeg::get();
  const Owned encoder(lib.create_encoder(), lib.destroy);
  if (!encoder) throw OutOfMemoryError("JPEG: libjpeg-turbo has no memory");
  const bool is_grey = picture.channels == 1;
  uint8_t* bytes = nullptr;
  unsigned long size = 0;
  const int status = lib.encode(encoder.get(), picture.bytes.data(), int(picture.width), 0, int(picture.height), is_grey ? grey : rgb,
                                &bytes, &size, is_grey ? sampling_grey : sampling_444, quality, 0);
  const std::unique_ptr<uint8_t, void (*)(uint8_t*)> owner(bytes, lib.release);
  if (status != 0) throw IoError(fmt::format("save_image: JPEG: {}", lib.error_text(encoder.get())));
  sink(std::as_bytes(std::span(bytes, size)));
}

}  // namespace tinygrad::media
