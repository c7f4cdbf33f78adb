#pragma once
/// Arguments of kernels that are images. Where the driver can, an image is made over the buffer's own memory; elsewhere it is a copy, which
/// is written back after the launch.

#include <tinygrad/kernel_info.h>

#include "runtime/cl/cl_memory.h"

namespace tinygrad::runtime::cl {

/// For one launch. OpenCL keeps what its commands still use.
class ClImage {
 public:
  /// Throws OutOfMemoryError and DeviceError.
  ClImage(const std::string& device, Context context, bool over_buffers, const KernelParam& param, const Place& place);
  ~ClImage() { api().ReleaseMemObject(image_); }
  ClImage(const ClImage&) = delete;
  ClImage& operator=(const ClImage&) = delete;

  const Memory& memory() const { return image_; }
  /// Before the launch and after it.
  void fill(Queue queue) const;
  void write_back(Queue queue) const;

 private:
  const std::string& device_;
  const KernelParam& param_;
  const Place place_;
  size_t width_ = 0, height_ = 0;
  Memory image_ = nullptr;
  bool is_copy_ = true;
};

}  // namespace tinygrad::runtime::cl
