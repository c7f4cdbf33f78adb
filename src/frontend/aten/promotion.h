#pragma once
/// Dtypes of results as PyTorch gives them.

#include <initializer_list>
#include <string_view>
#include <vector>

#include "frontend/aten/call.h"

namespace tinygrad::aten {

/// torch.promote_types. DTypeError for types that it does not promote: of 8-bit floats, and unsigned ones of more than 8 bits with
/// integers.
DType promote_types(DType a, DType b);
/// torch.result_type: tensors with axes decide, then those without, then numbers, a lower kind only where it is higher than theirs.
DType result_type(const std::vector<const Value*>& operands);
/// The dtype that a float function of `d` has: `d` if it is a float, else float32.
inline DType float_type(DType d) { return is_float(d) ? d : DType::float32; }
/// What PyTorch computes such elements in where an operation has several steps.
inline DType wide_type(DType d) { return is_float(d) && bitsize(d) < 32 ? DType::float32 : d; }
/// Of sums and products: int64 for integers and bools.
inline DType sum_type(DType d) { return is_float(d) || d == DType::uint64 ? d : DType::int64; }

/// A number as a tensor of shape (): integers wrap, floats are cut off to integers.
Tensor typed_number(const Value& number, DType dtype, const std::string& device);
/// A tensor or a number as a tensor of a dtype.
Tensor typed(const Value& operand, DType dtype, const std::string& device);

/// The arguments with these names in their common dtype, and that dtype.
struct Promoted {
  std::vector<Tensor> operands;
  DType dtype;
  const Tensor& operator[](size_t i) const { return operands[i]; }
};
Promoted promoted(const Call& c, std::initializer_list<std::string_view> names);
/// The same in a float dtype.
Promoted promoted_floats(const Call& c, std::initializer_list<std::string_view> names);
/// The same in a dtype that is said.
std::vector<Tensor> typed_operands(const Call& c, std::initializer_list<std::string_view> names, DType dtype);

/// log(1 + x), also of small x.
Tensor log1p(const Tensor& x);

inline Results one(Tensor t) { return {Value(std::move(t))}; }
/// Whether a number is exactly this one.
inline bool is_number(const Value& v, double number) { return v.is_number() && !v.get_if<Extent>() && v.number() == number; }
Extents broadcast_shapes(const Call& c, const std::vector<Tensor>& tensors);

}  // namespace tinygrad::aten
