#include "engine/capture.h"

#include <gtest/gtest.h>

#include <functional>

#include "device/device.h"
#include "engine/run.h"
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::engine {
namespace {

using Floats = std::vector<float>;

BufferPtr floats(const Floats& values) {
  BufferPtr b = Buffer::make(Device::get("CPU"), int64_t(values.size()), DType::float32);
  b->copyin(std::as_bytes(std::span(values)));
  return b;
}
Floats values(Buffer& b) {
  Floats out(size_t(b.size()));
  b.copyout(std::as_writable_bytes(std::span(out)));
  return out;
}

/// Stores x + w into y, then y * y into z: y and z of the call or temporary.
class CaptureTest : public testing::Test {
 protected:
  RecordedCall call(uint32_t to, std::initializer_list<uint32_t> from, const std::function<UOp(std::span<const UOp>)>& value) {
    const auto memory = [] { return buffer(DType::float32, {.id = next_buffer_id(), .size = 4, .device = "CPU"}); };
    const UOp target = memory();
    std::vector<UOp> sources;
    for (size_t i = 0; i < from.size(); ++i) sources.push_back(memory());
    const auto s = schedule::make_schedule(sink(UOps{store(target, value(sources))}), target_of);
    const UOp kernel = s.plan->linear.src(0);
    RecordedCall out{kernel.src(0), {}};
    for (const UOp& a : kernel.src().subspan(1)) {
      if (!a.is(Op::PARAM)) continue;
      const UOp& b = s.inputs[size_t(a.arg_as<ParamArg>().slot)];
      uint32_t slot = to;
      for (size_t i = 0; i < sources.size(); ++i)
        if (b == sources[i]) slot = from.begin()[i];
      out.slots.push_back(slot);
    }
    return out;
  }
  static CapturedSlot slot(SlotKind kind, const BufferPtr& buffer = {}) {
    return {.kind = kind, .dtype = DType::float32, .size = 4, .device = "CPU", .buffer = buffer};
  }
};

TEST_F(CaptureTest, MemoryIsParams) {
  const BufferPtr w = floats({1, 2, 3, 4});
  const std::vector<RecordedCall> calls{call(2, {0, 1}, [](auto x) { return x[0] + x[1]; }),
                                        call(3, {2}, [](auto x) { return x[0] * x[0]; })};
  Capture capture({slot(SlotKind::call), slot(SlotKind::fixed, w), slot(SlotKind::temporary), slot(SlotKind::call)}, calls, {},
                  current_options());
  EXPECT_EQ(capture.kernel_count(), 2u);
  for (const UOp& c : capture.linear().src())
    for (const UOp& a : c.src().subspan(1)) EXPECT_TRUE(a.is(Op::PARAM));
  EXPECT_TRUE(capture.read(0) && !capture.written(0) && capture.read(1) && capture.written(3));

  // Two runs at once have temporaries of their own.
  auto first = capture.lease(), second = capture.lease();
  EXPECT_NE(Capture::buffer(*first, 2).handle(), Capture::buffer(*second, 2).handle());
  for (int i = 0; i < 3; ++i) {
    const BufferPtr x = floats({float(i), 0, 0, 1}), z = floats({0, 0, 0, 0});
    Buffer* const buffers[] = {x.get(), nullptr, nullptr, z.get()};
    capture.run(i == 1 ? *second : *first, buffers, {});
    EXPECT_EQ(values(*z), (Floats{float((i + 1) * (i + 1)), 4, 9, 25}));
  }
  void* const memory = Capture::buffer(*first, 2).handle();
  capture.give_back(std::move(first));
  EXPECT_EQ(Capture::buffer(*capture.lease(), 2).handle(), memory);
}

TEST_F(CaptureTest, TemporariesWhoseLivesDoNotMeetShareMemory) {
  std::vector<RecordedCall> calls;
  std::vector<CapturedSlot> slots{slot(SlotKind::call)};
  for (uint32_t i = 0; i < 10; ++i) {
    slots.push_back(slot(SlotKind::temporary));
    calls.push_back(call(i + 1, {i}, [](auto x) { return x[0] + constant(DType::float32, 1); }));
  }
  slots.push_back(slot(SlotKind::call));
  calls.push_back(call(11, {10}, [](auto x) { return x[0] + constant(DType::float32, 1); }));
  Capture capture(slots, calls, {}, current_options());
  const auto lease = capture.lease();
  EXPECT_EQ(Capture::buffer(*lease, 1).handle(), Capture::buffer(*lease, 3).handle());
  EXPECT_NE(Capture::buffer(*lease, 1).handle(), Capture::buffer(*lease, 2).handle());
  const BufferPtr x = floats({0, 1, 2, 3}), y = floats({0, 0, 0, 0});
  std::vector<Buffer*> buffers(12);
  buffers[0] = x.get();
  buffers[11] = y.get();
  capture.run(*lease, buffers, {});
  EXPECT_EQ(values(*y), (Floats{11, 12, 13, 14}));
}

TEST_F(CaptureTest, VariablesAreLaunchArguments) {
  const UOp n = variable("n", 1, 4);
  const std::pair<SInt, SInt> part[] = {{0, SInt(bind(n, 2))}};
  const std::vector<RecordedCall> calls{
      call(1, {0}, [&](auto x) { return expand(reshape(reduce(Op::ADD, shrink(x[0], part), {0}), {1}), {4}); })};
  Capture capture({slot(SlotKind::call), slot(SlotKind::call)}, calls, {{Symbol("n"), std::nullopt}}, current_options());
  const auto lease = capture.lease();
  const BufferPtr x = floats({1, 10, 100, 1000}), y = floats({0, 0, 0, 0});
  Buffer* const buffers[] = {x.get(), y.get()};
  for (const auto& [count, sum] : std::vector<std::pair<int64_t, float>>{{1, 1}, {4, 1111}, {2, 11}}) {
    capture.run(*lease, buffers, std::span(&count, 1));
    EXPECT_EQ(values(*y)[3], sum);
  }
}

}  // namespace
}  // namespace tinygrad::engine
