// Pictures that are decoded, on the host.
#include <fmt/core.h>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "frontend/media/picture.h"
#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

media::Pixels pixels_of(const Call& c) {
  const std::string format = c.attribute("pixel_format", "RGB");
  if (format == "RGB") return media::Pixels::rgb;
  if (format == "BGR") return media::Pixels::bgr;
  if (format == "Grayscale") return media::Pixels::grey;
  c.fail(fmt::format("the pixel_format '{}', expects RGB, BGR or Grayscale", format));
}

/// The bytes decide the sizes of the output.
Results image_decoder(Call& c) {
  const media::Pixels pixels = pixels_of(c);
  const HostArray file = c.host(0);
  if (file.type != ElementType::uint8 || file.shape.size() != 1) c.fail("expects the bytes of a file, a vector of uint8");
  return results(media::read_image({{file.bytes.get(), file.byte_count}, "picture", {.pixels = pixels}}).to(default_device()));
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "ImageDecoder", 20, image_decoder},
};

}  // namespace

std::span<const OperatorRow> decoder_operators() { return rows; }

}  // namespace tinygrad::onnx
