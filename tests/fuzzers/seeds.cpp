// fuzz_seeds FOLDER: small files to begin from, of the writers that tests have, in a folder for each fuzzer.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <tinygrad/formats.h>
#include <tinygrad/media.h>
#include <tinygrad/tinygrad.h>

#include "frontend/gguf/gguf_file.h"
#include "frontend/media_files.h"
#include "frontend/npy/arrays.h"
#include "frontend/onnx/model_file.h"
#include "frontend/torch/checkpoints.h"
#include "frontend/torch_export/archive_file.h"
#include "support/temp_folder.h"

using namespace tinygrad;

namespace {

using Files = std::vector<std::string>;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const test::TempFolder& folder() {
  static const test::TempFolder made;
  return made;
}

Files safetensors() {
  const std::string path = folder().path("a.safetensors");
  Files out{R"({"metadata":{"total_size":4,"by":["x"]},"weight_map":{"t":"a"}})", R"({"weight_map":{}})"};
  nn::state::StateDict all;
  for (const DType d : dtypes::all) all.emplace(std::string(repr(d)), Tensor::zeros({2, 1}, {.dtype = d}));
  nn::state::safe_save(all, path, {{"format", "pt"}});
  out.push_back(content_of(path));
  nn::state::safe_save(nn::state::StateDict{{"a", Tensor::ones({2, 3})}, {"b", Tensor::zeros({0, 5})}}, path);
  out.push_back(content_of(path));
  return out;
}

Files gguf() {
  Files out;
  test::GgufBytes values;  // a value of each type, arrays in arrays too
  values.beginning(1, 7).key("general.alignment", 4).number(uint32_t{64}).key("u8", 0).number(uint8_t{1}).key("f64", 12).number(2.0);
  values.key("text", 8).text("word").key("bool", 7).number(uint8_t{1});
  values.key("list", 9).number(uint32_t{8}).number(uint64_t{2}).text("a").text("bc");
  values.key("lists", 9).number(uint32_t{9}).number(uint64_t{1}).number(uint32_t{5}).number(uint64_t{2}).number(uint64_t{3});
  out.push_back(values.tensor("t", {32, 2}, 8, 0).data(68, 64));
  for (uint32_t type = 0; type < 43; ++type)
    out.push_back(test::GgufBytes().beginning(1, 1, 2 + type % 2).key("k", 6).number(1.5F).tensor("t", {256}, type, 0).data(2048));
  const std::string path = folder().path("a.gguf");
  formats::gguf_save(nn::state::StateDict{{"a", Tensor::ones({2, 3})}, {"b", Tensor::ones({4})}}, path, {{"name", {std::string("net")}}});
  out.push_back(content_of(path));
  return out;
}

Files torch() {
  using namespace test::pickle;
  Files objects{integer(-1), list({text("a"), "K\1", "G" + std::string(8, '\1'), "N", "\x88"}),
                dict({text("a"), tuple({integer(1), "]"}), integer(3), "(lp0\n"}),
                call(global("_codecs", "encode"), {text("ab"), text("latin1")}),
                "\x95" + std::string("\x04\0\0\0\0\0\0\0", 8) + "\x8c\1a\x94"};
  std::string bytes(24, '\1');
  const std::string float_storage = storage("FloatStorage", "0", 6), stream_float = stream_storage("FloatStorage", "0", 6);
  objects.push_back(dict({text("w"), tensor(float_storage, 0, {2, 3}, {3, 1}), text("t"), tensor(float_storage, 1, {2, 2}, {1, 2})}));
  objects.push_back(tensor_v3(storage("ByteStorage", "1", 24), 0, {3}, {2}, "uint16"));
  objects.push_back(quantized(storage("QInt8Storage", "1", 24), {4}, {1}, tuple({global("torch", "per_tensor_affine"), "F0.5\n", "K\3"})));
  objects.push_back(call(rebuild("parameter"), {tensor(float_storage, 0, {6}, {1}), "\x88", ordered_dict()}));
  objects.push_back(call(rebuild("meta_tensor_no_storage"), {global("torch", "float16"), sizes({3}), sizes({1}), "\x89"}));
  Files out;
  for (const std::string& object : objects) out.push_back(whole(object));
  out.push_back(archive(objects[5], {{"0", bytes}}, {{"root/byteorder", "little"}}));
  out.push_back(archive(objects[5], {{"0", bytes}}, {}, true));
  out.push_back(stream(tensor(stream_float, 0, {2, 3}, {3, 1}), {{"0", 6, bytes}}));
  out.push_back(
      stream(dict({text("v"), tensor(stream_storage("FloatStorage", "0", 6, tuple({text("v"), integer(1), integer(5)})), 0, {5}, {1})}),
             {{"0", 6, bytes}}));
  return out;
}

Files npy() {
  Files out;
  for (const std::string type : {"|b1", "|u1", "<i2", ">f4", "<f8", "<c8", "|S3", "|O"})
    out.push_back(test::npy_of(type, "(2, 1)", std::string(16, '\1'), type == ">f4" ? "True" : "False", 1 + int(out.size() % 3)));
  out.push_back(test::zip_of({{"a.npy", out[3]}, {"b.npy", out[1], true}, {"note", "text"}}));
  const std::string path = folder().path("a.npz");
  formats::npz_save(nn::state::StateDict{{"a", Tensor::ones({2, 3})}, {"b", Tensor::ones({4})}}, path);
  out.push_back(content_of(path));
  return out;
}

Files onnx_models() {
  using namespace onnx::test;
  const GraphParts branch{.nodes = {node("Neg", {"x"}, {"b"})}, .outputs = {value_info("b", {2})}};
  const std::string sparse = message(1, tensor("s", {1}, 1, "1234")) + message(2, integers("", {1}, {1})) + number(3, 2);
  Files out;
  out.push_back(model({.nodes = {node("Add", {"x", "w"}, {"y"}),
                                 node("If", {"c"}, {"z"},
                                      {graph_attribute("then_branch", branch.bytes()), graph_attribute("else_branch", branch.bytes())})},
                       .initializers = {floats("w", {2}, {1, 2}), tensor("c", {}, 9, "\1")},
                       .inputs = {value_info("x", {2})},
                       .outputs = {value_info("y", {2}), value_info("z", {2})}}));
  out.push_back(
      model({.nodes = {node("Constant", {}, {"k"}, {message(1, "value") + message(5, integers("", {2}, {1, 1})) + number(20, 4)}),
                       node("Reshape", {"x", "k"}, {"h"}),
                       node("Conv", {"h", "w"}, {"y"}, {integers_attribute("pads", {1, 1}), text_attribute("auto_pad", "NOTSET")})},
             .initializers = {texts("t", {2}, {"a", "b"}), tensor("w", {3}, 22, "ab")},
             .inputs = {value_info("x", {1}, 10)},
             .outputs = {value_info("y", {1})}}));
  out.push_back(model({.nodes = {node("Gelu", {"x"}, {"y"}, {}, "com.microsoft"),
                                 node("Scale", {"x"}, {"z"}, {numbers_attribute("f", {1, 2}), texts_attribute("t", {"a"})}, "mine")},
                       .initializers = {external_tensor("e", {2}, {{"location", "f.bin"}, {"offset", "0"}, {"length", "8"}})},
                       .inputs = {value_info("x", {2})},
                       .outputs = {value_info("y", {2})}}) +
                opset(1, "com.microsoft") + opset(1, "mine") +
                message(25, message(1, "Scale") + message(4, "x") + message(5, "y") + message(7, node("Mul", {"x", "x"}, {"y"})) +
                                opset(20) + message(10, "mine")));
  out.push_back(number(1, 9) + opset(20) +
                message(7, message(15, sparse) + message(1, node("Identity", {"s"}, {"y"})) + message(12, value_info("y", {2}))));
  return out;
}

Files media_files() {
  Files out{test::bmp_with_palette(), "P3 2 1 255 1 2 3 4 5 6",          "P2\n# grey\n2 1 65535 1 2",
            "P1 3 2 101010",          std::string("P5 1 1 255\n\7", 12), "P4 8 1 \xaa"};
  for (const auto& [name, channels] : {std::pair("a.bmp", 3), std::pair("a.ppm", 3), std::pair("a.pgm", 1)}) {
    media::save_image(Tensor::full({3, 2, channels}, 7, {.dtype = DType::uint8}), folder().path(name));
    out.push_back(content_of(folder().path(name)));
  }
  return out;
}

Files exported_programs() {
  using namespace test::pt2;
  return {archive(), program(), program({{"aten.add.Tensor", "aten.add_.Tensor"}}), archive(program(), {}, true)};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("fuzz_seeds FOLDER\n", stderr), 2;
  const std::map<std::string, Files> all{{"safetensors", safetensors()},
                                         {"gguf", gguf()},
                                         {"torch", torch()},
                                         {"npy", npy()},
                                         {"onnx", onnx_models()},
                                         {"media", media_files()},
                                         {"torch_export", exported_programs()}};
  for (const auto& [format, files] : all) {
    const std::filesystem::path to = std::filesystem::path(arguments[1]) / format;
    std::filesystem::create_directories(to);
    for (size_t i = 0; i < files.size(); ++i) std::ofstream(to / ("seed" + std::to_string(i)), std::ios::binary) << files[i];
  }
  return 0;
}
