// Damaged files of NumPy: each is read as arrays that cover their bytes, or is a FormatError.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "frontend/npy/arrays.h"
#include "frontend/npy/npy.h"
#include "support/test_scale.h"

namespace tinygrad::frontend {
namespace {

void damage(std::string& bytes, std::mt19937_64& random) {
  static constexpr std::string_view interesting = "{}()[]',:0123456789-<>|=biufcOSUVTFL ";
  const size_t at = random() % bytes.size();
  switch (random() % 7) {
    case 0: bytes[at] = static_cast<char>(random()); break;
    case 1: bytes[at] = interesting[random() % interesting.size()]; break;
    case 2: bytes[random() % std::min<size_t>(bytes.size(), 12)] ^= static_cast<char>(1 << random() % 8); break;
    case 3: bytes.resize(at); break;
    case 4: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40)); break;
    case 5: bytes.erase(at, random() % 8); break;
    default: bytes.append(random() % 8, static_cast<char>(random()));
  }
}

std::string random_array(std::mt19937_64& random) {
  static const std::vector<std::pair<std::string, size_t>> types{{"|b1", 1}, {"|u1", 1}, {"<i2", 2}, {">f4", 4},
                                                                 {"<f8", 8}, {"<c8", 8}, {"|S3", 3}};
  const auto& [type, size] = types[random() % types.size()];
  size_t count = 1;
  std::string shape = "(";
  for (uint64_t axes = random() % 3; axes > 0; --axes) {
    const size_t length = random() % 4;
    count *= length;
    shape += std::to_string(length) + ", ";
  }
  return test::npy_of(type, shape + ")", std::string(count * size, '\1'), random() % 2 ? "True" : "False",
                      1 + static_cast<int>(random() % 3));
}

FileBytes file_of(const std::string& bytes) {
  const auto owner = std::make_shared<std::vector<std::byte>>(test::bytes_of(bytes).begin(), test::bytes_of(bytes).end());
  return {owner, *owner, "f"};
}

void fuzz(const auto& make, const auto& open, int rounds) {
  std::mt19937_64 random(test::seed());
  int good = 0, refused = 0;
  for (int i = 0; i < rounds * test::test_scale(); ++i) {
    std::string bytes = make(random);
    for (uint64_t change = random() % 4; change > 0 && !bytes.empty(); --change) damage(bytes, random);
    try {
      const auto reader = open(file_of(bytes));
      for (size_t k = 0; k < reader->tensors().size(); ++k) {
        const formats::TensorInfo& info = reader->tensors()[k];
        ASSERT_TRUE(info.offset < 0 || static_cast<uint64_t>(info.offset + info.bytes) <= bytes.size());
        ASSERT_EQ(reader->tensor(k).shape(), info.shape);
      }
      ++good;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(good, rounds / 50);
  EXPECT_GT(refused, rounds / 50);
}

TEST(NpyFuzz, Arrays) {
  fuzz(random_array, [](const FileBytes& file) { return open_npy(file); }, 30'000);
}

TEST(NpyFuzz, Archives) {
  const auto make = [](std::mt19937_64& random) {
    std::vector<test::ZipMember> members;
    for (uint64_t n = random() % 3; n > 0; --n) {
      std::string array = random_array(random);
      if (random() % 4 == 0) damage(array, random);
      members.push_back({std::to_string(n) + ".npy", array, random() % 2 == 0});
    }
    return test::zip_of(members);
  };
  fuzz(make, [](const FileBytes& file) { return open_npz(file); }, 10'000);
}

}  // namespace
}  // namespace tinygrad::frontend
