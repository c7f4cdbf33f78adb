#pragma once
/// Tensor: a lazy, differentiable array. Methods build a graph; it runs when a result is asked for (realize, item, tolist, ...).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/errors.h>
#include <tinygrad/export.h>
#include <tinygrad/variable.h>

namespace tinygrad {

class Tensor;
class UOp;
namespace detail {
struct TensorCell;
TensorCell& cell_of(const Tensor& tensor);
}  // namespace detail

/// Sizes, one an axis. Sizes that are asked for may be -1 where a method says so.
using Sizes = std::vector<int64_t>;

/// What a created tensor is made of; by default the device is default_device() and the dtype follows from the values.
struct TensorOptions {
  std::optional<DType> dtype = {};
  std::string device = {};
};

/// One axis, several, or all (the default). Negative axes count from the end.
class AxisList {
 public:
  AxisList() = default;
  AxisList(int axis) : axes_(std::vector<int>{axis}) {}
  AxisList(std::initializer_list<int> axes) : axes_(std::vector<int>(axes)) {}
  AxisList(std::vector<int> axes) : axes_(std::move(axes)) {}
  const std::optional<std::vector<int>>& get() const { return axes_; }

 private:
  std::optional<std::vector<int>> axes_;
};

/// A tensor, or a number that takes the dtype of the tensor it meets: a float beside integers makes the result the default float.
class Operand {
 public:
  inline Operand(const Tensor& tensor);
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T number) : value_(widen(number)) {}

  using Value = std::variant<const Tensor*, bool, int64_t, double>;
  const Value& value() const { return value_; }

 private:
  template <class T>
  static Value widen(T number) {
    if constexpr (std::is_same_v<T, bool>)
      return number;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(number);
    else
      return static_cast<double>(number);
  }
  Value value_;
};

/// start:stop:step as in Python; what is left out reaches to the end.
struct Slice {
  std::optional<Extent> start = {}, stop = {};
  int64_t step = 1;
};
/// A new axis of size 1 (Python's None).
struct NewAxis {};
/// As many whole axes as are left (Python's ...).
struct Ellipsis {};
/// One entry of x[{...}]: an integer, a slice, a new axis, an ellipsis, or a tensor of integers.
class Index {
 public:
  template <std::integral T>
  Index(T i) : value_(static_cast<int64_t>(i)) {}
  Index(Slice s) : value_(s) {}
  Index(NewAxis n) : value_(n) {}
  Index(Ellipsis e) : value_(e) {}
  inline Index(const Tensor& t);
  using Value = std::variant<int64_t, Slice, NewAxis, Ellipsis, const Tensor*>;
  const Value& value() const { return value_; }

 private:
  Value value_;
};

struct ReduceOptions {
  bool keepdim = false;             ///< reduced axes stay, with size 1
  std::optional<DType> dtype = {};  ///< of accumulation and result, where the method sums
};

struct VarOptions {
  bool keepdim = false;
  int64_t correction = 1;
};

struct ConvOptions {
  int64_t groups = 1;
  Sizes stride = {1}, dilation = {1};  ///< one number, or one a spatial axis
  Sizes padding = {0};                 ///< one number, one an axis, or (left, right, top, bottom, ...)
  std::optional<DType> dtype = {};
};

struct ConvTransposeOptions {
  int64_t groups = 1;
  Sizes stride = {1}, dilation = {1}, padding = {0}, output_padding = {0};
};

struct PoolOptions {
  Sizes kernel_size = {2, 2};
  Sizes stride = {};  ///< by default the kernel size
  Sizes dilation = {1}, padding = {0};
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< of averages
};

struct AttentionOptions;

enum class Rounding : uint8_t { none, trunc, floor };
enum class Reduction : uint8_t { mean, sum, none };
enum class GeluForm : uint8_t { tanh, erf };
enum class PadMode : uint8_t { constant, reflect, replicate, circular };

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0.0;
};

