// Arrays of other libraries that have DLPack's functions in C, without a copy: memory of theirs as tensors, and tensors as arrays of
// theirs.
#include "dlpack.h"

#include "common.h"

namespace tinygrad::python::dlpack {

const Exchange& exchange_of(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (!capsule.is_none()) {
    const auto* found = static_cast<const Exchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (!found) throw nb::python_error();
    for (; found; found = found->older)
      if (found->version.major == 1) return *found;
  }
  throw nb::type_error(
      (std::string(nb::repr(type).c_str()) + " has no __dlpack_c_exchange_api__ of DLPack 1; PyTorch has it from 2.10 on").c_str());
}

Array borrowed(const Exchange& library, nb::handle object) {
  Array out{};
  if (library.array_from_object(object.ptr(), &out) != 0) throw nb::python_error();
  return out;
}

Sizes shape_of(const Array& array) { return Sizes(array.shape, array.shape + array.ndim); }

Sizes strides_of(const Array& array) {
  if (array.strides) return Sizes(array.strides, array.strides + array.ndim);
  Sizes out(size_t(array.ndim), 1);
  for (size_t i = out.size(); i-- > 1;) out[i - 1] = out[i] * array.shape[i];
  return out;
}

int64_t span_of(const Array& array) {
  int64_t last = 0;
  const Sizes strides = strides_of(array);
  for (size_t i = 0; i < strides.size(); ++i) {
    if (array.shape[i] == 0) return 0;
    if (strides[i] < 0) throw ValueError("dlpack: an array with negative strides; copy it first");
    last += (array.shape[i] - 1) * strides[i];
  }
  return last + 1;
}

void* data_of(const Array& array) { return static_cast<std::byte*>(array.data) + array.byte_offset; }

namespace {

/// A managed array and what its pointers point to.
struct Exported {
  ManagedArray managed{};
  std::shared_ptr<std::byte> memory;
  Sizes shape, strides;
};

}  // namespace

nb::object to_object(const Exchange& library, const std::shared_ptr<std::byte>& memory, DType dtype, Sizes shape, Sizes strides,
                     int64_t offset) {
  auto own = std::make_unique<Exported>();
  own->memory = memory;
  own->shape = std::move(shape);
  own->strides = std::move(strides);
  std::byte* data = memory ? memory.get() + offset * int64_t(itemsize(dtype)) : nullptr;
  own->managed = {.version = {1, 1},
                  .manager_ctx = own.get(),
                  .deleter = [](ManagedArray* self) { delete static_cast<Exported*>(self->manager_ctx); },
                  .flags = 0,
                  .array = {.data = data,
                            .device = {cpu, 0},
                            .ndim = int32_t(own->shape.size()),
                            .dtype = type_of(dtype),
                            .shape = own->shape.data(),
                            .strides = own->strides.data(),
                            .byte_offset = 0}};
  void* object = nullptr;
  if (library.managed_to_object(&own->managed, &object) != 0) throw nb::python_error();
  own.release();  // NOLINT(bugprone-unused-return-value): the object has it
  return nb::steal(static_cast<PyObject*>(object));
}

namespace {

/// So many elements from the first one of an array on, as a vector on its memory, which it keeps.
Tensor memory_of(nb::handle object, int64_t count) {
  const Array array = borrowed(exchange_of(object.type()), object);
  if (array.device.type != cpu) throw DeviceError("dlpack: the array is in the memory of a device; copy it to the host first");
  const std::optional<DType> dtype = dtype_of(array.dtype);
  if (!dtype) throw DTypeError(std::string("dlpack: no tensor has elements of ") + nb::repr(nb::getattr(object, "dtype")).c_str());
  return Tensor::from_blob(data_of(array), {count}, {.dtype = dtype, .device = "CPU"}, shared_object(nb::borrow(object)));
}

nb::object object_of(nb::handle type, const Tensor& t) {
  const Sizes shape = t.shape();
  std::shared_ptr<std::byte> memory;
  {
    const Interruptible interruptible;
    const Released released;
    memory = t.host_memory();
  }
  Sizes strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return to_object(exchange_of(type), memory, t.dtype(), shape, strides, 0);
}

}  // namespace

}  // namespace tinygrad::python::dlpack

namespace tinygrad::python {

void bind_dlpack(nb::module_& m) {
  m.def("dlpack_memory", &dlpack::memory_of, "array"_a, "count"_a,
        "So many elements from the first one of an array on, as a vector in place. The caller knows that they are there.");
  m.def("dlpack_object", &dlpack::object_of, "type"_a, "tensor"_a, "The tensor's own memory as an array of this class.");
}

}  // namespace tinygrad::python
