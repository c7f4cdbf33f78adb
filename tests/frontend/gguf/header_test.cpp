// Headers of GGUF files: what is accepted, and that everything else is a FormatError that names the field.
#include <gtest/gtest.h>

#include <bit>

#include <tinygrad/errors.h>

#include "frontend/gguf/gguf_file.h"
#include "frontend/gguf/header.h"
#include "frontend/gguf/types.h"
#include "support/message_of.h"
#include "support/refusal.h"

namespace tinygrad::frontend {
namespace {

using formats::BlockFormat;
using formats::Metadata;
using formats::MetadataValue;
using test::GgufBytes;
using Bytes = GgufBytes;

GgufHeader parse(const std::string& file) { return parse_gguf_header(std::as_bytes(std::span(file)), "f"); }

template <class T>
const T& get(const GgufHeader& header, std::string_view key) {
  return std::get<T>(find_metadata(header.metadata, key)->value);
}

TEST(GgufHeader, EveryTypeOfMetadataIsRead) {
  Bytes b;
  b.beginning(0, 15);
  b.key("u8", 0).number(uint8_t(200));
  b.key("i8", 1).number(int8_t(-100));
  b.key("u16", 2).number(uint16_t(60000));
  b.key("i16", 3).number(int16_t(-30000));
  b.key("u32", 4).number(uint32_t(4000000000));
  b.key("i32", 5).number(int32_t(-2000000000));
  b.key("f32", 6).number(0.1f);
  b.key("bool", 7).number(uint8_t(1));
  b.key("text", 8).text("zwölf");
  b.key("array", 9).number(uint32_t(8)).number(uint64_t(2)).text("a").text("");
  b.key("u64", 10).number(UINT64_MAX);
  b.key("i64", 11).number(INT64_MIN);
  b.key("f64", 12).number(0.1);
  b.key("nested", 9).number(uint32_t(9)).number(uint64_t(2));
  b.number(uint32_t(3)).number(uint64_t(2)).number(int16_t(1)).number(int16_t(-2));
  b.number(uint32_t(7)).number(uint64_t(0));
  b.key("none", 9).number(uint32_t(12)).number(uint64_t(0));
  const GgufHeader header = parse(b);
  ASSERT_EQ(header.metadata.size(), 15U);
  EXPECT_EQ(header.metadata[0].first, "u8");
  EXPECT_EQ(header.metadata[14].first, "none");
  EXPECT_EQ(get<uint64_t>(header, "u8"), 200U);
  EXPECT_EQ(get<int64_t>(header, "i8"), -100);
  EXPECT_EQ(get<uint64_t>(header, "u16"), 60000U);
  EXPECT_EQ(get<int64_t>(header, "i16"), -30000);
  EXPECT_EQ(get<uint64_t>(header, "u32"), 4000000000U);
  EXPECT_EQ(get<int64_t>(header, "i32"), -2000000000);
  EXPECT_EQ(get<double>(header, "f32"), double(0.1f));
  EXPECT_TRUE(get<bool>(header, "bool"));
  EXPECT_EQ(get<std::string>(header, "text"), "zwölf");
  const auto& texts = get<std::vector<MetadataValue>>(header, "array");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(std::get<std::string>(texts[0].value), "a");
  EXPECT_EQ(get<uint64_t>(header, "u64"), UINT64_MAX);
  EXPECT_EQ(get<int64_t>(header, "i64"), INT64_MIN);
  EXPECT_EQ(get<double>(header, "f64"), 0.1);
  const auto& nested = get<std::vector<MetadataValue>>(header, "nested");
  ASSERT_EQ(nested.size(), 2U);
  EXPECT_EQ(std::get<int64_t>(std::get<std::vector<MetadataValue>>(nested[0].value)[1].value), -2);
  EXPECT_TRUE(std::get<std::vector<MetadataValue>>(nested[1].value).empty());
  EXPECT_FALSE(find_metadata(header.metadata, "absent"));
}

TEST(GgufHeader, TensorsAreRead) {
  for (const uint32_t version : {2U, 3U}) {
    Bytes b;
    b.beginning(4, 1, version).key("general.alignment", 4).number(uint32_t(8));
    b.tensor("a", {3, 2}, 0, 0).tensor("blocks", {512, 3, 1}, 12, 32).tensor("scalar", {1}, 28, 24).tensor("empty", {0, 5}, 0, 0);
    b.data(32 + 6 * 144, 8);
    const GgufHeader header = parse(b);
    ASSERT_EQ(header.tensors.size(), 4U);
    const auto data = int64_t(b.bytes().size()) - 32 - 6 * 144;
    EXPECT_EQ(header.tensors[0].name, "a");
    EXPECT_EQ(header.tensors[0].shape, (Sizes{2, 3})) << "outermost first";
    EXPECT_EQ(header.tensors[0].type, "F32");
    EXPECT_EQ(header.tensors[0].offset, data);
    EXPECT_EQ(header.tensors[0].bytes, 24);
    EXPECT_EQ(header.tensors[1].shape, (Sizes{1, 3, 512}));
    EXPECT_EQ(header.tensors[1].type, "Q4_K");
    EXPECT_EQ(header.tensors[1].bytes, 6 * 144);
    EXPECT_EQ(std::get<BlockFormat>(header.types[1]), BlockFormat::Q4_K);
    EXPECT_EQ(header.tensors[2].offset, data + 24);
    EXPECT_EQ(std::get<DType>(header.types[2]), DType::float64);
    EXPECT_EQ(header.tensors[3].bytes, 0);
  }
}

TEST(GgufHeader, EveryTypeOfElementsHasItsNumber) {
  int kept = 0;
  for (uint32_t id = 0; const GgufTypeRow* row = gguf_type_row(id); ++id) {
    if (std::holds_alternative<std::monostate>(row->type)) {
      const std::string said = test::message_of<FormatError>([&] { parse(Bytes().beginning(1, 0).tensor("t", {256}, id, 0).data(4096)); });
      EXPECT_NE(said.find(std::string(row->name) + " (number " + std::to_string(id) + ") was removed"), std::string::npos) << said;
      continue;
    }
    ++kept;
    const GgufHeader header = parse(Bytes().beginning(1, 0).tensor("t", {256}, id, 0).data(4096));
    EXPECT_EQ(header.tensors[0].type, row->name);
    EXPECT_EQ(gguf_type_id(header.types[0]), id);
    const formats::BlockLayout layout = gguf_layout(header.types[0]);
    EXPECT_EQ(header.tensors[0].bytes, 256 / layout.elements * layout.bytes);
    if (const auto* format = std::get_if<BlockFormat>(&header.types[0])) {
      EXPECT_EQ(formats::layout_of(*format).name, row->name);
    }
  }
  EXPECT_EQ(kept, 35);
  EXPECT_FALSE(gguf_type_id(DType::uint8));
  EXPECT_FALSE(gguf_type_id(DType::bool_));
}

TEST(GgufHeader, WhatIsMadeIsReadBack) {
  const MetadataValue list{std::vector<MetadataValue>{{int64_t{1}}, {int64_t{1} << 40}}};
  const Metadata metadata{{"general.alignment", {uint64_t{64}}},
                          {"u", {uint64_t{7}}},
                          {"wide", {uint64_t{1} << 40}},
                          {"i", {int64_t{-7}}},
                          {"list", list},
                          {"f", {0.5}},
                          {"double", {0.1}},
                          {"t", {std::string("text")}},
                          {"b", {true}},
                          {"nested", {std::vector<MetadataValue>{list, list}}},
                          {"none", {std::vector<MetadataValue>{}}}};
  const std::vector<OutgoingTensor> entries{
      {"a", DType::float16, {2, 3}}, {"q", BlockFormat::Q6_K, {2, 256}}, {"s", DType::int64, {}}, {"e", DType::int8, {0, 3}}};
  const GgufBeginning made = make_gguf_header(metadata, entries);
  EXPECT_EQ(made.bytes.size() % 64, 0U);
  EXPECT_EQ(made.offsets, (std::vector<uint64_t>{0, 64, 512, 576}));
  EXPECT_EQ(made.data_bytes, 576U);
  const GgufHeader header = parse(made.bytes + std::string(made.data_bytes, 'd'));
  ASSERT_EQ(header.metadata.size(), metadata.size());
  EXPECT_EQ(get<uint64_t>(header, "wide"), uint64_t{1} << 40);
  EXPECT_EQ(get<int64_t>(header, "i"), -7);
  EXPECT_EQ(get<double>(header, "double"), 0.1);
  EXPECT_EQ(std::get<int64_t>(get<std::vector<MetadataValue>>(header, "list")[1].value), int64_t{1} << 40);
  EXPECT_EQ(get<std::vector<MetadataValue>>(header, "nested").size(), 2U);
  ASSERT_EQ(header.tensors.size(), 4U);
  EXPECT_EQ(header.tensors[1].shape, (Sizes{2, 256}));
  EXPECT_EQ(header.tensors[1].offset, int64_t(made.bytes.size()) + 64);
  EXPECT_EQ(header.tensors[2].shape, Sizes{1});
}

TEST(GgufHeader, WhatCannotBeMade) {
  const auto with = [](const MetadataValue& value) { return make_gguf_header({{"k", value}}, {}); };
  EXPECT_THROW(with({}), ValueError);
  EXPECT_THROW(with({Metadata{}}), ValueError);
  EXPECT_THROW(with({std::vector<MetadataValue>{{int64_t{1}}, {2.0}}}), ValueError);
  EXPECT_THROW(with({std::vector<MetadataValue>{{}}}), ValueError);
  EXPECT_THROW(make_gguf_header({{"", {true}}}, {}), ValueError);
  EXPECT_THROW(make_gguf_header({{"k", {true}}, {"k", {true}}}, {}), ValueError);
  EXPECT_THROW(make_gguf_header({{"general.alignment", {int64_t{32}}}}, {}), ValueError);
  EXPECT_THROW(make_gguf_header({{"general.alignment", {uint64_t{33}}}}, {}), ValueError);
  const auto of = [](const std::vector<OutgoingTensor>& entries) { return make_gguf_header({}, entries); };
  EXPECT_THROW(of({{"a", DType::uint8, {1}}}), DTypeError);
  EXPECT_THROW(of({{"a", DType::float32, {1, 1, 1, 1, 1}}}), ShapeError);
  EXPECT_THROW(of({{std::string(64, 'n'), DType::float32, {1}}}), ValueError);
  EXPECT_THROW(of({{"a", DType::float32, {1}}, {"a", DType::float32, {1}}}), ValueError);
}

struct Bad {
  std::string file;
  std::string_view says;  ///< a part of the message
};

/// One pair of metadata, of this type.
Bytes pair(uint32_t type, uint64_t pairs = 1) { return Bytes().beginning(0, pairs).key("k", type); }
Bytes array_of(uint32_t type, uint64_t count) { return pair(9).number(type).number(count); }
/// One tensor with its data.
std::string one(const std::vector<uint64_t>& sizes, uint32_t type = 0, uint64_t offset = 0, size_t data = 4096) {
  return Bytes().beginning(1, 0).tensor("t", sizes, type, offset).data(data);
}
std::string aligned(uint32_t type, const auto& alignment) {
  return Bytes().beginning(0, 1).key("general.alignment", type).number(alignment);
}
std::string nested(int depth) {
  Bytes b = pair(9);
  for (int i = 1; i < depth; ++i) b.number(uint32_t(9)).number(uint64_t(1));
  return b.number(uint32_t(0)).number(uint64_t(0));
}

TEST(GgufHeader, WhatDoesNotFitIsAFormatError) {
  constexpr uint64_t huge = uint64_t{1} << 62;
  const Bytes two = Bytes().beginning(2, 0).tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 32).data(64);
  std::string with_boolean = pair(7).number(uint8_t(2)).bytes();
  std::vector<Bad> bad{
      {"", "magic at byte 0: 4 bytes are expected, 0 are left"},
      {"GGU", "magic"},
      {Bytes().raw("GGML").number(uint32_t(3)), "magic"},
      {Bytes().raw("FUGG").number(uint32_t(0x03000000)), "magic"},
      {"GGUF", "version at byte 4"},
      {Bytes().raw("GGUF").number(uint16_t(3)), "version at byte 4"},
      {Bytes().beginning(0, 0, 0), "version at byte 4: the file is big-endian"},
      {Bytes().beginning(0, 0, 1), "version at byte 4: 1, expects 2 or 3"},
      {Bytes().beginning(0, 0, 4), "version at byte 4: 4, expects 2 or 3"},
      {Bytes().beginning(0, 0, 0x03000000), "version at byte 4: the file is big-endian"},
      {Bytes().beginning(0, 0, 0x02000000), "version at byte 4: the file is big-endian"},
      {Bytes().raw("GGUF").number(uint32_t(3)), "tensor count at byte 8"},
      {Bytes().raw("GGUF").number(uint32_t(3)).number(uint64_t(0)), "metadata count at byte 16"},
      {Bytes().beginning(1, 0), "tensor count at byte 8: 1 do not fit"},
      {Bytes().beginning(UINT64_MAX, 0), "tensor count at byte 8"},
      {Bytes().beginning(huge, 0).data(1000), "tensor count at byte 8"},
      {Bytes().beginning(0, 1), "metadata count at byte 16: 1 do not fit"},
      {Bytes().beginning(0, UINT64_MAX), "metadata count at byte 16"},
      {Bytes().beginning(0, huge).data(1000), "metadata count at byte 16"},
      {Bytes().beginning(0, 1).text("").number(uint32_t(0)).data(8), "metadata key at byte 32: it is empty"},
      {Bytes().beginning(0, 1).number(UINT64_MAX).data(40), "metadata key at byte 24"},
      {Bytes().beginning(0, 1).number(uint64_t(60000)).data(40), "metadata key"},
      {Bytes().beginning(0, 1).text(std::string(70000, 'k')).number(uint32_t(0)).number(uint8_t(0)), "expects at most 65535"},
      {Bytes().beginning(0, 2).key("twice", 7).number(uint8_t(1)).key("twice", 7).number(uint8_t(1)).data(8), "'twice' occurs twice"},
      {pair(13).data(64), "metadata 'k' at byte 33: no type of values has the number 13"},
      {pair(UINT32_MAX).data(64), "no type of values has the number 4294967295"},
      {pair(8).number(UINT64_MAX).data(64), "metadata 'k'"},
      {pair(8).number(uint64_t(100)).data(8), "metadata 'k'"},
      {pair(4, 1).number(uint16_t(0)), "metadata 'k'"},
      {pair(10).number(uint32_t(0)), "metadata 'k'"},
      {with_boolean, "the boolean 2, expects 0 or 1"},
      {array_of(7, 1).number(uint8_t(255)), "the boolean 255"},
      {array_of(13, 1).data(64), "no type of values has the number 13"},
      {array_of(0, UINT64_MAX).data(64), "metadata 'k'"},
      {array_of(0, huge).data(64), "do not fit into"},
      {array_of(10, huge / 4).data(64), "do not fit into"},
      {array_of(8, huge / 8).data(64), "do not fit into"},
      {array_of(8, 3).text("a").text("b"), "metadata 'k'"},
      {array_of(9, huge / 8).data(64), "do not fit into"},
      {array_of(4, 3).number(uint32_t(0)).number(uint32_t(0)).number(uint16_t(0)), "do not fit into"},
      {nested(9), "nested more than 8 deep"},
      {nested(1000), "nested more than 8 deep"},
      {aligned(10, uint64_t(32)), "metadata 'general.alignment' at byte 49: its type is not uint32"},
      {aligned(5, int32_t(32)), "its type is not uint32"},
      {aligned(6, 32.0f), "its type is not uint32"},
      {aligned(4, uint32_t(0)), "0 is no power of two"},
      {aligned(4, uint32_t(24)), "24 is no power of two"},
      {aligned(4, UINT32_MAX), "is no power of two"},
      {one({}), "tensor 't' at byte 33: 0 axes, expects 1 to 4"},
      {one({1, 1, 1, 1, 1}), "5 axes, expects 1 to 4"},
      {Bytes().beginning(1, 0).text("t").number(UINT32_MAX).data(64), "4294967295 axes"},
      {one({uint64_t{1} << 63}), "the size 9223372036854775808 is too large"},
      {one({UINT64_MAX, 0}), "is too large"},
      {one({uint64_t{1} << 32, uint64_t{1} << 32}), "more elements than 64 bits count"},
      {one({uint64_t{1} << 31, uint64_t{1} << 31, 4}), "more elements than 64 bits count"},
      {one({0, uint64_t{1} << 32, uint64_t{1} << 32}), "more elements than 64 bits count"},
      {one({uint64_t{1} << 61, 2}), "more bytes than 64 bits count"},
      {one({uint64_t{1} << 40}), "are behind the end of the file"},
      {one({1025}), "offset of tensor 't' at byte 49: its 4100 bytes from 0 on of the data are behind the end of the file"},
      {one({8}, 4), "Q4_2 (number 4) was removed"},
      {one({8}, 33), "Q4_0_8_8 (number 33) was removed"},
      {one({8}, 38), "IQ4_NL_8_8 (number 38) was removed"},
      {one({8}, 43), "no type of elements has the number 43"},
      {one({8}, UINT32_MAX), "no type of elements has the number 4294967295"},
      {one({31}, 2), "rows of 31 elements are no multiple of the 32 of a block of Q4_0"},
      {one({32, 8}, 12), "rows of 32 elements are no multiple of the 256 of a block of Q4_K"},
      {one({8}, 0, 1), "its offset 1 is no multiple of 32"},
      {one({8}, 0, 16), "its offset 16 is no multiple of 32"},
      {one({8}, 0, 4096), "are behind the end of the file"},
      {one({8}, 0, uint64_t{1} << 40), "is behind the end of the file"},
      {one({8}, 0, UINT64_MAX - 31), "is behind the end of the file"},
      {one({0}, 0, 8192), "is behind the end of the file"},
      {Bytes().beginning(1, 0).tensor("t", {0}, 0, 0), "data at byte 57: it begins at byte 64 of 57"},
      {Bytes().beginning(1, 0).tensor("t", {8}, 0, 0), "data at byte 57"},
      {Bytes().beginning(1, 0).number(UINT64_MAX).data(64), "tensor name at byte 24"},
      {Bytes().beginning(1, 0).text(std::string(70000, 'n')).data(64), "expects at most 65535"},
      {Bytes().beginning(2, 0).tensor("a", {8}, 0, 0).tensor("a", {8}, 0, 32).data(64), "'a' occurs twice"},
      {Bytes().beginning(2, 0).tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 0).data(64), "it begins within tensor 'a'"},
      {Bytes().beginning(2, 0).tensor("a", {8}, 0, 32).tensor("b", {9}, 0, 0).data(64),
       "offset of tensor 'a' at byte 49: it begins within tensor 'b'"},
      {Bytes().beginning(3, 0).tensor("a", {64}, 0, 0).tensor("b", {8}, 0, 64).tensor("c", {8}, 0, 256).data(512),
       "it begins within tensor 'a'"},
  };
  for (size_t size = 0; size + 1 < two.bytes().size(); size += 5) bad.push_back({two.bytes().substr(0, size), "f: "});
  ASSERT_NO_THROW(parse(two));
  ASSERT_NO_THROW(parse(nested(8)));
  EXPECT_GE(bad.size(), 60U);
  for (const Bad& b : bad) {
    const std::string said = test::refusal_of([&] { parse(b.file); });
    EXPECT_TRUE(said.starts_with("f: ") && said.find(b.says) != std::string::npos) << said << "\nwhere '" << b.says << "' is expected";
    EXPECT_NE(said.find(" at byte "), std::string::npos) << said;
  }
}

TEST(GgufHeader, LongTextsOfTheFileAreShortInErrors) {
  const std::string file = Bytes().beginning(0, 1).key(std::string(60000, 'k'), 13).data(64);
  EXPECT_LT(test::message_of<FormatError>([&] { parse(file); }).size(), 200U);
}

}  // namespace
}  // namespace tinygrad::frontend
