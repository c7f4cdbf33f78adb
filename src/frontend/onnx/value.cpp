#include "frontend/onnx/value.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <tinygrad/errors.h>

#include "dtype/scalar.h"

namespace tinygrad::onnx {

namespace {

struct TypeRow {
  std::string_view name;
  DType dtype;
  int bits;
};

constexpr std::array<TypeRow, 29> type_rows{{
    {"undefined", DType::void_, 0},
    {"float32", DType::float32, 32},
    {"uint8", DType::uint8, 8},
    {"int8", DType::int8, 8},
    {"uint16", DType::uint16, 16},
    {"int16", DType::int16, 16},
    {"int32", DType::int32, 32},
    {"int64", DType::int64, 64},
    {"string", DType::void_, 0},
    {"bool", DType::bool_, 8},
    {"float16", DType::float16, 16},
    {"float64", DType::float64, 64},
    {"uint32", DType::uint32, 32},
    {"uint64", DType::uint64, 64},
    {"complex64", DType::float32, 64},
    {"complex128", DType::float64, 128},
    {"bfloat16", DType::bfloat16, 16},
    {"float8e4m3fn", DType::fp8e4m3, 8},
    {"float8e4m3fnuz", DType::fp8e4m3fnuz, 8},
    {"float8e5m2", DType::fp8e5m2, 8},
    {"float8e5m2fnuz", DType::fp8e5m2fnuz, 8},
    {"uint4", DType::uint8, 4},
    {"int4", DType::int8, 4},
    {"float4e2m1", DType::uint8, 4},
    {"float8e8m0", DType::uint8, 8},
    {"uint2", DType::uint8, 2},
    {"int2", DType::int8, 2},
    {"float6e2m3", DType::uint8, 6},
    {"float6e3m2", DType::uint8, 6},
}};

/// The fields of a float without infinities and NaN.
struct SmallFloatFields {
  int exponent_bits, mantissa_bits, bias;
};
std::optional<SmallFloatFields> small_float(ElementType type) {
  switch (type) {
    case ElementType::float4e2m1: return SmallFloatFields{2, 1, 1};
    case ElementType::float6e2m3: return SmallFloatFields{2, 3, 1};
    case ElementType::float6e3m2: return SmallFloatFields{3, 2, 3};
    default: return {};
  }
}

/// The non-negative numbers of the type, in the order of their bits.
std::vector<double> magnitudes(SmallFloatFields f) {
  std::vector<double> out;
  for (int bits = 0; bits < 1 << (f.exponent_bits + f.mantissa_bits); ++bits) {
    const int exponent = bits >> f.mantissa_bits, mantissa = bits & ((1 << f.mantissa_bits) - 1);
    const double fraction = double(mantissa) / (1 << f.mantissa_bits);
    out.push_back(exponent ? std::ldexp(1 + fraction, exponent - f.bias) : std::ldexp(fraction, 1 - f.bias));
  }
  return out;
}

Tensor decode_small_float(const Tensor& bits, SmallFloatFields f) {
  const Tensor wide = bits.cast(DType::int32);
  const Tensor mantissa = (wide & ((1 << f.mantissa_bits) - 1)).cast(DType::float32) * std::ldexp(1.0, -f.mantissa_bits);
  const Tensor exponent = (wide >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const Tensor power = (((exponent.maximum(1) + (127 - f.bias)) << 23)).bitcast(DType::float32);
  const Tensor magnitude = (mantissa + (exponent > 0).cast(DType::float32)) * power;
  const Tensor is_negative = ((wide >> (f.exponent_bits + f.mantissa_bits)) & 1) > 0;
  return is_negative.where(-magnitude, magnitude);
}

Tensor encode_small_float(const Tensor& x, SmallFloatFields f) {
  const std::vector<double> values = magnitudes(f);
  const Tensor wide = x.cast(DType::float32), size = wide.abs();
  // How many of the numbers between two neighbours lie below: half-way ones go to the even neighbour.
  Tensor bits = size.zeros_like(DType::int32);
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const double middle = (values[i] + values[i + 1]) / 2;
    bits = bits + (i % 2 ? size >= middle : size > middle).cast(DType::int32);
  }
  const Tensor is_nan = size.isnan(), is_negative = (wide.bitcast(DType::int32) < 0) | is_nan;
  bits = is_nan.where(0, bits);  // there is no NaN, and ml_dtypes makes it -0
  return (bits + is_negative.cast(DType::int32) * (1 << (f.exponent_bits + f.mantissa_bits))).cast(DType::uint8);
}

/// 2^(bits - 127); 255 is NaN. What float32 holds only as a denormal is made by a product.
Tensor decode_e8m0(const Tensor& bits) {
  const Tensor wide = bits.cast(DType::int32);
  const Tensor power = (wide.maximum(1) << 23).bitcast(DType::float32);
  const Tensor least = (wide == 0).where(Tensor::full({}, 0x1p-127, {.dtype = DType::float32}), power);
  return (wide == 255).where(std::nan(""), least);
}

/// The next power of two upwards, as the operator Cast rounds by default.
Tensor encode_e8m0(const Tensor& x) {
  const Tensor bits = x.cast(DType::float32).bitcast(DType::int32);
  const Tensor exponent = (bits >> 23) & 255, mantissa = bits & ((1 << 23) - 1);
  const Tensor up = (exponent + ((mantissa > 0) & (exponent < 254)).cast(DType::int32));
  const Tensor is_nan = (exponent == 255) & (mantissa > 0);
  return is_nan.where(255, up.minimum(254)).cast(DType::uint8);
}

bool all_bytes_equal(const HostArray& a) {
  const size_t size = itemsize(a.dtype());
  for (size_t i = size; i < a.byte_count; ++i)
    if (a.bytes.get()[i] != a.bytes.get()[i - size]) return false;
  return a.byte_count > 0;
}

Tensor tensor_of(const HostArray& a, const std::vector<Extent>& sizes) {
  std::vector<Tensor> each;
  for (const Extent& e : sizes) each.push_back(Tensor::full({1}, e, {.dtype = a.dtype()}));
  return Tensor::cat(each).reshape(a.shape);
}

Tensor tensor_of(const HostArray& a) {
  constexpr size_t most_filled = 1 << 16;  // looked at for one number everywhere, which kernels hold in their text
  Sizes shape = a.shape;
  if (a.type == ElementType::complex64 || a.type == ElementType::complex128) shape.push_back(2);
  if (a.byte_count <= most_filled && all_bytes_equal(a)) {
    HostArray first = a;
    first.shape = {};
    first.byte_count = itemsize(a.dtype());
    const TensorOptions options{.dtype = a.dtype()};
    if (is_float(a.dtype()) && !is_fp8(a.dtype())) {
      if (const double number = first.numbers()[0]; std::isfinite(number)) return Tensor::full(shape, number, options);
    } else if (a.dtype() == DType::bool_) {
      return Tensor::full(shape, first.integers()[0] != 0, options);
    } else if (a.dtype() != DType::uint64 && !is_fp8(a.dtype())) {
      return Tensor::full(shape, first.integers()[0], options);
    }
  }
  return Tensor({a.bytes.get(), a.byte_count}, a.dtype(), shape);
}

}  // namespace

std::string_view name(ElementType type) { return type_rows.at(size_t(type)).name; }
DType dtype_of(ElementType type) { return type_rows.at(size_t(type)).dtype; }
int bits_of(ElementType type) { return type_rows.at(size_t(type)).bits; }

ElementType element_type_of(DType dtype) {
  for (size_t i = 1; i <= size_t(ElementType::float8e5m2fnuz); ++i)
    if (type_rows[i].dtype == dtype && i != size_t(ElementType::complex64) && i != size_t(ElementType::complex128)) return ElementType(i);
  throw DTypeError(fmt::format("onnx: no element type is {}", repr(dtype)));
}

bool is_float_type(ElementType type) {
  return (is_float(dtype_of(type)) && type != ElementType::complex64 && type != ElementType::complex128) || small_float(type) ||
         type == ElementType::float8e8m0;
}

bool is_low_bit(ElementType type) { return type >= ElementType::uint4; }

std::pair<int64_t, int64_t> integer_range(ElementType type) {
  const int bits = bits_of(type);
  if (type == ElementType::bool_) return {0, 1};
  const bool is_unsigned_type = is_unsigned(dtype_of(type));
  if (is_unsigned_type) return {0, bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1};
  return {bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1)),
          bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1};
}

