// TIFF by libtiff 4.5, of which these declarations are used (https://libtiff.gitlab.io/libtiff).
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include <tinygrad/errors.h>

#include "frontend/media/library.h"
#include "frontend/media/picture.h"

namespace tinygrad::media {

namespace {

struct Tiff;
struct OpenOptions;
using Handler = int(Tiff*, void* user, const char* module, const char* format, va_list);
using Transfer = ssize_t(void*, void*, ssize_t);
using Seek = uint64_t(void*, uint64_t, int);
using Close = int(void*);
using Size = uint64_t(void*);
using Map = int(void*, void**, uint64_t*);
using Unmap = void(void*, void*, uint64_t);

struct LibTiff {
  const DynamicLibrary library = DynamicLibrary::open({"libtiff.so.6"});
  OpenOptions* (*const create_options)() = library.symbol<OpenOptions*()>("TIFFOpenOptionsAlloc");
  void (*const destroy_options)(OpenOptions*) = library.symbol<void(OpenOptions*)>("TIFFOpenOptionsFree");
  void (*const set_limit)(OpenOptions*, ssize_t) = library.symbol<void(OpenOptions*, ssize_t)>("TIFFOpenOptionsSetMaxSingleMemAlloc");
  void (*const on_error)(OpenOptions*, Handler*,
                         void*) = library.symbol<void(OpenOptions*, Handler*, void*)>("TIFFOpenOptionsSetErrorHandlerExtR");
  void (*const on_warning)(OpenOptions*, Handler*,
                           void*) = library.symbol<void(OpenOptions*, Handler*, void*)>("TIFFOpenOptionsSetWarningHandlerExtR");
  using Open = Tiff*(const char*, const char*, void*, Transfer*, Transfer*, Seek*, Close*, Size*, Map*, Unmap*, OpenOptions*);
  Open* const open = library.symbol<Open>("TIFFClientOpenExt");
  void (*const close)(Tiff*) = library.symbol<void(Tiff*)>("TIFFClose");
  int (*const get_field)(Tiff*, uint32_t, ...) = library.symbol<int(Tiff*, uint32_t, ...)>("TIFFGetField");
  int (*const set_field)(Tiff*, uint32_t, ...) = library.symbol<int(Tiff*, uint32_t, ...)>("TIFFSetField");
  int (*const read)(Tiff*, uint32_t, uint32_t, uint32_t*, int,
                    int) = library.symbol<int(Tiff*, uint32_t, uint32_t, uint32_t*, int, int)>("TIFFReadRGBAImageOriented");

  static const LibTiff& get() { return opened<LibTiff>("TIFF", "libtiff6"); }
};

constexpr uint32_t tag_width = 256, tag_height = 257, tag_extra_samples = 338;
constexpr uint16_t multiplied_alpha = 1, plain_alpha = 2;
constexpr int from_top_left = 1, stops_on_error = 1;

/// A file in memory, and the first complaint about it.
struct Reading {
  std::span<const std::byte> bytes;
  uint64_t at = 0;
  std::string error = {};
};
Reading& reading(void* user) { return *static_cast<Reading*>(user); }

ssize_t read_bytes(void* user, void* to, ssize_t size) {
  Reading& r = reading(user);
  const uint64_t left = r.at < r.bytes.size() ? r.bytes.size() - r.at : 0, count = std::min(left, uint64_t(std::max<ssize_t>(size, 0)));
  if (count > 0) std::memcpy(to, r.bytes.data() + r.at, count);
  r.at += count;
  return ssize_t(count);
}
ssize_t refuse_writing(void*, void*, ssize_t) { return -1; }
uint64_t seek(void* user, uint64_t offset, int whence) {
  Reading& r = reading(user);
  return r.at = offset + (whence == SEEK_CUR ? r.at : whence == SEEK_END ? r.bytes.size() : 0);
}
int keep_open(void*) { return 0; }
uint64_t size_of(void* user) { return reading(user).bytes.size(); }
int map(void* user, void** base, uint64_t* size) {
  *base = const_cast<std::byte*>(reading(user).bytes.data());  // read only, as the file is opened
  *size = reading(user).bytes.size();
  return 1;
}
void unmap(void*, void*, uint64_t) {}
int keep_error(Tiff*, void* user, const char*, const char* format, va_list arguments) {
  char text[256];
  std::vsnprintf(text, sizeof text, format, arguments);
  if (reading(user).error.empty()) reading(user).error = text;
  return 1;
}
int ignore(Tiff*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

Picture decode_tiff(const Source& source) {
  const LibTiff& lib = LibTiff::get();
  Reading file{source.bytes};
  const std::unique_ptr<OpenOptions, void (*)(OpenOptions*)> options(lib.create_options(), lib.destroy_options);
  if (!options) throw OutOfMemoryError("TIFF: libtiff has no memory");
  lib.set_limit(options.get(), ssize_t(std::max<int64_t>(source.options.most_pixels, 1 << 22)) * 4);
  lib.on_error(options.get(), keep_error, &file);
  lib.on_warning(options.get(), ignore, nullptr);
  const auto fail = [&] { source.fail(fmt::format("TIFF: {}", file.error.empty() ? "the picture is damaged" : file.error)); };
  const std::unique_ptr<Tiff, void (*)(Tiff*)> tiff(
      lib.open("tiff", "r", &file, read_bytes, refuse_writing, seek, keep_open, size_of, map, unmap, options.get()), lib.close);
  if (!tiff) fail();
  uint32_t width = 0, height = 0;
  if (lib.get_field(tiff.get(), tag_width, &width) == 0 || lib.get_field(tiff.get(), tag_height, &height) == 0) fail();
  Picture out = source.picture(height, width, 4);
  // libtiff would multiply colours by such an alpha; as the other kind they stay what they are.
  uint16_t extra = 0;
  const uint16_t* kinds = nullptr;
  if (lib.get_field(tiff.get(), tag_extra_samples, &extra, &kinds) != 0 && extra == 1 && kinds[0] == plain_alpha)
    lib.set_field(tiff.get(), tag_extra_samples, 1, &multiplied_alpha);
  std::vector<uint32_t> pixels(out.bytes.size() / 4);
  if (lib.read(tiff.get(), width, height, pixels.data(), from_top_left, stops_on_error) == 0 || !file.error.empty()) fail();
  std::memcpy(out.bytes.data(), pixels.data(), out.bytes.size());
  return out;
}

}  // namespace tinygrad::media
