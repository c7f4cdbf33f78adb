// Memory shared with the host.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

TEST(Blob, IsUsedInPlace) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  Tensor t = Tensor::from_blob(memory.data(), {2, 3}, {.dtype = DType::float32});
  EXPECT_EQ((t * 2).tolist(), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  memory[0] = 7;
  EXPECT_EQ(t.tolist()[0], 7);
  t.assign(t + 1).realize();
  EXPECT_EQ(memory, (std::vector<float>{8, 3, 4, 5, 6, 7}));
  EXPECT_EQ(reinterpret_cast<float*>(t.host_memory().get()), memory.data());
}

TEST(Blob, KeepsItsOwner) {
  auto memory = std::make_shared<std::vector<int32_t>>(4, 5);
  const std::weak_ptr<std::vector<int32_t>> alive = memory;
  Tensor sum;
  {
    const Tensor t = Tensor::from_blob(memory->data(), {4}, {.dtype = DType::int32}, memory);
    memory = nullptr;
    sum = t.sum();
  }
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(sum.item<int>(), 20);
  sum = {};
  EXPECT_TRUE(alive.expired());
}

TEST(Blob, RefusesWhatItCannotUse) {
  alignas(8) std::byte memory[16] = {};
  EXPECT_THROW(Tensor::from_blob(memory + 1, {2}, {.dtype = DType::float32}), ValueError);
  EXPECT_THROW(Tensor::from_blob(nullptr, {2}), ValueError);
  EXPECT_THROW(Tensor::from_blob(memory, {-2}), ShapeError);
  EXPECT_EQ(Tensor::from_blob(nullptr, {0, 2}).shape(), (Sizes{0, 2}));
}

TEST(Void, IsTheDtypeOfNoTensor) {
  alignas(8) std::byte memory[8] = {};
  const TensorOptions nothing{.dtype = DType::void_};
  EXPECT_THROW(Tensor::from_blob(memory, {2}, nothing), DTypeError);
  EXPECT_THROW(Tensor(std::span<const std::byte>(), DType::void_, {0}, {.dtype = DType::int8}), DTypeError);
  EXPECT_THROW(Tensor({1, 2}, nothing), DTypeError);
  EXPECT_THROW(Tensor::empty({2}, nothing), DTypeError);
  EXPECT_THROW(Tensor({1, 2}).cast(DType::void_), DTypeError);
  EXPECT_THROW(Tensor({1, 2}).bitcast(DType::void_), DTypeError);
}

TEST(HostMemory, OutlivesTheTensor) {
  Tensor t = Tensor::arange(4).to_float();
  const std::shared_ptr<std::byte> view = t.host_memory();
  t.assign(t + 1).realize();
  const auto* values = reinterpret_cast<const float*>(view.get());
  EXPECT_EQ(values[3], 4);
  t = {};
  EXPECT_EQ(values[0], 1);
  const Tensor transposed = Tensor({{1.f, 2.f}, {3.f, 4.f}}).T();
  EXPECT_EQ(reinterpret_cast<const float*>(transposed.host_memory().get())[1], 3);
}

TEST(Interrupt, EndsARealizeBeforeAnythingRan) {
  Tensor t = Tensor({1.f, 2.f}).realize();
  t.assign(t * 31337 + 4711);  // compiled nowhere else
  set_interrupt_check([] { throw std::runtime_error("stop"); });
  EXPECT_THROW(t.realize(), std::runtime_error);
  set_interrupt_check(nullptr);
  EXPECT_EQ(t.tolist(), (std::vector<float>{36048, 67385}));
}

}  // namespace
}  // namespace tinygrad