int64_t element_count(const Sizes& shape) {
  if (std::any_of(shape.begin(), shape.end(), [](int64_t s) { return s < 0; }))
    throw ShapeError(fmt::format("the shape ({}) has a negative size", fmt::join(shape, ", ")));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t n = 1;
  for (int64_t s : shape)
    if (__builtin_mul_overflow(n, s, &n))
      throw ShapeError(fmt::format("the shape ({}) has more elements than 64 bits count", fmt::join(shape, ", ")));
  return n;
}

// HostArray

namespace detail {

std::vector<int64_t> HostArray::integers() const {
  std::vector<int64_t> out;
  out.resize(size_t(numel()));
  const size_t size = itemsize(dtype());
  for (size_t i = 0; i < out.size(); ++i) {
    const Scalar s = Scalar::from_bytes(bytes.get() + i * size, dtype());
    out[i] = is_float(dtype()) ? int64_t(std::nearbyint(s.as_double())) : s.as_int();
  }
  return out;
}

std::vector<double> HostArray::numbers() const {
  std::vector<double> out;
  out.resize(size_t(numel()));
  const size_t size = itemsize(dtype());
  for (size_t i = 0; i < out.size(); ++i) out[i] = Scalar::from_bytes(bytes.get() + i * size, dtype()).as_double();
  return out;
}

HostArray HostArray::of_bytes(ElementType type, const Sizes& shape, std::span<const std::byte> from) {
  const std::shared_ptr<std::byte[]> memory(new std::byte[std::max<size_t>(from.size(), 1)]);
  if (!from.empty()) std::memcpy(memory.get(), from.data(), from.size());
  return {type, shape, std::shared_ptr<const std::byte>(memory, memory.get()), from.size()};
}

namespace {
template <class T>
HostArray converted(ElementType type, const Sizes& shape, std::span<const T> values) {
  const DType dtype = dtype_of(type);
  const size_t size = itemsize(dtype);
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) Scalar::of(values[i], dtype).to_bytes(bytes.data() + i * size);
  return HostArray::of_bytes(type, shape, bytes);
}
}  // namespace

