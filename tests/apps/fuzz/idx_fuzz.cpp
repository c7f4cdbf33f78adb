// Hostile IDX files: every one is read as what its header says, or is a FormatError.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "apps/support.h"
#include "mnist/idx.h"
#include "support/test_scale.h"

namespace tinygrad::apps {
namespace {

void damage(std::string& bytes, std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: bytes[random() % bytes.size()] = static_cast<char>(random()); break;
    case 1: bytes[random() % std::min<size_t>(bytes.size(), 16)] ^= static_cast<char>(1 << random() % 8); break;
    case 2: bytes.resize(random() % (bytes.size() + 1)); break;
    default: bytes.append(random() % 8, static_cast<char>(random()));
  }
}

std::string random_file(std::mt19937_64& random) {
  std::vector<uint32_t> shape(1 + random() % 3);
  size_t count = 1;
  for (uint32_t& s : shape) count *= s = static_cast<uint32_t>(random() % 5);
  std::string bytes = test::idx_bytes(shape, std::string(count, static_cast<char>(random() % 12)));
  for (uint64_t change = random() % 4; change > 0 && !bytes.empty(); --change) damage(bytes, random);
  return bytes;
}

TEST(IdxFuzz, ReadsOrRefuses) {
  std::mt19937_64 random(test::seed());
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000 * test::test_scale(); ++i) {
    const std::string a = random_file(random), b = random_file(random);
    try {
      const IdxView view = parse_idx(a, "a");
      size_t count = 1;
      for (const int64_t s : view.shape) count *= static_cast<size_t>(s);
      ASSERT_EQ(view.elements.size(), count);
      ++read;
    } catch (const FormatError&) {
      ++refused;
    }
    try {
      const ImageSet set = parse_images(a, "a", b, "b");
      ASSERT_EQ(set.pixels.size(), static_cast<size_t>(set.size() * set.height * set.width));
    } catch (const FormatError& e) {
      ASSERT_FALSE(std::string_view(e.what()).empty());
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tinygrad::apps
