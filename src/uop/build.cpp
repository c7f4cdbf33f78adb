#include "uop/build.h"

#include <atomic>

namespace tinygrad {

UOp constant(const Scalar& value) { return UOp(Op::CONST, value.dtype(), {}, ConstArg{value, {}}); }
UOp constant(DType dtype, double value) { return constant(Scalar::of(value, dtype)); }
UOp constant(DType dtype, int64_t value) { return constant(Scalar::of(value, dtype)); }
UOp index_const(int64_t value) { return constant(DType::index, value); }
UOp bool_const(bool value) { return constant(DType::bool_, int64_t(value)); }

const Scalar* const_value(const UOp& u) {
  if (u.is(Op::CONST)) return &std::get<ConstArg>(u.arg()).value;
  if (u.is(Op::BIND)) return const_value(u.src(1));
  return nullptr;
}

bool is_const(const UOp& u, int64_t value) { return u.is(Op::CONST) && std::get<ConstArg>(u.arg()).value == Scalar::of(value, u.dtype()); }

UOp alu(Op op, std::span<const UOp> s) {
  const DType dtype = in_group(op, Group::comparison) ? DType::bool_ : op == Op::WHERE ? s[1].dtype() : s[0].dtype();
  return UOp(op, dtype, s);
}
UOp alu(Op op, std::initializer_list<UOp> s) { return alu(op, std::span<const UOp>(s.begin(), s.size())); }

UOp cast(const UOp& x, DType dtype) { return x.dtype() == dtype ? x : UOp(Op::CAST, dtype, {x}); }
UOp bitcast(const UOp& x, DType dtype) { return x.dtype() == dtype ? x : UOp(Op::BITCAST, dtype, {x}); }

UOp operator+(const UOp& a, const UOp& b) { return alu(Op::ADD, {a, b}); }
UOp operator-(const UOp& a, const UOp& b) { return alu(Op::SUB, {a, b}); }
UOp operator*(const UOp& a, const UOp& b) { return alu(Op::MUL, {a, b}); }
UOp operator-(const UOp& a) { return alu(Op::NEG, {a}); }
UOp operator&(const UOp& a, const UOp& b) { return alu(Op::AND, {a, b}); }
UOp operator|(const UOp& a, const UOp& b) { return alu(Op::OR, {a, b}); }
UOp operator^(const UOp& a, const UOp& b) { return alu(Op::XOR, {a, b}); }
UOp operator<<(const UOp& a, const UOp& b) { return alu(Op::SHL, {a, b}); }
UOp operator>>(const UOp& a, const UOp& b) { return alu(Op::SHR, {a, b}); }
UOp operator<(const UOp& a, const UOp& b) { return alu(Op::CMPLT, {a, b}); }
UOp floor_div(const UOp& a, const UOp& b) { return alu(Op::FLOORDIV, {a, b}); }
UOp floor_mod(const UOp& a, const UOp& b) { return alu(Op::FLOORMOD, {a, b}); }
UOp max(const UOp& a, const UOp& b) { return alu(Op::MAX, {a, b}); }
UOp min(const UOp& a, const UOp& b) { return where(b < a, b, a); }
UOp eq(const UOp& a, const UOp& b) { return alu(Op::CMPEQ, {a, b}); }
UOp ne(const UOp& a, const UOp& b) { return alu(Op::CMPNE, {a, b}); }
UOp logical_not(const UOp& a) { return alu(Op::CMPNE, {a, bool_const(true)}); }
UOp where(const UOp& c, const UOp& x, const UOp& y) { return alu(Op::WHERE, {c, x, y}); }

UOp operator+(const UOp& a, int64_t b) { return a + constant(a.dtype(), b); }
UOp operator-(const UOp& a, int64_t b) { return a - constant(a.dtype(), b); }
UOp operator*(const UOp& a, int64_t b) { return a * constant(a.dtype(), b); }
UOp operator<(const UOp& a, int64_t b) { return a < constant(a.dtype(), b); }
UOp floor_div(const UOp& a, int64_t b) { return floor_div(a, constant(a.dtype(), b)); }
UOp floor_mod(const UOp& a, int64_t b) { return floor_mod(a, constant(a.dtype(), b)); }

UOp variable(Symbol name, int64_t min, int64_t max) { return UOp(Op::VAR, DType::index, {}, VarArg{name, min, max}); }
UOp bind(const UOp& variable, int64_t value) { return UOp(Op::BIND, DType::index, {variable, index_const(value)}); }

UOp range(const UOp& size, RangeArg arg) { return UOp(Op::RANGE, DType::index, {size}, arg); }
UOp range(int64_t size, int32_t id, AxisKind kind) { return range(index_const(size), RangeArg{.id = id, .kind = kind}); }

namespace {

UOp first_and_rest(Op op, DType dtype, const UOp& first, std::span<const UOp> rest, Arg arg = {}) {
  UOps s{first};
  for (const UOp& r : rest) s.push_back(r);
  return UOp(op, dtype, s, std::move(arg));
}

UOps index_consts(std::initializer_list<int64_t> values) {
  UOps out;
  for (int64_t v : values) out.push_back(index_const(v));
  return out;
}

}  // namespace

UOp end(const UOp& effect, std::span<const UOp> ranges) {
  return ranges.empty() ? effect : first_and_rest(Op::END, DType::void_, effect, ranges);
}
UOp after(const UOp& x, std::span<const UOp> effects) { return effects.empty() ? x : first_and_rest(Op::AFTER, x.dtype(), x, effects); }
bool is_tensor_memory(const UOp& u) {
  const UOp& memory = is_address(u) ? u.src(0) : u;
  return memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope == Scope::tensor;
}

UOp commit(const UOp& effect) { return UOp(Op::COMMIT, DType::void_, {effect}); }
UOp wait(std::span<const UOp> effects, int32_t pending) { return UOp(Op::WAIT, DType::void_, effects, WaitArg{pending}); }
UOp group(std::span<const UOp> effects) { return effects.size() == 1 ? effects[0] : UOp(Op::GROUP, DType::void_, effects); }
UOp sink(std::span<const UOp> effects, Arg arg) { return UOp(Op::SINK, DType::void_, effects, std::move(arg)); }

UOp index(const UOp& buf, const UOp& at, int32_t width) { return UOp(Op::INDEX, buf.dtype(), {buf, at}, IndexArg{width}); }
UOp index_valid(const UOp& buf, const UOp& at, const UOp& valid, int32_t width) {
  return UOp(Op::INDEX, buf.dtype(), {buf, at, valid}, IndexArg{width});
}
UOp load(const UOp& index) { return UOp(Op::LOAD, index.dtype(), {index}); }
UOp store(const UOp& target, const UOp& value) { return UOp(Op::STORE, DType::void_, {target, value}); }

UOp reshape(const UOp& x, std::span<const UOp> dims) { return first_and_rest(Op::RESHAPE, x.dtype(), x, dims); }
UOp reshape(const UOp& x, std::initializer_list<int64_t> dims) { return reshape(x, index_consts(dims)); }
UOp expand(const UOp& x, std::span<const UOp> dims) { return first_and_rest(Op::EXPAND, x.dtype(), x, dims); }
UOp expand(const UOp& x, std::initializer_list<int64_t> dims) { return expand(x, index_consts(dims)); }
UOp permute(const UOp& x, const Axes& axes) { return UOp(Op::PERMUTE, x.dtype(), {x}, AxesArg{axes}); }
UOp flip(const UOp& x, const Axes& axes) { return UOp(Op::FLIP, x.dtype(), {x}, AxesArg{axes}); }
UOp pad(const UOp& x, std::span<const UOp> before_after) { return first_and_rest(Op::PAD, x.dtype(), x, before_after); }
UOp pad(const UOp& x, std::initializer_list<int64_t> before_after) { return pad(x, index_consts(before_after)); }
UOp shrink(const UOp& x, std::span<const UOp> begin_end) { return first_and_rest(Op::SHRINK, x.dtype(), x, begin_end); }
UOp shrink(const UOp& x, std::initializer_list<int64_t> begin_end) { return shrink(x, index_consts(begin_end)); }
UOp reduce(Op op, const UOp& x, const Axes& axes) { return UOp(Op::REDUCE, x.dtype(), {x}, ReduceArg{op, axes}); }
UOp stack(std::span<const UOp> values) { return UOp(Op::STACK, values[0].dtype(), values); }

UOp buffer(DType dtype, const BufferArg& arg) { return UOp(Op::BUFFER, dtype, {}, arg); }
UOp param(DType dtype, int64_t size, const ParamArg& arg) { return UOp(Op::PARAM, dtype, {index_const(size)}, arg); }

uint64_t next_buffer_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tinygrad
