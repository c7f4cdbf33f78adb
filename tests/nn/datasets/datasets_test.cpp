// The file formats of data sets.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "nn/datasets/idx.h"
#include "support/idx.h"

namespace tinygrad::nn::datasets {
namespace {

using test::idx_bytes;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Idx, Arrays) {
  const std::string bytes = idx_bytes({2, 3}, "abcdef");
  const IdxView view = parse_idx(bytes_of(bytes), "f");
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(view.elements.data()), view.elements.size()), "abcdef");
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
  for (const std::string& b : bad) EXPECT_THROW(parse_idx(bytes_of(b), "f"), FormatError);
}

TEST(Idx, PicturesAndLabelsBelongTogether) {
  const auto check = [](const std::string& images, const std::string& labels) {
    check_images(parse_idx(bytes_of(images), "i"), "i", parse_idx(bytes_of(labels), "l"), "l", 1, 2);
  };
  const std::string images = idx_bytes({2, 1, 2}, "abcd"), labels = idx_bytes({2}, "\x01\x09");
  check(images, labels);
  EXPECT_THROW(check(labels, labels), FormatError);
  EXPECT_THROW(check(images, images), FormatError);
  EXPECT_THROW(check(images, idx_bytes({3}, "\x01\x02\x03")), FormatError);
  EXPECT_THROW(check(images, idx_bytes({2}, "\x01\x0a")), FormatError);
  EXPECT_THROW(check(idx_bytes({0, 1, 2}, ""), idx_bytes({0}, "")), FormatError);
  EXPECT_THROW(check(idx_bytes({2, 2, 1}, "abcd"), labels), FormatError);
}

TEST(Cifar, RecordsAreChecked) {
  std::string file(2 * cifar_record, 'p');
  file[0] = 3, file[cifar_record] = 9;
  EXPECT_EQ(check_cifar(bytes_of(file), "f"), 2);
  EXPECT_THROW(check_cifar(bytes_of(""), "f"), FormatError);
  EXPECT_THROW(check_cifar(bytes_of(file.substr(1)), "f"), FormatError);
  file[cifar_record] = 10;
  EXPECT_THROW(check_cifar(bytes_of(file), "f"), FormatError);
}

}  // namespace
}  // namespace tinygrad::nn::datasets
