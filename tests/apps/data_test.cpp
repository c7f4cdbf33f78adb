// Reading data sets, and the sheet of pictures.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "apps/support.h"
#include "common/gzip.h"
#include "common/sheet.h"
#include "digits/data.h"
#include "mnist/idx.h"
#include "train/train.h"

namespace tinygrad::apps {
namespace {

using test::idx_bytes;
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

TEST(Idx, Arrays) {
  const std::string bytes = idx_bytes({2, 3}, "abcdef");
  const IdxView view = parse_idx(bytes, "f");
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::string(view.elements.begin(), view.elements.end()), "abcdef");
}

TEST(Idx, PicturesAndLabels) {
  const ImageSet set = parse_images(idx_bytes({2, 1, 2}, "abcd"), "i", idx_bytes({2}, "\x03\x09"), "l");
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.image(1)[0], 'c');
  EXPECT_EQ(set.labels, (std::vector<uint8_t>{3, 9}));
}

TEST(Idx, WhatDoesNotFitIsAFormatError) {
  const std::string good = idx_bytes({2, 3}, "abcdef");
  std::vector<std::string> bad;
  for (size_t n = 0; n < good.size(); ++n) bad.push_back(good.substr(0, n));
  bad.push_back(good + "g");
  for (const auto& [at, value] : {std::pair(0, 1), std::pair(1, 1), std::pair(2, 9), std::pair(3, 0), std::pair(3, 4), std::pair(4, 255)}) {
    bad.push_back(good);
    bad.back()[static_cast<size_t>(at)] = static_cast<char>(value);
  }
  bad.push_back(idx_bytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "abc"));  // the product overflows
  bad.push_back(idx_bytes({0x80000000, 0x80000000, 4}, ""));              // to zero
  for (const std::string& b : bad) EXPECT_THROW(parse_idx(b, "f"), FormatError);

  const std::string images = idx_bytes({2, 1, 2}, "abcd"), labels = idx_bytes({2}, "\x01\x02");
  EXPECT_THROW(parse_images(labels, "i", labels, "l"), FormatError);
  EXPECT_THROW(parse_images(images, "i", images, "l"), FormatError);
  EXPECT_THROW(parse_images(images, "i", idx_bytes({3}, "\x01\x02\x03"), "l"), FormatError);
  EXPECT_THROW(parse_images(images, "i", idx_bytes({2}, "\x01\x0a"), "l"), FormatError);
  EXPECT_THROW(parse_images(idx_bytes({0, 1, 2}, ""), "i", idx_bytes({0}, ""), "l"), FormatError);
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
