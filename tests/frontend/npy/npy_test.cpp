// Files of NumPy: what headers say, and that all else is a FormatError.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "base/archives.h"
#include "frontend/npy/arrays.h"
#include "frontend/npy/header.h"
#include "frontend/npy/npy.h"
#include "support/message_of.h"
#include "support/refusal.h"

namespace tinygrad::frontend {
namespace {

using namespace std::string_literals;
using test::npy_of;
using test::npy_with_header;

FileBytes file_of(const std::string& bytes) {
  const auto owner = std::make_shared<std::vector<std::byte>>(test::bytes_of(bytes).begin(), test::bytes_of(bytes).end());
  return {owner, *owner, "f"};
}
NpyHeader parse(const std::string& bytes) { return parse_npy_header(test::bytes_of(bytes), "f"); }

TEST(Npy, HeadersAreRead) {
  for (const int version : {1, 2, 3}) {
    const NpyHeader h = parse(npy_of("<f4", "(2, 3)", std::string(24, '\0'), "False", version));
    EXPECT_EQ(h.descr, "<f4");
    EXPECT_EQ(h.dtype, DType::float32);
    EXPECT_EQ(h.shape, (Sizes{2, 3}));
    EXPECT_FALSE(h.is_big_endian);
    EXPECT_FALSE(h.is_column_major);
    EXPECT_EQ(h.data_bytes(), 24);
  }
  EXPECT_EQ(parse(npy_of("<f8", "()", "")).shape, Sizes{});
  EXPECT_EQ(parse(npy_of("<f8", "(0,)", "")).shape, Sizes{0});
  EXPECT_EQ(parse(npy_of("<f8", "(3L, 4L)", "")).shape, (Sizes{3, 4}));
  EXPECT_EQ(parse(npy_of("<f8", "(3, 4,)", "")).shape, (Sizes{3, 4}));
  EXPECT_TRUE(parse(npy_of("<f8", "(3, 4)", "", "True")).is_column_major);
  EXPECT_TRUE(parse(npy_of(">i2", "(1,)", "")).is_big_endian);
  EXPECT_EQ(parse(npy_with_header(R"( { "shape" : ( 3 , ) , "fortran_order":False, "descr":"|b1" }  )")).shape, Sizes{3});
  EXPECT_EQ(parse(npy_with_header("{'descr': [('a', '<f4'), ('b', '<i2', (2,))], 'fortran_order': False, 'shape': (3,)}")).descr,
            "[('a', '<f4'), ('b', '<i2', (2,))]");
}

TEST(Npy, EveryTypeIsListed) {
  const std::vector<std::pair<std::string, int64_t>> types{{"|b1", 1}, {"|i1", 1}, {"|u1", 1}, {"<i2", 2}, {">u2", 2}, {"<i4", 4},
                                                           {"<u4", 4}, {"<i8", 8}, {">u8", 8}, {"<f2", 2}, {"<f4", 4}, {">f8", 8}};
  for (const auto& [type, bytes] : types) {
    const auto reader = open_npy(file_of(npy_of(type, "(3,)", std::string(static_cast<size_t>(3 * bytes), '\0'))));
    EXPECT_EQ(reader->format(), "npy");
    ASSERT_EQ(reader->tensors().size(), 1U);
    EXPECT_EQ(reader->tensors()[0].name, "arr_0");
    EXPECT_EQ(reader->tensors()[0].type, type);
    EXPECT_EQ(reader->tensors()[0].bytes, 3 * bytes);
    EXPECT_EQ(reader->tensors()[0].offset >= 0, type[0] != '>') << type;
    EXPECT_EQ(reader->tensor(0).shape(), Sizes{3});
    EXPECT_EQ(reader->tensor(0).dtype(), parse(npy_of(type, "(3,)", "")).dtype);
    EXPECT_THROW(reader->tensor(1), IndexError);
  }
  const std::vector<std::pair<std::string, int64_t>> others{{"<c8", 8}, {"<c16", 16},   {"<f16", 16},  {"|S5", 5}, {"<U2", 8},
                                                            {"|V3", 3}, {"<M8[ns]", 8}, {"<m8[s]", 8}, {"|O", 0}};
  for (const auto& [type, bytes] : others) {
    const auto reader = open_npy(file_of(npy_of(type, "(2,)", std::string(static_cast<size_t>(2 * bytes), '\0'))));
    EXPECT_EQ(reader->tensors()[0].type, type);
    EXPECT_EQ(reader->tensors()[0].bytes, 2 * bytes);
    const std::string message = test::message_of<FormatError>([&] { reader->tensor(0); });
    EXPECT_EQ(message, "f: 'arr_0' has the element type " + type + ", which no dtype holds");
  }
}

TEST(Npy, HeadersThatAreMadeAreReadBack) {
  for (const DType d : dtypes::all) {
    if (is_fp8(d) || d == DType::bfloat16) {
      EXPECT_THROW(make_npy_header(d, {}), DTypeError);
      continue;
    }
    for (const Sizes& shape : {Sizes{}, Sizes{3}, Sizes{0, 4}, Sizes(64, 1)}) {
      const std::string header = make_npy_header(d, shape);
      EXPECT_EQ(header.size() % 64, 0U);
      const NpyHeader again = parse(header);
      EXPECT_EQ(again.dtype, d);
      EXPECT_EQ(again.shape, shape);
      EXPECT_EQ(again.data_start, header.size());
    }
  }
  EXPECT_THROW(make_npy_header(DType::index, {}), DTypeError);
}

TEST(Npy, ArchivesNameTheirArrays) {
  const std::string a = npy_of("<f4", "(2,)", std::string(8, '\0')), b = npy_of("|O", "()", "pickle");
  for (const bool deflate : {false, true}) {
    const auto reader = open_npz(file_of(test::zip_of({{"w/a.npy", a, deflate}, {"b.npy", b, deflate}, {"note.txt", "hi", deflate}})));
    EXPECT_EQ(reader->format(), "npz");
    ASSERT_EQ(reader->tensors().size(), 3U);
    EXPECT_EQ(reader->tensors()[0].name, "w/a");
    EXPECT_EQ(reader->tensors()[0].shape, Sizes{2});
    EXPECT_EQ(reader->tensors()[0].offset >= 0, !deflate);
    EXPECT_EQ(reader->tensors()[1].name, "b");
    EXPECT_THROW(reader->tensor(1), FormatError);
    EXPECT_EQ(reader->tensors()[2].name, "note.txt");
    EXPECT_EQ(reader->tensors()[2].type, "bytes");
    EXPECT_EQ(reader->tensor(2).tolist<uint8_t>(), (std::vector<uint8_t>{'h', 'i'}));
  }
}

TEST(Npy, WhatIsWrongIsNamedWithItsPlace) {
  const std::string v1 = "\x93NUMPY\x01\x00"s, eight(8, '\0');
  const auto dict = [](const std::string& text) { return npy_with_header(text); };
  const std::string rest = "'fortran_order': False, 'shape': (1,)}";
  std::vector<std::pair<std::string, std::string>> bad{
      {"", "f: the magic text at byte 0: 6 bytes are expected, 0 are left"},
      {"\x93NUMP", "f: the magic text at byte 0: 6 bytes"},
      {"\x93NUMPX\x01\x00\x00\x00"s, "f: the magic text at byte 0: no file of NumPy"},
      {"PK\x03\x04    ", "f: the magic text at byte 0: no file of NumPy"},
      {"\x93NUMPY", "f: the version at byte 6: 1 bytes"},
      {"\x93NUMPY\x00\x00\x00\x00"s, "f: the version at byte 6: 0, expects 1 to 3"},
      {"\x93NUMPY\x04\x00\x00\x00"s, "f: the version at byte 6: 4, expects 1 to 3"},
      {"\x93NUMPY\x01\x01\x00\x00"s, "f: the minor version at byte 7: 1, expects 0"},
      {"\x93NUMPY\x01"s, "f: the minor version at byte 7: 1 bytes"},
      {v1 + "\x01", "f: the size of the header at byte 8: 2 bytes"},
      {v1 + "\x05\x00{"s, "f: the header at byte 10: 5 bytes are expected, 1 are left"},
      {"\x93NUMPY\x02\x00\xff\xff\xff\xff"s, "f: the size of the header at byte 8: 4294967295 bytes, at most 1048576"},
      {"\x93NUMPY\x02\x00\x01\x00\x00"s, "f: the size of the header at byte 8: 4 bytes"},
      {dict(""), "f: the dict at byte 10: expects '{'"},
      {dict("[]"), "f: the dict at byte 10: expects '{'"},
      {dict("{"), "f: a key at byte 11: expects a text in quotes"},
      {dict("{}"), "f: the dict at byte 12: it has no 'descr'"},
      {dict("{'descr': '<f8'}"), "f: the dict at byte 26: it has no 'fortran_order'"},
      {dict("{'descr': '<f8', 'fortran_order': False}"), "f: the dict at byte 50: it has no 'shape'"},
      {dict("{'descr': '<f8', " + rest + " x"), "f: the dict at byte 66: something follows it"},
      {dict("{'descr': '<f8', " + rest + "}"), "something follows it"},
      {dict("{'descr': '<f8' " + rest), "f: the dict at byte 26: expects a comma or a brace"},
      {dict("{'descr' '<f8', " + rest), "f: descr at byte 19: expects ':'"},
      {dict("{'other': 1, 'descr': '<f8', " + rest), "f: a key at byte 18: expects 'descr', 'fortran_order' or 'shape'"},
      {dict("{'descr': '<f8', 'descr': '<f8', " + rest), "f: a key at byte 34: 'descr' is there twice"},
      {dict("{descr: '<f8', " + rest), "f: a key at byte 11: expects a text in quotes"},
      {dict("{'descr"), "f: a key at byte 11: a text without an end"},
      {dict("{'des\\x63r': '<f8', " + rest), "f: a key at byte 11: a text with a backslash"},
      {dict("{1: '<f8', " + rest), "f: a key at byte 11: expects a text"},
      // Element types.
      {dict("{'descr': 5, " + rest), "f: descr at byte 20: expects a text in quotes"},
      {dict("{'descr': None, " + rest), "f: descr at byte 20: expects a text"},
      {dict("{'descr': ('<f8',), " + rest), "f: descr at byte 20: expects a text"},
      {dict("{'descr': '', " + rest), "f: descr at byte 22: expects the code of an element type"},
      {dict("{'descr': 'f8', " + rest), "f: descr at byte 24: expects the code"},
      {dict("{'descr': '<', " + rest), "f: descr at byte 23: expects the code"},
      {dict("{'descr': '<x8', " + rest), "f: descr at byte 25: expects the code"},
      {dict("{'descr': '<f', " + rest), "expects the code"},
      {dict("{'descr': '<f-8', " + rest), "expects the code"},
      {dict("{'descr': '<f8x', " + rest), "expects the code"},
      {dict("{'descr': '<M8x', " + rest), "expects the code"},
      {dict("{'descr': '<U99999999999', " + rest), "elements of 99999999999 bytes"},
      {dict("{'descr': '<U99999999999999999999', " + rest), "expects the code"},
      {dict("{'descr': float64, " + rest), "f: descr at byte 20: expects a text"},
      {dict("{'descr': [('a', '<f8'), " + rest), "f: descr"},
      {dict("{'descr': [[[["), "f: descr at byte 24: a list without an end"},
      {dict("{'descr': ['a"), "f: descr at byte 21: a text without an end"},
      // Orders.
      {dict("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}"), "f: fortran_order at byte 44: expects True or False"},
      {dict("{'descr': '<f8', 'fortran_order': 'False', 'shape': (1,)}"), "f: fortran_order at byte 44"},
      {dict("{'descr': '<f8', 'fortran_order': true, 'shape': (1,)}"), "f: fortran_order at byte 44"},
      {dict("{'descr': '<f8', 'fortran_order': Falsee, 'shape': (1,)}"), "f: the dict at byte 49: expects a comma"},
  };
  const auto shape = [&](const std::string& text, const std::string& message) { bad.emplace_back(npy_of("<f8", text, eight), message); };
  shape("1", "f: shape at byte 60: expects '('");
  shape("[1]", "f: shape at byte 60: expects '('");
  shape("(1)", "f: shape at byte 62: expects a tuple: (3,)");
  shape("(1 2)", "f: shape at byte");
  shape("(-1,)", "f: shape at byte 61: expects a size");
  shape("(,)", "f: shape at byte 61: expects a size");
  shape("(1.0,)", "f: shape at byte");
  shape("(1e3,)", "f: shape at byte");
  shape("(0x1,)", "f: shape at byte");
  shape("(None,)", "f: shape at byte 61: expects a size");
  shape("(True,)", "f: shape at byte 61: expects a size");
  shape("(9223372036854775808,)", "f: shape at byte 61: expects a size of at most 63 bits");
  shape("((1,),)", "f: shape at byte 61: expects a size");
  shape("(1,", "f: shape at byte");
  shape(
      "(" +
          [] {
            std::string ones;
            for (int i = 0; i < 65; ++i) ones += "1, ";
            return ones;
          }() +
          ")",
      "more than 64 axes");
  shape("(2,)", "f: the elements at byte 128: 8 bytes, where '<f8' and the shape ask for 16");
  shape("(0,)", "8 bytes, where '<f8' and the shape ask for 0");
  shape("(1000000000000,)", "ask for 8000000000000");
  shape("(9223372036854775807,)", "ask for more than 63 bits");
  shape("(4294967296, 4294967296)", "ask for more than 63 bits");
  shape("(2, 9223372036854775807)", "ask for more than 63 bits");
  EXPECT_GE(bad.size(), 60U);
  for (const auto& [bytes, expected] : bad) {
    const std::string message = test::refusal_of([&] { open_npy(file_of(bytes)); });
    EXPECT_NE(message.find(expected), std::string::npos) << message << "\n  expected: " << expected << "\n  of: " << bytes;
    // The same in an archive names the member.
    for (const bool deflate : {false, true}) {
      const std::string inside = test::refusal_of([&] { open_npz(file_of(test::zip_of({{"a.npy", bytes, deflate}}))); });
      EXPECT_TRUE(inside.starts_with("f: 'a.npy': ")) << inside;
    }
  }
  EXPECT_NE(test::message_of<FormatError>([&] {
              open_npy(file_of(npy_of("|b1", "(2,)", "\x01\x02")))->tensor(0);
            }).find("at byte 129: the boolean 2"),
            std::string::npos);
  EXPECT_THROW(open_npz(file_of("PK")), FormatError);
  EXPECT_THROW(open_npz(file_of(npy_of("<f8", "(1,)", eight))), FormatError);
}

}  // namespace
}  // namespace tinygrad::frontend
