// Headers of safetensors files: what is accepted, and that everything else is a FormatError.
#include <gtest/gtest.h>

#include <cstring>

#include <tinygrad/errors.h>

#include "frontend/safetensors/header.h"
#include "support/refusal.h"

namespace tinygrad::frontend {
namespace {

using nn::state::SafeMetadata;

std::string file_of(const std::string& json, size_t data_bytes) {
  const uint64_t size = json.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + json + std::string(data_bytes, 'x');
}
SafeMetadata parse(const std::string& file) { return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), "f"); }

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}";
}

TEST(SafetensorsHeader, IsRead) {
  const SafeMetadata header = parse(file_of("{" + entry("b", "F16", "2,3", "4,16") + R"(,"__metadata__":{"format":"pt","k":"ü"},)" +
                                                entry("a.weight", "F32", "", "0,4") + "," + entry("none", "I64", "0,5", "16,16") + "}   ",
                                            16));
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"k", "ü"}}));
  ASSERT_EQ(header.tensors.size(), 3U);
  const SafeMetadata::Entry& b = header.tensors.at("b");
  EXPECT_EQ(b.dtype, DType::float16);
  EXPECT_EQ(b.shape, (Sizes{2, 3}));
  EXPECT_EQ(b.begin, 4);
  EXPECT_EQ(b.end, 16);
  EXPECT_EQ(header.tensors.at("a.weight").shape, Sizes{});
  EXPECT_EQ(parse(file_of("{}", 0)).tensors.size(), 0U);
}

TEST(SafetensorsHeader, TypesWithoutADtypeAreNamed) {
  const SafeMetadata header = parse(file_of("{" + entry("a", "F4", "2,4", "0,4") + "," + entry("b", "F6_E2M3", "4", "4,7") + "," +
                                                entry("c", "C64", "1", "7,15") + "," + entry("d", "F9", "7", "15,16") + "}",
                                            16));
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(header.tensors.at(name).dtype, DType::void_);
  EXPECT_EQ(header.tensors.at("a").type, "F4");
  EXPECT_EQ(header.tensors.at("d").type, "F9");
  EXPECT_THROW(safetensors_dtype(header.tensors.at("d"), "d", "f"), FormatError);
}

TEST(SafetensorsHeader, EveryDtypeHasAName) {
  for (const DType d : dtypes::all) {
    SafeMetadata contents;
    contents.tensors["t"] = {d, {3}, 0, static_cast<int64_t>(3 * itemsize(d))};
    EXPECT_EQ(parse(make_safetensors_header(contents) + std::string(3 * itemsize(d), ' ')).tensors.at("t").dtype, d);
  }
  EXPECT_FALSE(safetensors_name(DType::index));
}

TEST(SafetensorsHeader, WhatIsMadeIsAlignedAndReadBack) {
  for (size_t length = 1; length < 10; ++length) {
    SafeMetadata contents{.metadata = {{"q\"uote", "back\\slash\n"}}};
    contents.tensors[std::string(length, 'n')] = {DType::float32, {2, 1}, 0, 8};
    const std::string header = make_safetensors_header(contents);
    EXPECT_EQ(header.size() % 8, 0U);
    const SafeMetadata again = parse(header + std::string(8, ' '));
    EXPECT_EQ(again.metadata, contents.metadata);
    EXPECT_EQ(again.tensors.at(std::string(length, 'n')).shape, (Sizes{2, 1}));
    EXPECT_EQ(again.data_start, static_cast<int64_t>(header.size()));
  }
  EXPECT_THROW(make_safetensors_header({.metadata = {{"a", "\xff"}}}), ValueError);
}

