// Checkpoints of PyTorch, both formats: what they say of their tensors and values, and that all else is a FormatError.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "frontend/torch/checkpoints.h"
#include "frontend/torch/torch.h"
#include "support/message_of.h"
#include "support/refusal.h"

namespace tinygrad::frontend {
namespace {

using namespace std::string_literals;
using namespace test::pickle;
using formats::Metadata;
using formats::MetadataValue;
using formats::TensorInfo;

/// A file in memory.
FileBytes file_of(const std::string& bytes) {
  const auto owner = std::make_shared<std::vector<std::byte>>(test::bytes_of(bytes).begin(), test::bytes_of(bytes).end());
  return {owner, *owner, "f"};
}
std::unique_ptr<formats::Reader> open(const std::string& bytes) { return open_torch(file_of(bytes)); }
std::unique_ptr<formats::Reader> open_object(const std::string& object, size_t storage_bytes = 24) {
  return open(archive(object, {{"0", std::string(storage_bytes, '\0')}}));
}

const MetadataValue& at(const Metadata& metadata, std::string_view key) {
  for (const auto& [name, value] : metadata)
    if (name == key) return value;
  throw ValueError(fmt::format("no {}", key));
}

TEST(Torch, TensorsAreNamedByTheirPath) {
  const std::string t = tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1});
  const auto reader =
      open_object(dict({text("model"), dict({text("layer.weight"), t, text("bias"), t}), text("optimizer"),
                        dict({text("state"), dict({integer(0), dict({text("exp_avg"), t})})}), text("list"), list({t, tuple({t})})}));
  EXPECT_EQ(reader->format(), "torch");
  std::vector<std::string> names;
  for (const TensorInfo& info : reader->tensors()) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"model.layer.weight", "model.bias", "optimizer.state.0.exp_avg", "list.0", "list.1.0"}));
  EXPECT_TRUE(reader->metadata().empty());
  EXPECT_EQ(reader->tensors()[0].type, "float32");
  EXPECT_EQ(reader->tensors()[0].shape, (Sizes{2, 3}));
  EXPECT_EQ(reader->tensors()[0].bytes, 24);
  EXPECT_GT(reader->tensors()[0].offset, 0);
  EXPECT_THROW(reader->tensor(5), IndexError);
  EXPECT_THROW(reader->quantized(5), IndexError);
  EXPECT_FALSE(reader->quantized(0));
  EXPECT_EQ(open_object(t)->tensors()[0].name, "tensor");
  EXPECT_EQ(open_object(list({t}))->tensors()[0].name, "0");
  const auto storages = open_object(dict({text("s"), storage("FloatStorage", "0", 6)}));
  EXPECT_EQ(storages->tensors()[0].shape, Sizes{6});
}

