#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include "shape/device.h"
#include "shape/infer.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {
namespace {

UOp on(Symbol device, uint64_t id) { return buffer(DType::float32, {.id = id, .size = 4, .device = device}); }
UOp copy(const UOp& x, Symbol device) { return UOp(Op::COPY, x.dtype(), {x}, DeviceArg{device}); }

TEST(Device, FollowsSources) {
  const UOp a = on("CPU", 11), b = on("CPU", 12), g = on("CUDA", 13);
  EXPECT_EQ(device_of(a), Symbol("CPU"));
  EXPECT_EQ(device_of(a + b), Symbol("CPU"));
  EXPECT_EQ(device_of(a * constant(DType::float32, 2.0)), Symbol("CPU"));
  EXPECT_TRUE(device_of(constant(DType::float32, 2.0)).empty());
  EXPECT_TRUE(device_of(range(4, 0)).empty());
  EXPECT_EQ(device_of(UOp(Op::CONST, DType::float32, {}, ConstArg{Scalar::of(1.0f), "CUDA"})), Symbol("CUDA"));
  EXPECT_EQ(device_of(copy(a, "CUDA") + g), Symbol("CUDA"));
  EXPECT_EQ(device_of(after(a, std::vector<UOp>{store(a, b)})), Symbol("CPU"));
  EXPECT_TRUE(device_of(sink(std::vector<UOp>{store(a, b), store(g, g)})).empty());
  EXPECT_EQ(device_of(UOp(Op::CALL, DType::void_, {UOp(Op::COPY, DType::float32, {g}, DeviceArg{"CPU"}), a, g})), Symbol("CPU"));
}

TEST(Device, MixedSourcesAreAnError) {
  try {
    device_of(on("CPU", 11) + on("CUDA", 13));
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_STREQ(e.what(), "ADD: the sources live on CPU and CUDA; move one of them with .to(\"CPU\")");
  }
}

TEST(Device, TheHintIsOneThatComputes) {
  for (const auto& [first, second] : {std::pair("DISK:/tmp/x", "CPU"), std::pair("CPU", "DISK:/tmp/x")}) try {
      device_of(on(first, 11) + on(second, 13));
      FAIL();
    } catch (const DeviceError& e) {
      EXPECT_NE(std::string_view(e.what()).find("; move one of them with .to(\"CPU\")"), std::string_view::npos) << e.what();
    }
}

TEST(Device, Shards) {
  const Symbol names[] = {"CPU", "CPU:1"}, reversed[] = {"CPU:1", "CPU"};
  const UOp s(Op::MSTACK, DType::float32, {on("CPU", 11), on("CPU:1", 14)}, ShardingArg{Devices::of(names), {}});
  EXPECT_EQ(devices_of(s), Devices::of(names));
  EXPECT_NE(devices_of(s), Devices::of(reversed));
  EXPECT_EQ(to_string(devices_of(s)), "CPU, CPU:1");
  EXPECT_EQ(devices_of(s).size(), 2u);
  EXPECT_EQ(devices_of(s + constant(DType::float32, 1.0)), devices_of(s));
  EXPECT_THROW(device_of(s), DeviceError);
  EXPECT_EQ(devices_of(s + on("CPU", 11)), devices_of(s));  // which is copied to the others
  EXPECT_EQ(devices_of(on("CPU:1", 11) + s), devices_of(s));
  EXPECT_THROW(devices_of(s + on("CUDA", 13)), DeviceError);
  EXPECT_EQ(Devices::of(std::span(names, 1)), Devices("CPU"));
  EXPECT_TRUE(Devices::of({}).empty());
}

std::string open(const UOp& u) {
  std::string out;
  for (const UOp& r : ranges_of(u)) out += (out.empty() ? "" : " ") + print_expr(r);
  return out;
}

TEST(Ranges, OpenAndClosed) {
  const UOp r0 = range(4, 0), r1 = range(5, 1), p = param(DType::float32, 20, {});
  const UOp x = load(index(p, r0 * 5 + r1));
  EXPECT_EQ(open(x), "r0 r1");
  EXPECT_EQ(open(r0), "r0");
  EXPECT_EQ(open(constant(DType::float32, 1.0)), "");
  EXPECT_TRUE(is_closed(p));
  EXPECT_FALSE(is_closed(r0));
  const UOp sum(Op::REDUCE, DType::float32, {x, r1}, ReduceArg{Op::ADD, {}});
  EXPECT_EQ(open(sum), "r0");
  const UOp st = store(index(p, r0), sum);
  EXPECT_EQ(open(st), "r0");
  EXPECT_EQ(open(end(st, std::vector<UOp>{r0})), "");
  EXPECT_EQ(open(UOp(Op::STAGE, DType::float32, {x, r1}, StageArg{})), "r0");
}

TEST(Ranges, SortedByOrderKey) {
  const UOp late = range(index_const(4), {.id = 0, .order = 2}), early = range(index_const(4), {.id = 1, .order = 1});
  EXPECT_EQ(open(late + early), "r1 r0");
}

TEST(Ranges, AfterInsideALoop) {
  const UOp r0 = range(4, 0), b = buffer(DType::float32, {.id = 15, .size = 1, .scope = Scope::reg});
  EXPECT_EQ(open(after(b, std::vector<UOp>{r0})), "r0");
  EXPECT_EQ(open(load(index(after(b, std::vector<UOp>{r0}), index_const(0)))), "r0");
}

TEST(Ranges, SizesThatDependOnOuterRanges) {
  const UOp r0 = range(4, 0), inner = range(r0 + 1, RangeArg{.id = 1});
  EXPECT_EQ(open(inner), "r0 r1");
  const UOp sum(Op::REDUCE, DType::index, {inner, inner}, ReduceArg{Op::ADD, {}});
  EXPECT_EQ(open(sum), "r0");
}

TEST(Ranges, SubstitutionLeavesLoopsInsideTheirOwn) {
  const UOp r = range(4, 0), p = param(DType::float32, 20, {});
  const UOp x = load(index(p, r));
  const UOp sum(Op::REDUCE, DType::float32, {x, r}, ReduceArg{Op::ADD, {}});
  NodeMap<UOp> map;
  map[r] = index_const(2);
  const std::vector<UOp> roots = {x * sum, sum}, ranges = {r};
  const std::vector<UOp> out = substitute_open(roots, ranges, map);
  EXPECT_EQ(out[0], load(index(p, index_const(2))) * sum);
  EXPECT_EQ(out[1], sum);
}

TEST(Ranges, BodiesAreClosed) {
  const UOp r0 = range(4, 0), f(Op::FUNCTION, DType::index, {r0 + 1}, FunctionArg{"f"});
  EXPECT_EQ(open(UOp(Op::CALL, DType::index, {f, range(4, 7)})), "r7");
}

TEST(Ranges, NodesStillDie) {
  const size_t before = live_node_count();
  {
    const UOp r = range(index_const(123457), {.id = 991}), x = r * 3 + 5;
    EXPECT_EQ(open(x), "r991");
    EXPECT_EQ(open(r), "r991");
  }
  EXPECT_EQ(live_node_count(), before);
}

TEST(InferDType, Rules) {
  const UOp f = constant(DType::float32, 1.0), d = constant(DType::float64, 1.0), i = constant(DType::int32, 1), b = bool_const(true);
  auto of = [](Op op, std::initializer_list<UOp> s) { return infer_dtype(op, std::span(s.begin(), s.size())); };
  EXPECT_EQ(of(Op::ADD, {f, f}), DType::float32);
  EXPECT_EQ(of(Op::CMPLT, {i, i}), DType::bool_);
  EXPECT_EQ(of(Op::WHERE, {b, i, i}), DType::int32);
  EXPECT_EQ(of(Op::SHL, {i, constant(DType::uint8, 1)}), DType::int32);
  EXPECT_EQ(of(Op::STORE, {f, f}), DType::void_);
  EXPECT_EQ(of(Op::RANGE, {index_const(3)}), DType::index);
  EXPECT_THROW(of(Op::ADD, {f, d}), DTypeError);
  EXPECT_THROW(of(Op::SQRT, {i}), DTypeError);
  EXPECT_THROW(of(Op::CDIV, {f, f}), DTypeError);
  EXPECT_THROW(of(Op::XOR, {f, f}), DTypeError);
  EXPECT_THROW(of(Op::NEG, {b}), DTypeError);
  EXPECT_THROW(of(Op::WHERE, {i, f, f}), DTypeError);
  EXPECT_THROW(of(Op::THREEFRY, {i, i}), DTypeError);
  EXPECT_THROW(of(Op::STORE, {f, i}), DTypeError);
  EXPECT_THROW(of(Op::ADD, {f}), InternalError);
  EXPECT_THROW(of(Op::CAST, {f}), InternalError);
  try {
    of(Op::ADD, {f, i});
    FAIL();
  } catch (const DTypeError& e) {
    EXPECT_STREQ(e.what(), "ADD: got (dtypes.float32, dtypes.int32), expects one dtype; cast first");
  }
}

}  // namespace
}  // namespace tinygrad
