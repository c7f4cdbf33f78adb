#include "bench/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <span>

#include <tinygrad/errors.h>

namespace tinygrad::apps {

namespace {

/// Options besides the sizes, as bits.
enum Takes : unsigned {
  batch = 1,
  stride = 2,
  groups = 4,
  axis = 8,
  order = 16,
  causal = 32,
  backward = 64,
  op = 128,
  int8 = 256,
  keys = 512
};

struct Kind {
  std::string_view name;
  std::string_view meaning;  ///< of the sizes
  Sizes defaults;
  std::string_view example;
  unsigned takes = 0;
  void (*count)(BenchCase&);  ///< fills in flops, bytes and depth
};

double product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0, [](double a, int64_t b) { return a * double(b); });
}

/// Bytes of an element of the result. The product of integers of 8 bits is one of 32.
double out_bytes(const BenchCase& c) { return double(c.dtype == DType::int8 ? sizeof(int32_t) : itemsize(c.dtype)); }

void count_matmul(BenchCase& c) {
  const double m = double(c.size[0]), n = double(c.size[1]), k = double(c.size[2]), b = double(c.batch);
  c.flops = 2 * b * m * n * k;
  c.bytes = b * ((m * k + k * n) * double(itemsize(c.dtype)) + m * n * out_bytes(c));
  c.depth = c.size[2];
}

void count_matvec(BenchCase& c) {
  const double m = double(c.size[0]), n = double(c.size[1]);
  c.flops = 2 * m * n;
  c.bytes = (m * n + m + n) * double(itemsize(c.dtype));
  c.depth = c.size[1];
}

void count_conv(BenchCase& c) {
  const double in = double(c.size[0]), out = double(c.size[1]), image = double(c.size[2]), window = double(c.size[3]);
  const double pixels = double(c.image_out()) * double(c.image_out()), b = double(c.batch),
               weights = out * in / double(c.groups) * window * window;
  c.flops = 2 * b * pixels * weights;
  c.bytes = (b * in * image * image + weights + b * out * pixels) * double(itemsize(c.dtype));
  c.depth = c.size[0] / c.groups * c.size[3] * c.size[3];
  if (!c.backward) return;
  c.flops *= 3;
  c.bytes *= 2;  // the gradients of what was read and written
  c.depth = std::max({c.depth, c.size[1] / c.groups * c.size[3] * c.size[3], c.batch * c.image_out() * c.image_out()});
}

/// Scores and what they weigh are two products forwards and, of what the forward pass kept, four backwards. With a causal mask only what
/// is attended to counts.
void count_attention(BenchCase& c) {
  const double heads = double(c.size[0]), tokens = double(c.size[1]), width = double(c.size[2]), keys = double(c.keys), b = double(c.batch);
  const double seen = std::min(tokens, keys);  // by a triangle; tokens after it see all keys
  const double pairs = c.causal ? seen * (seen + 1) / 2 + (tokens - seen) * keys : tokens * keys;
  c.flops = b * heads * pairs * width * (c.backward ? 12 : 4);
  c.bytes = b * (heads * tokens + double(c.kv_heads) * keys) * width * double(itemsize(c.dtype)) * (c.backward ? 4 : 2);
  c.depth = std::max({c.keys, c.size[1], c.size[2]});
}

void count_rows(BenchCase& c, double flops_each) {
  c.flops = flops_each * product(c.size);
  c.bytes = 2 * product(c.size) * double(itemsize(c.dtype));
  c.depth = c.axis == 0 ? c.size[0] : c.size[1];
}

struct Elementwise {
  std::string_view name;
  int inputs;
  double flops;
};
constexpr Elementwise elementwise[] = {{"relu_fma", 3, 3}, {"add", 2, 1},     {"mul", 2, 1},  {"relu", 1, 1},
                                       {"exp", 1, 1},      {"log", 1, 1},     {"sin", 1, 1},  {"erf", 1, 1},
                                       {"gelu", 1, 8},     {"sigmoid", 1, 4}, {"tanh", 1, 1}, {"sqrt", 1, 1}};

void count_elementwise(BenchCase& c) {
  const Elementwise& e = *std::ranges::find(elementwise, c.op, &Elementwise::name);
  c.flops = e.flops * double(c.size[0]);
  c.bytes = (e.inputs + 1) * double(c.size[0]) * double(itemsize(c.dtype));
}

