// Kernels and bytes of programs drawn by seed, against a bound: no more kernels than one for each reduction and one for the result, and no
// more bytes than these would move if each read once all it is made of and wrote what it gives. A matrix product may have its operand
// computed and stored first.
#include <gtest/gtest.h>

#include <random>

#include "schedule/schedule.h"
#include "schedule/traffic.h"
#include "shape/shape.h"
#include "support/program_parts.h"
#include "uop/graph.h"

namespace tinygrad::schedule {
namespace {

using namespace test_programs;

constexpr int64_t size = 48;

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  UOp result() {
    UOp x = square_input();
    for (int i = 0; i < 6; ++i) x = next(x);
    return x;
  }
  int products() const { return products_; }

 private:
  uint32_t dice(uint32_t n) { return uint32_t(random_() % n); }
  static UOp square_input() { return tensor({size, size}); }

  UOp next(const UOp& x) {
    switch (dice(10)) {
      case 0: return ops::exp(mul(x, 0.1));
      case 1: return relu(add(x, tensor({size})));
      case 2: return mul(x, square_input());
      case 3: return ops::transpose(x);
      case 4: return sub(x, sum(x, int(dice(2)), true));
      case 5: return add(x, ops::max(x, int(dice(2)), true));
      case 6: return softmax(x);
      case 7: ++products_; return matmul(x, square_input());
      case 8: return ops::shrink(ops::pad(x, {{1, 1}, {2, 0}}), {{0, size}, {1, size + 1}});
      default: return div(x, add(mean(square(x), 1, true), 1.0));
    }
  }

  std::mt19937 random_;
  int products_ = 0;
};

int64_t bytes_of(const UOp& u) { return numel(shape_of(u)).value() * itemsize(u.dtype()); }

/// Bytes of the memory and the reductions that a value is made of, and of itself.
int64_t stage_bytes(const UOp& root) {
  int64_t bytes = bytes_of(root);
  for (const UOp& u : toposort_where(root.src(), [](const UOp& u) { return !u.is(Op::REDUCE) && !u.is(Op::BUFFER); }))
    if (u.is(Op::REDUCE) || u.is(Op::BUFFER)) bytes += bytes_of(u);
  return bytes;
}

class RandomCounts : public testing::TestWithParam<uint32_t> {};

TEST_P(RandomCounts, AreWithinTheBound) {
  RandomProgram program(GetParam());
  const UOp result = program.result();
  size_t kernels = size_t(1 + program.products());
  int64_t bytes = stage_bytes(result) + 2 * program.products() * bytes_of(result);
  for (const UOp& u : toposort(result))
    if (u.is(Op::REDUCE)) {
      ++kernels;
      bytes += stage_bytes(u);
    }
  for (const Target& target : {cpu_target("x86-64-v3"), cpu_target("x86-64-v4"), interp_target()}) {
    SCOPED_TRACE(target.name());
    const Schedule s = make_schedule(sink(UOps{output(result)}), [&](Symbol) -> const Target& { return target; }, {.cache = false});
    int64_t moved = 0;
    for (const UOp& call : s.plan->linear.src()) moved += traffic_of(call).bytes;
    EXPECT_LE(s.plan->linear.src_count(), kernels);
    EXPECT_LE(moved, bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCounts, testing::Range(uint32_t(1), uint32_t(21)));

}  // namespace
}  // namespace tinygrad::schedule
