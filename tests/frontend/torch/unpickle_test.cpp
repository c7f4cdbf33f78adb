// Pickles: what is read, and that all else is a FormatError that names the instruction and its byte.
#include <gtest/gtest.h>

#include <cmath>

#include <tinygrad/errors.h>

#include "frontend/torch/checkpoints.h"
#include "frontend/torch/globals.h"
#include "frontend/torch/unpickle.h"
#include "support/message_of.h"

namespace tinygrad::frontend::torch {
namespace {

using namespace std::string_literals;
using namespace test::pickle;
using test::little;

class Unpickle : public testing::Test {
 protected:
  Value read(const std::string& bytes) {
    const std::string name = "f";
    ByteCursor in(std::as_bytes(std::span(bytes)), name);
    return unpickle(in, name, heap_);
  }
  /// Of a value of this kind.
  template <class T>
  auto read_as(const std::string& bytes) {
    return *std::get<T>(read(bytes));
  }
  std::string text_of(const std::string& bytes) { return read_as<const Text*>(bytes).text; }
  Heap heap_;
};

TEST_F(Unpickle, PlainValuesOfAllProtocols) {
  EXPECT_EQ(read("N."), Value());
  EXPECT_EQ(read("\x80\x02\x88."), Value(true));
  EXPECT_EQ(read("\x80\x02\x89."), Value(false));
  EXPECT_EQ(read("I01\n."), Value(true));
  EXPECT_EQ(read("I00\n."), Value(false));
  EXPECT_EQ(read("I-7\n."), Value(int64_t{-7}));
  EXPECT_EQ(read("K\xff."), Value(int64_t{255}));
  EXPECT_EQ(read("M\x01\x02."), Value(int64_t{513}));
  EXPECT_EQ(read("J\xfe\xff\xff\xff."), Value(int64_t{-2}));
  EXPECT_EQ(read("L12L\n."), Value(int64_t{12}));
  EXPECT_EQ(read("\x8a\x00."s), Value(int64_t{0}));
  EXPECT_EQ(read("\x8a\x01\xff."), Value(int64_t{-1}));
  EXPECT_EQ(read("\x8b\x02\x00\x00\x00\x00\x01."s), Value(int64_t{256}));
  EXPECT_EQ(read("F1.5\n."), Value(1.5));
  EXPECT_EQ(read("G\x3f\xf8\x00\x00\x00\x00\x00\x00."s), Value(1.5));
  EXPECT_TRUE(std::isnan(std::get<double>(read("Fnan\n."))));
  EXPECT_EQ(text_of("S'a\\n\\x41\\''\n."), "a\nA'");
  EXPECT_EQ(text_of("V\\u00e9\\U0001F600\xe9\n."), "é😀é");
  EXPECT_EQ(text_of("T\x02\x00\x00\x00hi."s), "hi");
  EXPECT_EQ(text_of("U\x02hi."), "hi");
  EXPECT_EQ(text_of(text("hü") + "."), "hü");
  EXPECT_EQ(text_of("\x8c\x02hi."), "hi");
  EXPECT_EQ(text_of("\x8d" + little(uint64_t{2}) + "hi."), "hi");
  EXPECT_EQ(text_of(text("\xed\xa0\x80") + "."), "\xed\xa0\x80");  // a surrogate, which Python's texts may have
  EXPECT_EQ(read_as<const Bytes*>("C\x02\x00\xff."s).bytes, "\x00\xff"s);
  EXPECT_EQ(read_as<const Bytes*>("B\x01\x00\x00\x00z."s).bytes, "z");
  EXPECT_EQ(read_as<const Bytes*>("\x8e" + little(uint64_t{1}) + "z.").bytes, "z");
  EXPECT_EQ(read_as<const Bytes*>("\x96" + little(uint64_t{1}) + "z.").bytes, "z");
}

TEST_F(Unpickle, LongIntegers) {
  EXPECT_EQ(read_as<const LongInteger*>("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."s).digits, "9223372036854775808");
  EXPECT_EQ(read_as<const LongInteger*>("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff."s).digits, "-9223372036854775809");
  EXPECT_EQ(read("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\xff."s), Value(INT64_MIN));
  EXPECT_EQ(read("\x8a\x0a\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00."s), Value(int64_t{5}));
  EXPECT_EQ(read_as<const LongInteger*>("\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.").digits, "119547037146038801333356");
  EXPECT_EQ(read_as<const LongInteger*>("L119547037146038801333356L\n.").digits, "119547037146038801333356");
  EXPECT_EQ(read_as<const LongInteger*>("\x8a\x11" + std::string(16, '\0') + "\x01.").digits, "340282366920938463463374607431768211456");
}

TEST_F(Unpickle, Containers) {
  EXPECT_EQ(read_as<List*>("](K\x01K\x02"
                           "e.")
                .items.size(),
            2U);
  EXPECT_EQ(read_as<List*>("]K\x01"
                           "a.")
                .items.size(),
            1U);
  EXPECT_EQ(read_as<List*>("(K\x01K\x02K\x03l.").items.size(), 3U);
  EXPECT_EQ(read_as<const Tuple*>(").").items.size(), 0U);
  EXPECT_EQ(read_as<const Tuple*>("K\x01\x85.").items.size(), 1U);
  EXPECT_EQ(read_as<const Tuple*>("K\x01K\x02\x86.").items.size(), 2U);
  EXPECT_EQ(read_as<const Tuple*>("K\x01K\x02K\x03\x87.").items, (std::vector<Value>{int64_t{1}, int64_t{2}, int64_t{3}}));
  EXPECT_EQ(read_as<const Tuple*>("(K\x01K\x02(K\x03tt.").items.size(), 3U);
  EXPECT_EQ(read_as<Set*>("\x8f(K\x01K\x02\x90.").items.size(), 2U);
  EXPECT_EQ(read_as<Set*>("(K\x01\x91.").items.size(), 1U);
  EXPECT_EQ(read_as<Dict*>("(U\x01"
                           "aK\x01"
                           "d.")
                .entries()
                .size(),
            1U);
  EXPECT_EQ(read_as<Dict*>("}U\x01"
                           "aK\x01s.")
                .find("a"),
            Value(int64_t{1}));
}

TEST_F(Unpickle, KeysOfDictsAreThoseOfPython) {
  const Dict few = read_as<Dict*>(
      "}(K\x01K\x05U\x01"
      "aK\x06\x88K\x07U\x01"
      "aK\x08"
      "G\x3f\xf0\x00\x00\x00\x00\x00\x00K\x09u."s);
  ASSERT_EQ(few.entries().size(), 2U);
  EXPECT_EQ(few.entries()[0].second, Value(int64_t{9}));  // of 1, True and 1.0
  EXPECT_EQ(few.entries()[1].second, Value(int64_t{8}));
  std::vector<std::string> parts;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 100; ++i) {
      parts.push_back(text("k" + std::to_string(i)));
      parts.push_back(integer(i + round));
    }
  const Dict many = read_as<Dict*>(dict(parts) + ".");
  ASSERT_EQ(many.entries().size(), 100U);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(many.entries()[static_cast<size_t>(i)].second, Value(i + 1));
}

TEST_F(Unpickle, TheMemoSharesValues) {
  for (const std::string& bytes :
       {"]q\x05h\x05\x86."s, "]r\x05\x00\x00\x00j\x05\x00\x00\x00\x86."s, "]p5\ng5\n\x86."s, "]\x94h\x00\x86."s, "]2\x86."s}) {
    const Tuple pair = read_as<const Tuple*>(bytes);
    EXPECT_EQ(pair.items[0], pair.items[1]);
  }
  List* list =
      std::get<List*>(read("]q\x00h\x00"
                           "a."s));  // a list in itself
  EXPECT_EQ(list->items[0], Value(list));
}

TEST_F(Unpickle, CallsOfAllowedNames) {
  EXPECT_EQ(read_as<Dict*>(ordered_dict() + ".").entries().size(), 0U);
  EXPECT_EQ(read_as<Dict*>(call(global("collections", "OrderedDict"), {list({list({text("a"), "K\x01"})})}) + ".").find("a"),
            Value(int64_t{1}));
  EXPECT_EQ(read_as<Dict*>(call(global("collections", "Counter"), {dict({text("a"), "K\x01"})}) + ".").find("a"), Value(int64_t{1}));
  EXPECT_EQ(read_as<const Tuple*>(call(global("torch", "Size"), {sizes({2, 3})}) + ".").items.size(), 2U);
  EXPECT_EQ(text_of(call(global("torch", "device"), {text("cuda"), "K\x01"}) + "."), "cuda:1");
  EXPECT_EQ(text_of(call(global("torch.serialization", "_get_layout"), {text("torch.strided")}) + "."), "torch.strided");
  EXPECT_EQ(read_as<const Bytes*>(call(global("_codecs", "encode"), {text("aÿ"), text("latin1")}) + ".").bytes, "a\xff");
  EXPECT_EQ(read_as<const Bytes*>(call(global("__builtin__", "bytearray"), {"C\x01z"}) + ".").bytes, "z");
  EXPECT_EQ(read_as<Set*>(call(global("__builtin__", "set"), {list({"K\x01"})}) + ".").items.size(), 1U);
  EXPECT_EQ(read_as<const Complex*>(call(global("builtins", "complex"), {"K\x01", "F2\n"}) + ".").imaginary, 2);
  EXPECT_EQ(read_as<const Global*>(global("torch", "float32") + ".").type->name, "float32");
  EXPECT_EQ(read_as<const Global*>(text("torch") + text("float32") + "\x93.").type->name, "float32");
}

TEST_F(Unpickle, Tensors) {
  const TensorRecord t = read_as<TensorRecord*>(tensor(storage("FloatStorage", "0", 6), 1, {2, 2}, {3, 1}) + ".");
  EXPECT_EQ(t.type->name, "float32");
  EXPECT_EQ(t.storage->count, 6);
  EXPECT_EQ(t.storage->key->text, "0");
  EXPECT_EQ(t.offset, 1);
  EXPECT_EQ(t.sizes, (Sizes{2, 2}));
  EXPECT_EQ(t.strides, (Sizes{3, 1}));
  EXPECT_EQ(read_as<TensorRecord*>(tensor_v3(storage("UntypedStorage", "0", 8), 0, {4}, {1}, "uint16") + ".").type->name, "uint16");
  const std::string inner = tensor(storage("FloatStorage", "0", 6), 0, {6}, {1});
  EXPECT_EQ(read_as<TensorRecord*>(call(rebuild("parameter"), {inner, "\x88", ordered_dict()}) + ".").sizes, Sizes{6});
  EXPECT_EQ(read_as<TensorRecord*>(global("torch.nn.parameter", "Parameter") + tuple({inner, "\x88"}) + "\x81.").sizes, Sizes{6});
  const std::string args = tuple({storage("FloatStorage", "0", 6), integer(0), sizes({6}), sizes({1}), "\x89", ordered_dict()});
  EXPECT_EQ(read_as<TensorRecord*>(call(global("torch._tensor", "_rebuild_from_type_v2"),
                                        {rebuild("tensor_v2"), global("torch.nn.parameter", "Parameter"), args, "}"}) +
                                   ".")
                .sizes,
            Sizes{6});
  EXPECT_EQ(read_as<TensorRecord*>(global("torch", "FloatTensor") + ")\x81" +
                                   tuple({storage("FloatStorage", "0", 6), integer(0), sizes({6}), sizes({1})}) + "b.")
                .sizes,
            Sizes{6});
  const TensorRecord sparse = read_as<TensorRecord*>(
      call(rebuild("sparse_tensor"), {call(global("torch.serialization", "_get_layout"), {text("torch.sparse_coo")}),
                                      tuple({tensor(storage("LongStorage", "1", 2), 0, {1, 2}, {2, 1}), inner, sizes({9}), "\x88"})}) +
      ".");
  EXPECT_EQ(sparse.layout, "sparse");
  EXPECT_EQ(sparse.sizes, Sizes{9});
  const TensorRecord meta =
      read_as<TensorRecord*>(call(rebuild("meta_tensor_no_storage"), {global("torch", "float16"), sizes({3}), sizes({1}), "\x89"}) + ".");
  EXPECT_EQ(meta.layout, "meta");
  EXPECT_EQ(meta.type->name, "float16");
}

TEST_F(Unpickle, QuantizedTensors) {
  const TensorRecord t = read_as<TensorRecord*>(
      quantized(storage("QInt8Storage", "0", 4), {4}, {1}, tuple({global("torch", "per_tensor_affine"), "F0.5\n", "K\x03"})) + ".");
  ASSERT_TRUE(t.quantizer);
  EXPECT_EQ(t.quantizer->scale, 0.5);
  EXPECT_EQ(t.quantizer->zero_point, 3);
  const std::string scales = tensor(storage("DoubleStorage", "1", 2), 0, {2}, {1}),
                    zeros = tensor(storage("LongStorage", "2", 2), 0, {2}, {1});
  const TensorRecord c = read_as<TensorRecord*>(
      quantized(storage("QUInt8Storage", "0", 6), {3, 2}, {2, 1}, tuple({global("torch", "per_channel_affine"), scales, zeros, "K\x01"})) +
      ".");
  ASSERT_TRUE(c.quantizer);
  EXPECT_EQ(c.quantizer->axis, 1);
  EXPECT_EQ(c.quantizer->scales->sizes, Sizes{2});
}

/// Each message is "f: FIELD at byte N: why".
TEST_F(Unpickle, WhatIsWrongIsNamedWithItsPlace) {
  const std::string s = storage("FloatStorage", "0", 6), od = ordered_dict(), v2 = rebuild("tensor_v2");
  const std::string scheme = global("torch", "per_channel_affine"), q = storage("QInt8Storage", "0", 6);
  const std::string vector = tensor(storage("DoubleStorage", "1", 2), 0, {2}, {1});
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "f: an instruction at byte 0: 1 bytes are expected, 0 are left"},
      {"N", "f: an instruction at byte 1: 1 bytes"},
      {".", "f: STOP at byte 0: nothing is on the stack"},
      {"(.", "f: STOP at byte 1: nothing is on the stack"},
      {"N(.", "f: STOP at byte 2: nothing"},
      {"\xff.", "f: an instruction at byte 0: 0xff is not one"},
      {"\x80\x06N.", "f: PROTO at byte 0: protocol 6 is not known"},
      {"\x80", "f: PROTO at byte 1: 1 bytes are expected"},
      // Instructions that make objects of other classes, or take what is not in the file.
      {"(ios\nsystem\n.", "f: an instruction at byte 1: 0x69"},
      {"(o.", "f: an instruction at byte 1: 0x6f"},
      {")}}\x92.", "f: an instruction at byte 3: 0x92"},
      {"\x82\x01.", "f: an instruction at byte 0: 0x82"},
      {"P0\n.", "f: an instruction at byte 0: 0x50"},
      {"\x97.", "f: an instruction at byte 0: 0x97"},
      {"\x98.", "f: an instruction at byte 0: 0x98"},
      // Names.
      {"cos\nsystem\n.", "f: GLOBAL at byte 0: os.system is not one of the names"},
      {"Ncposix\nsystem\n.", "f: GLOBAL at byte 1: posix.system"},
      {"cbuiltins\neval\n.", "f: GLOBAL at byte 0: builtins.eval"},
      {"c__builtin__\ngetattr\n.", "f: GLOBAL at byte 0: __builtin__.getattr"},
      {"ctorch\nload\n.", "f: GLOBAL at byte 0: torch.load"},
      {"ctorch.nn.modules.linear\nLinear\n.", "f: GLOBAL at byte 0: torch.nn.modules.linear.Linear"},
      {"ctorch._utils\n_rebuild_other\n.", "f: GLOBAL at byte 0: torch._utils._rebuild_other"},
      {"ctorch\nSize", "f: GLOBAL at byte 7: no end of a line"},
      {text("os") + text("system") + "\x93.", "f: STACK_GLOBAL at byte 18: os.system"},
      {"K\x01K\x02\x93.", "f: STACK_GLOBAL at byte 4: a name that is no text"},
      // Numbers and texts.
      {"Ix\n.", "f: INT at byte 0: no integer"},
      {"I\n.", "f: INT at byte 0: no integer"},
      {"L1.5L\n.", "f: LONG at byte 0: no integer"},
      {"F1.5x\n.", "f: FLOAT at byte 0: no number"},
      {"J\x01\x02.", "f: BININT at byte 1: 4 bytes are expected, 3 are left"},
      {"\x8a\x05\x01.", "f: LONG1 at byte 2: 5 bytes are expected, 2 are left"},
      {"\x8b\xff\xff\xff\xff.", "f: LONG4 at byte 0: -1 bytes"},
      {"\x8b" + little(uint32_t{2000}) + std::string(2000, 'x') + ".", "f: LONG4 at byte 0: no integer"},
      {"G\x00."s, "f: BINFLOAT at byte 1: 8 bytes"},
      {"X\xff\xff\xff\xff"
       "abc.",
       "f: BINUNICODE at byte 5: 4294967295 bytes are expected, 4 are left"},
      {"\x8d" + std::string(8, '\xff') + ".", "f: BINUNICODE8 at byte 9: 18446744073709551615 bytes"},
      {"T\xff\xff\xff\xff.", "f: BINSTRING at byte 0: -1 bytes"},
      {"U\x05hi.", "f: SHORT_BINSTRING at byte 2: 5 bytes"},
      {"B\xff\xff\xff\x7f.", "f: BINBYTES at byte 5: 2147483647 bytes"},
      {text("\xff") + ".", "f: BINUNICODE at byte 0: a text that is not UTF-8"},
      {text("\xc0\x80") + ".", "f: BINUNICODE at byte 0: a text that is not UTF-8"},
      {text("\xf4\x90\x80\x80") + ".", "f: BINUNICODE at byte 0: a text that is not UTF-8"},
      {text("\xe2\x82") + ".", "f: BINUNICODE at byte 0: a text that is not UTF-8"},
      {"Sabc\n.", "f: STRING at byte 0: no text in quotes"},
      {"S'ab\\q'\n.", "f: STRING at byte 0: no text in quotes"},
      {"V\\u12\n.", "f: UNICODE at byte 0: a text with an escape"},
      {"V\\U00110000\n.", "f: UNICODE at byte 0: a text with an escape"},
      // The stack and the memo.
      {"0.", "f: POP at byte 0: nothing is on the stack"},
      {"1.", "f: POP_MARK at byte 0: no mark"},
      {"t.", "f: TUPLE at byte 0: no mark"},
      {"e.", "f: APPENDS at byte 0: no mark"},
      {"K\x01\x86.", "f: TUPLE2 at byte 2: 1 values are on the stack, expects 2"},
      {"K\x01K\x01(\x86.", "f: TUPLE2 at byte 5: 0 values"},
      {"2.", "f: DUP at byte 0: nothing"},
      {"h\x00."s, "f: BINGET at byte 0: nothing was put at 0"},
      {"j\xff\xff\xff\xff.", "f: LONG_BINGET at byte 0: nothing was put at 4294967295"},
      {"Nq\x01g2\n.", "f: GET at byte 3: nothing was put at 2"},
      {"Ng-1\n.", "f: GET at byte 1: no number of the memo"},
      {"q\x00."s, "f: BINPUT at byte 0: nothing is on the stack"},
      // Items of what holds none.
      {"NK\x01"
       "a.",
       "f: APPEND at byte 3: only lists are appended to, and this is None"},
      {")(K\x01"
       "e.",
       "f: APPENDS at byte 4: only lists are appended to, and this is a tuple"},
      {"]K\x01K\x02s.", "f: SETITEM at byte 5: only dicts are given items, and this is a list"},
      {tensor(s, 0, {6}, {1}) + "K\x01K\x02s.", "SETITEM at byte 142: only dicts are given items, and this is a tensor"},
      {"K\x01(K\x01K\x02u.", "f: SETITEMS at byte 7: only dicts are given items, and this is an integer"},
      {"}(K\x01u.", "f: SETITEMS at byte 4: 1 keys and values"},
      {"(K\x01"
       "d.",
       "f: DICT at byte 3: 1 keys and values"},
      {"}]K\x01s.", "f: SETITEM at byte 4: a key is a list"},
      {"}(K\x01u.", "f: SETITEMS at byte 4: 1 keys"},
      {"](K\x01\x90.", "f: ADDITEMS at byte 4: only sets are added to"},
      // Calls.
      {"N)R.", "f: REDUCE at byte 2: None is called"},
      {global("torch", "Size") + "]R.", "f: REDUCE at byte 13: the arguments are a list, expects a tuple"},
      {call(global("torch", "float32"), {}) + ".", "f: REDUCE at byte 17: torch.float32 is not to be called"},
      {call(global("torch", "Tensor"), {}) + ".", "f: REDUCE at byte 16: torch.Tensor is not to be called"},
      {call(global("torch", "FloatStorage"), {"K\x01"}) + ".", "torch.FloatStorage is not to be called"},
      {call(global("torch", "Size"), {}) + ".", "f: REDUCE at byte 14: 0 arguments of torch.Size, expects 1"},
      {call(global("torch", "Size"), {"K\x01"}) + ".", "f: torch.Size at byte 16: argument 0 is an integer, expects a tuple"},
      {call(global("torch", "device"), {"K\x01"}) + ".", "f: torch.device at byte 18: argument 0 is an integer, expects a text"},
      {call(global("_codecs", "encode"), {text("a"), text("rot13")}) + ".", "the encoding 'rot13' is not read"},
      {call(global("_codecs", "encode"), {text("€"), text("latin1")}) + ".", "a text that is not latin1"},
      {call(global("builtins", "complex"), {"N", "N"}) + ".", "builtins.complex at byte 22: argument 0 is None, expects a number"},
      {call(global("collections", "OrderedDict"), {list({list({"K\x01"})})}) + ".", "an entry of 1 values, expects 2"},
      {call(global("collections", "OrderedDict"), {list({list({"]", "K\x01"})})}) + ".", "a key is a list"},
      {global("torch", "Tensor") + "(K\x01t\x81.", "a new torch.Tensor with arguments is not read"},
      {"K\x01}b.", "f: BUILD at byte 3: an integer is not given the state a dict"},
      {"}K\x01"
       "b.",
       "f: BUILD at byte 3: a dict is not given the state an integer"},
      {call(rebuild("device_tensor_from_numpy"), {"N", "N", "N", "N"}) + ".", "expects an array of NumPy"},
      {global("torch._tensor", "_rebuild_from_type_v2") + "(NNNt"
                                                          "R.",
       "argument"},
      {call(global("torch._tensor", "_rebuild_from_type_v2"), {"N", "N", ")", "N"}) + ".", "argument 0 is None, expects a name"},
      // Persistent ids.
      {"K\x01Q.", "f: BINPERSID at byte 2: a persistent id is an integer, expects a tuple"},
      {")Q.", "f: BINPERSID at byte 1: a persistent id that is not of a storage"},
      {tuple({text("module"), "N", "N", "N"}) + "Q.", "a persistent id that is not of a storage"},
      {tuple({text("storage"), "N"}) + "Q.", "a persistent id of 2 values, expects 5 or 6"},
      {tuple({text("storage"), "N", text("0"), text("cpu"), "K\x01"}) + "Q.", "argument 1 is None, expects a class of storages"},
      {tuple({text("storage"), global("torch", "float32"), text("0"), text("cpu"), "K\x01"}) + "Q.",
       "torch.float32 is no class of storages"},
      {tuple({text("storage"), global("torch.storage", "TypedStorage"), text("0"), text("cpu"), "K\x01"}) + "Q.",
       "is no class of storages"},
      {storage("FloatStorage", "0", -1) + ".", "argument 4 is -1, expects at least 0"},
      {storage("FloatStorage", "0", INT64_MAX / 2) + ".", "a storage of 4611686018427387903 elements"},
      {tuple({text("storage"), global("torch", "FloatStorage"), "N", text("cpu"), "K\x01"}) + "Q.", "argument 2 is None, expects a text"},
      {stream_storage("FloatStorage", "0", 6, tuple({text("1")})) + ".", "a view of a storage has 1 values, expects 3"},
      {stream_storage("FloatStorage", "0", 6, tuple({text("1"), "K\x05", "K\x02"})) + ".", "a view of the elements 5 to 2 of 6"},
      // Tensors.
      {call(v2, {"N", integer(0), sizes({6}), sizes({1}), "\x89", od}) + ".",
       "_rebuild_tensor_v2 at byte 84: argument 0 is None, expects a storage"},
      {call(v2, {s, integer(0), sizes({6}), sizes({1}), "\x89"}) + ".", "5 arguments of torch._utils._rebuild_tensor_v2, expects 6 to 7"},
      {tensor(s, -1, {6}, {1}) + ".", "argument 1 is -1, expects at least 0"},
      {tensor(s, 0, {-6}, {1}) + ".", "argument 0 is -6, expects at least 0"},
      {tensor(s, 5, {6}, {-1}) + ".", "argument 0 is -1, expects at least 0"},
      {tensor(s, 0, {6, 1}, {1}) + ".", "2 sizes and 1 strides"},
      {tensor(s, 0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)) + ".", "argument 2 has 65 axes, at most 64 can be"},
      {call(v2, {s, "N", sizes({6}), sizes({1}), "\x89", od}) + ".", "argument 1 is None, expects an integer"},
      {call(v2, {s, integer(0), "N", sizes({1}), "\x89", od}) + ".", "argument 2 is None, expects a tuple"},
      {tensor_v3(s, 0, {6}, {1}, "Size") + ".", "argument 6 is torch.Size, expects an element type"},
      {call(rebuild("sparse_tensor"), {text("torch.dense"), ")"}) + ".", "the layout torch.dense of a sparse tensor is not known"},
      {call(rebuild("sparse_tensor"), {text("torch.sparse_coo"), ")"}) + ".", "0 parts of a sparse tensor, expects 3"},
      {call(rebuild("nested_tensor"), {"N", "N", "N", "N"}) + ".", "argument 0 is None, expects a tensor"},
      {call(rebuild("meta_tensor_no_storage"), {"N", ")", ")", "N"}) + ".", "argument 0 is None, expects an element type"},
      // Quantized tensors.
      {quantized(s, {6}, {1}, tuple({global("torch", "per_tensor_affine"), "F1\n", "K\x00"s})) + ".", "a quantized tensor of float32"},
      {quantized(q, {6}, {1}, ")") + ".", "no scheme of quantization"},
      {quantized(q, {6}, {1}, tuple({global("torch", "per_tensor_symmetric"), "F1\n", "K\x00"s})) + ".",
       "per_tensor_symmetric is not read"},
      {quantized(q, {6}, {1}, tuple({global("torch", "per_tensor_affine"), "F1\n"})) + ".",
       "2 parameters of torch.per_tensor_affine, expects 3"},
      {quantized(q, {3, 2}, {2, 1}, tuple({scheme, vector, vector, "K\x02"})) + ".", "the axis of the scales is 2, of 2"},
      {quantized(q, {3, 2}, {2, 1}, tuple({scheme, vector, vector, "K\x00"s})) + ".", "2 scales for 3 channels"},
      {quantized(q, {3, 2}, {2, 1}, tuple({scheme, list({"F1\n"}), list({"F1\n"}), "K\x01"})) + ".", "1 scales for 2 channels"},
      {quantized(q, {3, 2}, {2, 1}, tuple({scheme, tensor(q, 0, {2}, {1}), vector, "K\x01"})) + ".",
       "scales and zero points are no vectors"},
      {quantized(q, {3, 2}, {2, 1}, tuple({scheme, "N", vector, "K\x01"})) + ".", "argument 1 is None, expects a tensor"},
  };
  EXPECT_GE(bad.size(), 100U);
  for (const auto& [bytes, expected] : bad) {
    const std::string message = test::message_of<FormatError>([&] { read(bytes); });
    EXPECT_NE(message.find(expected), std::string::npos) << message << "\n  expected: " << expected;
    EXPECT_TRUE(message.starts_with("f: ") && message.find(" at byte ") != std::string::npos) << message;
  }
}