void count_sum(BenchCase& c) {
  c.flops = double(c.size[0]);
  c.bytes = (double(c.size[0]) + 1) * double(itemsize(c.dtype));
  c.depth = c.size[0];
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"matmul", "M,N,K: (M, K) by (K, N); one number: all three", {1024, 1024, 1024}, "--batch, int8", batch | int8, count_matmul},
      {"matvec", "M,N: (M, N) by (N); one number: both", {4096, 4096}, "", 0, count_matvec},
      {"conv",
       "IN,OUT,IMAGE,WINDOW: channels and square sizes, padded by half a window",
       {64, 64, 56, 3},
       "--batch (16), --stride, --groups, --backward",
       batch | stride | groups | backward,
       count_conv},
      {"attention",
       "HEADS,TOKENS,WIDTH",
       {8, 1024, 64},
       "--batch, --causal, --backward, --keys (TOKENS), --kv-heads (HEADS)",
       batch | causal | backward | keys,
       count_attention},
      {"softmax", "ROWS,COLUMNS; one number: both", {4096, 4096}, "--axis (0 or 1)", axis, [](BenchCase& c) { count_rows(c, 5); }},
      {"layernorm", "ROWS,COLUMNS; one number: both", {4096, 4096}, "", 0, [](BenchCase& c) { count_rows(c, 7); }},
      {"elementwise", "N", {16 << 20}, "--op", op, count_elementwise},
      {"sum", "N", {64 << 20}, "", 0, count_sum},
      {"transpose",
       "two sizes or more; one number: both of two",
       {4096, 4096},
       "--order (1,0)",
       order,
       [](BenchCase& c) { count_rows(c, 0); }},
  };
  return all;
}

const Kind& kind_of(std::string_view name) {
  const auto kind = std::ranges::find(kinds(), name, &Kind::name);
  if (kind == kinds().end())
    throw ValueError(fmt::format("bench: unknown kernel '{}'; known are {}", name, fmt::join(kernel_names(), ", ")));
  return *kind;
}

void expect(const Kind& kind, bool given, unsigned bit, std::string_view option) {
  if (!given || kind.takes & bit) return;
  std::vector<std::string_view> who;
  for (const Kind& k : kinds())
    if (k.takes & bit) who.push_back(k.name);
  throw ValueError(fmt::format("bench {}: has no option {}, which is for {}", kind.name, option, fmt::join(who, ", ")));
}

Sizes sizes_of(const Kind& kind, const Sizes& given) {
  if (given.empty()) return kind.defaults;
  for (int64_t s : given)
    if (s < 1) throw ValueError(fmt::format("bench {}: --size has {}, expects numbers of at least 1", kind.name, s));
  const size_t expected = kind.defaults.size();
  const bool square = kind.name != "conv" && kind.name != "attention";
  if (given.size() == 1 && square) return Sizes(expected, given[0]);
  if (given.size() == expected || (kind.name == "transpose" && given.size() > 1)) return given;
  throw ValueError(fmt::format("bench {}: --size has {} numbers, expects {} ({})", kind.name, given.size(), expected, kind.meaning));
}

int64_t positive(const Kind& kind, std::string_view option, const std::optional<int64_t>& value, int64_t otherwise) {
  if (value && *value < 1) throw ValueError(fmt::format("bench {}: {} is {}, expects at least 1", kind.name, option, *value));
  return value.value_or(otherwise);
}

DType dtype_of(const Kind& kind, const std::optional<std::string>& given) {
  const DType dtype = parse_dtype(given.value_or("float32"));
  constexpr DType floats[] = {DType::float32, DType::float16, DType::bfloat16};
  if (std::ranges::find(floats, dtype) != std::end(floats) || (dtype == DType::int8 && kind.takes & int8)) return dtype;
  throw ValueError(fmt::format("bench {}: --dtype is {}, expects float32, float16 or bfloat16{}", kind.name, *given,
                               kind.takes & int8 ? ", or int8 for uint8 by int8 into int32" : ""));
}

std::string op_of(const std::optional<std::string>& given) {
  const std::string name = given.value_or("relu_fma");
  if (std::ranges::find(elementwise, name, &Elementwise::name) != std::end(elementwise)) return name;
  throw ValueError(fmt::format("bench elementwise: --op is {}, expects one of {}", name, fmt::join(elementwise_names(), ", ")));
}

