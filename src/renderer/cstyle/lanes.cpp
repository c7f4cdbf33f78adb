#include "renderer/cstyle/lanes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer::cstyle {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";  // names of lanes: v.s0 to v.sf

std::string element(std::string_view vector, int64_t lane) { return numbered_lane(vector, lane); }

/// "text(0), text(1), ..." for each lane
template <class F>
std::string for_each_lane(int lanes, std::string_view separator, F text) {
  std::vector<std::string> parts;
  for (int i = 0; i < lanes; ++i) parts.push_back(text(i));
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string all_of_gate(int width) {
  return for_each_lane(width, " & ", [](int i) { return element("gate", i); });
}

Expr call(std::string_view function, std::string_view pointer, std::initializer_list<const Expr*> arguments) {
  std::string text = fmt::format("{}({}", function, pointer);
  for (const Expr* a : arguments)
    if (a) text += ", " + a->text;
  return {text + ")"};
}

}  // namespace

std::string numbered_lane(std::string_view vector, int64_t lane) {
  return lane < 16 ? fmt::format("{}.s{}", vector, kDigits[static_cast<size_t>(lane)]) : fmt::format("{}[{}]", vector, lane);
}

Value lane(Prelude& prelude, const Value& v, int64_t at) {
  if (at < 0 || at >= v.lanes) throw InternalError(fmt::format("C: there is no lane {} in {}", at, v.lanes));
  if (v.lanes == 1) return v;
  Value out{.expr = {}, .dtype = v.dtype, .constant = v.constant};
  if (v.splatted) {
    out.expr = *v.splatted;
  } else if (v.is_mask()) {
    out.expr = binary({element(atom(v.expr), at)}, "!=", Binds::equality, {"0"});
  } else {
    out.expr = {prelude.dialect().lane(atom(v.expr), at)};
  }
  return out;
}

Value run_of_lanes(Prelude& prelude, const Value& v, int64_t begin, int64_t end) {
  const int lanes = static_cast<int>(end - begin);
  if (lanes == v.lanes) return v;
  if (lanes == 1) return lane(prelude, v, begin);
  if (v.splatted) return splat(prelude, {.expr = *v.splatted, .dtype = v.dtype, .constant = v.constant}, lanes);
  Value out{.expr = {}, .dtype = v.dtype, .lanes = lanes, .mask_bits = v.mask_bits, .constant = v.constant};
  if (2 * lanes == v.lanes && begin % lanes == 0) {
    out.expr = {fmt::format("{}.{}", atom(v.expr), begin == 0 ? "lo" : "hi")};
  } else if (v.lanes <= 16) {
    out.expr = {fmt::format("{}.s{}", atom(v.expr), kDigits.substr(static_cast<size_t>(begin), static_cast<size_t>(lanes)))};
  } else {
    const std::string numbers = for_each_lane(lanes, ", ", [&](int i) { return std::to_string(begin + i); });
    out.expr = {fmt::format("{0}({1}, {1}, {2})", prelude.word("shuffle"), v.expr.text, numbers)};
  }
  return out;
}

Value vector_of(Prelude& prelude, const std::vector<Value>& scalars, DType dtype) {
  const int lanes = static_cast<int>(scalars.size());
  Value out{.expr = {}, .dtype = dtype, .lanes = lanes, .mask_bits = is_bool(dtype) ? 8 : 0};
  const std::string type = prelude.type(is_bool(dtype) ? DType::int8 : dtype, lanes);
  const auto part = [&](int i) {
    const Expr& x = scalars[static_cast<size_t>(i)].expr;
    return is_bool(dtype) ? "-" + atom(x) : x.text;
  };
  for (const Value& x : scalars)
    if (x.lanes != 1) throw InternalError("C: a STACK joins vectors; it may join scalars only");
  out.expr = {prelude.dialect().vector(type, for_each_lane(lanes, ", ", part))};
  return out;
}

