#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include "device/buffer.h"
#include "device/device.h"
#include "dtype/scalar.h"
#include "runtime/interp/kernel.h"
#include "uop/build.h"

namespace tinygrad::runtime::interp {
namespace {

UOp i32(int64_t v) { return constant(DType::int32, v); }
UOp f32(double v) { return constant(DType::float32, v); }
UOp special(AxisKind kind, int64_t n, int dim = 0) { return UOp(Op::SPECIAL, DType::int32, {i32(n)}, SpecialArg{kind, uint8_t(dim)}); }
UOp local(int64_t n, int dim = 0) { return special(AxisKind::local, n, dim); }
UOp global(int64_t n, int dim = 0) { return special(AxisKind::global, n, dim); }
UOp loop(const UOp& n, int32_t id, AxisKind kind = AxisKind::loop) { return UOp(Op::RANGE, DType::int32, {n}, RangeArg{id, kind, id}); }
UOp memory(int slot, int64_t size, DType dtype = DType::float32) { return param(dtype, size, ParamArg{.slot = slot}); }
UOp own(Scope scope, int64_t size, uint64_t id = 1, DType dtype = DType::float32) {
  return buffer(dtype, BufferArg{.id = id, .size = size, .scope = scope});
}
UOp end_of(const UOp& effect, const UOp& r) { return end(effect, std::span(&r, 1)); }
UOp load_gated(const UOp& at, const UOp& alt, const UOp& gate) { return UOp(Op::LOAD, at.dtype(), {at, alt, gate}); }
UOp store_gated(const UOp& at, const UOp& x, const UOp& gate) { return UOp(Op::STORE, DType::void_, {at, x, gate}); }
UOp if_(const UOp& c) { return UOp(Op::IF, DType::void_, {c}); }
UOp endif_(const UOp& u) { return UOp(Op::ENDIF, DType::void_, {u}); }
UOp barrier() { return UOp(Op::BARRIER, DType::void_, {}); }
UOp splat(const UOp& x, int64_t n) { return expand(x, {n}); }

struct Launch {
  LaunchDims dims = {};
  std::vector<Symbol> names = {};
  std::vector<int64_t> values = {};
};

void run(std::initializer_list<UOp> code, std::initializer_list<void*> buffers, const Launch& launch = {}) {
  KernelInfo info;
  info.name = "test";
  info.variables = launch.names;
  const UOp linear(Op::LINEAR, DType::void_, code, LinearArg{1});
  make_kernel(info, linear)->launch(std::span(buffers.begin(), buffers.size()), launch.values, launch.dims);
}

void expect_error(std::initializer_list<UOp> code, std::initializer_list<void*> buffers, std::string_view text, const Launch& launch = {}) {
  try {
    run(code, buffers, launch);
    ADD_FAILURE() << "no error: " << text;
  } catch (const InternalError& e) {
    EXPECT_NE(std::string_view(e.what()).find(text), std::string_view::npos) << e.what();
    EXPECT_NE(std::string_view(e.what()).find("kernel test: "), std::string_view::npos) << e.what();
  }
}

Launch grid(int64_t groups, int64_t items) { return {.dims = {.global = {groups, 1, 1}, .local = {items, 1, 1}}}; }

TEST(Interp, ElementwiseOverGroupsAndItems) {
  const UOp g = global(3), l = local(4), at = g * i32(4) + l;
  const UOp a = memory(0, 12), out = memory(1, 12);
  const UOp x = load(index(a, at)), y = x * x + f32(1), s = store(index(out, at), y);
  std::vector<float> in(12), result(12);
  for (int k = 0; k < 12; ++k) in[size_t(k)] = float(k);
  run({a, out, g, l, i32(4), g * i32(4), at, index(a, at), x, x * x, f32(1), y, index(out, at), s}, {in.data(), result.data()}, grid(3, 4));
  for (int k = 0; k < 12; ++k) EXPECT_EQ(result[size_t(k)], float(k * k + 1));
}

TEST(Interp, LocalDimensionsCountFromTheFirst) {
  const UOp x = local(2, 0), y = local(3, 1), out = memory(0, 6, DType::int32);
  const UOp at = y * i32(2) + x, v = y * i32(10) + x;
  std::vector<int32_t> result(6);
  run({out, x, y, y * i32(2), at, y * i32(10), v, store(index(out, at), v)}, {result.data()}, {.dims = {.local = {2, 3, 1}}});
  EXPECT_EQ(result, (std::vector<int32_t>{0, 1, 10, 11, 20, 21}));
}

TEST(Interp, MatmulWithAnAccumulator) {
  constexpr int64_t n = 64;
  const UOp a = memory(0, n * n), b = memory(1, n * n), out = memory(2, n * n), acc = own(Scope::reg, 1);
  const UOp i = loop(i32(n), 0), j = loop(i32(n), 1), k = loop(i32(n), 2), in = i * i32(n), kn = k * i32(n), zero = index(acc, i32(0));
  const UOp clear = store(zero, f32(0)), x = load(index(a, in + k)), y = load(index(b, kn + j)), c = load(zero);
  const UOp sum = c + x * y, keep = store(zero, sum), put = store(index(out, in + j), c);
  std::vector<float> va(n * n), vb(n * n), result(n * n);
  for (size_t e = 0; e < va.size(); ++e) va[e] = float(e % 7), vb[e] = float(e % 5);
  // The load of the accumulator is one node that stands in the list twice.
  run({a,
       b,
       out,
       acc,
       i,
       in,
       j,
       i32(0),
       zero,
       f32(0),
       clear,
       k,
       in + k,
       index(a, in + k),
       x,
       kn,
       kn + j,
       index(b, kn + j),
       y,
       c,
       x * y,
       sum,
       keep,
       end_of(keep, k),
       c,
       in + j,
       index(out, in + j),
       put,
       end_of(put, j),
       end_of(put, i)},
      {va.data(), vb.data(), result.data()});
  for (size_t r : {size_t{0}, size_t{17}, size_t{63}}) {
    float expected = 0;
    for (size_t t = 0; t < n; ++t) expected += va[r * n + t] * vb[t * n + r];
    EXPECT_EQ(result[r * n + r], expected);
  }
}

// Each item stores to group memory, then reads its neighbour's element.
std::vector<UOp> rotate(bool with_barrier) {
  const UOp l = local(4), shared = own(Scope::group, 4), a = memory(0, 4), out = memory(1, 4);
  const UOp x = load(index(a, l)), put = store(index(shared, l), x), next = (l + i32(1)) & i32(3), y = load(index(shared, next));
  std::vector<UOp> code = {a, out, shared, l, x, put};
  if (with_barrier) code.push_back(barrier());
  for (const UOp& u : {l + i32(1), next, y, store(index(out, l), y)}) code.push_back(u);
  return code;
}

void run(const std::vector<UOp>& code, std::initializer_list<void*> buffers, const Launch& launch) {
  KernelInfo info;
  info.name = "test";
  make_kernel(info, UOp(Op::LINEAR, DType::void_, code, LinearArg{1}))
      ->launch(std::span(buffers.begin(), buffers.size()), launch.values, launch.dims);
}

TEST(Interp, GroupMemoryWithABarrier) {
  float in[4] = {1, 2, 3, 4}, result[4] = {};
  run(rotate(true), {in, result}, grid(1, 4));
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{2, 3, 4, 1}));
}

