// Reading data sets, and the sheet of pictures.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "apps/support.h"
#include "common/gzip.h"
#include "common/sheet.h"
#include "digits/data.h"
#include "train/train.h"

namespace tinygrad::apps {
namespace {

using test::TempFolder;

TEST(Digits, TheWholeSet) {
  const ImageSet set = load_digits(TINYGRAD_DATA_DIR "/digits.csv.gz");
  ASSERT_EQ(set.size(), 1797);
  EXPECT_EQ(set.height, 8);
  EXPECT_EQ(set.width, 8);
  EXPECT_EQ(set.pixels.size(), 1797U * 64);
  EXPECT_EQ(std::vector<uint8_t>(set.image(0), set.image(0) + 8), (std::vector<uint8_t>{0, 0, 5, 13, 9, 1, 0, 0}));
  EXPECT_EQ(std::vector<uint8_t>(set.labels.begin(), set.labels.begin() + 10), (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Digits, BadLinesAreNamed) {
  std::string line;
  for (int i = 0; i < 64; ++i) line += "16,";
  EXPECT_EQ(parse_digits(line + "9\n" + line + "0", "a.csv").labels, (std::vector<uint8_t>{9, 0}));
  for (const std::string& bad :
       {line, line + "10", line + "-1", line + "9,", line + "9,9", "17" + line + "9", std::string("x"), std::string()})
    try {
      parse_digits(line + "1\n" + bad + "\n", "a.csv");
      ADD_FAILURE() << bad;
    } catch (const FormatError& e) {
      EXPECT_TRUE(std::string_view(e.what()).starts_with("a.csv:2: ")) << e.what();
    }
  EXPECT_THROW(parse_digits("", "a.csv"), FormatError);
}

TEST(Gzip, PlainPackedDamagedAndTooLong) {
  const TempFolder folder;
  const std::string packed = test::read_text(TINYGRAD_DATA_DIR "/digits.csv.gz");
  const std::string text = read_gzip(folder.write("packed", packed), 1 << 20);
  EXPECT_EQ(text.size(), 264712U);
  EXPECT_EQ(read_gzip(folder.write("plain", text), text.size()), text);
  EXPECT_THROW(read_gzip(folder.path("plain"), text.size() - 1), FormatError);
  EXPECT_THROW(read_gzip(folder.path("packed"), text.size() - 1), FormatError);
  EXPECT_THROW(read_gzip(folder.write("cut", packed.substr(0, packed.size() / 2)), 1 << 20), FormatError);
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  EXPECT_THROW(read_gzip(folder.write("damaged", damaged), 1 << 20), FormatError);
  EXPECT_THROW(read_gzip(folder.path("absent"), 1), IoError);
  EXPECT_THROW(read_gzip(folder.path(), 1), IoError);
}

TEST(Shuffle, IsTheSameEverywhere) {
  std::mt19937_64 random(0);
  EXPECT_EQ(shuffled(10, random), (std::vector<int32_t>{7, 2, 0, 8, 3, 9, 6, 1, 5, 4}));
  EXPECT_TRUE(shuffled(0, random).empty());
}

TEST(Sheet, IsAPngOrAnError) {
  const TempFolder folder;
  ImageSet set{.height = 8, .width = 8, .brightest = 16};
  set.pixels.assign(size_t{3} * 64, 16);
  set.labels = {1, 2, 3};
  const std::vector<int32_t> predicted{1, 7, 3};
  write_sheet(folder.path("a.png"), set, predicted);
  EXPECT_EQ(test::read_text(folder.path("a.png")).substr(0, 4), "\x89PNG");
  EXPECT_THROW(write_sheet(folder.path("absent/a.png"), set, predicted), IoError);
}

}  // namespace
}  // namespace tinygrad::apps