Expr gather(Prelude& prelude, DType dtype, const std::string& memory, const Value& at, const Value* gate, const Value* other) {
  const std::string type = prelude.type(dtype, at.lanes), indices = prelude.type(at.dtype, at.lanes);
  if (!gate) {
    const std::string lanes = for_each_lane(at.lanes, ", ", [](int i) { return fmt::format("p[{}]", element("at", i)); });
    prelude.function(fmt::format("{0} gather(const {1}* p, {2} at) {{ return ({0}){{{3}}}; }}", type, prelude.type(dtype), indices, lanes));
    return call("gather", memory, {&at.expr});
  }
  const std::string lanes = for_each_lane(
      at.lanes, ", ", [](int i) { return fmt::format("{} ? p[{}] : {}", element("gate", i), element("at", i), element("other", i)); });
  const Expr mask = as_mask(prelude, *gate, bitsize(dtype));
  prelude.function(fmt::format("{0} gather(const {1}* p, {2} at, {3} gate, {0} other) {{\n  return ({0}){{{4}}};\n}}", type,
                               prelude.type(dtype), indices, prelude.type(signed_of_bits(bitsize(dtype)), at.lanes), lanes));
  return call("gather", memory, {&at.expr, &mask, &other->expr});
}

Expr load_run(Prelude& prelude, DType dtype, const std::string& pointer, int width, const Value& gate, const Value& other,
              bool may_be_whole) {
  const std::string type = prelude.type(dtype, width);
  const std::string lanes =
      for_each_lane(width, ", ", [](int i) { return fmt::format("{} ? p[{}] : {}", element("gate", i), i, element("other", i)); });
  const std::string whole = may_be_whole ? fmt::format("  if ({}) return *({}*)p;\n", all_of_gate(width), type) : "";
  const Expr mask = as_mask(prelude, gate, bitsize(dtype));
  prelude.function(fmt::format("{0} load(const {1}* p, {2} gate, {0} other) {{\n{3}  return ({0}){{{4}}};\n}}", type, prelude.type(dtype),
                               prelude.type(signed_of_bits(bitsize(dtype)), width), whole, lanes));
  return call("load", without_parentheses(pointer), {&mask, &other.expr});
}

std::string scatter(Prelude& prelude, DType dtype, const std::string& memory, const Value& at, const Value& x, const Value* gate) {
  const std::string type = prelude.type(dtype, at.lanes), indices = prelude.type(at.dtype, at.lanes);
  const auto statement = [&](int i) {
    const std::string condition = gate ? fmt::format("if ({}) ", element("gate", i)) : "";
    return fmt::format("  {}p[{}] = {};", condition, element("at", i), element("x", i));
  };
  const std::string lanes = for_each_lane(at.lanes, "\n", statement);
  const std::string mask_type = gate ? fmt::format(", {} gate", prelude.type(signed_of_bits(bitsize(dtype)), at.lanes)) : "";
  prelude.function(fmt::format("void scatter({}* p, {} at, {} x{}) {{\n{}\n}}", prelude.type(dtype), indices, type, mask_type, lanes));
  const Expr mask = gate ? as_mask(prelude, *gate, bitsize(dtype)) : Expr{};
  return call("scatter", memory, {&at.expr, &x.expr, gate ? &mask : nullptr}).text + ";";
}

std::string store_run(Prelude& prelude, DType dtype, const std::string& pointer, int width, const Value& x, const Value& gate,
                      std::string_view whole) {
  const auto statement = [](int i) { return fmt::format("  if ({}) p[{}] = {};", element("gate", i), i, element("x", i)); };
  const std::string at_once = whole.empty() ? "" : fmt::format("  if ({}) {{\n    {}\n    return;\n  }}\n", all_of_gate(width), whole);
  const std::string_view name = whole.starts_with("stream") ? "stream" : "store";
  prelude.function(fmt::format("void {}({}* p, {} x, {} gate) {{\n{}{}\n}}", name, prelude.type(dtype), prelude.type(dtype, width),
                               prelude.type(signed_of_bits(bitsize(dtype)), width), at_once, for_each_lane(width, "\n", statement)));
  const Expr mask = as_mask(prelude, gate, bitsize(dtype));
  return call(name, without_parentheses(pointer), {&x.expr, &mask}).text + ";";
}

}  // namespace tinygrad::renderer::cstyle