TEST(Interp, AMissingBarrierIsARace) {
  float in[4] = {1, 2, 3, 4}, result[4] = {};
  try {
    run(rotate(false), {in, result}, grid(1, 4));
    ADD_FAILURE() << "no race";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string_view(e.what()).find("race: another item writes element 1"), std::string_view::npos) << e.what();
  }
}

TEST(Interp, WritesOfTwoItemsOrGroupsAreARace) {
  float result[4] = {};
  const UOp out = memory(0, 4), l = local(4), g = global(2), put = store(index(out, i32(0)), f32(1));
  expect_error({out, l, put}, {result}, "race: another item reads or writes element 0", grid(1, 4));
  expect_error({out, g, put}, {result}, "of group (1, 0, 0): race", grid(2, 1));
  // No barrier orders groups.
  expect_error({out, g, barrier(), put}, {result}, "race", grid(2, 1));
}

TEST(Interp, AReadThatAnotherGroupOverwritesIsARace) {
  float data[3] = {};
  const UOp a = memory(0, 3), g = global(2), x = load(index(a, g + i32(1)));
  expect_error({a, g, g + i32(1), x, store(index(a, g), x)}, {data}, "race", grid(2, 1));
}

TEST(Interp, OutOfBoundsIsReported) {
  float data[4] = {};
  const UOp a = memory(0, 4), l = local(5), x = load(index(a, l));
  expect_error({a, l, x}, {data}, "item (4, 0, 0) of group (0, 0, 0): index 4 is out of bounds of memory of 4 elements", grid(1, 5));
  expect_error({a, i32(-1), store(index(a, i32(-1)), f32(0))}, {data}, "index -1 is out of bounds");
  expect_error({a, load(index(a, i32(2), 4))}, {data}, "index 4 is out of bounds");
}

