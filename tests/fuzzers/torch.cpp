// Checkpoints of PyTorch: archives, streams, and pickles of archives that are right otherwise, as damage of a whole archive is mostly found
// by its checksums.
#include "fuzzers/fuzz.h"

#include "frontend/torch/checkpoints.h"
#include "frontend/torch/torch.h"

using namespace tinygrad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.starts_with("PK") && !frontend::is_torch_stream(test::bytes_of(bytes)))
    bytes = test::pickle::archive(bytes, {{"0", std::string(24, '\1')}, {"1", std::string(24, '\0')}});
  const frontend::FileBytes file = fuzz::file_of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return fuzz::read(bytes.size(), [&] { return frontend::open_torch(file); });
}