HostArray HostArray::of(ElementType type, const Sizes& shape, std::span<const int64_t> values) { return converted(type, shape, values); }
HostArray HostArray::of(ElementType type, const Sizes& shape, std::span<const double> values) { return converted(type, shape, values); }

Value ValueAccess::of_host(HostArray array) {
  Value v;
  v.kind_ = Value::Kind::tensor;
  v.type_ = array.type;
  v.host_ = std::make_shared<HostValue>(HostValue{.array = std::move(array)});
  return v;
}

Value ValueAccess::of_sizes(ElementType type, Sizes shape, std::vector<Extent> sizes) {
  Value v = of_host({.type = type, .shape = std::move(shape)});
  v.host_ = std::make_shared<HostValue>(HostValue{.array = v.host_->array, .sizes = std::move(sizes)});
  return v;
}

}  // namespace detail

Value host_sizes(ElementType type, const Sizes& shape, const std::vector<Extent>& sizes) {
  if (!std::ranges::all_of(sizes, &Extent::known)) return detail::ValueAccess::of_sizes(type, shape, sizes);
  std::vector<int64_t> numbers;
  for (const Extent& e : sizes) numbers.push_back(e.value());
  return host_value(HostArray::of(type, shape, numbers));
}
Value host_integers(const std::vector<int64_t>& values) {
  return host_value(HostArray::of(ElementType::int64, {int64_t(values.size())}, values));
}
Value host_integer(int64_t value) { return host_value(HostArray::of(ElementType::int64, {}, std::vector<int64_t>{value})); }

// Value

