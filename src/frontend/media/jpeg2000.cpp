// JPEG 2000 by openjpeg 2, of which these declarations are used (https://www.openjpeg.org).
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <tinygrad/errors.h>

#include "frontend/media/library.h"
#include "frontend/media/picture.h"

namespace tinygrad::media {

namespace {

struct Codec;
struct Stream;
struct Component {
  uint32_t dx, dy, width, height, x0, y0, bits, bits_before, is_signed, resolutions, factor;
  int32_t* data;
  uint16_t alpha;
};
struct Image {
  uint32_t x0, y0, x1, y1, count;
  int colours;
  Component* components;
  uint8_t* profile;
  uint32_t profile_bytes;
};
enum Format : int { codestream = 0, file_format = 2 };
enum Colours : int { colours_unknown = -1, colours_unspecified = 0, colours_srgb = 1, colours_grey = 2 };
/// More than the parameters of any version, which the library fills in.
struct Parameters {
  alignas(16) std::array<std::byte, 1 << 15> bytes;
};

struct OpenJpeg {
  const DynamicLibrary library = DynamicLibrary::open({"libopenjp2.so.7"});
  Codec* (*const create)(int) = library.symbol<Codec*(int)>("opj_create_decompress");
  void (*const destroy)(Codec*) = library.symbol<void(Codec*)>("opj_destroy_codec");
  void (*const defaults)(Parameters*) = library.symbol<void(Parameters*)>("opj_set_default_decoder_parameters");
  int (*const set_up)(Codec*, Parameters*) = library.symbol<int(Codec*, Parameters*)>("opj_setup_decoder");
  using OnMessage = void(const char*, void*);
  int (*const on_error)(Codec*, OnMessage*, void*) = library.symbol<int(Codec*, OnMessage*, void*)>("opj_set_error_handler");
  Stream* (*const create_stream)(size_t, int) = library.symbol<Stream*(size_t, int)>("opj_stream_create");
  void (*const destroy_stream)(Stream*) = library.symbol<void(Stream*)>("opj_stream_destroy");
  using Read = size_t(void*, size_t, void*);
  using Skip = int64_t(int64_t, void*);
  using Seek = int(int64_t, void*);
  void (*const set_read)(Stream*, Read*) = library.symbol<void(Stream*, Read*)>("opj_stream_set_read_function");
  void (*const set_skip)(Stream*, Skip*) = library.symbol<void(Stream*, Skip*)>("opj_stream_set_skip_function");
  void (*const set_seek)(Stream*, Seek*) = library.symbol<void(Stream*, Seek*)>("opj_stream_set_seek_function");
  void (*const set_user)(Stream*, void*,
                         void (*)(void*)) = library.symbol<void(Stream*, void*, void (*)(void*))>("opj_stream_set_user_data");
  void (*const set_size)(Stream*, uint64_t) = library.symbol<void(Stream*, uint64_t)>("opj_stream_set_user_data_length");
  int (*const header)(Stream*, Codec*, Image**) = library.symbol<int(Stream*, Codec*, Image**)>("opj_read_header");
  int (*const decode)(Codec*, Stream*, Image*) = library.symbol<int(Codec*, Stream*, Image*)>("opj_decode");
  void (*const destroy_image)(Image*) = library.symbol<void(Image*)>("opj_image_destroy");

