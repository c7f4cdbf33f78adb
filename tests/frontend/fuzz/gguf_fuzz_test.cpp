// Damaged GGUF files: each is read as tensors that lie within it, or is a FormatError.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include <tinygrad/errors.h>

#include "frontend/gguf/gguf_file.h"
#include "frontend/gguf/header.h"
#include "frontend/gguf/types.h"
#include "support/test_scale.h"

namespace tinygrad::frontend {
namespace {

using test::GgufBytes;

/// A value of a random type: its number, then it.
void add_value(GgufBytes& b, std::mt19937_64& random, int depth) {
  const auto type = uint32_t(random() % (depth == 0 ? 9 : gguf_value_types));
  b.number(type);
  const auto value = [&](uint32_t t) {
    switch (GgufValue(t)) {
      case GgufValue::u8:
      case GgufValue::i8: b.number(uint8_t(random())); break;
      case GgufValue::boolean: b.number(uint8_t(random() % 2)); break;
      case GgufValue::u16:
      case GgufValue::i16: b.number(uint16_t(random())); break;
      case GgufValue::u32:
      case GgufValue::i32:
      case GgufValue::f32: b.number(uint32_t(random())); break;
      case GgufValue::text: b.text(std::string(random() % 20, 's')); break;
      default: b.number(random());
    }
  };
  if (GgufValue(type) != GgufValue::array) return value(type);
  const uint64_t count = random() % 4;
  if (random() % 2 == 0) {
    const auto inner = uint32_t(random() % 9);
    b.number(inner).number(count);
    for (uint64_t i = 0; i < count; ++i) value(inner);
  } else {
    b.number(uint32_t(GgufValue::array)).number(count);
    for (uint64_t i = 0; i < count; ++i) b.number(uint32_t(GgufValue::u16)).number(uint64_t(1)).number(uint16_t(random()));
  }
}

std::string random_file(std::mt19937_64& random) {
  const uint64_t tensors = random() % 4, pairs = random() % 5;
  const bool is_aligned = random() % 3 == 0;
  const uint64_t alignment = is_aligned ? uint64_t{1} << random() % 8 : 32;
  GgufBytes b;
  b.beginning(tensors, pairs + is_aligned, random() % 2 ? 2 : 3);
  if (is_aligned) b.key("general.alignment", 4).number(uint32_t(alignment));
  for (uint64_t i = 0; i < pairs; ++i) {
    b.text("key" + std::to_string(i));
    add_value(b, random, 2);
  }
  uint64_t end = 0;
  for (uint64_t i = 0; i < tensors; ++i) {
    uint32_t id = 0;
    do {
      id = uint32_t(random() % 43);
    } while (std::holds_alternative<std::monostate>(gguf_type_row(id)->type));
    std::vector<uint64_t> sizes{256};
    for (uint64_t axes = random() % 4; axes > 0; --axes) sizes.push_back(random() % 3);
    b.tensor("t" + std::to_string(i), sizes, id, end);
    uint64_t bytes = 256 * 8;
    for (size_t k = 1; k < sizes.size(); ++k) bytes *= sizes[k];
    end += (bytes + alignment - 1) / alignment * alignment;
  }
  return b.data(end, alignment);
}

void damage(std::string& bytes, std::mt19937_64& random) {
  const size_t at = random() % bytes.size(), header = random() % std::min<size_t>(bytes.size(), 300);
  const auto put = [&](uint64_t value) { std::memcpy(bytes.data() + header, &value, std::min<size_t>(8, bytes.size() - header)); };
  switch (random() % 8) {
    case 0: bytes[header] = char(random()); break;
    case 1: bytes[header] ^= char(1 << random() % 8); break;
    case 2: bytes.resize(at); break;
    case 3: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40)); break;
    case 4: bytes.erase(header, random() % 9); break;
    case 5: put(uint64_t{1} << random() % 64); break;
    case 6: put(UINT64_MAX - random() % 64); break;
    default: put(random() % 300);
  }
}

TEST(GgufFuzz, ReadsOrRefuses) {
  std::mt19937_64 random(test::seed());
  int read = 0, refused = 0;
  for (int i = 0; i < 30'000 * test::test_scale(); ++i) {
    std::string file = random_file(random);
    for (uint64_t change = random() % 4; change > 0 && !file.empty(); --change) damage(file, random);
    try {
      const GgufHeader header = parse_gguf_header(std::as_bytes(std::span(file)), "f");
      ASSERT_EQ(header.types.size(), header.tensors.size());
      std::vector<std::pair<int64_t, int64_t>> places;
      for (size_t t = 0; t < header.tensors.size(); ++t) {
        const formats::TensorInfo& info = header.tensors[t];
        const formats::BlockLayout layout = gguf_layout(header.types[t]);
        int64_t count = 1;
        for (const int64_t s : info.shape) count *= s;
        ASSERT_EQ(count / layout.elements * layout.bytes, info.bytes);
        ASSERT_GE(info.offset, 0);
        ASSERT_LE(info.offset + info.bytes, int64_t(file.size()));
        if (info.bytes > 0) places.emplace_back(info.offset, info.offset + info.bytes);
      }
      std::ranges::sort(places);
      for (size_t t = 1; t < places.size(); ++t) ASSERT_LE(places[t - 1].second, places[t].first);
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
