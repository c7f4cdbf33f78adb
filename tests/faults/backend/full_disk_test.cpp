// Disks that are full in the middle of a write: what a file system with copies on write or a quota says where blocks were taken, and any
// where a file has holes. tests/tensor/backend/disk_test.cpp has those that are full before.
#include <gtest/gtest.h>

#include <filesystem>

#include <tinygrad/tinygrad.h>

#include "faults/backend/failing_new.h"
#include "support/temp_folder.h"

namespace tinygrad {
namespace {

class FullDiskTest : public testing::TestWithParam<const char*> {
 protected:
  static void expect_full(const auto& write) {
    const test::FullDisk full(8192);
    try {
      write();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const IoError& e) {
      EXPECT_NE(std::string(e.what()).find("No space left"), std::string::npos) << e.what();
    }
  }

  const test::TempFolder folder_;
  const std::string device_ = "DISK:" + folder_.path("file");
  const Context on_device_{{.dev = GetParam()}};
  const Tensor x_ = (Tensor::arange(100000) + 1).realize();
};
INSTANTIATE_TEST_SUITE_P(From, FullDiskTest, testing::Values("CPU", "INTERP"), [](const auto& p) { return std::string(p.param); });

TEST_P(FullDiskTest, ACopy) {
  expect_full([&] { x_.to(device_).realize(); });
  EXPECT_EQ(x_.to(device_).realize().to(GetParam()).sum().item(), x_.sum().item());
}

TEST_P(FullDiskTest, AFileWithHoles) {
  std::filesystem::resize_file(folder_.write("file", ""), 400000);
  const Tensor file = Tensor::empty({100000}, {.dtype = DType::int32, .device = device_});
  expect_full([&] { Tensor(file).assign(x_); });
  EXPECT_THROW(file.to(GetParam()).realize(), DeviceError) << "it is neither the old nor the new content";
  Tensor(file).assign(x_);
  EXPECT_EQ(file.to(GetParam()).sum().item(), x_.sum().item());
}

}  // namespace
}  // namespace tinygrad
