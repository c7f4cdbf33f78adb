// Values of PyTorch's checkpoints.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include <tinygrad/tinygrad.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "frontend/torch/checkpoints.h"
#include "frontend/torch/strided.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using namespace nn::state;
using namespace test::pickle;
using namespace std::string_literals;

class TorchFile : public TempDir {
 protected:
  StateDict load(const std::string& object, const std::vector<std::pair<std::string, std::string>>& storages, bool deflate = false) {
    write_file_atomic(path("f"), archive(object, storages, {}, deflate));
    return torch_load(path("f"));
  }
};

std::string floats(int count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return bytes_of(values);
}

TEST_F(TorchFile, EveryDtypeComesBackBitByBit) {
  const std::vector<std::pair<std::string, DType>> classes{{"DoubleStorage", DType::float64}, {"FloatStorage", DType::float32},
                                                           {"HalfStorage", DType::float16},   {"BFloat16Storage", DType::bfloat16},
                                                           {"LongStorage", DType::int64},     {"IntStorage", DType::int32},
                                                           {"ShortStorage", DType::int16},    {"CharStorage", DType::int8},
                                                           {"ByteStorage", DType::uint8},     {"BoolStorage", DType::bool_}};
  const std::vector<std::pair<std::string, DType>> others{{"uint16", DType::uint16},
                                                          {"uint32", DType::uint32},
                                                          {"uint64", DType::uint64},
                                                          {"float8_e4m3fn", DType::fp8e4m3},
                                                          {"float8_e5m2", DType::fp8e5m2},
                                                          {"float8_e4m3fnuz", DType::fp8e4m3fnuz},
                                                          {"float8_e5m2fnuz", DType::fp8e5m2fnuz}};
  const auto elements = [](DType d) {
    std::string bytes(6 * itemsize(d), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(is_bool(d) ? i % 2 : 37 * i + 200);
    return bytes;
  };
  std::vector<std::string> object;
  std::vector<std::pair<std::string, std::string>> storages;
  std::vector<StreamStorage> streamed;
  std::vector<std::string> stream_object;
  for (const auto& [type, d] : classes) {
    object.insert(object.end(), {text(type), tensor(storage(type, type, 6), 0, {2, 3}, {3, 1})});
    stream_object.insert(stream_object.end(), {text(type), tensor(stream_storage(type, type, 6), 0, {2, 3}, {3, 1})});
    storages.emplace_back(type, elements(d));
    streamed.push_back({type, 6, elements(d)});
  }
  for (const auto& [type, d] : others) {
    object.insert(object.end(),
                  {text(type), tensor_v3(storage("UntypedStorage", type, static_cast<int64_t>(6 * itemsize(d))), 0, {2, 3}, {3, 1}, type)});
    storages.emplace_back(type, elements(d));
  }
  write_file_atomic(path("s"), stream(dict(stream_object), streamed));
  for (const StateDict& state : {load(dict(object), storages), load(dict(object), storages, true), torch_load(path("s"))}) {
    EXPECT_GE(state.size(), classes.size());
    for (const auto& list : {classes, others})
      for (const auto& [type, d] : list) {
        if (!state.contains(type)) continue;
        const Tensor t = state.at(type);
        EXPECT_EQ(t.dtype(), d) << type;
        EXPECT_EQ(t.shape(), (Sizes{2, 3})) << type;
        const std::vector<std::byte> data = t.data();
        EXPECT_EQ(test::text_of(data), elements(d)) << type;
      }
  }
}

TEST_F(TorchFile, ViewsShareTheirStorage) {
  const std::string s = storage("FloatStorage", "0", 12);
  StateDict state = load(dict({text("whole"), tensor(s, 0, {3, 4}, {4, 1}), text("row"), tensor(s, 4, {4}, {1}), text("transposed"),
                               tensor(s, 0, {4, 3}, {1, 4}), text("column"), tensor(s, 2, {3}, {4}), text("scalar"), tensor(s, 7, {}, {}),
                               text("expanded"), tensor(s, 1, {2, 2}, {0, 1}), text("windows"), tensor(s, 0, {3, 2}, {1, 1}),
                               text("stepped"), tensor(s, 1, {2, 2}, {8, 2}), text("empty"), tensor(s, 0, {0, 4}, {4, 1})}),
                         {{"0", floats(12)}});
  using V = std::vector<float>;
  EXPECT_EQ(state.at("row").tolist(), (V{4, 5, 6, 7}));
  EXPECT_EQ(state.at("transposed").tolist(), (V{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(state.at("column").tolist(), (V{2, 6, 10}));
  EXPECT_EQ(state.at("scalar").tolist(), (V{7}));
  EXPECT_EQ(state.at("scalar").shape(), Sizes{});
  EXPECT_EQ(state.at("expanded").tolist(), (V{1, 2, 1, 2}));
  EXPECT_EQ(state.at("windows").tolist(), (V{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(state.at("stepped").tolist(), (V{1, 3, 9, 11}));
  EXPECT_EQ(state.at("empty").shape(), (Sizes{0, 4}));
  const std::string before = read_file(path("f"));
  state.at("row").assign(Tensor({40.0, 50.0, 60.0, 70.0})).realize();
  EXPECT_EQ(state.at("whole").tolist(), (V{0, 1, 2, 3, 40, 50, 60, 70, 8, 9, 10, 11}));
  EXPECT_EQ(state.at("column").tolist(), (V{2, 60, 10}));
  EXPECT_EQ(read_file(path("f")), before);
}

TEST_F(TorchFile, AnyStridesGiveTheirElements) {
  std::mt19937_64 random(test::seed());
  std::vector<float> values(200);
  std::iota(values.begin(), values.end(), 0.0F);
  const Tensor vector(values);
  int views = 0;
  for (int i = 0; i < 60 * test::test_scale(); ++i) {
    Sizes sizes, strides;
    int64_t offset = static_cast<int64_t>(random() % 20);
    if (random() % 2) {
      // A part of a whole array, its axes in any order.
      int64_t stride = 1;
      for (uint64_t axes = 1 + random() % 3; axes > 0; --axes) {
        const int64_t length = 1 + static_cast<int64_t>(random() % 5), step = 1 + static_cast<int64_t>(random() % 2);
        sizes.push_back((length + step - 1) / step);
        strides.push_back(stride * step);
        stride *= length;
      }
      for (size_t k = sizes.size(); k > 1; --k) {
        const size_t other = random() % k;
        std::swap(sizes[k - 1], sizes[other]);
        std::swap(strides[k - 1], strides[other]);
      }
    } else {
      for (uint64_t axes = random() % 4; axes > 0; --axes) {
        sizes.push_back(static_cast<int64_t>(random() % 4));
        strides.push_back(static_cast<int64_t>(random() % 12));
      }
    }
    const int64_t end = frontend::torch::strided_end(offset, sizes, strides).value();
    if (end > 200) continue;
    const Tensor t = frontend::torch::strided(vector, offset, sizes, strides);
    ASSERT_EQ(t.shape(), sizes);
    std::vector<float> expected;
    const auto walk = [&](const auto& self, size_t axis, int64_t at) -> void {
      if (axis == sizes.size()) return expected.push_back(static_cast<float>(at));
      for (int64_t k = 0; k < sizes[axis]; ++k) self(self, axis + 1, at + k * strides[axis]);
    };
    walk(walk, 0, offset);
    ASSERT_EQ(t.tolist(), expected);
    ++views;
  }
  EXPECT_GT(views, 20);
}

TEST_F(TorchFile, QuantizedTensorsAreDequantized) {
  const std::string bytes = "\x80\xff\x00\x7f"s, scales = bytes_of(std::vector<double>{0.5, 0.25}),
                    zeros = bytes_of(std::vector<int64_t>{1, -2});
  const std::string per_tensor = tuple({global("torch", "per_tensor_affine"), "F0.5\n", integer(3)});
  const std::string vector = tensor(storage("DoubleStorage", "s", 2), 0, {2}, {1}),
                    points = tensor(storage("LongStorage", "z", 2), 0, {2}, {1});
  const std::string per_channel = tuple({global("torch", "per_channel_affine"), vector, points, integer(0)});
  const std::string lists =
      tuple({global("torch", "per_channel_affine"), list({"F0.5\n", "F0.25\n"}), list({integer(1), integer(-2)}), integer(1)});
  const StateDict state = load(dict({text("i8"), quantized(storage("QInt8Storage", "0", 4), {4}, {1}, per_tensor), text("u8"),
                                     quantized(storage("QUInt8Storage", "0", 4), {4}, {1}, per_tensor), text("rows"),
                                     quantized(storage("QInt8Storage", "0", 4), {2, 2}, {2, 1}, per_channel), text("columns"),
                                     quantized(storage("QInt8Storage", "0", 4), {2, 2}, {2, 1}, lists)}),
                               {{"0", bytes}, {"s", scales}, {"z", zeros}});
  using V = std::vector<float>;
  EXPECT_EQ(state.at("i8").tolist(), (V{-65.5, -2, -1.5, 62}));
  EXPECT_EQ(state.at("u8").tolist(), (V{62.5, 126, -1.5, 62}));
  EXPECT_EQ(state.at("rows").tolist(), (V{-64.5, -1, 0.5, 32.25}));
  EXPECT_EQ(state.at("columns").tolist(), (V{-64.5, 0.25, -0.5, 32.25}));
  EXPECT_EQ(state.at("i8").dtype(), DType::float32);
}

TEST_F(TorchFile, BytesOfATensorAreRead) {
  const std::string bytes = archive(dict({text("a"), tensor(storage("FloatStorage", "0", 4), 0, {2, 2}, {2, 1})}), {{"0", floats(4)}});
  EXPECT_EQ(torch_load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()))).at("a").tolist(), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_THROW(torch_load(Tensor({1.0})), DTypeError);
  EXPECT_THROW(torch_load(path("absent")), IoError);
}

TEST_F(TorchFile, NamesThatAreTwiceThereAreRefused) {
  const std::string t = tensor(storage("FloatStorage", "0", 4), 0, {4}, {1});
  EXPECT_THROW(load(dict({text("a.b"), t, text("a"), dict({text("b"), t})}), {{"0", floats(4)}}), FormatError);
}

TEST_F(TorchFile, BooleansAreZeroOrOne) {
  EXPECT_THROW(load(tensor(storage("BoolStorage", "0", 2), 0, {2}, {1}), {{"0", "\x01\x02"}}), FormatError);
}

TEST_F(TorchFile, AModuleTakesACheckpoint) {
  nn::Linear layer(3, 2);
  const StateDict state = load(dict({text("weight"), tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {1, 2}), text("bias"),
                                     tensor(storage("FloatStorage", "1", 2), 0, {2}, {1})}),
                               {{"0", floats(6)}, {"1", floats(2)}});
  load_state_dict(layer, state, {.verbose = false});
  EXPECT_EQ(layer(Tensor({1.0, 10.0, 100.0})).tolist(), (std::vector<float>{420, 532}));
}

}  // namespace
}  // namespace tinygrad