Value::Value(Tensor tensor) : kind_(Kind::tensor), type_(element_type_of(tensor.dtype())), tensor_(std::move(tensor)) {}
Value::Value(Tensor tensor, ElementType type) : kind_(Kind::tensor), type_(type), tensor_(std::move(tensor)) {
  if (tensor_.dtype() != dtype_of(type))
    throw DTypeError(fmt::format("onnx::Value: {} cannot hold elements of {}", tensor_.to_string(), onnx::name(type)));
}
Value::Value(Strings strings) : kind_(Kind::strings), type_(ElementType::string) {
  if (element_count(strings.shape) != int64_t(strings.values.size()))
    throw ShapeError(fmt::format("onnx::Value: {} texts for the shape ({})", strings.values.size(), fmt::join(strings.shape, ", ")));
  strings_ = std::make_shared<Strings>(std::move(strings));
}
Value::Value(std::vector<Value> sequence) : kind_(Kind::sequence), sequence_(std::make_shared<std::vector<Value>>(std::move(sequence))) {}
Value::Value(Map map) : kind_(Kind::map), map_(std::make_shared<Map>(std::move(map))) {}

const Tensor& Value::tensor() const {
  if (kind_ != Kind::tensor) throw ValueError(fmt::format("onnx: got {}, expected a tensor of numbers", to_string()));
  if (tensor_.defined()) return tensor_;
  if (!host_->tensor.defined()) host_->tensor = host_->sizes.empty() ? tensor_of(host_->array) : tensor_of(host_->array, host_->sizes);
  return host_->tensor;
}
const Strings& Value::strings() const {
  if (kind_ != Kind::strings) throw ValueError(fmt::format("onnx: got {}, expected a tensor of texts", to_string()));
  return *strings_;
}
const std::vector<Value>& Value::sequence() const {
  if (kind_ != Kind::sequence) throw ValueError(fmt::format("onnx: got {}, expected a sequence", to_string()));
  return *sequence_;
}
const Map& Value::map() const {
  if (kind_ != Kind::map) throw ValueError(fmt::format("onnx: got {}, expected a map", to_string()));
  return *map_;
}

Sizes Value::shape() const {
  if (kind_ == Kind::strings) return strings_->shape;
  if (host_) return host_->array.shape;
  Sizes out = tensor().shape();
  if (type_ == ElementType::complex64 || type_ == ElementType::complex128) out.pop_back();
  return out;
}

std::string Value::to_string() const {
  switch (kind_) {
    case Kind::absent: return "nothing";
    case Kind::sequence: return fmt::format("sequence of {}", sequence_->size());
    case Kind::map: return fmt::format("map of {}", map_->integers.size() + map_->texts.size());
    default: return fmt::format("{} ({})", onnx::name(type_), fmt::join(shape(), ", "));
  }
}

// Types that no dtype is

Tensor decode(const Value& v) {
  if (const auto f = small_float(v.element_type())) return decode_small_float(v.tensor(), *f);
  if (v.element_type() == ElementType::float8e8m0) return decode_e8m0(v.tensor());
  return v.tensor();
}

Tensor encode_bits(const Tensor& x, ElementType type) {
  if (const auto f = small_float(type)) return encode_small_float(x, *f);
  return encode_e8m0(x);
}

Value cast_value(const Value& v, ElementType to, bool saturate) {
  if (v.element_type() == to) return v;
  const Tensor x = decode(v);
  if (small_float(to) || to == ElementType::float8e8m0) return {encode_bits(x, to), to};
  if (is_low_bit(to)) {  // the low bits, as integers
    const int bits = bits_of(to);
    const Tensor wide = (x.is_floating_point() ? x.trunc() : x).cast(DType::int32);
    const Tensor low = wide & ((1 << bits) - 1);
    if (is_unsigned(dtype_of(to))) return {low.cast(DType::uint8), to};
    return {((low ^ (1 << (bits - 1))) - (1 << (bits - 1))).cast(DType::int8), to};
  }
  const DType dtype = dtype_of(to);
  return {x.cast(dtype, saturate && is_fp8(dtype)), to};
}

}  // namespace tinygrad::onnx
