#pragma once
/// DLPack's structures as version 1.3 of its specification has them, and how our dtypes are written there.

#include <array>
#include <cstdint>
#include <optional>

#include <tinygrad/dtype.h>

#include "common.h"

namespace tinygrad::python::dlpack {

struct Device {
  int32_t type, id;
};
inline constexpr int32_t cpu = 1;

struct Type {
  uint8_t code, bits;
  uint16_t lanes;
  bool operator==(const Type&) const = default;
};

struct Array {
  void* data;
  Device device;
  int32_t ndim;
  Type dtype;
  int64_t *shape, *strides;  ///< in elements
  uint64_t byte_offset;
};

struct Version {
  uint32_t major, minor;
};

/// An array with what keeps its memory.
struct ManagedArray {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedArray* self);
  uint64_t flags;
  Array array;
};

/// A library's functions for its arrays: what the capsule `__dlpack_c_exchange_api__` of a class points to. Those that give an int give 0,
/// or another number after they have set a Python error.
struct Exchange {
  Version version;
  Exchange* older;
  int (*allocate)(Array* prototype, ManagedArray** out, void* context, void (*set_error)(void*, const char*, const char*));
  int (*managed_from_object)(void* object, ManagedArray** out);
  int (*managed_to_object)(ManagedArray* array, void** out);  ///< takes the array over
  int (*array_from_object)(void* object, Array* out);         ///< borrowed: as the object has it now
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
};

namespace detail {

struct Row {
  DType dtype;
  Type type;
};
inline constexpr std::array rows{
    Row{DType::int8, {0, 8, 1}},     Row{DType::int16, {0, 16, 1}},       Row{DType::int32, {0, 32, 1}},
    Row{DType::int64, {0, 64, 1}},   Row{DType::uint8, {1, 8, 1}},        Row{DType::uint16, {1, 16, 1}},
    Row{DType::uint32, {1, 32, 1}},  Row{DType::uint64, {1, 64, 1}},      Row{DType::float16, {2, 16, 1}},
    Row{DType::float32, {2, 32, 1}}, Row{DType::float64, {2, 64, 1}},     Row{DType::bfloat16, {4, 16, 1}},
    Row{DType::bool_, {6, 8, 1}},    Row{DType::fp8e4m3, {10, 8, 1}},     Row{DType::fp8e4m3fnuz, {11, 8, 1}},
    Row{DType::fp8e5m2, {12, 8, 1}}, Row{DType::fp8e5m2fnuz, {13, 8, 1}},
};

}  // namespace detail

inline std::optional<DType> dtype_of(Type type) {
  for (const auto& row : detail::rows)
    if (row.type == type) return row.dtype;
  return {};
}
inline Type type_of(DType dtype) {
  for (const auto& row : detail::rows)
    if (row.dtype == dtype) return row.type;
  return {};
}

/// The functions of a class of arrays. TypeError for one that has none.
const Exchange& exchange_of(nb::handle type);
/// An array as its object has it now.
Array borrowed(const Exchange& library, nb::handle object);
Sizes shape_of(const Array& array);
Sizes strides_of(const Array& array);
/// How many elements lie between its first and its last one, with both; 0 for an empty array. ValueError for negative strides.
int64_t span_of(const Array& array);
void* data_of(const Array& array);
/// An array of the library on memory that it keeps; `offset` in elements.
nb::object to_object(const Exchange& library, const std::shared_ptr<std::byte>& memory, DType dtype, Sizes shape, Sizes strides,
                     int64_t offset);

}  // namespace tinygrad::python::dlpack
