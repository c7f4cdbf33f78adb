#pragma once
/// Reads pickles (Python's Lib/pickletools.py, protocols 0 to 5) as far as checkpoints have them. Objects are made of the names in
/// globals.h alone, and nothing is executed: a pickle gives values, or a FormatError.

#include "frontend/byte_cursor.h"
#include "frontend/torch/value.h"

namespace tinygrad::frontend::torch {

/// The value of the pickle that begins at the cursor, which is left behind it. What it takes in memory is proportional to the bytes that it
/// reads. Throws FormatError, naming the file, the instruction and the byte at which that is.
Value unpickle(ByteCursor& in, std::string_view file, Heap& heap);

}  // namespace tinygrad::frontend::torch