TEST(Interp, MemoryIsWrittenBeforeItIsRead) {
  const UOp acc = own(Scope::reg, 2), shared = own(Scope::group, 2);
  expect_error({acc, load(index(acc, i32(1)))}, {}, "element 1 is read before it is written");
  expect_error({shared, load(index(shared, i32(1)))}, {}, "element 1 is read before it is written");
}

TEST(Interp, GatesKeepFromMemory) {
  float in[2] = {5, 6}, result[4] = {-1, -1, -1, -1};
  const UOp a = memory(0, 2), out = memory(1, 4), l = local(4), inside = l < i32(2), stored = l < i32(3);
  const UOp x = load_gated(index(a, l), f32(9), inside);
  run({a, out, l, inside, stored, x, store_gated(index(out, l), x, stored)}, {in, result}, grid(1, 4));
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{5, 6, 9, -1}));
}

TEST(Interp, VectorsByWidthAndByIndex) {
  float in[8] = {0, 1, 2, 3, 4, 5, 6, 7}, result[8] = {};
  const UOp a = memory(0, 8), out = memory(1, 8);
  const UOp run4 = load(index(a, i32(4), 4));
  const UOp order = stack(std::vector<UOp>{i32(3), i32(2), i32(1), i32(0)}), gathered = load(index(a, order));
  const UOp sum = run4 + gathered, twice = sum * splat(f32(2), 4);
  const UOp lane = index(twice, i32(1)), high = shrink(twice, {2, 4});
  run({a, out, run4, order, gathered, sum, splat(f32(2), 4), twice, lane, high, store(index(out, i32(0), 4), twice),
       store(index(out, i32(4)), lane), store(index(out, i32(5), 2), high)},
      {in, result});
  EXPECT_EQ(std::vector<float>(result, result + 8), (std::vector<float>{14, 14, 14, 14, 14, 14, 14, 0}));
}

TEST(Interp, GateOfEachLane) {
  float in[2] = {5, 6}, result[4] = {-1, -1, -1, -1};
  const UOp a = memory(0, 2), out = memory(1, 4), l = local(1);
  const UOp gate = stack(std::vector<UOp>{bool_const(true), bool_const(true), bool_const(false), bool_const(false)});
  const UOp x = load_gated(index(a, i32(0), 4), splat(f32(7), 4), gate);
  run({a, out, l, gate, splat(f32(7), 4), x, x + x, store_gated(index(out, i32(0), 4), x + x, gate)}, {in, result}, {});
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{10, 12, -1, -1}));
}

TEST(Interp, BlocksRunForTheItemsInThem) {
  float result[4] = {0, 0, 0, 0};
  const UOp out = memory(0, 4), l = local(4), c = l < i32(2), block = if_(c), put = store(index(out, l), f32(3));
  const UOp none = if_(l < i32(0));
  run({out, l, c, block, put, endif_(block), l < i32(0), none, store(index(out, i32(9)), f32(0)), endif_(none)}, {result}, grid(1, 4));
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{3, 3, 0, 0}));
  expect_error({out, l, c, block, barrier(), endif_(block)}, {result}, "does not reach what others", grid(1, 4));
}