std::vector<int> order_of(const std::vector<int>& given, size_t axes) {
  std::vector<int> order = given;
  if (order.empty())
    for (size_t i = axes; i-- > 0;) order.push_back(int(i));
  const std::set<int> different(order.begin(), order.end());
  if (order.size() != axes || different.size() != axes || *different.begin() != 0 || *different.rbegin() != int(axes) - 1)
    throw ValueError(fmt::format("bench transpose: --order is {}, expects each of the axes 0 to {} once", fmt::join(order, ","), axes - 1));
  return order;
}

}  // namespace

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kind& k : kinds()) names.emplace_back(k.name);
  return names;
}

std::vector<std::string> elementwise_names() {
  std::vector<std::string> names;
  for (const Elementwise& e : elementwise) names.emplace_back(e.name);
  return names;
}

std::string kernel_help() {
  std::string text = "Sizes by kernel (default), and its options:\n";
  for (const Kind& k : kinds())
    text += fmt::format("  {:<12}{} ({}){}{}\n", k.name, k.meaning, fmt::join(k.defaults, ","), k.example.empty() ? "" : "; ", k.example);
  return text;
}

std::string BenchCase::title() const {
  std::string text = fmt::format("{} {}", kernel, fmt::join(size, "x"));
  if (!op.empty()) text = fmt::format("{} {}", op, fmt::join(size, "x"));
  if (batch != 1) text += fmt::format(" batch {}", batch);
  if (stride != 1) text += fmt::format(" stride {}", stride);
  if (groups != 1) text += fmt::format(" groups {}", groups);
  if (kernel == "attention" && keys != size[1]) text += fmt::format(" keys {}", keys);
  if (kernel == "attention" && kv_heads != size[0]) text += fmt::format(" kv heads {}", kv_heads);
  if (kernel == "softmax" && axis == 0) text += " over columns";
  if (!order.empty()) text += fmt::format(" order {}", fmt::join(order, ","));
  if (causal) text += " causal";
  if (backward) text += " forward and backward";
  return text + " " + std::string(repr(dtype)).substr(7);
}

BenchCase make_case(const CaseOptions& o) {
  const Kind& kind = kind_of(o.kernel);
  expect(kind, o.batch.has_value(), batch, "--batch");
  expect(kind, o.stride.has_value(), stride, "--stride");
  expect(kind, o.groups.has_value(), groups, "--groups");
  expect(kind, o.axis.has_value(), axis, "--axis");
  expect(kind, !o.order.empty(), order, "--order");
  expect(kind, o.causal, causal, "--causal");
  expect(kind, o.backward, backward, "--backward");
  expect(kind, o.op.has_value(), op, "--op");
  expect(kind, o.keys.has_value(), keys, "--keys");
  expect(kind, o.kv_heads.has_value(), keys, "--kv-heads");

  BenchCase c{.kernel = o.kernel, .size = sizes_of(kind, o.size), .dtype = dtype_of(kind, o.dtype)};
  c.batch = positive(kind, "--batch", o.batch, o.kernel == "conv" ? 16 : 1);
  c.stride = positive(kind, "--stride", o.stride, 1);
  c.groups = positive(kind, "--groups", o.groups, 1);
  c.axis = o.axis.value_or(1);
  if (c.axis == -1) c.axis = 1;
  c.causal = o.causal;
  c.backward = o.backward;
  if (kind.takes & keys) {
    c.keys = positive(kind, "--keys", o.keys, c.size[1]);
    c.kv_heads = positive(kind, "--kv-heads", o.kv_heads, c.size[0]);
    if (c.size[0] % c.kv_heads)
      throw ValueError(fmt::format("bench attention: --kv-heads is {}, expects a divisor of {} heads", c.kv_heads, c.size[0]));
  }
  if (kind.takes & op) c.op = op_of(o.op);
  if (kind.takes & order) c.order = order_of(o.order, c.size.size());
  if (c.axis != 0 && c.axis != 1) throw ValueError(fmt::format("bench {}: --axis is {}, expects 0 or 1", kind.name, c.axis));
  if (o.kernel == "conv" && (c.size[0] % c.groups || c.size[1] % c.groups))
    throw ValueError(fmt::format("bench conv: {} groups do not divide {} and {} channels", c.groups, c.size[0], c.size[1]));
  if (o.kernel == "conv" && c.size[3] % 2 == 0)
    throw ValueError(fmt::format("bench conv: the window is {}, expects an odd size", c.size[3]));
  kind.count(c);
  return c;
}

}  // namespace tinygrad::apps
