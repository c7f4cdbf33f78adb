// Pictures and sounds: what is written is read again, and what others write.
#include <gtest/gtest.h>

#include <filesystem>

#include <tinygrad/errors.h>
#include <tinygrad/media.h>

#include "frontend/media_files.h"
#include "support/message_of.h"
#include "support/temp_folder.h"

namespace tinygrad::test {
namespace {

using media::Pixels;
using Bytes = std::vector<uint8_t>;

/// Smooth, so that JPEG changes it little.
Tensor picture(int64_t height, int64_t width, int64_t channels) {
  Bytes bytes;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) bytes.push_back(uint8_t(20 + 3 * y + 2 * x + 40 * c));
  return Tensor(bytes, {height, width, channels});
}

Bytes bytes_of(const Tensor& t) { return t.tolist<uint8_t>(); }
Bytes decoded(std::string_view file, Pixels pixels = Pixels::rgb) {
  return bytes_of(media::decode_image(file_of(file), {.pixels = pixels}));
}

TEST(Media, WrittenAndReadAgain) {
  const TempFolder folder;
  for (const char* name : {"a.png", "a.webp", "a.bmp", "a.ppm"}) {
    const Tensor x = picture(7, 5, 3);
    media::save_image(x, folder.path(name));
    const Tensor y = media::load_image(folder.path(name));
    EXPECT_EQ(y.shape(), x.shape()) << name;
    EXPECT_EQ(y.dtype(), DType::uint8) << name;
    EXPECT_EQ(bytes_of(y), bytes_of(x)) << name;
  }
  for (const char* name : {"a.png", "a.webp"}) {
    const Tensor x = picture(7, 5, 4);
    media::save_image(x, folder.path(name));
    EXPECT_EQ(bytes_of(media::load_image(folder.path(name), {.pixels = Pixels::rgba})), bytes_of(x)) << name;
  }
  for (const char* name : {"a.png", "a.webp", "a.bmp", "a.pgm"}) {
    const Tensor x = picture(7, 5, 1);
    media::save_image(x.squeeze(2), folder.path(name));
    EXPECT_EQ(bytes_of(media::load_image(folder.path(name), {.pixels = Pixels::grey})), bytes_of(x)) << name;
  }
}

TEST(Media, Jpeg) {
  const TempFolder folder;
  for (const int64_t channels : {1, 3}) {
    const Tensor x = picture(20, 30, channels);
    media::save_image(x, folder.path("a.jpg"), {.quality = 100});
    const Tensor y = media::load_image(folder.path("a.jpg"), {.pixels = channels == 1 ? Pixels::grey : Pixels::rgb});
    ASSERT_EQ(y.shape(), x.shape());
    EXPECT_LE((y.cast(DType::int32) - x.cast(DType::int32)).abs().max().item<int>(), 3);
  }
}

TEST(Media, ChannelsThatAreAskedFor) {
  const std::string file("P6\n2 1\n255\n\x64\x32\x0a\x00\xff\x00", 17);
  EXPECT_EQ(decoded(file), (Bytes{100, 50, 10, 0, 255, 0}));
  EXPECT_EQ(decoded(file, Pixels::bgr), (Bytes{10, 50, 100, 0, 255, 0}));
  EXPECT_EQ(decoded(file, Pixels::rgba), (Bytes{100, 50, 10, 255, 0, 255, 0, 255}));
  EXPECT_EQ(decoded(file, Pixels::grey), (Bytes{60, 150}));  // 0.299 red, 0.587 green, 0.114 blue
}

TEST(Media, Pnm) {
  EXPECT_EQ(decoded("P1\n# bits\n3 1\n1 0 1", Pixels::grey), (Bytes{0, 255, 0}));
  EXPECT_EQ(decoded("P1\n3 1\n101", Pixels::grey), (Bytes{0, 255, 0}));
  EXPECT_EQ(decoded("P2 2 1 10 0 5", Pixels::grey), (Bytes{0, 128}));
  EXPECT_EQ(decoded("P3 1 1 255 1 2 3"), (Bytes{1, 2, 3}));
  EXPECT_EQ(decoded("P4 9 1 \x80\x80", Pixels::grey), (Bytes{0, 255, 255, 255, 255, 255, 255, 255, 0}));
  EXPECT_EQ(decoded(std::string("P5 1 1 65535 \x80\x80", 15), Pixels::grey), (Bytes{128}));
}

TEST(Media, OtherFormats) {
  EXPECT_EQ(decoded(bmp_with_palette()), (Bytes{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}));
  EXPECT_EQ(decoded(tiff_of(2, 1, 3, "\1\2\3\4\5\6")), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(decoded(tiff_of(1, 1, 4, "\x64\x32\x0a\x80")), (Bytes{100, 50, 10}));  // not multiplied by alpha
  EXPECT_EQ(decoded(tiff_of(1, 1, 4, "\x64\x32\x0a\x80"), Pixels::rgba), (Bytes{100, 50, 10, 128}));
  EXPECT_EQ(decoded(jpeg2000_codestream()), (Bytes{200, 100, 50, 0, 255, 0, 10, 20, 30, 255, 255, 255}));
}

TEST(Media, Mistakes) {
  const TempFolder folder;
  const auto refused = [](std::string_view file, const media::ImageOptions& options = {}) {
    return message_of<FormatError>([&] { media::decode_image(file_of(file), options); });
  };
  EXPECT_NE(refused("GIF89a").find("a GIF; the pictures that are read: PNG, JPEG"), std::string::npos);
  EXPECT_NE(refused("hello").find("no picture of a known format"), std::string::npos);
  EXPECT_NE(refused("P5 65536 65536 255 ").find("bytes, 0 are left"), std::string::npos);
  EXPECT_NE(refused("P2 99999999 99999999 255 1").find("pixels"), std::string::npos);
  EXPECT_NE(refused("P2 4 1 10 1 2 3 11").find("value 11"), std::string::npos);
  EXPECT_NE(refused("P5 2 2 255 1234", {.most_pixels = 3}).find("at most 3 are read"), std::string::npos);
  EXPECT_NE(refused("P5 0 2 255 ").find("a picture of 0 x 2"), std::string::npos);
  EXPECT_NE(refused(std::string("\x89PNG\r\n\x1a\n\0\0\0\0", 12)).find("PNG: "), std::string::npos);
  EXPECT_NE(refused(std::string("\xff\xd8\xff\xda\0\4xxxx", 10)).find("JPEG: "), std::string::npos);
  EXPECT_NE(refused("RIFF\1\1\1\1WEBPxxxx").find("WebP: "), std::string::npos);
  EXPECT_NE(refused(std::string("II*\0\xff\xff\xff\xff", 8)).find("TIFF: "), std::string::npos);
  EXPECT_NE(refused("\xff\x4f\xff\x51xxxxxxxx").find("JPEG 2000: "), std::string::npos);
  EXPECT_THROW(media::load_image(folder.path("none.png")), IoError);
  EXPECT_THROW(media::decode_image(Tensor({1.0, 2.0})), DTypeError);

  const Tensor x = picture(2, 2, 4);
  EXPECT_THROW(media::save_image(x, folder.path("a.jpg")), ValueError);
  EXPECT_THROW(media::save_image(x, folder.path("a.gif")), ValueError);
  EXPECT_THROW(media::save_image(x.cast(DType::float32), folder.path("a.png")), DTypeError);
  EXPECT_THROW(media::save_image(picture(2, 2, 2), folder.path("a.png")), ShapeError);
  EXPECT_THROW(media::save_image(x, folder.path("none/a.png")), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Media, TruncatedJpegIsRefused) {
  const TempFolder folder;
  media::save_image(picture(64, 64, 3), folder.path("a.jpg"));
  std::ifstream file(folder.path("a.jpg"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THROW(media::decode_image(file_of(bytes.substr(0, bytes.size() * 3 / 4))), FormatError);
  const std::string end = bytes.substr(bytes.size() - 2);  // as some cameras write it, with bytes in front
  EXPECT_EQ(decoded(bytes.substr(0, bytes.size() - 2) + "xx" + end), decoded(bytes));
}

TEST(Media, Sounds) {
  const media::Sound sound = media::decode_audio(file_of(wav_of(2, 16000, {0, 16384, -32768, 8192, 1, 2})));
  EXPECT_EQ(sound.rate, 16000);
  EXPECT_EQ(sound.samples.shape(), (Sizes{2, 3}));
  EXPECT_EQ(sound.samples.tolist(), (std::vector<float>{0, -1, 1.0F / 32768, 0.5, 0.25, 2.0F / 32768}));
  EXPECT_THROW(media::decode_audio(file_of("no sound")), FormatError);
  EXPECT_THROW(media::decode_audio(file_of(wav_of(1, 8000, {1, 2, 3})), {.most_samples = 2}), FormatError);
}

}  // namespace
}  // namespace tinygrad::test
