#pragma once
/// Arrays of NumPy: one in a .npy file, several in a .npz archive.

#include <memory>
#include <span>
#include <string>

#include <tinygrad/formats.h>

#include "frontend/file_bytes.h"
#include "frontend/outgoing.h"

namespace tinygrad::frontend {

/// One array, named "arr_0" as in an archive. Arrays of objects, records, texts, times and complex numbers are listed, and are a
/// FormatError when they are asked for.
std::unique_ptr<formats::Reader> open_npy(const FileBytes& file);
/// The members of an archive, without ".npy" in their names; other files in it are vectors of uint8 of the type "bytes". What is stored is
/// the archive's own memory where that is aligned.
std::unique_ptr<formats::Reader> open_npz(const FileBytes& file);

/// Writes an archive of these tensors, of which none is in blocks. Throws as formats::npz_save() does.
void write_npz(std::span<const OutgoingTensor> tensors, const std::string& path, const TensorAt& values);

}  // namespace tinygrad::frontend
