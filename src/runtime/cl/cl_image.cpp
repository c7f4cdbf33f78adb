#include "runtime/cl/cl_image.h"

#include <fmt/core.h>

namespace tinygrad::runtime::cl {
namespace {

constexpr size_t kTexel = 4;  // elements
constexpr size_t kOrigin[3] = {0, 0, 0};

}  // namespace

ClImage::ClImage(const std::string& device, Context context, bool over_buffers, const KernelParam& param, const Place& place)
    : device_(device), param_(param), place_(place), width_(static_cast<size_t>(param.image_width)) {
  height_ = static_cast<size_t>(param.size.evaluate({})) / kTexel / width_;
  const ImageFormat format{image_rgba, param.dtype == DType::float16 ? image_half : image_float};
  ImageDescription description{.type = image_2d, .width = width_, .height = height_};
  int32_t error = success;
  if (over_buffers && place.offset == 0) {
    ImageDescription over = description;
    over.row_pitch = width_ * kTexel * itemsize(param.dtype);
    over.buffer = place.memory;
    image_ = api().CreateImage(context, mem_read_write, &format, &over, nullptr, &error);
    is_copy_ = error != success;
  }
  if (is_copy_) image_ = api().CreateImage(context, mem_read_write, &format, &description, nullptr, &error);
  check(error, device, fmt::format("making an image of {}x{} texels", width_, height_));
}

/// One that is written, too: what the kernel leaves out stays as it is.
void ClImage::fill(Queue queue) const {
  if (!is_copy_) return;
  const size_t size[3] = {width_, height_, 1};
  check(api().EnqueueCopyBufferToImage(queue, place_.memory, image_, place_.offset, kOrigin, size, 0, nullptr, nullptr), device_,
        "copying to an image");
}

void ClImage::write_back(Queue queue) const {
  if (!is_copy_ || !param_.written) return;
  const size_t size[3] = {width_, height_, 1};
  check(api().EnqueueCopyImageToBuffer(queue, image_, place_.memory, kOrigin, size, place_.offset, 0, nullptr, nullptr), device_,
        "copying from an image");
}

}  // namespace tinygrad::runtime::cl