TEST(Torch, PlainValuesAreMetadata) {
  const std::string t = tensor(storage("FloatStorage", "0", 6), 0, {6}, {1});
  const auto reader = open_object(dict({text("epoch"),
                                        integer(3),
                                        text("lr"),
                                        "F0.5\n",
                                        text("done"),
                                        "\x88",
                                        text("name"),
                                        text("résumé"),
                                        text("none"),
                                        "N",
                                        text("t"),
                                        t,
                                        text("groups"),
                                        list({dict({text("betas"), tuple({"F0.5\n", t})})}),
                                        text("bytes"),
                                        "C\x02\x61\xff",
                                        text("big"),
                                        "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"s,
                                        text("empty"),
                                        "}",
                                        text("complex"),
                                        call(global("builtins", "complex"), {"K\x01", "K\x02"}),
                                        text("dtype"),
                                        global("torch", "float16"),
                                        integer(7),
                                        "N",
                                        tuple({"K\x01", text("x")}),
                                        "N",
                                        "N",
                                        "N",
                                        "\x88",
                                        "N",
                                        "F0.5\n",
                                        "N",
                                        text("states"),
                                        dict({text("a"), t})}));
  const Metadata& m = reader->metadata();
  EXPECT_EQ(std::get<int64_t>(at(m, "epoch").value), 3);
  EXPECT_EQ(std::get<double>(at(m, "lr").value), 0.5);
  EXPECT_EQ(std::get<bool>(at(m, "done").value), true);
  EXPECT_EQ(std::get<std::string>(at(m, "name").value), "résumé");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(at(m, "none").value));
  const auto& groups = std::get<std::vector<MetadataValue>>(at(m, "groups").value);
  const auto& betas = std::get<std::vector<MetadataValue>>(at(std::get<Metadata>(groups[0].value), "betas").value);
  EXPECT_EQ(std::get<double>(betas[0].value), 0.5);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(betas[1].value));
  EXPECT_EQ(std::get<std::string>(at(m, "bytes").value), "aÿ");
  EXPECT_EQ(std::get<uint64_t>(at(m, "big").value), uint64_t{1} << 63);
  EXPECT_TRUE(std::get<Metadata>(at(m, "empty").value).empty());
  EXPECT_EQ(std::get<std::vector<MetadataValue>>(at(m, "complex").value).size(), 2U);
  EXPECT_EQ(std::get<std::string>(at(m, "dtype").value), "torch.float16");
  for (const std::string name : {"7", "(1, x)", "None", "True", "0.5"}) EXPECT_NO_THROW(at(m, name)) << name;
  EXPECT_THROW(at(m, "t"), ValueError);
  EXPECT_THROW(at(m, "states"), ValueError);
  EXPECT_EQ(std::get<int64_t>(at(open_object(integer(5))->metadata(), "value").value), 5);
  EXPECT_EQ(std::get<int64_t>(at(open_object(list({integer(5)}))->metadata(), "0").value), 5);
}

TEST(Torch, AttributesOfStateDictsAreLeftOut) {
  const std::string t = tensor(storage("FloatStorage", "0", 6), 0, {6}, {1});
  const auto reader = open_object(ordered_dict() + "(" + text("w") + t + "u" +
                                  dict({text("_metadata"), dict({text(""), dict({text("version"), "K\x01"})})}) + "b");
  EXPECT_EQ(reader->tensors().size(), 1U);
  EXPECT_TRUE(reader->metadata().empty());
}

TEST(Torch, EveryElementTypeIsListed) {
  for (const auto& [type, size] : std::vector<std::pair<std::string, int64_t>>{{"float64", 8},
                                                                               {"complex64", 8},
                                                                               {"complex32", 4},
                                                                               {"uint16", 2},
                                                                               {"float8_e4m3fn", 1},
                                                                               {"float8_e8m0fnu", 1},
                                                                               {"int4", 1},
                                                                               {"uint7", 1},
                                                                               {"bits16", 2}}) {
    const auto reader = open_object(tensor_v3(storage("UntypedStorage", "0", 24), 0, {24 / size}, {1}, type));
    EXPECT_EQ(reader->tensors()[0].type, type);
    EXPECT_EQ(reader->tensors()[0].bytes, 24);
    if (type.starts_with("complex") || type == "int4") {
      const std::string message = test::message_of<FormatError>([&] { reader->tensor(0); });
      EXPECT_NE(message.find(type), std::string::npos) << message;
    }
  }
  const auto reader = open_object(call(rebuild("meta_tensor_no_storage"), {global("torch", "float16"), sizes({3}), sizes({1}), "\x89"}));
  EXPECT_EQ(reader->tensors()[0].type, "meta float16");
  EXPECT_EQ(reader->tensors()[0].offset, -1);
  EXPECT_THROW(reader->tensor(0), FormatError);
}

