#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device/buffer.h"
#include "device/device.h"
#include "device/launch_log.h"
#include "kernel/describe_kernel.h"
#include "uop/build.h"

namespace tinygrad::test {

/// Builds a linear program instruction by instruction; each method adds what it returns.
class ProgramBuilder {
 public:
  UOp add(UOp u) {
    list_.push_back(u);
    return u;
  }
  UOp param(DType dtype, int64_t size, int32_t slot, uint16_t alias = 0) {
    return add(tinygrad::param(dtype, size, ParamArg{.slot = slot, .align = 0, .alias = alias, .device = {}}));
  }
  UOp var(Symbol name, int64_t max) { return add(UOp(Op::VAR, DType::int64, {}, VarArg{name, 0, max})); }
  UOp constant(DType dtype, double value) { return add(tinygrad::constant(dtype, value)); }
  UOp constant(const Scalar& value) { return add(tinygrad::constant(value)); }
  UOp number(int64_t value) { return add(tinygrad::constant(DType::int64, value)); }
  UOp reg(DType dtype, int64_t size) {
    return add(buffer(dtype, BufferArg{.id = next_id_++, .size = size, .scope = Scope::reg, .device = {}, .resource = {}}));
  }
  UOp range(const UOp& size, AxisKind kind = AxisKind::loop) {
    return add(UOp(Op::RANGE, DType::int64, {size}, RangeArg{.id = next_range_++, .kind = kind, .order = 0}));
  }
  UOp range(int64_t size, AxisKind kind = AxisKind::loop) { return range(number(size), kind); }
  UOp end(const UOp& range) { return add(UOp(Op::END, DType::void_, {range, range})); }
  UOp index(const UOp& memory, const UOp& at, int width = 1) { return add(tinygrad::index(memory, at, width)); }
  UOp load(const UOp& memory, const UOp& at, int width = 1) { return add(tinygrad::load(index(memory, at, width))); }
  UOp load(const UOp& memory, const UOp& at, const UOp& alternative, const UOp& gate, int width = 1) {
    return add(UOp(Op::LOAD, memory.dtype(), {index(memory, at, width), alternative, gate}));
  }
  UOp store(const UOp& memory, const UOp& at, const UOp& value, int width = 1) {
    return add(tinygrad::store(index(memory, at, width), value));
  }
  UOp store(const UOp& memory, const UOp& at, const UOp& value, const UOp& gate, int width = 1) {
    return add(UOp(Op::STORE, DType::void_, {index(memory, at, width), value, gate}));
  }
  UOp alu(Op op, std::initializer_list<UOp> sources) { return add(tinygrad::alu(op, sources)); }
  UOp cast(const UOp& x, DType dtype) { return add(UOp(Op::CAST, dtype, {x})); }
  UOp bitcast(const UOp& x, DType dtype) { return add(UOp(Op::BITCAST, dtype, {x})); }
  UOp splat(const UOp& x, int64_t lanes) { return add(UOp(Op::EXPAND, x.dtype(), {x, index_const(lanes)})); }
  UOp stack(std::initializer_list<UOp> values) { return add(tinygrad::stack(std::span<const UOp>(values.begin(), values.size()))); }
  UOp lane(const UOp& x, int64_t i) { return add(UOp(Op::INDEX, x.dtype(), {x, index_const(i)}, IndexArg{})); }
  UOp part(const UOp& x, int64_t begin, int64_t end) { return add(UOp(Op::SHRINK, x.dtype(), {x, index_const(begin), index_const(end)})); }

  UOp linear() const { return UOp(Op::LINEAR, DType::void_, list_, LinearArg{1}); }

 private:
  std::vector<UOp> list_;
  uint64_t next_id_ = 1;
  int32_t next_range_ = 0;
};

/// A program ready to run on a device.
struct Program {
  const Device* device;
  KernelInfo info;
  std::string source;
  std::unique_ptr<Kernel> kernel;

  Program(Device& on, const UOp& linear, std::string_view name) : device(&on), info(describe_kernel(linear, name)) {
    source = on.render(linear, info);
    kernel = on.load(info, linear, on.compile(source));
  }
  void run(std::span<const BufferPtr> buffers, std::span<const int64_t> variables = {}) {
    std::vector<void*> handles;
    for (const BufferPtr& b : buffers) handles.push_back(b->handle());
    kernel->launch(handles, variables, info.launch_dims(variables), true);
    device->launches().add_kernels(1);
  }
};

template <class T>
BufferPtr buffer_from(Device& device, const std::vector<T>& values, DType dtype) {
  BufferPtr b = Buffer::make(device, static_cast<int64_t>(values.size()), dtype);
  b->copyin(std::as_bytes(std::span(values)));
  return b;
}

template <class T>
std::vector<T> values_of(Buffer& buffer) {
  std::vector<T> out(buffer.nbytes() / sizeof(T));
  buffer.copyout(std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace tinygrad::test
