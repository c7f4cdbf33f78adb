// Damaged safetensors files: each is read as a file that covers its bytes, or is a FormatError.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "frontend/safetensors/header.h"
#include "support/test_scale.h"

namespace tinygrad::frontend {
namespace {

using nn::state::SafeMetadata;

std::string random_file(std::mt19937_64& random) {
  SafeMetadata contents;
  int64_t at = 0;
  for (uint64_t i = 0, count = random() % 4; i < count; ++i) {
    SafeMetadata::Entry e{.dtype = dtypes::all[random() % std::size(dtypes::all)]};
    int64_t bytes = static_cast<int64_t>(itemsize(e.dtype));
    for (uint64_t axes = random() % 3; axes > 0; --axes) {
      e.shape.push_back(static_cast<int64_t>(random() % 4));
      bytes *= e.shape.back();
    }
    e.begin = at;
    e.end = at += bytes;
    contents.tensors["t" + std::to_string(i)] = e;
  }
  if (random() % 2) contents.metadata["k"] = "v";
  return make_safetensors_header(contents) + std::string(static_cast<size_t>(at), 'd');
}

void damage(std::string& bytes, std::mt19937_64& random) {
  static constexpr std::string_view interesting = "{}[]\",:0123456789-eE.\\ntrufalsdypF";
  const size_t at = random() % bytes.size();
  switch (random() % 7) {
    case 0: bytes[at] = static_cast<char>(random()); break;
    case 1: bytes[at] = interesting[random() % interesting.size()]; break;
    case 2: bytes[random() % std::min<size_t>(bytes.size(), 8)] ^= static_cast<char>(1 << random() % 8); break;
    case 3: bytes.resize(at); break;
    case 4: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40)); break;
    case 5: bytes.erase(at, random() % 8); break;
    default: bytes.append(random() % 8, static_cast<char>(random()));
  }
}

TEST(SafetensorsFuzz, ReadsOrRefuses) {
  std::mt19937_64 random(test::seed());
  int read = 0, refused = 0;
  for (int i = 0; i < 30'000 * test::test_scale(); ++i) {
    std::string file = random_file(random);
    for (uint64_t change = random() % 4; change > 0 && !file.empty(); --change) damage(file, random);
    try {
      const SafeMetadata header = parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), "f");
      int64_t bytes = 0;
      for (const auto& [name, e] : header.tensors) {
        ASSERT_LE(e.begin, e.end);
        bytes += e.end - e.begin;
        if (e.dtype == DType::void_) continue;  // a damaged name of a type
        int64_t count = static_cast<int64_t>(itemsize(e.dtype));
        for (const int64_t s : e.shape) count *= s;
        ASSERT_EQ(count, e.end - e.begin);
      }
      ASSERT_EQ(header.data_start + bytes, static_cast<int64_t>(file.size()));
      ++read;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tinygrad::frontend
