#pragma once
/// Pictures and sounds as tensors.
///
/// The libraries that decode are opened when they are first needed: libspng (PNG), libjpeg-turbo (JPEG), libwebp (WebP), libtiff (TIFF),
/// openjpeg (JPEG 2000) and libsndfile (sounds); IoError, with the Debian package, where one is missing. BMP and PNM need none. What a file
/// is, its content tells. Reading gives what it holds or throws: IoError for what the system refuses, FormatError for what does not follow
/// its format and for what is larger than the options allow, before memory of that size is asked for.

#include <cstdint>
#include <string>

#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad::media {

/// The channels of a pixel.
enum class Pixels : uint8_t {
  rgb,
  bgr,
  rgba,  ///< 255 where a picture has no alpha
  grey,  ///< luminance by ITU-R BT.601
};

struct ImageOptions {
  Pixels pixels = Pixels::rgb;
  int64_t most_pixels = int64_t{1} << 27;
};

/// A picture as uint8 (height, width, channels) on the CPU, rows from the top. Samples of 16 bits lose the lower 8. Alpha that is not asked
/// for is left out, and a rotation in EXIF is not applied.
TINYGRAD_EXPORT Tensor load_image(const std::string& path, const ImageOptions& options = {});
/// The same from a file's bytes, a vector of uint8.
TINYGRAD_EXPORT Tensor decode_image(const Tensor& bytes, const ImageOptions& options = {});

struct SaveImageOptions {
  int quality = 90;  ///< of .jpg, 1 to 100; .webp is without loss
};
/// Writes uint8 (height, width) or (height, width, 1, 3 or 4) as the format that the name ends in: .png, .jpg, .jpeg, .webp, .bmp, .ppm or
/// .pgm. The file takes its name when it is complete. Throws DTypeError, ShapeError, ValueError for other names and for channels that the
/// format lacks, IoError.
TINYGRAD_EXPORT void save_image(const Tensor& image, const std::string& path, const SaveImageOptions& options = {});

struct Sound {
  Tensor samples;    ///< float32 (channels, frames) on the CPU, from -1 to 1
  int64_t rate = 0;  ///< frames a second
};
struct SoundOptions {
  int64_t most_samples = int64_t{1} << 28;  ///< of all channels together
};
/// A sound of a format of libsndfile: WAV, FLAC, OGG, AIFF, MP3 and others.
TINYGRAD_EXPORT Sound load_audio(const std::string& path, const SoundOptions& options = {});
TINYGRAD_EXPORT Sound decode_audio(const Tensor& bytes, const SoundOptions& options = {});

}  // namespace tinygrad::media
