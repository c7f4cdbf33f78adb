// Data sets from folders.
#include <gtest/gtest.h>

#include <cstdlib>

#include <tinygrad/tinygrad.h>

#include "base/archives.h"
#include "base/download.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "support/idx.h"

namespace tinygrad {
namespace {

using namespace nn::datasets;
using Bytes = std::vector<uint8_t>;

class Datasets : public TempDir {};

std::string cifar_file(const std::string& labels) {
  std::string out;
  for (const char label : labels) {
    out += label;
    for (int i = 0; i < 3072; ++i) out += static_cast<char>(label + i);
  }
  return out;
}

TEST_F(Datasets, MnistFromAFolder) {
  EXPECT_THROW(mnist({.folder = path("")}), IoError);
  const std::string pixels = std::string(784, 'a') + std::string(784, '\xff');
  write_file_atomic(path("train-images-idx3-ubyte"), test::idx_bytes({2, 28, 28}, pixels));
  write_file_atomic(path("train-labels-idx1-ubyte.gz"), test::gzipped(test::idx_bytes({2}, "\x03\x09")));
  write_file_atomic(path("t10k-images-idx3-ubyte.gz"), test::gzipped(test::idx_bytes({1, 28, 28}, pixels.substr(784))));
  write_file_atomic(path("t10k-labels-idx1-ubyte"), test::idx_bytes({1}, "\x01"));
  const LabelledImages data = mnist({.device = "INTERP", .folder = path("")});
  EXPECT_EQ(data.x_train.shape(), (Sizes{2, 1, 28, 28}));
  EXPECT_EQ(data.x_train.device(), "INTERP");
  EXPECT_EQ(data.x_train.tolist<uint8_t>()[784], 255);
  EXPECT_EQ(data.y_train.tolist<uint8_t>(), (Bytes{3, 9}));
  EXPECT_EQ(data.x_test.dtype(), DType::uint8);
  EXPECT_EQ(data.y_test.tolist<uint8_t>(), (Bytes{1}));
  write_file_atomic(path("t10k-labels-idx1-ubyte"), test::idx_bytes({1}, "\x0a"));
  EXPECT_THROW(mnist({.folder = path("")}), FormatError);
}

TEST_F(Datasets, CifarFromFilesOrTheArchive) {
  EXPECT_THROW(cifar({.folder = path("")}), IoError);
  std::vector<test::TarMember> members;
  for (int i = 1; i <= 5; ++i)
    members.push_back({"cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin", cifar_file(std::string(1, static_cast<char>(i)))});
  members.push_back({"cifar-10-batches-bin/test_batch.bin", cifar_file("\x07\x08")});
  const auto check = [&] {
    const LabelledImages data = cifar({.folder = path("")});
    EXPECT_EQ(data.x_train.shape(), (Sizes{5, 3, 32, 32}));
    EXPECT_EQ(data.y_train.tolist<uint8_t>(), (Bytes{1, 2, 3, 4, 5}));
    EXPECT_EQ(data.y_test.tolist<uint8_t>(), (Bytes{7, 8}));
    EXPECT_EQ(data.x_test[1].flatten()[Index(Slice{0, 2})].tolist<uint8_t>(), (Bytes{8, 9}));
  };
  write_file_atomic(path("cifar-10-binary.tar.gz"), test::gzipped(test::tar_of(members)));
  check();
  std::filesystem::remove(path("cifar-10-binary.tar.gz"));
  for (const auto& m : members) write_file_atomic(path(m.name.substr(m.name.find('/') + 1)), m.content);
  check();
  write_file_atomic(path("test_batch.bin"), "x");
  EXPECT_THROW(cifar({.folder = path("")}), FormatError);
}

TEST(Download, FetchKeepsFiles) {
  const std::filesystem::path folder = testing::TempDir() + "tg_fetch_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string source = folder / "source", url = "file://" + source, kept = folder / "kept";
  write_file_atomic(source, "one");
  EXPECT_EQ(fetch(source), source);
  EXPECT_EQ(fetch(url, {.name = kept}), kept);
  EXPECT_EQ(read_file(kept), "one");
  write_file_atomic(source, "two");
  EXPECT_EQ(read_file(fetch(url, {.name = kept})), "one");
  EXPECT_EQ(read_file(fetch(url, {.name = kept, .allow_caching = false})), "two");
  EXPECT_THROW(fetch(url, {.name = kept, .allow_caching = false, .limit = 2}), IoError);
  EXPECT_THROW(fetch(url, {.name = kept, .gunzip = true, .allow_caching = false}), FormatError);
  EXPECT_EQ(read_file(kept), "two");
  std::filesystem::remove_all(folder);
}

TEST(Download, ReadsUrlsAndLimits) {
  const std::string path = testing::TempDir() + "tg_download_" + std::to_string(getpid());
  write_file_atomic(path, "hello");
  int64_t heard = 0;
  EXPECT_EQ(download("file://" + path, 5, [&](int64_t n) { heard += n; }), "hello");
  EXPECT_EQ(heard, 5);
  EXPECT_THROW(download("file://" + path, 4), IoError);
  EXPECT_THROW(download("file://" + path + ".absent", 5), IoError);
  EXPECT_EQ(md5_of("hello"), "5d41402abc4b2a76b9719d911017c592");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tinygrad
