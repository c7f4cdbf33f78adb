#pragma once
/// Tensors on devices that only hold data: files (DISK) and arrays of the host (NPY). What is a view of such memory may be copied,
/// reinterpreted and written; nothing is computed there.

#include "uop/uop.h"

namespace tinygrad::tensor {

/// Whether kernels cannot run on a device.
bool is_storage(Symbol device);

/// A view of storage as a value on another device: the elements that lie together are copied as they are, and the rest of the view is made
/// there. Memory of the host that suits the dtype is shared with a device that works on such memory. Throws DeviceError for what is no
/// view.
UOp copied_from_storage(const UOp& view, Symbol device);

/// The bytes of a view of storage that lies in one piece, as another dtype. Throws what ops::bitcast does, and DeviceError where they do
/// not.
UOp storage_bitcast(const UOp& view, DType dtype);

/// Writes a value of any device, now: live tensors that read the file's, or array's, earlier content are computed before. Throws
/// DeviceError where the view is not one piece. What may be written in part when writing fails is poisoned.
void write_storage(const UOp& view, const UOp& value);

}  // namespace tinygrad::tensor