TEST(SafetensorsHeader, WhatDoesNotFitIsNamedWithItsPlace) {
  const std::string good = entry("a", "F32", "2", "0,8");
  const auto entries = [](const std::string& all, size_t data) { return file_of("{" + all + "}", data); };
  const auto fields = [](const std::string& all) { return file_of("{\"a\":{" + all + "}}", 8); };
  const auto with_size = [](uint64_t size) { return std::string(reinterpret_cast<const char*>(&size), 8) + "{}"; };
  const std::string whole = entries(good, 8);
  std::vector<std::pair<std::string, std::string>> bad{
      {"", "the size of the header at byte 0: 0 bytes, too short"},
      {"1234567", "the size of the header at byte 0: 7 bytes, too short"},
      {with_size(3), "the size of the header at byte 0: a header of 3 bytes in a file of 10"},
      {with_size(100'000'001), "a header of 100000001 bytes"},
      {with_size(UINT64_MAX), "a header of 18446744073709551615 bytes"},
      {with_size(UINT64_MAX - 7), "a header of 18446744073709551608 bytes"},
      {with_size(uint64_t{1} << 63), "a header of 9223372036854775808 bytes"},
      {with_size(1), "the header at byte 9: no JSON"},
      {file_of("", 0), "the header at byte 8: it does not begin with a brace"},
      {file_of("[]", 0), "it does not begin with a brace"},
      {file_of(" {}", 0), "it does not begin with a brace"},
      {file_of("{", 0), "the header at byte 9: no JSON"},
      {file_of("{}x", 0), "the header at byte 11: no JSON"},
      {file_of("{},{}", 0), "the header at byte 11: no JSON"},
      {file_of("{\"a\"}", 0), "no JSON"},
      {file_of("{\"a\":}", 0), "no JSON"},
      {file_of("{" + good + ",}", 8), "no JSON"},
      {file_of("{'a':1}", 0), "no JSON"},
      {file_of("{\"a\":NaN}", 0), "no JSON"},
      {file_of("{\"a\\ud800\":1}", 0), "no JSON"},
      {file_of(std::string("{\"a\0\":1}", 8), 0), "no JSON"},
      {file_of("{}", 1), "the data at byte 10: 1 bytes of data, the tensors have 0"},
      {entries(good, 7), "'a' is dtypes.float32 (2) in the bytes 0 to 8 of 7"},
      {entries(good, 0), "in the bytes 0 to 8 of 0"},
      {entries(good, 9), "9 bytes of data, the tensors have 8"},
      {entries(good + "," + good, 8), "the name 'a' occurs twice"},
      {entries(good + "," + entry("\\u0061", "F32", "2", "8,16"), 16), "the name 'a' occurs twice"},
      {entries(good + "," + entry("b", "F32", "2", "4,12"), 12), "'b' begins at 4, what is before it ends at 8"},
      {entries(good + "," + entry("b", "F32", "2", "0,8"), 8), "'b' begins at 0"},
      {entries(good + "," + entry("b", "F32", "1", "4,8"), 8), "'b' begins at 4"},
      {entries(good + "," + entry("b", "F32", "2", "12,20"), 20), "'b' begins at 12"},
      {entries(entry("a", "F32", "2", "8,16"), 16), "'a' begins at 8, what is before it ends at 0"},
      {entries(entry("a", "F32", "2", "8,0"), 8), "in the bytes 8 to 0"},
      {entries(entry("a", "F32", "2", "9223372036854775800,9223372036854775807"), 8), "does not fit"},
      {entries(entry("a", "F32", "2", "0,9223372036854775808"), 8), "9223372036854775808, which is too large"},
      {entries(entry("a", "F32", "2", "-8,0"), 8), "a negative number where none is expected, at 'data_offsets'"},
      {entries(entry("a", "F32", "2", "0.0,8"), 8), "a fraction where none is expected, at 'data_offsets'"},
      {entries(entry("a", "F32", "2", "\"0\",8"), 8), "a text where none is expected"},
      {entries(entry("a", "F32", "2", "[0],8"), 8), "a list where none is expected"},
      {entries(entry("a", "F32", "2", "{},8"), 8), "an object where none is expected"},
      {entries(entry("a", "F32", "2", "null,8"), 8), "null where none is expected"},
      {entries(entry("a", "F32", "2", "0,8,9"), 8), "a number where none is expected"},
      {entries(entry("a", "F32", "2", "0"), 8), "'a' has 1 data_offsets, expected 2"},
      {entries(entry("a", "F32", "2", ""), 8), "'a' has 0 data_offsets, expected 2"},
      {entries(entry("a", "F32", "3", "0,8"), 8), "dtypes.float32 (3) in the bytes 0 to 8 of 8, which does not fit"},
      {entries(entry("a", "F32", "", "0,8"), 8), "does not fit"},
      {entries(entry("a", "F32", "0", "0,8"), 8), "does not fit"},
      {entries(entry("a", "F32", "-2", "0,8"), 8), "a negative number where none is expected, at 'shape'"},
      {entries(entry("a", "F32", "2.0", "0,8"), 8), "a fraction"},
      {entries(entry("a", "F32", "2e0", "0,8"), 8), "a fraction"},
      {entries(entry("a", "F32", "[2]", "0,8"), 8), "a list where none is expected, at 'shape'"},
      {entries(entry("a", "F32", "true", "0,8"), 8), "a boolean where none is expected"},
      {entries(entry("a", "F32", "4611686018427387905", "0,4"), 4), "does not fit"},  // 64 bits overflow
      {entries(entry("a", "F32", "4294967296,4294967296", "0,0"), 0), "does not fit"},
      {entries(entry("a", "F32", "4294967296,4294967296,0", "0,0"), 0), "does not fit"},
      {entries(entry("a", "F32", "18446744073709551615", "0,8"), 8), "which is too large"},
      {entries(entry("a", "F32", "99999999999999999999", "0,8"), 8), "a fraction"},
      {entries(entry("a", "F4", "2", "0,8"), 8), "'a' is F4 (2)"},  // of a type that there is no dtype of
      {entries(entry("a", "F4", "3", "0,1"), 1), "'a' is F4 (3)"},
      {entries(entry("a", "F9", "4294967296,4294967296", "0,8"), 8), "'a' is F9"},
      {entries(entry("\xff", "F32", "2", "0,8"), 8), "no JSON"},  // no UTF-8
      {fields(R"("dtype":"F32","shape":[2])"), "'a' lacks one of dtype, shape and data_offsets"},
      {fields(R"("dtype":"F32","data_offsets":[0,8])"), "'a' lacks one of"},
      {fields(R"("shape":[2],"data_offsets":[0,8])"), "'a' lacks one of"},
      {fields(""), "'a' lacks one of"},
      {fields(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])"), "'a' has two fields 'dtype'"},
      {fields(R"("dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8])"), "'a' has two fields 'shape'"},
      {fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1)"), "'a' has an unknown field 'more'"},
      {fields(R"("dtype":{},"shape":[2],"data_offsets":[0,8])"), "an object where none is expected, at 'dtype'"},
      {fields(R"("dtype":["F32"],"shape":[2],"data_offsets":[0,8])"), "a list where none is expected, at 'dtype'"},
      {fields(R"("dtype":1,"shape":[2],"data_offsets":[0,8])"), "a number where none is expected, at 'dtype'"},
      {fields(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "a number where none is expected, at 'shape'"},
      {fields(R"("dtype":"F32","shape":"2","data_offsets":[0,8])"), "a text where none is expected, at 'shape'"},
      {file_of(R"({"a":null})", 0), "null where none is expected, at 'a'"},
      {file_of(R"({"a":1})", 0), "a number where none is expected, at 'a'"},
      {file_of(R"({"a":-1})", 0), "a negative number where none is expected, at 'a'"},
      {file_of(R"({"a":"b"})", 0), "a text where none is expected, at 'a'"},
      {file_of(R"({"a":true})", 0), "a boolean where none is expected, at 'a'"},
      {file_of(R"({"a":[]})", 0), "a list where none is expected, at 'a'"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "a number where none is expected, at 'a'"},
      {file_of(R"({"__metadata__":{"a":{}}})", 0), "an object where none is expected, at 'a'"},
      {file_of(R"({"__metadata__":{"a":"b","a":"c"}})", 0), "the name 'a' occurs twice in __metadata__"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "the name '__metadata__' occurs twice"},
      {file_of(R"({"__metadata__":"a"})", 0), "a text where none is expected, at '__metadata__'"},
      {file_of("{\"a\":" + std::string(100'000, '['), 0), "a list where none is expected, at 'a'"},
      {file_of(R"({"a":{"dtype":"F32","shape":)" + std::string(100'000, '['), 0), "a list where none is expected, at 'shape'"},
      {file_of(std::string(100'000, '{'), 0), "no JSON"},
  };
  for (size_t end = 8; end < whole.size(); ++end) bad.emplace_back(whole.substr(0, end), "");                      // cut off
  for (size_t end = 1; end + 8 < whole.size() - 8; ++end) bad.emplace_back(file_of(whole.substr(8, end), 8), "");  // a header cut off
  for (const auto& [file, expected] : bad) {
    const std::string message = test::refusal_of([&] { parse(file); });
    EXPECT_NE(message.find(expected), std::string::npos) << message << "\n  expected: " << expected;
    EXPECT_TRUE(message.starts_with("f: the ") && message.find(" at byte ") != std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tinygrad::frontend
