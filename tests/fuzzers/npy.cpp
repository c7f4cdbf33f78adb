// Arrays of NumPy and archives of them.
#include "frontend/npy/npy.h"

#include "frontend/npy/header.h"
#include "fuzzers/fuzz.h"

using namespace tinygrad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const frontend::FileBytes file = fuzz::file_of({data, size});
  return fuzz::read(size, [&] { return frontend::is_npy(file.bytes) ? frontend::open_npy(file) : frontend::open_npz(file); });
}
