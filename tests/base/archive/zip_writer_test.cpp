// Archives that are written: the reader takes them.
#include "base/archive/zip_writer.h"

#include <gtest/gtest.h>

#include <array>

#include <tinygrad/errors.h>

#include "base/archive/gzip.h"
#include "base/archive/zip.h"
#include "base/archives.h"

namespace tinygrad::archive {
namespace {

std::string written(const auto& add) {
  std::string out;
  ZipWriter writer([&](std::span<const std::byte> bytes) { out += test::text_of(bytes); });
  add(writer);
  writer.finish();
  return out;
}

TEST(ZipWriter, FilesAreReadBackAligned) {
  const std::string a(100, 'a'), b = "b";
  const std::string bytes = written([&](ZipWriter& writer) {
    writer.add("first", std::array{test::bytes_of(a), test::bytes_of(b)});
    writer.add("ä/empty", {});
    writer.add("last", std::array{test::bytes_of(b)});
  });
  const std::vector<ZipFile> files = read_zip(test::bytes_of(bytes), "f");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].name, "first");
  EXPECT_EQ(test::text_of(files[0].packed), a + b);
  EXPECT_EQ(files[1].name, "ä/empty");
  EXPECT_EQ(files[1].size, 0U);
  for (const ZipFile& f : files) {
    EXPECT_NO_THROW(f.check_stored("f"));
    EXPECT_EQ((f.packed.data() - test::bytes_of(bytes).data()) % 64, 0) << f.name;
  }
  EXPECT_TRUE(read_zip(test::bytes_of(written([](ZipWriter&) {})), "f").empty());
}

TEST(ZipWriter, MoreFilesThanSixteenBitsCount) {
  const std::string bytes = written([](ZipWriter& writer) {
    for (int i = 0; i < 70'000; ++i) writer.add(std::to_string(i), {});
  });
  EXPECT_EQ(read_zip(test::bytes_of(bytes), "f").size(), 70'000U);
}

TEST(Inflate, TheFirstBytesAlone) {
  const std::string text(5000, 'x'), packed = test::deflated(text, -15);
  EXPECT_EQ(test::text_of(inflate_first(test::bytes_of(packed), 10, "f")), text.substr(0, 10));
  EXPECT_EQ(inflate_first(test::bytes_of(packed), 6000, "f").size(), 5000U);
  EXPECT_TRUE(inflate_first(test::bytes_of(packed), 0, "f").empty());
  EXPECT_THROW(inflate_first(test::bytes_of("\xff\xff"), 10, "f"), FormatError);
}

}  // namespace
}  // namespace tinygrad::archive
