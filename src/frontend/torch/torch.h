#pragma once
/// Checkpoints of PyTorch: what torch.save writes, as a zip archive (since 1.6) and as the stream of pickles of before.

#include <cstddef>
#include <memory>
#include <span>

#include <tinygrad/formats.h>

#include "frontend/file_bytes.h"

namespace tinygrad::frontend {

/// Of either format; tensors are memory of the file where that is stored and aligned, and those that share a storage share their memory.
/// Throws FormatError, also for programs (TorchScript, torch.export), the .tar format of 2016 and big-endian files, which are named.
/// Tensors without a Tensor here (complex, sparse, nested, meta, of less than 8 bits) are listed, and are a FormatError when they are asked
/// for.
std::unique_ptr<formats::Reader> open_torch(const FileBytes& file);

/// Whether bytes begin as those of the stream format do.
bool is_torch_stream(std::span<const std::byte> bytes);

}  // namespace tinygrad::frontend