TEST(Torch, StreamsHaveTheSame) {
  const std::string object = dict({text("a"), tensor(stream_storage("FloatStorage", "k", 6), 0, {2, 3}, {3, 1}), text("b"),
                                   tensor(stream_storage("LongStorage", "j", 2), 1, {1}, {1}), text("v"),
                                   tensor(stream_storage("FloatStorage", "k", 6, tuple({text("v"), integer(2), integer(3)})), 1, {2}, {1}),
                                   text("epoch"), "K\x07"});
  const std::string bytes = stream(object, {{"j", 2, std::string(16, '\0')}, {"k", 6, std::string(24, '\0')}});
  EXPECT_TRUE(is_torch_stream(test::bytes_of(bytes)));
  const auto reader = open(bytes);
  EXPECT_EQ(reader->format(), "torch-legacy");
  ASSERT_EQ(reader->tensors().size(), 3U);
  EXPECT_EQ(reader->tensors()[0].offset, static_cast<int64_t>(bytes.size()) - 24);
  EXPECT_EQ(reader->tensors()[1].offset, static_cast<int64_t>(bytes.size()) - 24 - 8 - 8);
  EXPECT_EQ(reader->tensors()[2].offset, static_cast<int64_t>(bytes.size()) - 24 + 3 * 4);
  EXPECT_EQ(std::get<int64_t>(at(reader->metadata(), "epoch").value), 7);
}

TEST(Torch, MembersMayBePacked) {
  const std::string t = tensor(storage("FloatStorage", "0", 6), 0, {6}, {1});
  const auto reader = open(archive(t, {{"0", std::string(24, '\0')}}, {}, true));
  EXPECT_EQ(reader->tensors()[0].offset, -1);
  EXPECT_EQ(reader->tensors()[0].bytes, 24);
}