TEST_F(Unpickle, CallsThatCopyWhatIsSharedAreBounded) {
  // A text of a thousand letters made bytes a thousand times, a dict copied again and again.
  std::string bytes = "](" + text(std::string(1000, 'x')) + "q\x01";
  for (int i = 0; i < 1000; ++i) bytes += global("_codecs", "encode") + "h\x01\x85R";
  EXPECT_THROW(read(bytes + "e."), FormatError);
  std::vector<std::string> entries;
  for (int i = 0; i < 50; ++i) entries.insert(entries.end(), {integer(i), "N"});
  std::string dicts = "](" + dict(entries) + "q\x01" + global("collections", "Counter") + "q\x02";
  for (int i = 0; i < 1000; ++i) dicts += "h\x02h\x01\x85R";
  EXPECT_THROW(read(dicts + "e."), FormatError);
}

TEST_F(Unpickle, DeepAndLongPicklesAreRead) {
  const size_t deep = 200'000;
  EXPECT_EQ(read_as<List*>(std::string(deep, ']') + std::string(deep - 1, 'a') + ".").items.size(), 1U);
  EXPECT_EQ(read_as<const Tuple*>(")" + std::string(deep, '\x85') + ".").items.size(), 1U);
  EXPECT_THROW(read(std::string(deep, '(') + "."), FormatError);
}

TEST(TorchGlobals, AreThoseOfWeightsOnly) {
  EXPECT_TRUE(find_global("torch", "FloatStorage"));
  EXPECT_TRUE(find_global("torch.cuda", "FloatStorage"));
  EXPECT_TRUE(find_global("torch.cuda.sparse", "FloatTensor"));
  EXPECT_TRUE(find_global("torch", "uint7"));
  EXPECT_TRUE(find_global("__builtin__", "set"));
  EXPECT_FALSE(find_global("torch.cuda", "QInt8Storage"));
  EXPECT_FALSE(find_global("torch", "uint9"));
  EXPECT_FALSE(find_global("collections", "defaultdict"));
  EXPECT_FALSE(find_global("torch._utils", "_rebuild_xla_tensor"));
}

}  // namespace
}  // namespace tinygrad::frontend::torch