TEST(Interp, LoopsAreUniform) {
  const UOp l = local(4), r = loop(l, 0);
  expect_error({l, r, end_of(r, r)}, {}, "loops must be uniform", grid(1, 4));
}

TEST(Interp, ThreadRangeAndVariables) {
  const Symbol name("n");
  const UOp n(Op::VAR, DType::int32, std::initializer_list<UOp>{}, VarArg{name, 1, 8});
  const UOp out = UOp(Op::PARAM, DType::int32, {n}, ParamArg{}), t = loop(n, 0, AxisKind::thread), put = store(index(out, t), t * n);
  int32_t result[4] = {-1, -1, -1, -1};
  Launch launch{.dims = {.chunks = 3}, .names = {name}, .values = {3}};
  run({n, out, t, t * n, put, end_of(put, t)}, {result}, launch);
  EXPECT_EQ(std::vector<int32_t>(result, result + 4), (std::vector<int32_t>{0, 3, 6, -1}));
  const UOp same = store(index(out, i32(0)), t);
  expect_error({n, out, t, same, end_of(same, t)}, {result}, "race", launch);
  launch.dims.chunks = 2;
  expect_error({n, out, t, t * n, put, end_of(put, t)}, {result}, "2 chunks were launched", launch);
}

class InterpDType : public testing::TestWithParam<DType> {};

TEST_P(InterpDType, AddsAndCasts) {
  const DType d = GetParam();
  const UOp a = memory(0, 2, d), out = memory(1, 2, d), narrow = memory(2, 2, DType::int64), l = local(2);
  const UOp x = load(index(a, l)), y = x + constant(d, 1);
  std::byte in[16] = {}, result[16] = {};
  int64_t cast_result[2] = {};
  Scalar::from_int(0, d).to_bytes(in);
  Scalar::from_int(3, d).to_bytes(in + itemsize(d));
  run({a, out, narrow, l, x, y, store(index(out, l), y), cast(y, DType::int64), store(index(narrow, l), cast(y, DType::int64))},
      {in, result, cast_result}, grid(1, 2));
  const int64_t second = is_bool(d) ? 1 : 4;
  EXPECT_EQ(Scalar::from_bytes(result, d).as_int(), 1);
  EXPECT_EQ(Scalar::from_bytes(result + itemsize(d), d).as_int(), second);
  EXPECT_EQ(cast_result[0], 1);
  EXPECT_EQ(cast_result[1], second);
}

INSTANTIATE_TEST_SUITE_P(All, InterpDType, testing::ValuesIn(dtypes::all));

TEST(Interp, TheDeviceRunsAProgramOnItsBuffers) {
  Device& device = Device::get("INTERP");
  const UOp a = memory(0, 4), l = local(4), x = load(index(a, l)), y = x + x;
  const UOp linear(Op::LINEAR, DType::void_, {a, l, x, y, store(index(a, l), y)}, LinearArg{1});
  KernelInfo info;
  info.name = "twice";
  const auto kernel = device.load(info, linear, device.compile(device.render(linear, info)));
  const BufferPtr data = Buffer::make(device, 4, DType::float32);
  float numbers[4] = {1, 2, 3, 4};
  data->copyin(std::as_bytes(std::span(numbers)));
  void* const handle = data->handle();
  EXPECT_TRUE(kernel->launch(std::span(&handle, 1), {}, grid(1, 4).dims, true).has_value());
  data->copyout(std::as_writable_bytes(std::span(numbers)));
  EXPECT_EQ(std::vector<float>(numbers, numbers + 4), (std::vector<float>{2, 4, 6, 8}));
}

TEST(Interp, BadProgramsAreRefused) {
  const UOp a = memory(0, 4), r = loop(i32(2), 0), x = load(index(a, i32(0)));
  expect_error({x}, {}, "its memory does not stand earlier");
  expect_error({a, r}, {}, "never closed");
  expect_error({a, end_of(x, r)}, {}, "innermost open block");
  expect_error({a, x + x}, {}, "does not stand earlier in the list");
}

}  // namespace
}  // namespace tinygrad::runtime::interp