TEST(Torch, WhatIsSharedMustNotGrow) {
  // Lists of ten of the list before.
  std::string laughs = "]";
  for (int level = 0; level < 20; ++level)
    laughs = laughs + "q" + static_cast<char>(level) + "0](" + [&] {
      std::string ten;
      for (int i = 0; i < 10; ++i) ten += "h" + std::string(1, static_cast<char>(level));
      return ten;
    }() + "e";
  EXPECT_NE(test::message_of<FormatError>([&] { open_object(laughs); }).find("far more than the file holds"), std::string::npos);
  // A list in itself, twice.
  EXPECT_THROW(open_object("]q\x01(h\x01h\x01"
                           "e"),
               FormatError);
  EXPECT_NE(test::message_of<FormatError>([&] {
              open_object(
                  "]q\x01h\x01"
                  "a");
            }).find("in themselves"),
            std::string::npos);
  // A long name again and again.
  std::string names = dict({text(std::string(100'000, 'x')) + "q\x01", "N"}) + "0](";
  for (int i = 0; i < 1000; ++i) names += "}h\x01Ns";
  EXPECT_THROW(open_object(names + "e"), FormatError);
}

TEST(Torch, WhatIsWrongIsNamed) {
  const std::string s = storage("FloatStorage", "0", 6), t = tensor(s, 0, {6}, {1});
  const std::vector<std::pair<std::string, std::string>> storage24{{"0", std::string(24, '\0')}};
  const auto of = [&](const std::string& object) { return archive(object, storage24); };
  const auto zip = [](const std::vector<test::ZipMember>& members) { return test::zip_of(members); };
  const auto with = [&](const std::string& name, const std::string& content) { return archive(t, storage24, {{name, content}}); };
  const std::string stream_t = tensor(stream_storage("FloatStorage", "k", 6), 0, {6}, {1}), k24(24, '\0');
  const std::string good = stream(stream_t, {{"k", 6, k24}}), head = magic + whole(integer(1001)) + machine();
  const auto bomb = [&](const std::string& instruction, int count) {
    std::string pickle = "(" + std::string(size_t(count), instruction[0]) + ".";
    return zip({{"r/data.pkl", pickle, true}, {"r/version", "3"}});
  };
  std::string tar(600, '\0');
  tar.replace(257, 5, "ustar");
  const std::vector<std::pair<std::string, std::string>> bad{
      // Archives.
      {"PK", "too short for a zip archive"},
      {"PK" + std::string(100, '\0'), "no zip archive"},
      {zip({}), "an empty archive"},
      {zip({{"a", "b"}}), "no PyTorch file: the archive has no 'data.pkl'"},
      {zip({{"r/a", "b"}}), "no PyTorch file: the archive has no 'r/data.pkl'"},
      {zip({{"r/data.pkl", whole("N")}}), "the archive has no 'r/version'"},
      {zip({{"r/data.pkl", whole("N")}, {"r/version", "11\n"}}), "'r/version' is '11', expects 1 to 10"},
      {zip({{"r/data.pkl", whole("N")}, {"r/version", "0\n"}}), "'r/version' is '0'"},
      {zip({{"r/data.pkl", whole("N")}, {"r/version", "x"}}), "'r/version' is 'x'"},
      {zip({{"r/data.pkl", whole("N")}, {"r/version", ""}}), "'r/version' is ''"},
      {zip({{"r/data.pkl", whole("N")}, {"r/version", std::string(65, '3')}}), "'r/version' has 65 bytes"},
      {with("root/byteorder", "big"), "'root/byteorder' is big"},
      {with("root/byteorder", "middle"), "'root/byteorder' is 'middle', expects little"},
      {with("root/constants.pkl", ""), "a TorchScript archive"},
      {with("root/code/a.py", ""), "a TorchScript archive"},
      {with("root/archive_format", "pt2"), "an archive of torch.export"},
      {zip({{"r/data.pkl", ""}, {"r/version", "3"}}), "an instruction at byte 44: 1 bytes"},
      {zip({{"r/data.pkl", whole("N") + "N"}, {"r/version", "3"}}), "STOP at byte 47: 1 bytes follow"},
      {zip({{"r/data.pkl", "cos\nsystem\n", true}, {"r/version", "3"}}), "f: 'r/data.pkl': GLOBAL at byte 0: os.system"},
      {bomb("N", 1 << 26), "'r/data.pkl' has 67108866 bytes, packed into"},
      {bomb("]", 1 << 26), "of which at most"},
      {bomb("}", 1 << 26), "of which at most"},
      {bomb("}", 1 << 19), "of which at most 524288 are read"},
      {bomb("(", (1 << 19) - 2), "STOP at byte 524287: nothing is on the stack"},
      // Storages.
      {archive(t, {}), "its storage '0' is not in the file"},
      {archive(t, {{"1", std::string(24, '\0')}}), "its storage '0' is not in the file"},
      {archive(t, {{"0", std::string(23, '\0')}}), "its storage '0' has 24 bytes, 23 are in the file"},
      {archive(t, {{"0", ""}}), "its storage '0' has 24 bytes, 0 are"},
      {of(tensor(storage("FloatStorage", "0", 1'000'000'000'000), 0, {6}, {1})), "has 4000000000000 bytes, 24 are"},
      {of(tensor(storage("DoubleStorage", "0", 6), 0, {6}, {1})), "has 48 bytes, 24 are"},
      {of(tensor(storage("FloatStorage", "../0", 6), 0, {6}, {1})), "its storage '../0' is not in the file"},
      // Sizes and strides.
      {of(tensor(s, 0, {7}, {1})), "the sizes (7), strides (1) and offset 0 do not fit a storage of 6 elements"},
      {of(tensor(s, 1, {6}, {1})), "offset 1 do not fit"},
      {of(tensor(s, 7, {1}, {1})), "offset 7 do not fit"},
      {of(tensor(s, INT64_MAX, {1}, {1})), "do not fit"},
      {of(tensor(s, INT64_MAX, {2}, {1})), "do not fit"},
      {of(tensor(s, 0, {2, 3}, {4, 1})), "strides (4, 1)"},
      {of(tensor(s, 0, {2}, {INT64_MAX})), "do not fit"},
      {of(tensor(s, 0, {3}, {INT64_MAX / 2})), "do not fit"},
      {of(tensor(s, 0, {INT64_MAX, INT64_MAX}, {0, 0})), "do not fit"},
      {of(tensor(s, 0, {int64_t{1} << 31, int64_t{1} << 31}, {0, 0})), "do not fit"},
      {of(tensor(s, 0, {INT64_MAX}, {1})), "do not fit"},
      {of(tensor_v3(storage("UntypedStorage", "0", 24), 0, {4}, {1}, "float64")), "a storage of 3 elements"},
      {of(tensor_v3(storage("UntypedStorage", "0", 23), 0, {3}, {1}, "float64")), "a storage of 2 elements"},
      {of(tensor(s, 0, {7}, {1}) + "0" + tensor(s, 0, {7}, {1})), "do not fit"},
      {of(quantized(storage("QInt8Storage", "0", 24), {24}, {1},
                    tuple({global("torch", "per_channel_affine"), tensor(s, 0, {24}, {1}), tensor(s, 0, {24}, {0}), "K\x00"s}))),
       "strides (1) and offset 0 do not fit a storage of 6"},
      // Objects.
      {of(dict({"]", "N"})), "a key is a list"},
      {of(dict({t, "N"})), "f: '': a key is a tensor"},
      {of(dict({s, "N"})), "a key is a storage"},
      {of(std::string(200, ']') + std::string(199, 'a')), "values that are more than 100 deep"},
      // Streams.
      {"", "no PyTorch file: neither a zip archive nor a pickle"},
      {"hello", "no PyTorch file: neither a zip archive nor a pickle"},
      {tar, "the .tar format of PyTorch before 0.1.12"},
      {whole("N"), "the magic number at byte 0: not that of PyTorch files"},
      {whole(integer(5)), "the magic number at byte 0: not that"},
      {whole("\x8a\x0a" + std::string(10, 'x')), "the magic number at byte 0"},
      {magic, "an instruction at byte 15"},
      {magic + whole(integer(1002)), "the version at byte 15: 1002, expects 1001"},
      {magic + whole("N"), "the version at byte 15: None, expects a number"},
      {magic + whole(integer(1001)) + whole("N"), "the description of the machine at byte 23: None, expects a dict"},
      {magic + whole(integer(1001)) + whole("}"), "the description of the machine at byte 23: a big-endian one"},
      {magic + whole(integer(1001)) + machine(false), "the description of the machine at byte 23: a big-endian one"},
      {head, "an instruction at byte " + std::to_string(head.size())},
      {head + whole("cos\nsystem\n"), "GLOBAL at byte " + std::to_string(head.size() + 2) + ": os.system"},
      {head + whole("N"), "an instruction at byte"},
      {head + whole("N") + whole("N"), "the keys of the storages at byte " + std::to_string(head.size() + 4) + ": None, expects a list"},
      {head + whole("N") + whole("](Ne"), "a key is None, expects a text"},
      {head + whole("N") + whole(list({text("k")})), "no tensor has the storage 'k'"},
      {head + whole("N") + whole("]") + "x", "the last storage at byte"},
      {good.substr(0, good.size() - 1),
       "the bytes of a storage at byte " + std::to_string(good.size() - 24) + ": 24 bytes are expected, 23 are left"},
      {good.substr(0, good.size() - 25), "the size of a storage at byte " + std::to_string(good.size() - 32) + ": 8 bytes are expected, 7"},
      {good + "x", "1 bytes follow"},
      {stream(stream_t, {{"k", 5, k24}}),
       "the size of a storage at byte " + std::to_string(good.size() - 32) + ": 5 elements, where the pickle has 6"},
      {stream(stream_t, {{"k", -1, k24}}), "-1 elements, where the pickle has 6"},
      {stream(stream_t, {{"k", 6, k24}, {"k", 6, k24}}), "or it is there twice"},
      {stream(stream_t, {}), "its storage 'k' is not in the file"},
      {stream(tensor(stream_storage("FloatStorage", "k", 6, tuple({text("v"), integer(4), integer(2)})), 0, {3}, {1}), {{"k", 6, k24}}),
       "do not fit a storage of 2 elements"},
  };
  EXPECT_GE(bad.size(), 60U);
  for (const auto& [bytes, expected] : bad) {
    const std::string message = test::refusal_of([&] { open(bytes); });
    EXPECT_NE(message.find(expected), std::string::npos) << message << "\n  expected: " << expected;
    EXPECT_TRUE(message.starts_with("f: ")) << message;
  }
}

}  // namespace
}  // namespace tinygrad::frontend
