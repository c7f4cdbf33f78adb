// PNG by libspng, of which these declarations are used (https://libspng.org/docs).
#include <cstdlib>
#include <memory>

#include <tinygrad/errors.h>

#include "frontend/media/library.h"
#include "frontend/media/picture.h"

namespace tinygrad::media {

namespace {

struct Context;
struct Header {
  uint32_t width, height;
  uint8_t bit_depth, color_type, compression_method, filter_method, interlace_method;
};
enum Layout : int { rgba8 = 1, rgb8 = 4, as_in_file = 256 };
enum ColorType : uint8_t { greyscale = 0, truecolor = 2, truecolor_alpha = 6 };
constexpr int encoder = 2, apply_transparency = 1, finalize = 2, option_encode_to_buffer = 12;
constexpr size_t most_chunk_bytes = size_t{1} << 24;

struct Spng {
  const DynamicLibrary library = DynamicLibrary::open({"libspng.so.0"});
  Context* (*const create)(int) = library.symbol<Context*(int)>("spng_ctx_new");
  void (*const destroy)(Context*) = library.symbol<void(Context*)>("spng_ctx_free");
  int (*const set_limits)(Context*, uint32_t, uint32_t) = library.symbol<int(Context*, uint32_t, uint32_t)>("spng_set_image_limits");
  int (*const set_chunk_limits)(Context*, size_t, size_t) = library.symbol<int(Context*, size_t, size_t)>("spng_set_chunk_limits");
  int (*const set_buffer)(Context*, const void*, size_t) = library.symbol<int(Context*, const void*, size_t)>("spng_set_png_buffer");
  int (*const get_header)(Context*, Header*) = library.symbol<int(Context*, Header*)>("spng_get_ihdr");
  int (*const decode)(Context*, void*, size_t, int, int) = library.symbol<int(Context*, void*, size_t, int, int)>("spng_decode_image");
  int (*const set_header)(Context*, Header*) = library.symbol<int(Context*, Header*)>("spng_set_ihdr");
  int (*const set_option)(Context*, int, int) = library.symbol<int(Context*, int, int)>("spng_set_option");
  int (*const encode)(Context*, const void*, size_t, int,
                      int) = library.symbol<int(Context*, const void*, size_t, int, int)>("spng_encode_image");
  void* (*const take_buffer)(Context*, size_t*, int*) = library.symbol<void*(Context*, size_t*, int*)>("spng_get_png_buffer");
  const char* (*const error_text)(int) = library.symbol<const char*(int)>("spng_strerror");

  static const Spng& get() { return opened<Spng>("PNG", "libspng0"); }
};

using Owned = std::unique_ptr<Context, void (*)(Context*)>;

}  // namespace

Picture decode_png(const Source& source) {
  const Spng& lib = Spng::get();
  const Owned context(lib.create(0), lib.destroy);
  const auto check = [&](int error) {
    if (error != 0) source.fail(fmt::format("PNG: {}", lib.error_text(error)));
  };
  if (!context) throw OutOfMemoryError("PNG: libspng has no memory");
  constexpr uint32_t most_side = INT32_MAX;
  check(lib.set_limits(context.get(), most_side, most_side));
  check(lib.set_chunk_limits(context.get(), most_chunk_bytes, most_chunk_bytes));
  check(lib.set_buffer(context.get(), source.bytes.data(), source.bytes.size()));
  Header header{};
  check(lib.get_header(context.get(), &header));
  const bool has_alpha = source.options.pixels == Pixels::rgba;
  Picture out = source.picture(header.height, header.width, has_alpha ? 4 : 3);
  check(lib.decode(context.get(), out.bytes.data(), out.bytes.size(), has_alpha ? rgba8 : rgb8, has_alpha ? apply_transparency : 0));
  return out;
}

void encode_png(const Picture& picture, const Sink& sink) {
  const Spng& lib = Spng::get();
  const Owned context(lib.create(encoder), lib.destroy);
  const auto check = [&](int error) {
    if (error != 0) throw IoError(fmt::format("save_image: PNG: {}", lib.error_text(error)));
  };
  if (!context) throw OutOfMemoryError("PNG: libspng has no memory");
  check(lib.set_option(context.get(), option_encode_to_buffer, 1));
  const uint8_t color = picture.channels == 1 ? greyscale : picture.channels == 3 ? truecolor : truecolor_alpha;
  Header header{uint32_t(picture.width), uint32_t(picture.height), 8, color, 0, 0, 0};
  check(lib.set_header(context.get(), &header));
  check(lib.encode(context.get(), picture.bytes.data(), picture.bytes.size(), as_in_file, finalize));
  size_t size = 0;
  int error = 0;
  const std::unique_ptr<void, void (*)(void*)> bytes(lib.take_buffer(context.get(), &size, &error), std::free);
  check(error);
  sink({static_cast<const std::byte*>(bytes.get()), size});
}

}  // namespace tinygrad::media
