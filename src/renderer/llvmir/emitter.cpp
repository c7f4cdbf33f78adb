#include "renderer/llvmir/emitter.h"

#include <algorithm>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer::llvmir {
namespace {

std::string vector_of(std::string_view element, int lanes) {
  return lanes == 1 ? std::string(element) : fmt::format(FMT_COMPILE("<{} x {}>"), lanes, element);
}

std::string element_name(DType dtype) {
  switch (dtype) {
    case DType::bool_: return "i1";
    case DType::float16: return "half";
    case DType::bfloat16: return "bfloat";  // is only converted
    case DType::float32: return "float";
    case DType::float64: return "double";
    default:
      if (is_int(dtype) && dtype != DType::index) return fmt::format(FMT_COMPILE("i{}"), bitsize(dtype));
      throw InternalError(fmt::format("LLVM IR: {} must be lowered before rendering", repr(dtype)));
  }
}

/// "ptr %x" -> "ptr": a declaration names types only.
std::string type_of_argument(const std::string& argument) {
  if (argument.front() == '<') return argument.substr(0, argument.find('>') + 1);
  return argument.substr(0, argument.find(' '));
}

}  // namespace

std::string type_name(DType dtype, int lanes) { return vector_of(element_name(dtype), lanes); }

std::string memory_type_name(DType dtype, int lanes) { return vector_of(is_bool(dtype) ? "i8" : element_name(dtype), lanes); }

std::string literal(const Scalar& value) {
  const DType d = value.dtype();
  if (is_bool(d)) return value.as_bool() ? "true" : "false";
  if (d == DType::float16) return fmt::format("0xH{:04X}", value.storage_bits());
  if (is_float(d)) return fmt::format(FMT_COMPILE("0x{:016X}"), value.bits());  // float and double are both written as a double
  return is_unsigned(d) ? std::to_string(value.as_uint()) : std::to_string(value.as_int());
}

std::string splat_literal(const Scalar& value, int lanes) {
  std::string one = literal(value);
  if (lanes == 1) return one;
  const std::string element = type_name(value.dtype()) + " " + one;
  std::string out = "<" + element;
  for (int i = 1; i < lanes; ++i) (out += ", ") += element;
  return out += ">";
}

std::string suffix(DType dtype, int lanes) {
  const std::string element = is_float(dtype) ? fmt::format(FMT_COMPILE("f{}"), bitsize(dtype)) : element_name(dtype);
  return lanes == 1 ? element : fmt::format(FMT_COMPILE("v{}{}"), lanes, element);
}

std::string Emitter::fresh(std::string_view hint) { return fmt::format(FMT_COMPILE("{}{}"), hint, next_++); }

std::string Emitter::define(std::string_view hint, std::string_view text) {
  std::string name = fmt::format(FMT_COMPILE("%{}{}"), hint, next_++);
  std::string& added = lines_.emplace_back();
  added.reserve(name.size() + text.size() + 5);
  ((added.append("  ") += name) += " = ") += text;
  return name;
}

void Emitter::line(std::string_view text) {
  std::string& added = lines_.emplace_back();
  added.reserve(text.size() + 2);
  added.append("  ") += text;
}

void Emitter::block(std::string_view label) {
  lines_.push_back(std::string(label) + ":");
  block_ = label;
}

size_t Emitter::reserve() {
  lines_.emplace_back();
  return lines_.size() - 1;
}

void Emitter::fill(size_t reserved, std::string_view text) { lines_[reserved] = "  " + std::string(text); }

void Emitter::declare(std::string_view result_type, std::string_view intrinsic, const std::vector<std::string>& arguments) {
  std::vector<std::string> types;
  for (const std::string& a : arguments) types.push_back(type_of_argument(a));
  std::string text = fmt::format("declare {} @{}({})", result_type, intrinsic, fmt::join(types, ", "));
  if (std::find(declarations_.begin(), declarations_.end(), text) == declarations_.end()) declarations_.push_back(std::move(text));
}

std::string Emitter::call(std::string_view hint, std::string_view result_type, std::string_view intrinsic,
                          const std::vector<std::string>& arguments) {
  declare(result_type, intrinsic, arguments);
  return define(hint, fmt::format("call {} @{}({})", result_type, intrinsic, fmt::join(arguments, ", ")));
}

void Emitter::call_void(std::string_view intrinsic, const std::vector<std::string>& arguments) {
  declare("void", intrinsic, arguments);
  line(fmt::format("call void @{}({})", intrinsic, fmt::join(arguments, ", ")));
}

std::string Emitter::body() const {
  size_t size = 0;
  for (const auto* part : {&entry_, &lines_})
    for (const std::string& l : *part) size += l.size() + 1;
  std::string text;
  text.reserve(size);
  for (const auto* part : {&entry_, &lines_}) {
    for (const std::string& l : *part) {
      if (l.empty()) continue;
      text += l;
      text += '\n';
    }
  }
  return text;
}

std::string Emitter::declarations() const {
  std::string text;
  for (const std::string& d : declarations_) text += d + "\n";
  return text;
}

}  // namespace tinygrad::renderer::llvmir
