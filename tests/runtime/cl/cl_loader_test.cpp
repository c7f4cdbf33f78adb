// OpenCL that cannot be used. A process has one loader, the first that has what is needed, so this is one test, and no other of this
// executable uses CL.
#include <gtest/gtest.h>

#include <tinygrad/context.h>

#include "runtime/cl/cl.h"

namespace tinygrad::runtime {
namespace {

std::string why_not(const std::string& path) {
  const Context there{{.opencl_path = path}};
  return cl_unavailable();
}

TEST(OpenClLoader, ThatIsMissingOrTooOldOrHasOldDevices) {
  const std::string missing = why_not("/nonexistent/libOpenCL.so.1");
  EXPECT_NE(missing.find("/nonexistent/libOpenCL.so.1"), std::string::npos) << missing;
  EXPECT_NE(missing.find("OPENCL_PATH"), std::string::npos) << missing;
  EXPECT_NE(why_not(TG_FAKE_HIP).find("has no symbol 'clGetPlatformIDs'"), std::string::npos) << why_not(TG_FAKE_HIP);
  const std::string old = why_not(TG_FAKE_OPENCL);
  EXPECT_NE(old.find("an old device has OpenCL 1.1 of the tests, expected OpenCL 1.2 or newer"), std::string::npos) << old;
}

}  // namespace
}  // namespace tinygrad::runtime