  static const OpenJpeg& get() { return opened<OpenJpeg>("JPEG 2000", "libopenjp2-7"); }
};

struct Reading {
  std::span<const std::byte> bytes;
  size_t at = 0;
};
size_t read_bytes(void* to, size_t size, void* user) {
  auto& r = *static_cast<Reading*>(user);
  const size_t count = std::min(size, r.bytes.size() - r.at);
  if (count == 0) return SIZE_MAX;  // the end, as openjpeg has it
  std::memcpy(to, r.bytes.data() + r.at, count);
  r.at += count;
  return count;
}
int seek(int64_t to, void* user) {
  auto& r = *static_cast<Reading*>(user);
  if (to < 0 || uint64_t(to) > r.bytes.size()) return 0;
  r.at = size_t(to);
  return 1;
}
int64_t skip(int64_t size, void* user) {
  auto& r = *static_cast<Reading*>(user);
  int64_t to = 0;
  return !__builtin_add_overflow(int64_t(r.at), size, &to) && seek(to, user) != 0 ? size : -1;
}
void keep_error(const char* text, void* user) {
  auto& error = *static_cast<std::string*>(user);
  if (error.empty()) error = std::string_view(text).substr(0, std::string_view(text).find('\n'));
}

uint8_t to_byte(const Component& c, size_t at) {
  const int64_t value = int64_t(c.data[at]) + (c.is_signed != 0 ? int64_t{1} << (c.bits - 1) : 0);
  const int64_t byte = c.bits > 8 ? value >> (c.bits - 8) : value * 255 / ((int64_t{1} << c.bits) - 1);
  return uint8_t(std::clamp<int64_t>(byte, 0, 255));
}

}  // namespace

Picture decode_jpeg2000(const Source& source) {
  const OpenJpeg& lib = OpenJpeg::get();
  std::string error;
  const auto fail = [&] { source.fail(fmt::format("JPEG 2000: {}", error.empty() ? "the picture is damaged" : error)); };
  const bool is_codestream = source.bytes[0] == std::byte{0xff};
  const std::unique_ptr<Codec, void (*)(Codec*)> codec(lib.create(is_codestream ? codestream : file_format), lib.destroy);
  const std::unique_ptr<Stream, void (*)(Stream*)> stream(lib.create_stream(size_t{1} << 16, 1), lib.destroy_stream);
  if (!codec || !stream) throw OutOfMemoryError("JPEG 2000: openjpeg has no memory");
  Reading file{source.bytes};
  lib.set_user(stream.get(), &file, nullptr);
  lib.set_size(stream.get(), source.bytes.size());
  lib.set_read(stream.get(), read_bytes);
  lib.set_skip(stream.get(), skip);
  lib.set_seek(stream.get(), seek);
  const auto parameters = std::make_unique<Parameters>();
  lib.defaults(parameters.get());
  lib.on_error(codec.get(), keep_error, &error);
  if (lib.set_up(codec.get(), parameters.get()) == 0) fail();
  Image* made = nullptr;
  const int has_header = lib.header(stream.get(), codec.get(), &made);
  const std::unique_ptr<Image, void (*)(Image*)> image(made, lib.destroy_image);
  if (has_header == 0 || !image || image->count == 0) fail();
  const std::span<const Component> components(image->components, image->count);
  const Component& first = components[0];
  for (const Component& c : components)
    if (c.width != first.width || c.height != first.height || c.bits == 0 || c.bits > 16)
      source.fail("JPEG 2000: components of different sizes, or of more than 16 bits, are not supported");
  const auto check_colours = [&] {  // a file in boxes says them when it is decoded
    if (image->count > 4 || (image->colours > colours_grey && image->count >= 3))
      source.fail("JPEG 2000: only grey, RGB and alpha are supported; convert it to RGB");
  };
  check_colours();
  const int64_t colours = image->count >= 3 ? 3 : 1;
  const bool has_alpha = image->count == 4 || image->count == 2;
  Picture out = source.picture(first.height, first.width, has_alpha ? 4 : colours);
  if (lib.decode(codec.get(), stream.get(), image.get()) == 0) fail();
  check_colours();
  const std::span<const Component> decoded(image->components, image->count);
  const size_t pixels = size_t(out.height) * size_t(out.width);
  for (const Component& c : decoded)
    if (!c.data || size_t(c.width) * c.height != pixels) fail();
  for (size_t i = 0; i < pixels; ++i)
    for (int64_t k = 0; k < out.channels; ++k) {
      const bool is_alpha = has_alpha && k == 3;
      const size_t component = is_alpha ? image->count - 1 : size_t(std::min(k, colours - 1));
      out.bytes[i * size_t(out.channels) + size_t(k)] = to_byte(decoded[component], i);
    }
  return out;
}

}  // namespace tinygrad::media
