#include "engine/run.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "device/buffer.h"
#include "device/device.h"
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::engine {
namespace {

class Run : public testing::Test {
 protected:
  /// Memory on the CPU with these values.
  UOp input(const std::vector<float>& values) {
    UOp b = memory(int64_t(values.size()));
    buffer_of(b).copyin(std::as_bytes(std::span(values)));
    return b;
  }
  UOp memory(int64_t size) {
    const BufferPtr resource = Buffer::make(Device::get("CPU"), size, DType::float32);
    return buffer(DType::float32, {.id = next_buffer_id(), .size = size, .device = "CPU", .resource = resource});
  }
  std::vector<float> values(const UOp& b) {
    std::vector<float> out(size_t(b.arg_as<BufferArg>().size));
    buffer_of(b).copyout(std::as_writable_bytes(std::span(out)));
    return out;
  }
  void run(std::initializer_list<UOp> effects) {
    run_schedule(schedule::make_schedule(sink(std::span<const UOp>(effects.begin(), effects.size())), target_of), current_options());
  }
};

std::vector<float> counting(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = float(i % 13) - 6;
  return v;
}

TEST_F(Run, Elementwise) {
  const std::vector<float> a = counting(1000), b = counting(1000);
  const UOp out = memory(1000);
  run({store(out, max(input(a) * input(b) + constant(DType::float32, 1.0), constant(DType::float32, 0.0)))});
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(values(out)[i], std::max(a[i] * b[i] + 1, 0.0f));
}

TEST_F(Run, Matmul) {
  constexpr int64_t m = 7, k = 33, n = 20;
  const std::vector<float> a = counting(m * k), b = counting(k * n);
  const UOp x = expand(reshape(input(a), {m, 1, k}), {m, n, k});
  const UOp y = expand(permute(reshape(input(b), {1, k, n}), {0, 2, 1}), {m, n, k});
  const UOp out = memory(m * n);
  run({store(reshape(out, {m, n}), reduce(Op::ADD, x * y, {2}))});
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (size_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      EXPECT_EQ(values(out)[i * n + j], sum);
    }
}

TEST_F(Run, UpdatesSeeTheRightStates) {
  const UOp b = input({1, 2, 3, 4}), old = memory(4), sum = memory(4);
  const UOp now = after(b, UOps{store(b, flip(b, {0}))});
  run({store(sum, b + now), store(old, b + constant(DType::float32, 1.0))});
  EXPECT_EQ(values(b), (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(values(sum), (std::vector<float>{5, 5, 5, 5}));
  EXPECT_EQ(values(old), (std::vector<float>{2, 3, 4, 5}));
}

TEST_F(Run, StoresThatReadWhatEachOtherWrites) {
  const UOp a = input({1, 2, 3, 4}), b = input({5, 6, 7, 8}), c = input({1, 2, 3, 4});
  const UOp low = shrink(c, {0, 2}), high = shrink(c, {2, 4});
  run({store(a, b), store(b, a), after(c, UOps{store(low, high), store(high, low)})});
  EXPECT_EQ(values(a), (std::vector<float>{5, 6, 7, 8}));
  EXPECT_EQ(values(b), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values(c), (std::vector<float>{3, 4, 1, 2}));
}

TEST_F(Run, AVariableOfOneValueIsNoArgumentOfTheKernel) {
  const UOp n = bind(variable("n", 2, 2), 2), x = input({1, 2, 3, 4, 5, 6}), out = memory(6);
  const SInt rows = SInt(5) - SInt(n);
  const std::pair<SInt, SInt> box[] = {{0, rows}, {0, 2}};
  run({store(shrink(reshape(out, {3, 2}), box), shrink(reshape(x, {3, 2}), box))});
  EXPECT_EQ(values(out), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(Run, AVariableWithoutAValueIsAnError) {
  const UOp view = shrink(input({1, 2, 3, 4}), UOps{index_const(0), variable("n", 1, 4)});
  EXPECT_THROW(run({store(memory(1), reshape(reduce(Op::ADD, view, {0}), {1}))}), ValueError);
}

}  // namespace
}  // namespace tinygrad::engine
