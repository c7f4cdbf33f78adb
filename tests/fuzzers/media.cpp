// Pictures of the formats that this library decodes itself: BMP and PNM.
#include <string_view>

#include "frontend/media/picture.h"
#include "fuzzers/fuzz.h"

using namespace tinygrad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const frontend::FileBytes file = fuzz::file_of({data, size});
  const media::Source source{file.bytes, file.name, {.most_pixels = 1 << 14}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_bmp = text.starts_with("BM"), is_pnm = size > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '6';
  if (!is_bmp && !is_pnm) return -1;  // decoders are given what begins as their format does
  try {
    const media::Picture picture = is_bmp ? media::decode_bmp(source) : media::decode_pnm(source);
    fuzz::require(picture.bytes.size() == size_t(picture.height * picture.width * picture.channels));
    media::with_pixels(picture, media::Pixels::grey);
  } catch (const FormatError&) {}
  return 0;
}
