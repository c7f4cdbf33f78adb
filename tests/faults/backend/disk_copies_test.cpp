// Files are read to where devices take memory of the host from, without memory between.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include <tinygrad/tinygrad.h>

#include "faults/backend/failing_new.h"
#include "runtime/every_device.h"
#include "support/temp_folder.h"

namespace tinygrad {
namespace {

constexpr size_t kBytes = (size_t{36} << 20) + 3;

class DiskCopies : public test::EveryDevice {
 protected:
  DiskCopies() {
    std::string bytes(kBytes, 0);
    for (size_t i = 0; i < kBytes; ++i) bytes[i] = char(i * 7 + i / 251);
    std::ofstream(path_, std::ios::binary) << bytes;
    bytes_ = std::move(bytes);
  }

  Tensor copied() { return Tensor::from_file(path_).to(std::string(device().name().str())).realize(); }
  void expect_all(const Tensor& x) {
    const std::vector<std::byte> got = x.data();
    ASSERT_EQ(got.size(), kBytes);
    EXPECT_EQ(std::memcmp(got.data(), bytes_.data(), kBytes), 0);
  }

  const test::TempFolder folder_;
  const std::string path_ = folder_.path("file");
  std::string bytes_;
};
INSTANTIATE_TEST_SUITE_P(All, DiskCopies, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

TEST_P(DiskCopies, NeedNoMemoryOfTheHost) {
  expect_all(copied());
  const test::LargestNew watched;
  const Tensor x = copied();
  EXPECT_LT(test::LargestNew::bytes(), size_t{1} << 20);
  expect_all(x);
}

TEST_P(DiskCopies, OfAFileThatBecameShorterAreErrors) {
  const Tensor file = Tensor::from_file(path_);
  const std::string to(device().name().str());
  ASSERT_EQ(::truncate(path_.c_str(), off_t(kBytes) - (1 << 20)), 0);
  EXPECT_THROW(file.to(to).realize(), IoError);
  std::ofstream(path_, std::ios::binary) << bytes_;
  expect_all(copied());
}

}  // namespace
}  // namespace tinygrad
