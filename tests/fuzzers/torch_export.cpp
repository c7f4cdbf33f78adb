// Programs of torch.export: archives, and the programs of archives that are right otherwise, as damage of a whole archive is mostly found
// by its checksums. They are read and not run.
#include <tinygrad/torch_export.h>

#include "frontend/torch_export/archive_file.h"
#include "fuzzers/fuzz.h"

using namespace tinygrad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.starts_with("PK")) bytes = test::pt2::archive(bytes);
  try {
    torch_export::load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()), {.device = "CPU"}));
  } catch (const FormatError&) {}
  return 0;
}
