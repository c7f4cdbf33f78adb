#pragma once
/// From a dtype at run time to the C++ type of its elements.

#include <cstdint>
#include <type_traits>
#include <utility>

#include <tinygrad/dtype.h>

namespace tinygrad {

namespace detail {
[[noreturn]] void throw_no_values(DType d);
}

/// Calls `f(std::type_identity<T>{})` with the C++ type that stores `d` (int64_t for `index`) and returns its result, so one generic
/// lambda covers every type. Throws DTypeError for `void_`.
template <class F>
decltype(auto) visit_dtype(DType d, F&& f) {
  switch (d) {
    case DType::bool_: return f(std::type_identity<bool>{});
    case DType::int8: return f(std::type_identity<int8_t>{});
    case DType::uint8: return f(std::type_identity<uint8_t>{});
    case DType::int16: return f(std::type_identity<int16_t>{});
    case DType::uint16: return f(std::type_identity<uint16_t>{});
    case DType::int32: return f(std::type_identity<int32_t>{});
    case DType::uint32: return f(std::type_identity<uint32_t>{});
    case DType::int64:
    case DType::index: return f(std::type_identity<int64_t>{});
    case DType::uint64: return f(std::type_identity<uint64_t>{});
    case DType::fp8e4m3: return f(std::type_identity<fp8e4m3>{});
    case DType::fp8e5m2: return f(std::type_identity<fp8e5m2>{});
    case DType::fp8e4m3fnuz: return f(std::type_identity<fp8e4m3fnuz>{});
    case DType::fp8e5m2fnuz: return f(std::type_identity<fp8e5m2fnuz>{});
    case DType::float16: return f(std::type_identity<float16>{});
    case DType::bfloat16: return f(std::type_identity<bfloat16>{});
    case DType::float32: return f(std::type_identity<float>{});
    case DType::float64: return f(std::type_identity<double>{});
    case DType::void_: break;
  }
  detail::throw_no_values(d);
}

}  // namespace tinygrad
