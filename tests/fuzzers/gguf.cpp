// GGUF files.
#include "frontend/gguf/gguf.h"
#include "fuzzers/fuzz.h"

using namespace tinygrad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const frontend::FileBytes file = fuzz::file_of({data, size});
  return fuzz::read(size, [&] { return frontend::open_gguf(file); });
}
