// Damaged pictures and sounds: each is read, or is a FormatError.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>
#include <tinygrad/media.h>

#include "frontend/media_files.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace tinygrad::test {
namespace {

void damage(std::string& bytes, std::mt19937_64& random) {
  const size_t at = random() % bytes.size();
  switch (random() % 7) {
    case 0: bytes[at] = char(random()); break;
    case 1: bytes[at] ^= char(1 << random() % 8); break;
    case 2: bytes[random() % std::min<size_t>(bytes.size(), 64)] = char(random() % 2 ? 0xff : 0); break;
    case 3: bytes.resize(at); break;
    case 4: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40)); break;
    case 5: bytes.erase(at, random() % 8); break;
    default: bytes.append(random() % 8, char(random()));
  }
}

std::vector<std::string> pictures() {
  const TempFolder folder;
  std::vector<std::string> out;
  std::vector<uint8_t> noise;
  std::mt19937_64 random(seed());
  for (int i = 0; i < 20 * 20 * 4; ++i) noise.push_back(uint8_t(random()));
  for (const char* name : {"a.png", "a.jpg", "a.webp", "a.bmp", "a.ppm", "b.png", "b.webp"}) {
    const int64_t channels = name[0] == 'b' ? 4 : 3;
    const Tensor x = Tensor(noise, {20, 20, 4}).shrink_to({20, 20, channels});
    media::save_image(x, folder.path(name));
    std::ifstream file(folder.path(name), std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  out.push_back(tiff_of(2, 1, 3, "\1\2\3\4\5\6"));
  out.push_back(tiff_of(1, 1, 4, "\1\2\3\4"));
  out.push_back(bmp_with_palette());
  out.push_back(jpeg2000_codestream());
  out.emplace_back("P3 2 1 255 1 2 3 4 5 6");
  return out;
}

void fuzz(const std::vector<std::string>& files, const auto& decode, int rounds) {
  std::mt19937_64 random(seed());
  int good = 0, refused = 0;
  for (int i = 0; i < rounds * test_scale(); ++i) {
    std::string bytes = files[random() % files.size()];
    for (uint64_t change = random() % 4; change > 0 && !bytes.empty(); --change) damage(bytes, random);
    try {
      decode(file_of(bytes));
      ++good;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(good, rounds / 50);
  EXPECT_GT(refused, rounds / 50);
}

TEST(MediaFuzz, Pictures) {
  constexpr int64_t most_pixels = 1 << 14;
  const auto decode = [](const Tensor& file) {
    const Tensor x = media::decode_image(file, {.pixels = media::Pixels::rgba, .most_pixels = most_pixels});
    ASSERT_LE(x.numel(), most_pixels * 4);
    ASSERT_EQ(x.shape().back(), 4);
  };
  fuzz(pictures(), decode, 20'000);
}

TEST(MediaFuzz, Sounds) {
  const auto decode = [](const Tensor& file) { ASSERT_LE(media::decode_audio(file, {.most_samples = 1 << 16}).samples.numel(), 1 << 16); };
  fuzz({wav_of(2, 16000, std::vector<int16_t>(300, 1000)), wav_of(1, 8000, {1, 2, 3})}, decode, 5'000);
}

}  // namespace
}  // namespace tinygrad::test