struct SparseCrossEntropyOptions {
  int64_t ignore_index = -1;  ///< a class that does not count; -1: all count
  double label_smoothing = 0.0;
  Reduction reduction = Reduction::mean;
};

struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};

/// A lazy, differentiable array: a cheap handle on a value. Copies are the same tensor; methods without a trailing underscore make new
/// ones. Different threads may work on different tensors; one tensor is not changed from two threads.
///
/// Methods throw ShapeError, DTypeError, IndexError or ValueError at once where arguments do not fit; CompileError, DeviceError and
/// OutOfMemoryError come when values are computed, and leave every tensor as it was.
class TINYGRAD_EXPORT Tensor {
 public:
  /// No tensor: for optional arguments. Every method but defined() throws ValueError.
  Tensor() = default;

  // From values. A literal number or list has the default dtype of its kind, a vector or span that of its elements.
  template <class N>
    requires std::is_arithmetic_v<N>
  explicit Tensor(N value, const TensorOptions& options = {}) : Tensor(full({}, value, options)) {}
  template <Element E>
  Tensor(std::initializer_list<E> values, const TensorOptions& options = {})
      : Tensor(as_bytes(values.begin(), values.size()), dtype_of<E>(), {static_cast<int64_t>(values.size())}, literal<E>(options)) {}
  template <Element E>
  Tensor(std::initializer_list<std::initializer_list<E>> rows, const TensorOptions& options = {});
  template <Element E>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<E>>> planes, const TensorOptions& options = {});
  template <Element E>
    requires(!std::same_as<E, bool>)
  explicit Tensor(const std::vector<E>& values, const TensorOptions& options = {})
      : Tensor(std::span<const E>(values), {static_cast<int64_t>(values.size())}, options) {}
  template <Element E>
    requires(!std::same_as<E, bool>)
  Tensor(const std::vector<E>& values, const Sizes& shape, const TensorOptions& options = {})
      : Tensor(std::span<const E>(values), shape, options) {}
  template <Element E>
  Tensor(std::span<const E> values, const Sizes& shape, const TensorOptions& options = {})
      : Tensor(as_bytes(values.data(), values.size()), dtype_of<E>(), shape, options) {}
  /// The bytes of row-major elements of `dtype`, converted where the options name another.
  Tensor(std::span<const std::byte> bytes, DType dtype, const Sizes& shape, const TensorOptions& options = {});

  // Created.
  static Tensor full(const Sizes& shape, const Operand& value, const TensorOptions& options = {});
  static Tensor zeros(const Sizes& shape, const TensorOptions& options = {});
  static Tensor ones(const Sizes& shape, const TensorOptions& options = {});
  /// Memory of unspecified content.
  static Tensor empty(const Sizes& shape, const TensorOptions& options = {});
  static Tensor arange(int64_t stop, const TensorOptions& options = {});
  static Tensor arange(int64_t start, int64_t stop, int64_t step = 1, const TensorOptions& options = {});
  static Tensor arange(double start, double stop, double step = 1.0, const TensorOptions& options = {});
  static Tensor linspace(double start, double stop, int64_t steps, const TensorOptions& options = {});
  static Tensor eye(int64_t n, std::optional<int64_t> m = {}, const TensorOptions& options = {});
  Tensor full_like(const Operand& value, std::optional<DType> dtype = {}) const;
  Tensor zeros_like(std::optional<DType> dtype = {}) const;
  Tensor ones_like(std::optional<DType> dtype = {}) const;

  // Random: a function of the seed and of how much was drawn before, the same on every device.
  /// Starts the sequence of random numbers anew on every device.
  static void manual_seed(uint64_t seed = 0);
  static Tensor rand(const Sizes& shape, const TensorOptions& options = {});   ///< uniform over [0, 1)
  static Tensor randn(const Sizes& shape, const TensorOptions& options = {});  ///< standard normal
  /// Integers over [low, high).
  static Tensor randint(const Sizes& shape, int64_t low = 0, int64_t high = 10, const TensorOptions& options = {});
  static Tensor normal(const Sizes& shape, double mean = 0.0, double std = 1.0, const TensorOptions& options = {});
  static Tensor uniform(const Sizes& shape, double low = 0.0, double high = 1.0, const TensorOptions& options = {});
  static Tensor scaled_uniform(const Sizes& shape, const TensorOptions& options = {});
  static Tensor glorot_uniform(const Sizes& shape, const TensorOptions& options = {});
  static Tensor kaiming_uniform(const Sizes& shape, double a = 0.01, const TensorOptions& options = {});
  static Tensor kaiming_normal(const Sizes& shape, double a = 0.01, const TensorOptions& options = {});
  static Tensor randperm(int64_t n, const TensorOptions& options = {});
  Tensor rand_like(std::optional<DType> dtype = {}) const;
  Tensor randn_like(std::optional<DType> dtype = {}) const;
  /// Elements are zeroed with probability p and the others divided by 1 - p, where the option `training` is on.
  Tensor dropout(double p = 0.5) const;

  // What it is.
  bool defined() const { return cell_ != nullptr; }
  Sizes shape() const;
  int64_t size(int axis) const;
  int ndim() const;
  int64_t numel() const;
  DType dtype() const;
  std::string device() const;
  int64_t element_size() const { return static_cast<int64_t>(itemsize(dtype())); }
  int64_t nbytes() const { return numel() * element_size(); }
  bool is_floating_point() const { return is_float(dtype()); }

  // Running.
  /// Computes the value into memory. Everything that uses it reads that memory from now on.
  const Tensor& realize() const;
  /// Several at once, in one schedule.
  static void realize(std::span<const Tensor> tensors);
  /// The bytes of the elements, row-major.
  std::vector<std::byte> data() const;
  /// The elements, row-major, cast to E.
  template <Element E = float>
  std::vector<E> tolist() const;
  /// The only element. ShapeError if there are several.
  template <Element E = double>
  E item() const;
  /// "<Tensor (2, 3) dtypes.float32 on CPU>"
  std::string to_string() const;

  // Changing.
  /// Writes x into this tensor: into its memory if it has some, where every view of it sees the change.
  Tensor& assign(const Tensor& x);
  /// This tensor becomes x: the same value from now on, whatever it was.
  Tensor& replace(const Tensor& x);
  /// Writes into a part: x.set_item({Slice{0, 2}}, 1.0).
  Tensor& set_item(std::initializer_list<Index> indices, const Operand& value);
  /// A copy with memory of its own.
  Tensor clone() const;
  Tensor to(std::string_view device) const;
  Tensor& to_(std::string_view device);
  Tensor contiguous() const;
  Tensor contiguous_backward() const;

  // Gradients.
  /// Adds to the gradient of every live float tensor that this one depends on. ShapeError unless this is one element or `gradient` (of this
  /// one's shape) is given.
  const Tensor& backward(const Tensor& gradient = {}) const;
  /// Of one element, or with `gradient`, with respect to the targets; zeros where it does not depend on one.
  std::vector<Tensor> gradient(std::span<const Tensor> targets, const Tensor& gradient = {}) const;
  std::vector<Tensor> gradient(std::initializer_list<Tensor> targets, const Tensor& gradient = {}) const {
    return this->gradient(std::span<const Tensor>(targets.begin(), targets.size()), gradient);
  }
  /// Not defined() before backward().
  Tensor grad() const;
  void set_grad(const Tensor& grad) const;
  Tensor detach() const;
  /// Whether backward() gives it a gradient (yes, at first).
  Tensor& is_param_(bool is_param = true);
  bool is_param() const;

  // Dtypes.
  Tensor cast(DType dtype) const;
  Tensor bitcast(DType dtype) const;
  Tensor to_float() const { return cast(DType::float32); }
  Tensor half() const { return cast(DType::float16); }
  Tensor bfloat16() const { return cast(DType::bfloat16); }
  Tensor to_int() const { return cast(DType::int32); }
  Tensor to_bool() const { return cast(DType::bool_); }

  // Views.
  /// One size may be -1: what the others leave.
  Tensor reshape(const Sizes& shape) const;
  Tensor view(const Sizes& shape) const { return reshape(shape); }
  /// -1 keeps a size.
  Tensor expand(const Sizes& shape) const;
  Tensor permute(const std::vector<int>& order) const;
  Tensor transpose(int axis0 = 1, int axis1 = 0) const;
  Tensor T() const { return transpose(); }
  Tensor flip(const AxisList& axes) const;
  /// [begin, end) an axis.
  Tensor shrink(const std::vector<std::pair<int64_t, int64_t>>& bounds) const;
  /// (before, after) an axis; negative amounts cut.
  Tensor pad(const std::vector<std::pair<int64_t, int64_t>>& amounts, const Operand& value = 0, PadMode mode = PadMode::constant) const;
  Tensor squeeze() const;
  Tensor squeeze(int axis) const;
  Tensor unsqueeze(int axis) const;
  Tensor flatten(int start = 0, int end = -1) const;
  Tensor unflatten(int axis, const Sizes& sizes) const;
  Tensor repeat(const Sizes& repeats) const;
  static Tensor cat(std::span<const Tensor> tensors, int axis = 0);
  static Tensor cat(std::initializer_list<Tensor> tensors, int axis = 0) {
    return cat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
  }
  static Tensor stack(std::span<const Tensor> tensors, int axis = 0);
  static Tensor stack(std::initializer_list<Tensor> tensors, int axis = 0) {
    return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
  }
  std::vector<Tensor> split(int64_t size, int axis = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int axis = 0) const;
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const;
  Tensor gather(int axis, const Tensor& index) const;
  Tensor one_hot(int64_t classes) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor tril(int64_t diagonal = 0) const;

  // Arithmetic, element by element; also + - * / % & | ^ << >> ~ and the comparisons as operators.
  Tensor add(const Operand& x) const;
  Tensor sub(const Operand& x) const;
  Tensor mul(const Operand& x) const;
  Tensor div(const Operand& x, Rounding rounding = Rounding::none) const;
  /// The remainder with the sign of the divisor.
  Tensor mod(const Operand& x) const;
  Tensor pow(const Operand& x) const;
  Tensor maximum(const Operand& x) const;
  Tensor minimum(const Operand& x) const;
  Tensor bitwise_and(const Operand& x) const;
  Tensor bitwise_or(const Operand& x) const;
  Tensor bitwise_xor(const Operand& x) const;
  Tensor lshift(const Operand& x) const;
  Tensor rshift(const Operand& x) const;
  Tensor eq(const Operand& x) const;
  Tensor ne(const Operand& x) const;
  Tensor lt(const Operand& x) const;
  Tensor gt(const Operand& x) const;
  Tensor le(const Operand& x) const;
  Tensor ge(const Operand& x) const;
  Tensor isclose(const Operand& x, const CloseOptions& options = {}) const;
  /// x where this is true, else y.
  Tensor where(const Operand& x, const Operand& y) const;
  Tensor masked_fill(const Tensor& mask, const Operand& value) const;
  Tensor clamp(const std::optional<Operand>& min, const std::optional<Operand>& max = {}) const;
  Tensor clip(const std::optional<Operand>& min, const std::optional<Operand>& max = {}) const { return clamp(min, max); }
  Tensor lerp(const Tensor& end, const Operand& weight) const;
  Tensor neg() const;
  Tensor logical_not() const;
  Tensor bitwise_not() const;
  Tensor abs() const;
  Tensor sign() const;
  Tensor square() const;
  Tensor reciprocal() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor exp() const;
  Tensor exp2() const;
  Tensor log() const;
  Tensor log2() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tan() const;
  Tensor sinh() const;
  Tensor cosh() const;
  Tensor tanh() const;
  Tensor erf() const;
  Tensor trunc() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor relu() const;
  Tensor relu6() const;
  Tensor sigmoid() const;
  Tensor logsigmoid() const;
  Tensor hardsigmoid() const;
  Tensor hardswish() const;
  Tensor leaky_relu(double neg_slope = 0.01) const;
  Tensor gelu(GeluForm form = GeluForm::tanh) const;
  Tensor quick_gelu() const;
  Tensor silu() const;
  Tensor swish() const { return silu(); }
  Tensor elu(double alpha = 1.0) const;
  Tensor softplus(double beta = 1.0) const;
  Tensor softsign() const;
  Tensor mish() const;

  // Reductions: over one axis, several, or (by default) all.
  Tensor sum(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor prod(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor max(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor min(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor mean(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor any(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor all(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor var(const AxisList& axes = {}, const VarOptions& options = {}) const;
  Tensor std(const AxisList& axes = {}, const VarOptions& options = {}) const;
  /// The first index of the greatest element, int32; without an axis, in the flattened tensor.
  Tensor argmax(std::optional<int> axis = {}, const ReduceOptions& options = {}) const;
  Tensor argmin(std::optional<int> axis = {}, const ReduceOptions& options = {}) const;
  Tensor logsumexp(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor softmax(const AxisList& axes = -1) const;
  Tensor log_softmax(const AxisList& axes = -1) const;
  Tensor cumsum(int axis = 0) const;
  Tensor allclose(const Tensor& x, const CloseOptions& options = {}) const;

  // Products, convolutions, normalizations, losses.
  /// The matrix product over the last axis of this and the last but one of w, broadcast over the axes before.
  Tensor matmul(const Tensor& w, std::optional<DType> dtype = {}) const;
  Tensor dot(const Tensor& w, std::optional<DType> dtype = {}) const { return matmul(w, dtype); }
  /// x @ weight + bias.
  Tensor linear(const Tensor& weight, const Tensor& bias = {}) const;
  /// (batch, in, spatial...) with weight (out, in / groups, spatial...).
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {}) const;
  Tensor conv_transpose2d(const Tensor& weight, const Tensor& bias = {}, const ConvTransposeOptions& options = {}) const;
  Tensor avg_pool2d(const PoolOptions& options = {}) const;
  Tensor max_pool2d(const PoolOptions& options = {}) const;
  Tensor layernorm(const std::vector<int>& axes = {-1}, double eps = 1e-5) const;
  /// (x - mean) * invstd * weight + bias along the axis; weight and bias may be undefined.
  Tensor batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& invstd, int axis = 1) const;
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value, const AttentionOptions& options) const;
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value) const;
  Tensor binary_crossentropy(const Tensor& y, Reduction reduction = Reduction::mean) const;
  Tensor binary_crossentropy_logits(const Tensor& y, Reduction reduction = Reduction::mean) const;
  /// Of logits (..., classes) against class indices (...).
  Tensor sparse_categorical_crossentropy(const Tensor& y, const SparseCrossEntropyOptions& options = {}) const;
  /// Of logits (batch, classes, ...) against class indices (batch, ...) or probabilities.
  Tensor cross_entropy(const Tensor& y, const CrossEntropyOptions& options = {}) const;

  /// For the library: the graph behind the handle, and a handle on a graph.
  UOp uop() const;
  static Tensor from_uop(const UOp& node);

 private:
  friend detail::TensorCell& detail::cell_of(const Tensor& tensor);
  explicit Tensor(std::shared_ptr<detail::TensorCell> cell) : cell_(std::move(cell)) {}
  detail::TensorCell& cell() const;

  template <Element E>
  static std::span<const std::byte> as_bytes(const E* values, size_t count) {
    return {reinterpret_cast<const std::byte*>(values), count * sizeof(E)};
  }
  /// The dtype of literals of the kind of E, where the options name none.
  template <Element E>
  static TensorOptions literal(TensorOptions options) {
    if (!options.dtype) options.dtype = literal_dtype(dtype_of<E>());
    return options;
  }
  static DType literal_dtype(DType written);
  void read(void* to, DType dtype, size_t count) const;

  std::shared_ptr<detail::TensorCell> cell_;
};

struct AttentionOptions {
  Tensor mask = {};  ///< bool (true: attend), or numbers to add
  double dropout_p = 0.0;
  bool is_causal = false;
  bool enable_gqa = false;  ///< the heads of this one may be a multiple of those of key and value
};

inline Operand::Operand(const Tensor& tensor) : value_(&tensor) {}
inline Index::Index(const Tensor& t) : value_(&t) {}

#define TG_TENSOR_OPERATOR(symbol)                                           \
  TINYGRAD_EXPORT Tensor operator symbol(const Tensor& a, const Tensor& b);  \
  TINYGRAD_EXPORT Tensor operator symbol(const Tensor& a, const Operand& b); \
  TINYGRAD_EXPORT Tensor operator symbol(const Operand& a, const Tensor& b);
TG_TENSOR_OPERATOR(+)
TG_TENSOR_OPERATOR(-)
TG_TENSOR_OPERATOR(*)
TG_TENSOR_OPERATOR(/)
TG_TENSOR_OPERATOR(%)
TG_TENSOR_OPERATOR(&)
TG_TENSOR_OPERATOR(|)
TG_TENSOR_OPERATOR(^)
TG_TENSOR_OPERATOR(<<)
TG_TENSOR_OPERATOR(>>)
TG_TENSOR_OPERATOR(<)
TG_TENSOR_OPERATOR(>)
TG_TENSOR_OPERATOR(<=)
TG_TENSOR_OPERATOR(>=)
TG_TENSOR_OPERATOR(==)
TG_TENSOR_OPERATOR(!=)
#undef TG_TENSOR_OPERATOR
TINYGRAD_EXPORT Tensor operator-(const Tensor& x);
TINYGRAD_EXPORT Tensor operator~(const Tensor& x);
/// In place, as assign() is.
TINYGRAD_EXPORT Tensor& operator+=(Tensor& a, const Operand& b);
TINYGRAD_EXPORT Tensor& operator-=(Tensor& a, const Operand& b);
TINYGRAD_EXPORT Tensor& operator*=(Tensor& a, const Operand& b);
TINYGRAD_EXPORT Tensor& operator/=(Tensor& a, const Operand& b);

// Implementation of templates.

template <Element E>
Tensor::Tensor(std::initializer_list<std::initializer_list<E>> rows, const TensorOptions& options) {
  std::vector<std::byte> all;
  const size_t width = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    if (row.size() != width) throw ShapeError("Tensor: the rows of a nested list must have one length");
    const auto bytes = as_bytes(row.begin(), row.size());
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  *this = Tensor(all, dtype_of<E>(), {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)}, literal<E>(options));
}

template <Element E>
Tensor::Tensor(std::initializer_list<std::initializer_list<std::initializer_list<E>>> planes, const TensorOptions& options) {
  std::vector<Tensor> parts;
  for (const auto& plane : planes) parts.push_back(Tensor(plane, options));
  *this = stack(parts);
}

template <Element E>
std::vector<E> Tensor::tolist() const {
  const auto count = static_cast<size_t>(numel());
  const auto values = std::make_unique<E[]>(count);
  read(values.get(), dtype_of<E>(), count);
  return std::vector<E>(values.get(), values.get() + count);
}

template <Element E>
E Tensor::item() const {
  if (numel() != 1) throw ShapeError("item: " + to_string() + " has " + std::to_string(numel()) + " elements, expects one; use tolist()");
  E value{};
  read(&value, dtype_of<E>(), 1);
  return value;
}

}  // namespace tinygrad
