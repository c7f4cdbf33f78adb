#pragma once
// Messages of ONNX files, written field by field, right or wrong.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::onnx::test {

inline std::string varint(uint64_t x) {
  std::string out;
  for (; x >= 128; x >>= 7) out += char((x & 127) | 128);
  return out + char(x);
}
inline std::string number(uint32_t tag, int64_t value) { return varint(tag << 3) + varint(uint64_t(value)); }
inline std::string message(uint32_t tag, std::string_view bytes) {
  return varint(tag << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string opset(int64_t version, std::string_view domain = "") {
  return message(8, (domain.empty() ? "" : message(1, domain)) + number(2, version));
}
/// A float32 vector or tensor type under a name.
inline std::string value_info(std::string_view name, const std::vector<int64_t>& shape, int64_t type = 1) {
  std::string dims;
  for (int64_t s : shape) dims += message(1, number(1, s));
  return message(1, name) + message(2, message(1, number(1, type) + message(2, dims)));
}
inline std::string node(std::string_view op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes = {}, std::string_view domain = "") {
  std::string out;
  for (const std::string& i : inputs) out += message(1, i);
  for (const std::string& o : outputs) out += message(2, o);
  out += message(4, op);
  for (const std::string& a : attributes) out += message(5, a);
  if (!domain.empty()) out += message(7, domain);
  return out;
}
inline std::string integer_attribute(std::string_view name, int64_t value) { return message(1, name) + number(3, value) + number(20, 2); }
inline std::string number_attribute(std::string_view name, float value) {
  return message(1, name) + varint(2 << 3 | 5) + std::string(reinterpret_cast<const char*>(&value), 4) + number(20, 1);
}
inline std::string text_attribute(std::string_view name, std::string_view value) {
  return message(1, name) + message(4, value) + number(20, 3);
}
inline std::string integers_attribute(std::string_view name, const std::vector<int64_t>& values) {
  std::string out = message(1, name);
  for (int64_t v : values) out += number(8, v);
  return out + number(20, 7);
}
inline std::string numbers_attribute(std::string_view name, const std::vector<float>& values) {
  return message(1, name) + message(7, std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)) + number(20, 6);
}
inline std::string texts_attribute(std::string_view name, const std::vector<std::string>& values) {
  std::string out = message(1, name);
  for (const std::string& v : values) out += message(9, v);
  return out + number(20, 8);
}
inline std::string graph_attribute(std::string_view name, std::string_view graph) {
  return message(1, name) + message(6, graph) + number(20, 5);
}
inline std::string tensor(std::string_view name, const std::vector<int64_t>& dims, int64_t type, std::string_view raw) {
  std::string out;
  for (int64_t d : dims) out += number(1, d);
  return out + number(2, type) + message(8, name) + message(9, raw);
}
inline std::string integers(std::string_view name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return tensor(name, dims, 7, std::string(reinterpret_cast<const char*>(values.data()), values.size() * 8));
}
inline std::string floats(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return tensor(name, dims, 1, std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
}
inline std::string texts(std::string_view name, const std::vector<int64_t>& dims, const std::vector<std::string>& values) {
  std::string out;
  for (int64_t d : dims) out += number(1, d);
  out += number(2, 8) + message(8, name);
  for (const std::string& v : values) out += message(6, v);
  return out;
}
inline std::string external_tensor(std::string_view name, const std::vector<int64_t>& dims,
                                   const std::vector<std::pair<std::string, std::string>>& where) {
  std::string out;
  for (int64_t d : dims) out += number(1, d);
  out += number(2, 1) + message(8, name);
  for (const auto& [key, value] : where) out += message(13, message(1, key) + message(2, value));
  return out + number(14, 1);
}

struct GraphParts {
  std::vector<std::string> nodes = {}, initializers = {}, inputs = {}, outputs = {};
  std::string bytes() const {
    std::string out;
    for (const std::string& n : nodes) out += message(1, n);
    for (const std::string& t : initializers) out += message(5, t);
    for (const std::string& i : inputs) out += message(11, i);
    for (const std::string& o : outputs) out += message(12, o);
    return out;
  }
};

inline std::string model(const GraphParts& graph, int64_t version = 20) {
  return number(1, 9) + opset(version) + opset(3, "ai.onnx.ml") + message(7, graph.bytes());
}

}  // namespace tinygrad::onnx::test
