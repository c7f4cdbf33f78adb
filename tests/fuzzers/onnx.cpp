// ONNX models: their weights, and the graph up to the point where it runs. Operators that the library lacks and attributes that they do not
// take are errors of other kinds than FormatError.
#include <tinygrad/onnx.h>

#include "frontend/onnx/reader.h"
#include "fuzzers/fuzz.h"

using namespace tinygrad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const frontend::FileBytes file = fuzz::file_of({data, size});
  fuzz::read(size, [&] { return frontend::open_onnx(file, {}); });
  try {
    onnx::load(Tensor(std::span(data, size), {int64_t(size)}));
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {}
  return 0;
}
