#include "frontend/torch/scalar_type.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include <tinygrad/errors.h>

namespace tinygrad::frontend::torch {

namespace {

// Of types below 8 bits each element takes a byte, but for those with x2 or x4 in their names, of which one has several.
constexpr auto types = std::to_array<ScalarType>({
    {"float64", "DoubleStorage", 8, DType::float64, false, true},
    {"float32", "FloatStorage", 4, DType::float32, false, true},
    {"float16", "HalfStorage", 2, DType::float16, false, true},
    {"bfloat16", "BFloat16Storage", 2, DType::bfloat16, false, true},
    {"int64", "LongStorage", 8, DType::int64, false, true},
    {"int32", "IntStorage", 4, DType::int32, false, true},
    {"int16", "ShortStorage", 2, DType::int16, false, true},
    {"int8", "CharStorage", 1, DType::int8, false, true},
    {"uint8", "ByteStorage", 1, DType::uint8, false, true},
    {"bool", "BoolStorage", 1, DType::bool_, false, true},
    {"complex128", "ComplexDoubleStorage", 16, {}, false, true},
    {"complex64", "ComplexFloatStorage", 8, {}, false, true},
    {"qint8", "QInt8Storage", 1, DType::int8, true},
    {"qint32", "QInt32Storage", 4, DType::int32, true},
    {"quint8", "QUInt8Storage", 1, DType::uint8, true},
    {"quint4x2", "QUInt4x2Storage", 1, {}, true},
    {"quint2x4", "QUInt2x4Storage", 1, {}, true},
    {"uint16", "", 2, DType::uint16},
    {"uint32", "", 4, DType::uint32},
    {"uint64", "", 8, DType::uint64},
    {"float8_e4m3fn", "", 1, DType::fp8e4m3},
    {"float8_e5m2", "", 1, DType::fp8e5m2},
    {"float8_e4m3fnuz", "", 1, DType::fp8e4m3fnuz},
    {"float8_e5m2fnuz", "", 1, DType::fp8e5m2fnuz},
    {"float8_e8m0fnu", "", 1, {}},
    {"float4_e2m1fn_x2", "", 1, {}},
    {"complex32", "", 4, {}},
    {"bits8", "", 1, {}},
    {"bits16", "", 2, {}},
    {"bits1x8", "", 1, {}},
    {"bits2x4", "", 1, {}},
    {"bits4x2", "", 1, {}},
    {"int1", "", 1, {}},
    {"int2", "", 1, {}},
    {"int3", "", 1, {}},
    {"int4", "", 1, {}},
    {"int5", "", 1, {}},
    {"int6", "", 1, {}},
    {"int7", "", 1, {}},
    {"uint1", "", 1, {}},
    {"uint2", "", 1, {}},
    {"uint3", "", 1, {}},
    {"uint4", "", 1, {}},
    {"uint5", "", 1, {}},
    {"uint6", "", 1, {}},
    {"uint7", "", 1, {}},
});

}  // namespace

std::span<const ScalarType> scalar_types() { return types; }

const ScalarType& scalar_type(std::string_view name) {
  const auto* found = std::ranges::find(types, name, &ScalarType::name);
  if (found == types.end()) throw InternalError(fmt::format("no scalar type '{}'", name));
  return *found;
}

}  // namespace tinygrad::frontend::torch
