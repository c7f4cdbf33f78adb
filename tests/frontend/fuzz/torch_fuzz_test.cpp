// Damaged checkpoints: each is read, or is a FormatError.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "frontend/torch/checkpoints.h"
#include "frontend/torch/torch.h"
#include "frontend/torch/unpickle.h"
#include "support/test_scale.h"

namespace tinygrad::frontend {
namespace {

using namespace test::pickle;

void damage(std::string& bytes, std::mt19937_64& random) {
  static constexpr std::string_view instructions =
      "(.012FGIJKLMNQRSTUVXabcdeghjlpqrst]})u\x80\x81\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8f\x90\x91\x93\x94\x95\x96";
  const size_t at = random() % bytes.size();
  switch (random() % 8) {
    case 0: bytes[at] = static_cast<char>(random()); break;
    case 1: bytes[at] = instructions[random() % instructions.size()]; break;
    case 2: bytes[at] ^= static_cast<char>(1 << random() % 8); break;
    case 3: bytes.resize(at); break;
    case 4: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 60)); break;
    case 5: bytes.erase(at, random() % 12); break;
    case 6: bytes.insert(at, 1, instructions[random() % instructions.size()]); break;
    default: bytes.replace(at, std::min<size_t>(4, bytes.size() - at), std::string(std::min<size_t>(4, bytes.size() - at), '\xff'));
  }
}

std::string random_tensor(std::mt19937_64& random, bool as_stream) {
  const std::string key = std::to_string(random() % 2);
  const auto held = [&](const std::string& type, int64_t count) {
    return as_stream ? stream_storage(type, key, count, random() % 4 ? "N" : tuple({text("v"), integer(1), integer(count - 1)}))
                     : storage(type, key, count);
  };
  const std::string s = held("FloatStorage", 6);
  switch (random() % 6) {
    case 0: return tensor(s, 0, {2, 3}, {3, 1});
    case 1: return tensor(s, 1, {2, 2}, {1, 2});
    case 2: return tensor_v3(held("ByteStorage", 24), 0, {3}, {2}, "uint16");
    case 3: return quantized(held("QInt8Storage", 24), {4}, {1}, tuple({global("torch", "per_tensor_affine"), "F0.5\n", "K\x03"}));
    case 4: return call(rebuild("parameter"), {tensor(s, 0, {6}, {1}), "\x88", ordered_dict()});
    default: return call(rebuild("meta_tensor_no_storage"), {global("torch", "float16"), sizes({3}), sizes({1}), "\x89"});
  }
}

std::string random_object(std::mt19937_64& random, bool as_stream, int depth = 0) {
  switch (random() % (depth < 2 ? 7 : 4)) {
    case 0: return integer(static_cast<int64_t>(random()));
    case 1: return text("word") + "q" + static_cast<char>(random() % 4);
    case 2: return call(global("_codecs", "encode"), {text("ab"), text("latin1")});
    case 3: return random_tensor(random, as_stream);
    case 4: return list({random_object(random, as_stream, depth + 1), random_object(random, as_stream, depth + 1)});
    case 5: return tuple({random_object(random, as_stream, depth + 1)});
    default: return dict({text("a"), random_object(random, as_stream, depth + 1), integer(3), random_object(random, as_stream, depth + 1)});
  }
}

/// Reads what there is to read without computing.
void read_all(const std::string& bytes) {
  const auto owner = std::make_shared<std::vector<std::byte>>(test::bytes_of(bytes).begin(), test::bytes_of(bytes).end());
  const FileBytes file{owner, *owner, "f"};
  const auto reader = open_torch(file);
  for (size_t i = 0; i < reader->tensors().size(); ++i) {
    const formats::TensorInfo& info = reader->tensors()[i];
    ASSERT_TRUE(info.offset < 0 || static_cast<uint64_t>(info.offset + info.bytes) <= bytes.size());
    const bool has_dtype = info.type.find(' ') == std::string::npos && !info.type.starts_with("complex");
    ASSERT_TRUE(i >= 4 || !has_dtype || reader->tensor(i).shape() == info.shape);
  }
}

void fuzz(const auto& make, const auto& read, int rounds) {
  std::mt19937_64 random(test::seed());
  int good = 0, refused = 0;
  for (int i = 0; i < rounds * test::test_scale(); ++i) {
    std::string file = make(random);
    for (uint64_t change = random() % 4; change > 0 && !file.empty(); --change) damage(file, random);
    try {
      read(file);
      ++good;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(good, rounds / 50);
  EXPECT_GT(refused, rounds / 50);
}

TEST(TorchFuzz, Pickles) {
  fuzz([](std::mt19937_64& random) { return whole(random_object(random, random() % 2)); },
       [](const std::string& bytes) {
         torch::Heap heap;
         ByteCursor in(test::bytes_of(bytes), "f");
         torch::unpickle(in, "f", heap);
       },
       30'000);
}

TEST(TorchFuzz, Archives) {
  // The pickle is damaged by itself, too: damaged archives mostly fail before it is read.
  const auto make = [](std::mt19937_64& random) {
    std::string object = random_object(random, false);
    if (random() % 2) damage(object, random);
    const std::vector<test::ZipMember> more =
        random() % 2 ? std::vector<test::ZipMember>{{"root/byteorder", "little"}} : std::vector<test::ZipMember>{};
    return archive(object, {{"0", std::string(24, '\1')}, {"1", std::string(24, '\0')}}, more, random() % 4 == 0);
  };
  fuzz(make, read_all, 4'000);
  std::mt19937_64 random(test::seed() + 1);
  for (int i = 0; i < 6'000 * test::test_scale(); ++i) {
    std::string object = random_object(random, false);
    for (uint64_t change = 1 + random() % 3; change > 0 && !object.empty(); --change) damage(object, random);
    try {
      read_all(archive(object, {{"0", std::string(24, '\1')}, {"1", std::string(24, '\0')}}));
    } catch (const FormatError&) {}
  }
}

TEST(TorchFuzz, Streams) {
  const auto make = [](std::mt19937_64& random) {
    // Each storage must have a tensor.
    const auto whole_of = [](const std::string& key) { return tensor(stream_storage("FloatStorage", key, 6), 0, {6}, {1}); };
    return stream(list({whole_of("0"), whole_of("1"), random_object(random, true)}),
                  {{"0", 6, std::string(24, '\1')}, {"1", 6, std::string(24, '\0')}});
  };
  fuzz(make, read_all, 8'000);
}

}  // namespace
}  // namespace tinygrad::frontend
