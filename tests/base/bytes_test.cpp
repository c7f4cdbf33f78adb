#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace tinygrad {
namespace {

enum class Color : uint8_t { red, green };

struct Point {
  int32_t x = 0;
  double y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};
struct Shape {
  std::string name;
  Color color = Color::red;
  bool closed = false;
  std::vector<Point> points;
  friend bool operator==(const Shape&, const Shape&) = default;
};

}  // namespace

template <class A>
static void fields(A& archive, Field<A, Point> p) {
  archive(p.x, p.y);
}
template <class A>
static void fields(A& archive, Field<A, Shape> s) {
  archive(s.name, s.color, s.closed, s.points);
}

namespace {

std::string written(const Shape& shape) {
  ByteWriter out;
  out(shape);
  return out.bytes();
}

Shape read(std::string_view bytes) {
  ByteReader in(bytes, "shapes");
  Shape s;
  in(s);
  in.expect_end();
  return s;
}

const Shape triangle{.name = std::string("a\0b", 3), .color = Color::green, .closed = true, .points = {{1, 2.5}, {-3, 0}, {4, -0.5}}};

TEST(Bytes, WhatIsWrittenIsRead) {
  EXPECT_EQ(read(written(triangle)), triangle);
  EXPECT_EQ(read(written({})), Shape{});
}

TEST(Bytes, EveryShorterAndLongerTextIsRefused) {
  const std::string bytes = written(triangle);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW(read(bytes.substr(0, n)), FormatError) << n;
  EXPECT_THROW(read(bytes + "x"), FormatError);
}

TEST(Bytes, ErrorsSayWhatWasRead) {
  try {
    read("ab");
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_STREQ(e.what(), "shapes: the end comes too early");
  }
}

TEST(Bytes, NumbersThatCannotBeAreRefused) {
  EXPECT_THROW(ByteReader(std::string_view("\x02"), "it").take<bool>(), FormatError);
  EXPECT_THROW(ByteReader(std::string_view("\xff"), "it").take_up_to<Color>(1), FormatError);
  EXPECT_THROW(ByteReader(std::string_view("\x80"), "it").take_up_to<int8_t>(100), FormatError);
  EXPECT_EQ(ByteReader(std::string_view("\x01"), "it").take_up_to<Color>(1), Color::green);
}

// A count that the bytes do not bear out costs the memory of the elements that are there.
TEST(Bytes, ListsGrowWithWhatIsRead) {
  const std::string bytes(
      "\xff\xff\xff\x7f"
      "0123456789",
      14);
  ByteReader in(bytes, "a list");
  std::vector<std::array<uint16_t, 1000>> list;
  EXPECT_THROW(in.take_each([&] { list.emplace_back()[0] = in.take<uint16_t>(); }), FormatError);
  EXPECT_EQ(list.size(), 5u);
  EXPECT_LE(list.capacity(), 8u);
  ByteReader again(bytes, "a text");
  EXPECT_THROW(again.take_text(), FormatError);
}

}  // namespace
}  // namespace tinygrad
