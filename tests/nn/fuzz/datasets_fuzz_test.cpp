// Damaged files of data sets: every one is read as what its header says, or is a FormatError.
#include <gtest/gtest.h>

#include <random>
#include <span>

#include <tinygrad/errors.h>

#include "nn/datasets/idx.h"
#include "support/idx.h"
#include "support/test_scale.h"

namespace tinygrad::nn::datasets {
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
  const auto attempt = [&](const auto& f) {
    try {
      f();
      ++read;
    } catch (const FormatError& e) {
      ASSERT_FALSE(std::string_view(e.what()).empty());
      ++refused;
    }
  };
  for (int i = 0; i < 20'000 * test::test_scale(); ++i) {
    const std::string a = random_file(random), b = random_file(random);
    attempt([&] {
      const IdxView images = parse_idx(std::as_bytes(std::span(a)), "a");
      size_t count = 1;
      for (const int64_t s : images.shape) count *= static_cast<size_t>(s);
      ASSERT_EQ(images.elements.size(), count);
      const IdxView labels = parse_idx(std::as_bytes(std::span(b)), "b");
      check_images(images, "a", labels, "b", 2, 3);
      ASSERT_EQ(images.elements.size(), labels.elements.size() * 6);
    });
    attempt([&] { parse_idx(std::as_bytes(std::span(b)), "b"); });
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(CifarFuzz, ReadsOrRefuses) {
  std::mt19937_64 random(test::seed());
  int read = 0;
  for (int i = 0; i < 300 * test::test_scale(); ++i) {
    std::string file(cifar_record * (random() % 3), '\3');
    for (uint64_t change = random() % 3; change > 0 && !file.empty(); --change) damage(file, random);
    try {
      ASSERT_EQ(check_cifar(std::as_bytes(std::span(file)), "f") * cifar_record, static_cast<int64_t>(file.size()));
      ++read;
    } catch (const FormatError&) {
      continue;
    }
  }
  EXPECT_GT(read, 20);
}

}  // namespace
}  // namespace tinygrad::nn::datasets
