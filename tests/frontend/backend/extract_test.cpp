// Archives as tensors.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include "base/archives.h"
#include "base/file.h"
#include "base/temp_dir.h"

namespace tinygrad {
namespace {

using namespace nn::state;
using Bytes = std::vector<uint8_t>;

class Extract : public TempDir {};

Bytes as_bytes(std::string_view text) { return {text.begin(), text.end()}; }

TEST_F(Extract, Zip) {
  const std::string text(2000, 'q'), archive = test::zip_of({{"a/b", "hello"}, {"c", text, true}, {"none", ""}});
  write_file_atomic(path("z"), archive);
  for (const StateDict& files : {zip_extract(path("z")), zip_extract(Tensor(as_bytes(archive)))}) {
    ASSERT_EQ(files.size(), 3U);
    EXPECT_EQ(files.at("a/b").tolist<uint8_t>(), as_bytes("hello"));
    EXPECT_EQ(files.at("c").tolist<uint8_t>(), as_bytes(text));
    EXPECT_EQ(files.at("c").dtype(), DType::uint8);
    EXPECT_EQ(files.at("none").shape(), (Sizes{0}));
  }
  EXPECT_THROW(zip_extract(path("z"), {.max_bytes = 2004}), FormatError);
  EXPECT_THROW(tar_extract(path("z")), FormatError);
}

TEST_F(Extract, TarAndTarGz) {
  const std::string archive = test::tar_of({{"a", "first"}, {"b", std::string(600, 'b')}, {"a", "second"}});
  write_file_atomic(path("t"), archive);
  write_file_atomic(path("t.gz"), test::gzipped(archive));
  for (const StateDict& files :
       {tar_extract(path("t")), tar_extract(path("t.gz")), tar_extract(Tensor(as_bytes(test::gzipped(archive))))}) {
    ASSERT_EQ(files.size(), 2U);
    EXPECT_EQ(files.at("a").tolist<uint8_t>(), as_bytes("second"));
    EXPECT_EQ(files.at("b").tolist<uint8_t>(), as_bytes(std::string(600, 'b')));
  }
  EXPECT_THROW(tar_extract(path("t.gz"), {.max_bytes = 2000}), FormatError);
  EXPECT_THROW(zip_extract(path("t")), FormatError);
  EXPECT_THROW(tar_extract(path("absent")), IoError);
  EXPECT_THROW(tar_extract(Tensor({1.0})), DTypeError);
}

TEST_F(Extract, TensorsOutliveTheirArchive) {
  Tensor a;
  {
    write_file_atomic(path("t"), test::tar_of({{"a", "text"}}));
    a = tar_extract(path("t")).at("a");
    std::filesystem::remove(path("t"));
  }
  EXPECT_EQ(a.tolist<uint8_t>(), as_bytes("text"));
}

}  // namespace
}  // namespace tinygrad
