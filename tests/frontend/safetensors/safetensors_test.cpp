// Headers of safetensors files: what is accepted, and that everything else is a FormatError.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <tinygrad/errors.h>

#include "frontend/safetensors/header.h"
#include "support/test_scale.h"

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

TEST(SafetensorsHeader, WhatDoesNotFitIsAFormatError) {
  const std::string good = entry("a", "F32", "2", "0,8");
  std::vector<std::string> bad{
      "",
      "1234567",
      file_of("", 0),
      file_of("[]", 0),
      file_of("{", 0),
      file_of("{}x", 0),
      file_of(" {}", 0),
      file_of("{}", 1),                                                       // bytes that belong to no tensor
      file_of("{" + good + "}", 7),                                           // cut off
      file_of("{" + good + "}", 9),                                           // a gap at the end
      file_of("{" + good + "," + good + "}", 8),                              // a name twice
      file_of("{" + good + "," + entry("b", "F32", "2", "4,12") + "}", 12),   // an overlap
      file_of("{" + good + "," + entry("b", "F32", "2", "0,8") + "}", 8),     // one place twice
      file_of("{" + good + "," + entry("b", "F32", "2", "12,20") + "}", 20),  // a gap
      file_of("{" + entry("a", "F32", "2", "8,0") + "}", 8),                  // backwards
      file_of("{" + entry("a", "F32", "3", "0,8") + "}", 8),                  // other sizes
      file_of("{" + entry("a", "F32", "-2", "0,8") + "}", 8),
      file_of("{" + entry("a", "F32", "2.0", "0,8") + "}", 8),
      file_of("{" + entry("a", "F32", "[2]", "0,8") + "}", 8),
      file_of("{" + entry("a", "F32", "4611686018427387905", "0,4") + "}", 4),  // 64 bits overflow
      file_of("{" + entry("a", "F32", "4294967296,4294967296", "0,0") + "}", 0),
      file_of("{" + entry("a", "F32", "18446744073709551615", "0,8") + "}", 8),
      file_of("{" + entry("a", "F32", "2", "0,8,9") + "}", 8),
      file_of("{" + entry("a", "F32", "2", "0") + "}", 8),
      file_of("{" + entry("a", "F4", "2", "0,8") + "}", 8),  // other sizes, of a type that there is no dtype of
      file_of("{" + entry("a", "F4", "3", "0,1") + "}", 1),
      file_of("{" + entry("a", "F9", "4294967296,4294967296", "0,8") + "}", 8),
      file_of("{" + entry("\xff", "F32", "2", "0,8") + "}", 8),  // no UTF-8
      file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8),
      file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
      file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", 8),
      file_of(R"({"a":{"dtype":{},"shape":[2],"data_offsets":[0,8]}})", 8),
      file_of(R"({"a":null})", 0),
      file_of(R"({"a":1})", 0),
      file_of(R"({"a":"b"})", 0),
      file_of(R"({"a":true})", 0),
      file_of(R"({"__metadata__":{"a":1}})", 0),
      file_of(R"({"__metadata__":{"a":{}}})", 0),
      file_of(R"({"__metadata__":{"a":"b","a":"c"}})", 0),
      file_of(R"({"__metadata__":{},"__metadata__":{}})", 0),
      file_of(R"({"__metadata__":"a"})", 0),
      file_of("{\"a\":" + std::string(100'000, '['), 0),
      file_of(std::string(100'000, '{'), 0),
  };
  std::string huge = file_of("{}", 0);
  for (const uint64_t size : {uint64_t{3}, uint64_t{100'000'001}, UINT64_MAX, UINT64_MAX - 7}) {
    std::memcpy(huge.data(), &size, 8);
    bad.push_back(huge);
  }
  for (const std::string& file : bad) EXPECT_THROW(parse(file), FormatError) << file.substr(0, 200);
}

}  // namespace
}  // namespace tinygrad::frontend
