// Files of safetensors and indexes of several.
#include "frontend/safetensors/reader.h"
#include "fuzzers/fuzz.h"
#include "support/temp_folder.h"

using namespace tinygrad;

namespace {

/// Has the file "a", in which lies a tensor "t".
const test::TempFolder& folder() {
  static const test::TempFolder made;
  static const std::string file =
      made.write("a", std::string("\x3b\0\0\0\0\0\0\0", 8) + R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}      abcd)");
  return made;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  frontend::FileBytes file = fuzz::file_of({data, size});
  if (frontend::is_safetensors(file.bytes) || !frontend::is_json_object(file.bytes))
    return fuzz::read(size, [&] { return frontend::open_safetensors(file); });
  file.name = folder().path("index.json");
  try {
    return fuzz::read(SIZE_MAX, [&] { return frontend::open_safetensors_index(file); });
  } catch (const IoError&) {  // of another file
    return 0;
  }
}
