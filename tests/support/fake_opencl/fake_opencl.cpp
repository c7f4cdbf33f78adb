// An OpenCL loader with a device that is too old, of which it only tells.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): OpenCL's names

#define EXPORT extern "C" __attribute__((visibility("default"))) int

EXPORT clGetPlatformIDs(uint32_t room, void** platforms, uint32_t* count) {
  static int platform;
  if (room) platforms[0] = &platform;
  if (count) *count = 1;
  return 0;
}
EXPORT clGetDeviceIDs(void*, uint64_t, uint32_t room, void** devices, uint32_t* count) {
  static int device;
  if (room) devices[0] = &device;
  if (count) *count = 1;
  return 0;
}
EXPORT clGetDeviceInfo(void*, uint32_t what, size_t room, void* value, size_t* size) {
  const std::string_view text = what == 0x102B ? "an old device" : what == 0x102F ? "OpenCL 1.1 of the tests" : "";
  if (room > text.size()) {
    std::memcpy(value, text.data(), text.size());
    static_cast<char*>(value)[text.size()] = 0;
  }
  if (size) *size = text.size() + 1;
  return 0;
}

#define UNUSED(name) \
  EXPORT name() { return -59; }  // CL_INVALID_OPERATION
UNUSED(clCreateContext)
UNUSED(clReleaseContext)
UNUSED(clCreateCommandQueue)
UNUSED(clCreateBuffer)
UNUSED(clReleaseMemObject)
UNUSED(clCreateImage)
UNUSED(clCreateProgramWithSource)
UNUSED(clCreateProgramWithBinary)
UNUSED(clBuildProgram)
UNUSED(clGetProgramInfo)
UNUSED(clGetProgramBuildInfo)
UNUSED(clReleaseProgram)
UNUSED(clCreateKernel)
UNUSED(clSetKernelArg)
UNUSED(clGetKernelWorkGroupInfo)
UNUSED(clReleaseKernel)
UNUSED(clEnqueueNDRangeKernel)
UNUSED(clEnqueueReadBuffer)
UNUSED(clEnqueueWriteBuffer)
UNUSED(clEnqueueMapBuffer)
UNUSED(clEnqueueUnmapMemObject)
UNUSED(clEnqueueCopyBuffer)
UNUSED(clEnqueueCopyBufferToImage)
UNUSED(clEnqueueCopyImageToBuffer)
UNUSED(clEnqueueMarkerWithWaitList)
UNUSED(clWaitForEvents)
UNUSED(clGetEventInfo)
UNUSED(clGetEventProfilingInfo)
UNUSED(clRetainEvent)
UNUSED(clReleaseEvent)
UNUSED(clFlush)
UNUSED(clFinish)

// NOLINTEND(readability-identifier-naming)
