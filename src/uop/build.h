#pragma once
#include <cstdint>
#include <span>

#include "uop/uop.h"

namespace tinygrad {

// Short ways to make nodes. They check nothing and fold nothing: the verifiers do the one, the rewrite rules the other.

UOp constant(const Scalar& value);
UOp constant(DType dtype, double value);
UOp constant(DType dtype, int64_t value);
inline UOp constant(DType dtype, int value) { return constant(dtype, int64_t(value)); }
UOp index_const(int64_t value);
UOp bool_const(bool value);
/// The value of a CONST, or of a BIND's CONST; nullptr for anything else.
const Scalar* const_value(const UOp& u);
/// True for a CONST equal to `value`.
bool is_const(const UOp& u, int64_t value);

/// An ALU node; the dtype is bool for comparisons, that of the branches for WHERE, else that of the first source.
UOp alu(Op op, std::initializer_list<UOp> sources);
UOp alu(Op op, std::span<const UOp> sources);
UOp cast(const UOp& x, DType dtype);
UOp bitcast(const UOp& x, DType dtype);

UOp operator+(const UOp& a, const UOp& b);
UOp operator-(const UOp& a, const UOp& b);
UOp operator*(const UOp& a, const UOp& b);
UOp operator-(const UOp& a);
UOp operator&(const UOp& a, const UOp& b);
UOp operator|(const UOp& a, const UOp& b);
UOp operator^(const UOp& a, const UOp& b);
UOp operator<<(const UOp& a, const UOp& b);
UOp operator>>(const UOp& a, const UOp& b);
UOp operator<(const UOp& a, const UOp& b);  ///< CMPLT
UOp floor_div(const UOp& a, const UOp& b);  ///< FLOORDIV
UOp floor_mod(const UOp& a, const UOp& b);  ///< FLOORMOD
UOp max(const UOp& a, const UOp& b);
UOp min(const UOp& a, const UOp& b);  ///< WHERE(b < a, b, a)
UOp eq(const UOp& a, const UOp& b);
UOp ne(const UOp& a, const UOp& b);
UOp logical_not(const UOp& a);  ///< of a bool
UOp where(const UOp& c, const UOp& x, const UOp& y);

// The same with a constant of the other operand's dtype.
UOp operator+(const UOp& a, int64_t b);
UOp operator-(const UOp& a, int64_t b);
UOp operator*(const UOp& a, int64_t b);
UOp operator<(const UOp& a, int64_t b);
UOp floor_div(const UOp& a, int64_t b);
UOp floor_mod(const UOp& a, int64_t b);

UOp variable(Symbol name, int64_t min, int64_t max);
UOp bind(const UOp& variable, int64_t value);

UOp range(const UOp& size, RangeArg arg);
UOp range(int64_t size, int32_t id, AxisKind kind = AxisKind::loop);
UOp end(const UOp& effect, std::span<const UOp> ranges);
UOp after(const UOp& x, std::span<const UOp> effects);
UOp group(std::span<const UOp> effects);
UOp sink(std::span<const UOp> effects, Arg arg = {});
UOp commit(const UOp& effect);
UOp wait(std::span<const UOp> effects, int32_t pending);

UOp index(const UOp& buf, const UOp& at, int32_t width = 1);
UOp index_valid(const UOp& buf, const UOp& at, const UOp& valid, int32_t width = 1);
UOp load(const UOp& index);
UOp store(const UOp& target, const UOp& value);

/// Movement nodes; sizes as index UOps or numbers.
UOp reshape(const UOp& x, std::span<const UOp> dims);
UOp reshape(const UOp& x, std::initializer_list<int64_t> dims);
UOp expand(const UOp& x, std::span<const UOp> dims);
UOp expand(const UOp& x, std::initializer_list<int64_t> dims);
UOp permute(const UOp& x, const Axes& axes);
UOp flip(const UOp& x, const Axes& axes);
UOp pad(const UOp& x, std::span<const UOp> before_after);
UOp pad(const UOp& x, std::initializer_list<int64_t> before_after);
UOp shrink(const UOp& x, std::span<const UOp> begin_end);
UOp shrink(const UOp& x, std::initializer_list<int64_t> begin_end);
UOp reduce(Op op, const UOp& x, const Axes& axes);
UOp stack(std::span<const UOp> values);

UOp buffer(DType dtype, const BufferArg& arg);
/// A kernel's buffer argument of `size` elements.
UOp param(DType dtype, int64_t size, const ParamArg& arg);
/// A kernel's argument that is an image: PARAM(height, width, 4), see INDEX.
inline bool is_image(const UOp& memory) { return memory.is(Op::PARAM) && memory.src_count() == 3; }
/// An element or a run of elements in memory, not a lane of a vector.
inline bool is_address(const UOp& u) { return u.is(Op::INDEX) && u.src(0).in(Group::memory); }
/// Memory, or an address in it, that is tensor memory.
bool is_tensor_memory(const UOp& u);
/// A WMMA of a linear program that reads a factor from memory of the group, and so goes on beside the program until a WMMA_WAIT.
inline bool is_asynchronous(const UOp& u) { return u.is(Op::WMMA) && is_address(u.src(1)); }
/// A fresh id for a device BUFFER; never reused in the process.
uint64_t next_buffer_id();

}  // namespace tinygrad
