#pragma once
/// Tensors on devices that only hold data: files (DISK) and arrays of the host (NPY). What is a view of such memory may be copied,
/// reinterpreted and written; nothing is computed there.

#include "device/buffer.h"
#include "shape/device.h"
#include "uop/uop.h"

namespace tinygrad::tensor {

/// Whether kernels cannot run on a device.
bool is_storage(Symbol device);
inline bool is_storage(const UOp& value) {
  const Devices d = devices_of(value);
  return !d.are_several() && is_storage(d.only());
}

/// The memory of a view whose elements follow one another in row-major order; null for any other view, and for what is no view of memory in
/// its first state. It may be on any device.
BufferPtr piece_of_memory(const UOp& view);

/// A view of storage as a value on another device: the elements that lie together are copied as they are, and the rest of the view is made
/// there. Memory of the host that suits the dtype is shared with a device that works on such memory. Throws DeviceError for what is no
/// view.
UOp copied_from_storage(const UOp& view, Symbol device);

/// The bytes of a view of storage that lies in one piece, as another dtype. Throws what ops::bitcast does, and DeviceError where they do
/// not.
UOp storage_bitcast(const UOp& view, DType dtype);

/// Writes a value of any device, now: live tensors that read the file's, or array's, earlier content are computed before. Of a view that
/// is not one piece, what lies between its elements is read and written too. Throws ValueError for an expanded view. What may be written in
/// part when writing fails is poisoned.
void write_storage(const UOp& view, const UOp& value);

/// Copies the elements of a value in memory into the memory of a view of the same shape and dtype, now: live tensors that read what is
/// there are computed before. False, and nothing is done, unless both lie in one piece, and where a call is recorded, to which assign()
/// belongs.
bool copy_into_memory(const UOp& view, const UOp& value);

/// A value of any device in the memory of storage, which a file has from its beginning. Written now, as by write_storage(): a file is
/// there for others when the call returns, and nothing is left of it when it throws.
UOp stored(const UOp& value, Symbol device);

}  // namespace tinygrad::tensor
