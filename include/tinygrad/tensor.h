#pragma once
/// Tensor: a lazy, differentiable array. Methods build a graph; it runs when a result is asked for (realize, item, tolist, ...).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
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
#include <tinygrad/tensor_arguments.h>

// In C++20 x[0, 1] is x[1], as the comma drops what is before it: an error in code that includes this header. x[{0, 1}] has two indices.
#if defined(__clang__)
#pragma clang diagnostic error "-Wdeprecated-comma-subscript"
#elif defined(__GNUC__)
#pragma GCC diagnostic error "-Wcomma-subscript"
#endif

namespace tinygrad {

class Context;
class Mesh;
class Tensor;
class UOp;
struct MeshCut;
enum class Op : uint8_t;
namespace detail {
struct TensorCell;
TensorCell& cell_of(const Tensor& tensor);

/// What a Tensor has of its cell. The cell counts these apart from the shares that the library takes for a while.
class TINYGRAD_EXPORT CellHandle {
 public:
  CellHandle() = default;
  explicit CellHandle(std::shared_ptr<TensorCell> cell) noexcept;
  CellHandle(const CellHandle& other) noexcept : CellHandle(other.cell_) {}
  CellHandle(CellHandle&& other) noexcept = default;
  CellHandle& operator=(CellHandle other) noexcept {
    cell_.swap(other.cell_);
    return *this;
  }
  ~CellHandle() {
    if (cell_) release();
  }

  const std::shared_ptr<TensorCell>& get() const noexcept { return cell_; }
  explicit operator bool() const noexcept { return cell_ != nullptr; }
  TensorCell& operator*() const noexcept { return *cell_; }
  TensorCell* operator->() const noexcept { return cell_.get(); }

 private:
  void release() noexcept;

  std::shared_ptr<TensorCell> cell_;
};
}  // namespace detail

namespace detail {

template <class T>
concept Path = requires(const T& p) { p.native(), p.lexically_normal(); };
template <class T>
concept Text = std::is_convertible_v<const T&, std::string_view>;
/// A range that knows its size: a vector, an array, a span.
template <class T>
concept List = !Path<T> && !Text<T> && requires(const T& list) {
  std::begin(list) != std::end(list);
  std::size(list);
};

template <List L>
using ItemOf = std::remove_cvref_t<decltype(*std::begin(std::declval<const L&>()))>;

/// The type of the elements of lists of lists of lists.
template <class T>
struct LeafOf {
  using type = T;
};
template <List T>
struct LeafOf<T> : LeafOf<ItemOf<T>> {};

[[noreturn]] TINYGRAD_EXPORT void throw_ragged(size_t depth, int64_t expected, size_t got);

/// The elements of lists in their order, and how many stand along each axis.
template <class E>
struct Flattened {
  std::vector<std::byte> bytes;
  Sizes shape;

  template <class L>
  void add(const L& x, size_t depth = 0) {
    if constexpr (List<L>) {
      if (depth == shape.size()) shape.push_back(static_cast<int64_t>(std::size(x)));
      if (shape[depth] != static_cast<int64_t>(std::size(x))) throw_ragged(depth, shape[depth], std::size(x));
      for (const auto& element : x) add(element, depth + 1);
      if (std::size(x) == 0) add_empty<L>(depth);
    } else {
      const auto* begin = reinterpret_cast<const std::byte*>(&x);
      bytes.insert(bytes.end(), begin, begin + sizeof(E));
    }
  }

 private:
  /// The axes below a list without elements, of which nothing tells the sizes.
  template <class L>
  void add_empty(size_t depth) {
    if constexpr (List<ItemOf<L>>) {
      if (depth + 1 == shape.size()) shape.push_back(0);
      add_empty<ItemOf<L>>(depth + 1);
    }
  }
};

}  // namespace detail

struct AttentionOptions;
struct ValuesAndIndices;
struct QR;
struct SVD;

/// A lazy, differentiable array: a cheap handle on a value. Copies are the same tensor; methods without a trailing underscore make new
/// ones. Different threads may work on different tensors; one tensor is not changed from two threads.
///
/// Methods throw ShapeError, DTypeError, IndexError or ValueError at once where arguments do not fit; CompileError, DeviceError and
/// OutOfMemoryError come when values are computed, and leave every tensor as it was.
class TINYGRAD_EXPORT Tensor {
 public:
  /// No tensor: for optional arguments. Every method but defined() throws ValueError.
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  /// The handle becomes one on another tensor; nothing is written to this one.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// `x[0] = y` and `x.grad() = y` would change a handle that is gone at once: x.set_item({0}, y), x.assign(y) and x.set_grad(y) write.
  Tensor& operator=(const Tensor&) && = delete;

  // From values. A literal number or list has the default dtype of its kind, integers that the default int does not hold int64 or uint64, a
  // vector or span the dtype of its elements. ValueError for a literal that a dtype of the options does not hold.
  template <class N>
    requires std::is_arithmetic_v<N>
  explicit Tensor(N value, const TensorOptions& options = {}) : Tensor(scalar(value, options)) {}
  /// The value that a size has when kernels are launched; of the default int, or of the dtype that its Variable names.
  explicit Tensor(const Extent& value, const TensorOptions& options = {});
  explicit Tensor(const Variable& value, const TensorOptions& options = {});
  template <Element E>
  Tensor(std::initializer_list<E> values, const TensorOptions& options = {})
      : Tensor(as_bytes(values.begin(), values.size()), dtype_of<E>(), {static_cast<int64_t>(values.size())},
               literal(as_bytes(values.begin(), values.size()), dtype_of<E>(), options)) {}
  template <Element E>
  Tensor(std::initializer_list<std::initializer_list<E>> rows, const TensorOptions& options = {});
  template <Element E>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<E>>> planes, const TensorOptions& options = {});
  /// From vectors, arrays and spans of numbers, and from lists of such lists. ShapeError where the lists of one depth differ in length.
  template <class L>
    requires detail::List<L> || detail::Text<L>
  explicit Tensor(const L& values, const TensorOptions& options = {});
  /// From one list, row-major.
  template <detail::List L>
    requires Element<typename L::value_type>
  Tensor(const L& values, const Sizes& shape, const TensorOptions& options = {});
  /// The bytes of row-major elements of `dtype`, converted where the options name another.
  Tensor(std::span<const std::byte> bytes, DType dtype, const Sizes& shape, const TensorOptions& options = {});
  /// from_file() of a std::filesystem::path.
  template <detail::Path Path>
  explicit Tensor(const Path& file, const TensorOptions& options = {}) : Tensor(from_file(file.string(), options)) {}

  /// A number of shape (). Where the options name no dtype it gives way beside others as the number would, and so does what is made only of
  /// numbers and such tensors: `(Tensor{1, 2} / 2.0 + half)` is half. Its dtype is that of its kind else. full(), zeros(), ... do not.
  static Tensor scalar(const Operand& value, const TensorOptions& options = {});

  // Created.
  static Tensor full(const Extents& shape, const Operand& value, const TensorOptions& options = {});
  static Tensor zeros(const Extents& shape, const TensorOptions& options = {});
  static Tensor ones(const Extents& shape, const TensorOptions& options = {});
  /// Memory of unspecified content.
  static Tensor empty(const Extents& shape, const TensorOptions& options = {});
  /// Memory of somebody else, row-major elements of `dtype` (by default the default float), used in place: assigning to the tensor writes
  /// there. It must stay for as long as the tensor and what was made of it, or until `owner`, if there is one, is released. ValueError for
  /// an address that is not a multiple of the element size.
  static Tensor from_blob(void* data, const Sizes& shape, const TensorOptions& options = {}, std::shared_ptr<void> owner = {});
  /// The same with the dtype of the pointer. Bytes, and unsigned integers of the element's size, may be given another one by the options;
  /// DTypeError where these name another dtype for any other pointer.
  template <Element E>
  static Tensor from_blob(E* data, const Sizes& shape, const TensorOptions& options = {}, std::shared_ptr<void> owner = {}) {
    return from_blob_of(dtype_of<E>(), data, shape, options, std::move(owner));
  }
  /// All of a file, a vector of `dtype` (by default uint8), which stays on the device DISK:PATH: what is used of it is read when it is
  /// copied to a device, straight to where it is wanted, and assigning writes to the file. On another device if the options name one.
  /// Throws IoError for what is no file, or one that has become shorter when it is read, and ValueError for one that ends within an
  /// element.
  static Tensor from_file(const std::string& path, const TensorOptions& options = {});
  /// The bytes of a file from the network, a vector of uint8: see fetch() of helpers.h.
  static Tensor from_url(const std::string& url, bool gunzip = false, const TensorOptions& options = {});
  static Tensor arange(int64_t stop, const TensorOptions& options = {});
  static Tensor arange(const Extent& stop, const TensorOptions& options = {});
  static Tensor arange(const Extent& start, const Extent& stop, int64_t step = 1, const TensorOptions& options = {});
  static Tensor arange(int64_t start, int64_t stop, int64_t step = 1, const TensorOptions& options = {});
  static Tensor arange(double start, double stop, double step = 1.0, const TensorOptions& options = {});
  template <std::integral A, std::integral B, std::integral C = int64_t>
  static Tensor arange(A start, B stop, C step = 1, const TensorOptions& options = {}) {
    return arange(static_cast<int64_t>(start), static_cast<int64_t>(stop), static_cast<int64_t>(step), options);
  }
  static Tensor linspace(double start, double stop, int64_t steps, const TensorOptions& options = {});
  static Tensor eye(int64_t n, std::optional<int64_t> m = {}, const TensorOptions& options = {});
  /// Values that nobody will look at.
  static Tensor invalids(const Extents& shape, const TensorOptions& options = {}) { return empty(shape, options); }
  /// A number of this one's dtype, of shape ().
  Tensor constant(const Operand& value, std::optional<DType> dtype = {}) const;
  Tensor const_like(const Operand& value, std::optional<DType> dtype = {}) const { return full_like(value, dtype); }
  Tensor empty_like(const TensorOptions& options = {}) const;
  // These have this one's shape and, where nothing else is said, its dtype and device.
  Tensor full_like(const Operand& value, std::optional<DType> dtype = {}) const;
  Tensor full_like(const Operand& value, const TensorOptions& options) const;
  inline Tensor zeros_like(std::optional<DType> dtype = {}) const;
  inline Tensor zeros_like(const TensorOptions& options) const;
  inline Tensor ones_like(std::optional<DType> dtype = {}) const;
  inline Tensor ones_like(const TensorOptions& options) const;

  // Random: a function of the seed and of how much was drawn before, the same on every device.
  /// Starts the sequence of random numbers anew on every device.
  static void manual_seed(uint64_t seed = 0);
  /// The state of the sequence, two uint64 on the CPU: after set_rng_state() the same numbers are drawn as after this call. It may be saved
  /// in a state dict like any other tensor.
  static Tensor get_rng_state();
  /// Throws ValueError for what get_rng_state() does not give.
  static void set_rng_state(const Tensor& state);
  static Tensor rand(const Sizes& shape, const TensorOptions& options = {});   ///< uniform over [0, 1)
  static Tensor randn(const Sizes& shape, const TensorOptions& options = {});  ///< standard normal; as integers, rounded toward 0
  /// Integers over [low, high), all equally likely (to 2^-16 of their probability, and closer for more than 2^16 of them); int32, whatever
  /// DEFAULT_INT is, if no dtype is named. ValueError for a dtype that does not hold them.
  static Tensor randint(const Sizes& shape, int64_t low = 0, int64_t high = 10, const TensorOptions& options = {});
  static Tensor normal(const Sizes& shape, double mean = 0.0, double std = 1.0, const TensorOptions& options = {});
  /// Over [low, high); as integers, of which `low` must be one, each as likely.
  static Tensor uniform(const Sizes& shape, double low = 0.0, double high = 1.0, const TensorOptions& options = {});
  static Tensor scaled_uniform(const Sizes& shape, const TensorOptions& options = {});
  static Tensor glorot_uniform(const Sizes& shape, const TensorOptions& options = {});
  static Tensor kaiming_uniform(const Sizes& shape, double a = 0.01, const TensorOptions& options = {});
  static Tensor kaiming_normal(const Sizes& shape, double a = 0.01, const TensorOptions& options = {});
  static Tensor randperm(int64_t n, const TensorOptions& options = {});  ///< of 0 to n - 1; int32 if no dtype is named
  /// `count` words (uint32) of Threefry-2x32, from two uint32 of a key and two of a counter, low words first.
  static Tensor random_bits(const Tensor& key, const Tensor& counter, int64_t count);
  /// Indices drawn with these weights (a vector, or a row each), int32. ValueError for weights that are negative or not finite, and unless
  /// as many as samples are above 0 (with replacement: one), which is read here: a jitted function does not check it.
  Tensor multinomial(int64_t samples = 1, bool replacement = false) const;
  Tensor rand_like(std::optional<DType> dtype = {}) const { return rand_like({.dtype = dtype}); }
  Tensor rand_like(const TensorOptions& options) const;
  Tensor randn_like(std::optional<DType> dtype = {}) const { return randn_like({.dtype = dtype}); }
  Tensor randn_like(const TensorOptions& options) const;
  /// Elements are zeroed with probability p and the others divided by 1 - p, where the option `training` is on.
  Tensor dropout(double p = 0.5) const;

  // Training and evaluation, of the calling thread: what dropout() and the layers that differ do, and whether optimizers step.
  /// The option `training` on (or off, to evaluate) until what it returns goes out of scope: `const auto on = Tensor::train();`, and inside
  /// of that `const auto off = Tensor::train(false);`. It needs <tinygrad/context.h>.
  [[nodiscard]] static Context train(bool mode = true);
  static bool training();

  // What it is.
  bool defined() const { return bool(cell_); }
  /// The sizes; of symbolic ones what their variables' values give. In a jitted function that is nothing to go by, as another call has
  /// other values: there it is as reading values of tensors, and symbolic_shape() or max_shape() serve.
  Sizes shape() const;
  Sizes size() const { return shape(); }
  int64_t size(int axis) const;
  int ndim() const;
  int64_t numel() const;
  /// The sizes as expressions of variables.
  Extents symbolic_shape() const;
  /// The greatest sizes over all values of the variables: what memory is laid out for.
  Sizes max_shape() const;
  int64_t max_numel() const;
  DType dtype() const;
  /// Of a tensor on several devices their list, "CPU,CPU:1", which wherever a device is named means all of them.
  std::string device() const;
  /// The devices of the shards, one for each.
  std::vector<std::string> devices() const;
  /// How it is divided among devices: a line a shard, with what it has.
  std::string placement() const;
  int64_t element_size() const { return static_cast<int64_t>(itemsize(dtype())); }
  int64_t nbytes() const { return numel() * element_size(); }
  bool is_floating_point() const { return is_float(dtype()); }

  // Running. What gives the tensor itself back gives a handle of its own for a temporary: `const Tensor& w = Tensor::rand({3}).realize();`
  // may be kept.
  /// Computes the value into memory. Everything that uses it reads that memory from now on. Values and gradients are the same as without;
  /// but a gradient that needs what was written over since is a ValueError, and so is one through more than 65536 nodes or 256 MiB of
  /// realized values, which are not kept: detach() where gradients shall end.
  const Tensor& realize() const&;
  Tensor realize() && { return realize(); }
  /// Several at once, in one schedule.
  static void realize(std::span<const Tensor> tensors);
  /// Gives values memory of their own, to be computed into when they are needed: graphs built from now on end there, and none of them
  /// computes a value again.
  static void callify(std::span<const Tensor> tensors);
  /// The bytes of the elements, row-major. Reading values, here and below, computes them for the reader: a tensor that is lazy stays lazy,
  /// and gradients still go through it. realize() it first to read it often.
  std::vector<std::byte> data() const;
  /// The same without a copy: realizes the tensor and gives its own memory, which stays while the pointer does; of a slice whose elements
  /// follow one another, its place in the memory of the whole. Only where they do not (a transposed or expanded view) it is a copy,
  /// and where the host does not reach it, as in files and in memory of GPUs.
  std::shared_ptr<std::byte> host_memory() const;
  /// The elements, row-major, cast to E.
  template <Element E = float>
  std::vector<E> tolist() const;
  /// The only element. ShapeError if there are several.
  template <Element E = double>
  E item() const;
  /// "<Tensor (2, 3) dtypes.float32 on CPU>"; tolist() has the values.
  std::string to_string() const;

  // Changing. A view shows elements of another tensor, and what is written to one of them is seen in all: reshape, permute, flip, slices,
  // diagonal, detach, bitcast to a dtype of the same size, cast and to() that change nothing; and expand, which cannot be written to. All
  // other methods give copies, contiguous() and indexing by tensors among them. It does not depend on what was computed before.
  /// Writes x into this tensor, where every view of it sees the change. Gradients go to x, and to what is left of the old value. ValueError
  /// for an expanded view. What is weak, or a number everywhere as full({4}, 10), takes this one's dtype; other dtypes must be equal.
  Tensor& assign(const Tensor& x) &;
  Tensor assign(const Tensor& x) && { return assign(x); }
  /// This tensor becomes a view of x, whatever it was.
  Tensor& replace(const Tensor& x) &;
  Tensor replace(const Tensor& x) && { return replace(x); }
  /// Writes into a part: x.set_item({Slice{0, 2}}, 1.0). ValueError for an expanded view.
  inline Tensor& set_item(std::initializer_list<Index> indices, const Operand& value) &;
  inline Tensor set_item(std::initializer_list<Index> indices, const Operand& value) &&;
  Tensor& set_item(std::span<const Index> indices, const Operand& value) &;
  /// A copy with memory of its own, and with a copy of its gradient.
  Tensor clone() const;
  Tensor to(std::string_view device) const;
  /// The list of several devices, "CPU,CPU:1", puts a copy on each.
  Tensor& to_(std::string_view device) &;
  Tensor to_(std::string_view device) && { return to_(device); }
  /// On several devices: cut into as many equal parts along an axis, the last ones padded, or a copy on each. Everything else stays as for
  /// one device: what is computed of such tensors is divided as they are, and moves between devices where it has to. A tensor that is on
  /// one of the devices may be used beside those on all of them.
  Tensor shard(const std::vector<std::string>& devices, std::optional<int> axis = {}) const;
  /// Cut along directions of a mesh, and copied along the others.
  Tensor shard(const Mesh& mesh, const std::vector<MeshCut>& cuts) const;
  /// As another tensor is.
  Tensor shard_like(const Tensor& y) const;
  Tensor& shard_(const std::vector<std::string>& devices, std::optional<int> axis = {}) &;
  Tensor& shard_(const Mesh& mesh, const std::vector<MeshCut>& cuts) &;
  Tensor contiguous() const;
  Tensor contiguous_backward() const;

  // Gradients.
  /// Adds to the gradient of every live float tensor that this one depends on, in place where it has one: it stays the same tensor.
  /// ShapeError unless this is one element or `gradient` (of this one's shape) is given.
  const Tensor& backward(const Tensor& gradient = {}) const&;
  Tensor backward(const Tensor& gradient = {}) && { return backward(gradient); }
  /// The gradients with respect to the targets, of this one, which has one element, or with `gradient` as its own gradient; zeros for a
  /// target on which it does not depend. A `gradient` of one element may have any number of axes.
  std::vector<Tensor> gradient(std::span<const Tensor> targets, const Tensor& gradient = {}) const;
  std::vector<Tensor> gradient(std::initializer_list<Tensor> targets, const Tensor& gradient = {}) const {
    return this->gradient(std::span<const Tensor>(targets.begin(), targets.size()), gradient);
  }
  /// Not defined() before backward().
  Tensor grad() const;
  /// ShapeError for a gradient of another shape.
  void set_grad(const Tensor& grad) const;
  Tensor detach() const;
  /// Whether backward() gives it a gradient (yes, at first).
  Tensor& is_param_(bool is_param = true) &;
  Tensor is_param_(bool is_param = true) && { return is_param_(is_param); }
  bool is_param() const;

  // Dtypes.
  /// With `saturate`, what an fp8 dtype does not hold becomes its greatest finite number, as in ONNX, and not infinite or NaN.
  Tensor cast(DType dtype, bool saturate = false) const;
  Tensor bitcast(DType dtype) const;
  Tensor to_float() const { return cast(DType::float32); }
  Tensor half() const { return cast(DType::float16); }
  Tensor bfloat16() const { return cast(DType::bfloat16); }
  Tensor to_int() const { return cast(DType::int32); }
  Tensor to_bool() const { return cast(DType::bool_); }
  Tensor to_double() const { return cast(DType::float64); }
  Tensor to_long() const { return cast(DType::int64); }
  Tensor to_short() const { return cast(DType::int16); }

  // Views.
  /// One size may be -1: what the others leave.
  Tensor reshape(const Extents& shape) const;
  Tensor view(const Extents& shape) const { return reshape(shape); }
  /// -1 keeps a size.
  Tensor expand(const Extents& shape) const;
  Tensor permute(const std::vector<int>& order) const;
  Tensor transpose(int axis0 = 1, int axis1 = 0) const;
  Tensor T() const { return transpose(); }
  Tensor flip(const AxisList& axes) const;
  /// [begin, end) an axis.
  Tensor shrink(const ExtentPairs& bounds) const;
  /// (before, after) an axis; negative amounts cut.
  Tensor pad(const ExtentPairs& amounts, const Operand& value, PadMode mode = PadMode::constant) const;
  inline Tensor pad(const ExtentPairs& amounts) const;
  /// The leading box of these sizes; -1 keeps an axis.
  Tensor shrink_to(const Extents& shape) const;
  /// Padded at the ends to these sizes; -1 keeps an axis.
  Tensor pad_to(const Extents& shape, const Operand& value) const;
  inline Tensor pad_to(const Extents& shape) const;
  Tensor squeeze() const;
  Tensor squeeze(int axis) const;
  Tensor unsqueeze(int axis) const;
  Tensor flatten(int start = 0, int end = -1) const;
  Tensor unflatten(int axis, const Extents& sizes) const;
  /// Axes split, reordered and joined as a formula in the notation of einops says: "b (h w) c -> (b h) w c" with the size of h or of w.
  Tensor rearrange(std::string_view formula, const std::vector<std::pair<std::string, int64_t>>& sizes = {}) const;
  Tensor repeat(const Extents& repeats) const;
  /// Each element repeated; without an axis, of the flattened tensor.
  Tensor repeat_interleave(int64_t repeats, std::optional<int> axis = {}) const;
  /// Elements moved along the axes, around the end; without axes, of the flattened tensor.
  Tensor roll(const Sizes& shifts, const std::vector<int>& axes = {}) const;
  /// Windows of `size` every `step` along an axis; the window is a new last axis.
  Tensor unfold(int axis, int64_t size, int64_t step) const;
  /// A square matrix with this vector on its diagonal.
  Tensor diag() const;
  /// The diagonal of two axes, as a new last axis.
  Tensor diagonal(int offset = 0, int axis0 = 0, int axis1 = 1) const;
  /// Vectors, each broadcast over the grid of all; `xy` swaps the first two axes.
  static std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, bool xy = false);
  static std::vector<Tensor> meshgrid(std::initializer_list<Tensor> tensors, bool xy = false) {
    return meshgrid(std::span<const Tensor>(tensors.begin(), tensors.size()), xy);
  }
  static Tensor cat(std::span<const Tensor> tensors, int axis = 0);
  static Tensor cat(std::initializer_list<Tensor> tensors, int axis = 0) {
    return cat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
  }
  static Tensor stack(std::span<const Tensor> tensors, int axis = 0);
  static Tensor stack(std::initializer_list<Tensor> tensors, int axis = 0) {
    return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
  }
  std::vector<Tensor> split(int64_t size, int axis = 0) const;
  std::vector<Tensor> split(const Sizes& sizes, int axis = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int axis = 0) const;
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const;
  Tensor get_item(std::span<const Index> indices) const;
  /// out[i][j] = x[index[i][j]][j] for axis 0, and so on; an index out of range gives 0.
  Tensor gather(int axis, const Tensor& index) const;
  /// With x[index[i][j]][j] = src[i][j] for axis 0, and so on; the last of several wins.
  Tensor scatter(int axis, const Tensor& index, const Operand& src) const;
  /// The same, combined with what is there or, if include_self is false, only with what comes.
  Tensor scatter_reduce(int axis, const Tensor& index, const Tensor& src, ScatterMode mode, bool include_self = true) const;
  /// The elements where the mask holds: as many as there are, which is read back, or `size` of them, then `fill`.
  Tensor masked_select(const Tensor& mask, std::optional<int64_t> size, const Operand& fill) const;
  inline Tensor masked_select(const Tensor& mask, std::optional<int64_t> size = {}) const;
  /// The indices of elements that are not 0, a row each, int32 (int64 where an axis is longer than that counts); `size` and
  /// `fill` as above.
  Tensor nonzero(std::optional<int64_t> size, const Operand& fill) const;
  inline Tensor nonzero(std::optional<int64_t> size = {}) const;
  Tensor one_hot(int64_t classes) const;
  Tensor triu(const Extent& diagonal = 0) const;
  Tensor tril(const Extent& diagonal = 0) const;

  // Arithmetic, element by element; also + - * / % & | ^ << >> ~ and the comparisons as operators.
  Tensor add(const Operand& x) const;
  Tensor sub(const Operand& x) const;
  Tensor mul(const Operand& x) const;
  Tensor div(const Operand& x, Rounding rounding = Rounding::none) const;
  /// The remainder with the sign of the divisor.
  Tensor mod(const Operand& x) const;
  /// The remainder with the sign of this one.
  Tensor fmod(const Operand& x) const;
  Tensor pow(const Operand& x) const;
  Tensor maximum(const Operand& x) const;
  Tensor minimum(const Operand& x) const;
  /// The magnitude of this one with the sign of x.
  Tensor copysign(const Operand& x) const;
  /// log(exp(this) + exp(x)) without overflow.
  Tensor logaddexp(const Operand& x) const;
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
  Tensor clamp(const std::optional<Operand>& min, const std::optional<Operand>& max) const;
  inline Tensor clamp(const std::optional<Operand>& min) const;
  inline Tensor clip(const std::optional<Operand>& min, const std::optional<Operand>& max) const;
  inline Tensor clip(const std::optional<Operand>& min) const;
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
  Tensor log10() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tan() const;
  Tensor asin() const;
  Tensor acos() const;
  Tensor atan() const;
  Tensor sinh() const;
  Tensor cosh() const;
  Tensor tanh() const;
  Tensor asinh() const;
  Tensor acosh() const;
  Tensor atanh() const;
  Tensor erf() const;
  Tensor trunc() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;
  Tensor isnan() const;
  Tensor isinf(const InfOptions& options = {}) const;
  Tensor isfinite() const;
  Tensor relu() const;
  Tensor relu6() const;
  Tensor sigmoid() const;
  Tensor logsigmoid() const;
  Tensor hardsigmoid(double alpha = 1.0 / 6, double beta = 0.5) const;
  Tensor hardtanh(const Operand& min, const Operand& max) const;
  inline Tensor hardtanh(const Operand& min) const;
  inline Tensor hardtanh() const;
  Tensor hardswish() const;
  Tensor leaky_relu(double neg_slope = 0.01) const;
  Tensor gelu(GeluForm form = GeluForm::tanh) const;
  Tensor quick_gelu() const;
  Tensor silu() const;
  Tensor swish() const { return silu(); }
  Tensor elu(double alpha = 1.0) const;
  Tensor celu(double alpha = 1.0) const;
  Tensor selu(double alpha = 1.67326, double gamma = 1.0507) const;
  Tensor softplus(double beta = 1.0) const;
  Tensor softsign() const;
  Tensor mish() const;

  /// Threefry-2x32 of this uint64 counter under the uint64 key.
  Tensor threefry(const Tensor& key) const;

  // Reductions: over one axis, several, or (by default) all. max, min, argmax and argmin of no elements are a ValueError.
  /// Sums and products of integers and bools, running ones too, are int64 (of uint64: uint64), as PyTorch's; with `dtype` they are computed
  /// in that dtype, modulo its size.
  Tensor sum(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor prod(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor max(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor min(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor mean(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor any(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor all(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  Tensor var(const AxisList& axes = {}, const VarOptions& options = {}) const;
  Tensor std(const AxisList& axes = {}, const VarOptions& options = {}) const;
  /// The variance, or its root, and the mean.
  std::pair<Tensor, Tensor> var_mean(const AxisList& axes = {}, const VarOptions& options = {}) const;
  std::pair<Tensor, Tensor> std_mean(const AxisList& axes = {}, const VarOptions& options = {}) const;
  /// The first index of the greatest element; without an axis, in the flattened tensor. Indices are int32 (of sort, argsort and topk the
  /// default int), and int64 where an axis has more elements than that counts.
  Tensor argmax(std::optional<int> axis = {}, const ReduceOptions& options = {}) const;
  Tensor argmin(std::optional<int> axis = {}, const ReduceOptions& options = {}) const;
  Tensor logsumexp(const AxisList& axes = {}, const ReduceOptions& options = {}) const;
  /// Computed in `dtype`, by default this one's.
  Tensor softmax(const AxisList& axes = -1, std::optional<DType> dtype = {}) const;
  Tensor log_softmax(const AxisList& axes = -1, std::optional<DType> dtype = {}) const;
  Tensor softmin(const AxisList& axes = -1, std::optional<DType> dtype = {}) const;
  /// Divided by its p-norm over the axis, at least `eps`.
  Tensor normalize(double p = 2.0, int axis = 1, double eps = 1e-12) const;
  // Running: element i combines elements 0 ... i of the axis.
  Tensor cumsum(int axis = 0) const;
  Tensor cumprod(int axis = 0) const;
  /// The running maximum (minimum) and the last index where it was reached. Elements that are the same share the gradient, as those of
  /// max().
  ValuesAndIndices cummax(int axis = 0) const;
  ValuesAndIndices cummin(int axis = 0) const;
  Tensor logcumsumexp(int axis = 0) const;
  /// Stable, NaN greatest.
  ValuesAndIndices sort(int axis = -1, bool descending = false) const;
  Tensor argsort(int axis = -1, bool descending = false) const;
  /// The k greatest (least), in order.
  ValuesAndIndices topk(int64_t k, int axis = -1, bool largest = true) const;
  Tensor allclose(const Tensor& x, const CloseOptions& options = {}) const;

  // Products, convolutions, normalizations, losses.
  /// The matrix product over the last axis of this and the last but one of w, broadcast over the axes before.
  Tensor matmul(const Tensor& w, std::optional<DType> dtype = {}) const;
  Tensor dot(const Tensor& w, std::optional<DType> dtype = {}) const { return matmul(w, dtype); }
  /// Einstein summation, "ij,jk->ik"; "..." stands for leading axes, a letter twice in one operand takes the diagonal.
  static Tensor einsum(std::string_view formula, std::span<const Tensor> operands, std::optional<DType> dtype = {});
  static Tensor einsum(std::string_view formula, std::initializer_list<Tensor> operands, std::optional<DType> dtype = {}) {
    return einsum(formula, std::span<const Tensor>(operands.begin(), operands.size()), dtype);
  }
  // Matrices are the last two axes; axes before them are a batch.
  /// The QR decomposition by Householder reflections, with q square.
  QR qr() const;
  /// The singular value decomposition by Jacobi rotations, singular values from the greatest; u and vt are square or, if not full_matrices,
  /// as narrow as s.
  SVD svd(bool full_matrices = true) const;
  /// Scaled to a norm of at most 1, then `steps` times g = p0 g + p1 (g g^T) g + p2 (g g^T)^2 g + ...
  Tensor newton_schulz(int64_t steps, const std::vector<double>& params, double eps = 1e-7) const;
  /// SHA-3 of the bytes of the last axis, uint8: "sha3_224", "sha3_256", "sha3_384", "sha3_512", "shake_128" or "shake_256".
  Tensor keccak(std::string_view name = "sha3_256") const;
  /// The same for a block of `rate` bytes, a multiple of 8 below 200, and the bits that follow the message; (200 - rate) / 2 bytes.
  Tensor keccak(int64_t rate, uint8_t suffix) const;
  /// 16 bytes, uint8, from all bytes of this one.
  Tensor hash() const;
  /// x @ weight + bias.
  Tensor linear(const Tensor& weight, const Tensor& bias = {}, std::optional<DType> dtype = {}) const;
  /// Each function applied to what the one before gave.
  Tensor sequential(std::span<const std::function<Tensor(const Tensor&)>> layers) const;
  Tensor sequential(std::initializer_list<std::function<Tensor(const Tensor&)>> layers) const {
    return sequential(std::span(layers.begin(), layers.size()));
  }
  /// (batch, in, spatial...) with weight (out, in / groups, spatial...).
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {}) const;
  Tensor conv_transpose2d(const Tensor& weight, const Tensor& bias = {}, const ConvTransposeOptions& options = {}) const;
  Tensor avg_pool2d(const PoolOptions& options = {}) const;
  Tensor max_pool2d(const PoolOptions& options = {}) const;
  /// Besides the values where they were found: the first index in the flattened spatial axes, int32.
  ValuesAndIndices max_pool2d_with_indices(const PoolOptions& options = {}) const;
  /// Values put back where the indices say, zeros elsewhere; output sizes by default the least that pool to this one's.
  Tensor max_unpool2d(const Tensor& indices, const PoolOptions& options = {}, const Sizes& output_size = {}) const;
  /// The last axes, as many as there are sizes, sampled to these sizes: bilinear over two, trilinear over three.
  Tensor interpolate(const Sizes& size, const InterpolateOptions& options = {}) const;
  Tensor layernorm(const std::vector<int>& axes = {-1}, double eps = 1e-5) const;
  /// (x - mean) * invstd * weight + bias along the axes, whose sizes the others have as one axis or several; weight and bias may be
  /// undefined.
  Tensor batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& invstd, const AxisList& axes = 1) const;
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value, const AttentionOptions& options) const;
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value) const;
  Tensor binary_crossentropy(const Tensor& y, Reduction reduction = Reduction::mean) const;
  Tensor binary_crossentropy_logits(const Tensor& y, Reduction reduction = Reduction::mean, const Tensor& pos_weight = {}) const;
  // A class index that is no class is an IndexError where it can be seen at once, else its loss is NaN; one that is to be ignored has no
  // loss, and does not count for the mean.
  /// The loss of logits (..., classes) against class indices (...).
  Tensor sparse_categorical_crossentropy(const Tensor& y, const SparseCrossEntropyOptions& options = {}) const;
  /// The loss of logits (batch, classes, ...) against class indices (batch, ...) or probabilities.
  Tensor cross_entropy(const Tensor& y, const CrossEntropyOptions& options = {}) const;
  /// The loss of log-probabilities (batch, classes, ...) against class indices (batch, ...); a weight per class, or none.
  Tensor nll_loss(const Tensor& y, const Tensor& weight = {}, const NllOptions& options = {}) const;

  // Next to the graph: what these give is not for programs that only compute.
  /// An elementwise op of the graph on this one and more, of one dtype, broadcast to one shape.
  Tensor alu(Op op, std::span<const Tensor> more = {}) const;
  Tensor alu(Op op, std::initializer_list<Tensor> more) const { return alu(op, std::span<const Tensor>(more.begin(), more.size())); }
  /// A number as a tensor of the dtype that it takes beside this one.
  Tensor ufix(const Operand& x) const;
  /// The sum (of bools: or) and the product (and) of this one and others.
  Tensor usum(std::span<const Tensor> others) const;
  Tensor uprod(std::span<const Tensor> others) const;
  /// What realize() would run, as a LINEAR of CALLs on PARAMs, and the values of variables.
  static UOp schedule_linear(std::span<const Tensor> tensors);
  static std::pair<UOp, std::vector<std::pair<std::string, int64_t>>> linear_with_vars(std::span<const Tensor> tensors);
  /// For the library: the graph behind the handle; a handle on a graph, which is a view where the graph is one; and one on its
  /// value. Errors that come when it is computed name the operation, a text that is never freed.
  UOp uop() const;
  static Tensor from_uop(const UOp& node, const char* operation = __builtin_FUNCTION());
  static Tensor from_value(const UOp& node, const char* operation = __builtin_FUNCTION());

 private:
  friend detail::TensorCell& detail::cell_of(const Tensor& tensor);
  explicit Tensor(std::shared_ptr<detail::TensorCell> cell) : cell_(std::move(cell)) {}
  detail::TensorCell& cell() const;

  template <Element E>
  static std::span<const std::byte> as_bytes(const E* values, size_t count) {
    return {reinterpret_cast<const std::byte*>(values), count * sizeof(E)};
  }
  /// The options for literals, written as elements of `written`: with the dtype of their kind where they name none.
  static TensorOptions literal(std::span<const std::byte> values, DType written, TensorOptions options);
  void read(void* to, DType dtype, size_t count) const;
  /// The same for a caller who is told, by `take(self, ready)`, where the values are ready; where the host does not reach them, `ready` is
  /// null and take() gives the place that they are copied to.
  void read(DType dtype, size_t count, void* (*take)(void* self, const void* ready), void* self) const;
  static Tensor from_blob_of(DType written, void* data, const Sizes& shape, const TensorOptions& options, std::shared_ptr<void> owner);

  detail::CellHandle cell_;
};

/// A tensor, which it keeps, or a number that takes the dtype of the tensor it meets: a float beside integers makes the result the default
/// float, an integer that the dtype it meets does not hold makes it int64 (uint64 where only that holds it; ValueError where none does).
/// Beside unsigned integers a negative number in a sum, a product or an operation on bits counts modulo their size. Comparisons are exact.
class Operand {
 public:
  Operand(const Tensor& tensor) : value_(tensor) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T number) : value_(widen(number)) {}
  /// An integer that is known when kernels are launched.
  Operand(const Extent& number) : value_(number.known() ? Value(number.value()) : Value(number)) {}
  Operand(const Variable& number) : Operand(Extent(number)) {}

  using Value = std::variant<Tensor, bool, int64_t, uint64_t, double, Extent>;
  const Value& value() const& { return value_; }
  Value value() && { return std::move(value_); }
  /// The tensor, if it is one.
  const Tensor* tensor() const& { return std::get_if<Tensor>(&value_); }

 private:
  template <class T>
  static Value widen(T number) {
    if constexpr (std::is_same_v<T, bool>)
      return number;
    else if constexpr (std::is_unsigned_v<T>)
      return static_cast<uint64_t>(number) >> 63 ? Value(static_cast<uint64_t>(number)) : Value(static_cast<int64_t>(number));
    else if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(number);
    else
      return static_cast<double>(number);
  }
  Value value_;
};

inline Tensor::Tensor(const Extent& value, const TensorOptions& options) : Tensor(full({}, value, options)) {}
inline Tensor::Tensor(const Variable& value, const TensorOptions& options)
    : Tensor(full({}, value, {options.dtype ? options.dtype : value.dtype(), options.device})) {}

/// One entry of x[{...}]: an integer (or Variable), a slice, a new axis, an ellipsis, or a tensor of integers or bools, which
/// it keeps.
class Index {
 public:
  template <std::integral T>
  Index(T i) : value_(Extent(i)) {}
  Index(const Extent& i) : value_(i) {}
  Index(const Variable& i) : value_(Extent(i)) {}
  Index(Slice s) : value_(s) {}
  Index(NewAxis n) : value_(n) {}
  Index(Ellipsis e) : value_(e) {}
  Index(const Tensor& t) : value_(t) {}
  using Value = std::variant<Extent, Slice, NewAxis, Ellipsis, Tensor>;
  const Value& value() const& { return value_; }
  Value value() && { return std::move(value_); }
  /// The tensor, if it is one.
  const Tensor* tensor() const& { return std::get_if<Tensor>(&value_); }

 private:
  Value value_;
};

struct AttentionOptions {
  Tensor mask = {};  ///< bool (true: attend), or numbers to add
  double dropout_p = 0.0;
  bool is_causal = false;
  bool enable_gqa = false;  ///< the heads of this one may be a multiple of those of key and value
};

struct ValuesAndIndices {
  Tensor values;
  Tensor indices;  ///< integers
};

struct QR {
  Tensor q, r;
};

struct SVD {
  Tensor u, s, vt;
};

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
/// Its to_string().
TINYGRAD_EXPORT std::ostream& operator<<(std::ostream& out, const Tensor& x);
TINYGRAD_EXPORT Tensor operator-(const Tensor& x);
TINYGRAD_EXPORT Tensor operator~(const Tensor& x);
/// In place, as assign() is.
TINYGRAD_EXPORT Tensor& operator+=(Tensor& a, const Operand& b);
TINYGRAD_EXPORT Tensor& operator-=(Tensor& a, const Operand& b);
TINYGRAD_EXPORT Tensor& operator*=(Tensor& a, const Operand& b);
TINYGRAD_EXPORT Tensor& operator/=(Tensor& a, const Operand& b);

// Implementation of what needs Operand and Index, and of templates.

inline Tensor& Tensor::set_item(std::initializer_list<Index> indices, const Operand& value) & {
  return set_item(std::span(indices.begin(), indices.size()), value);
}
inline Tensor Tensor::set_item(std::initializer_list<Index> indices, const Operand& value) && { return set_item(indices, value); }
inline Tensor Tensor::zeros_like(std::optional<DType> dtype) const { return full_like(0, dtype); }
inline Tensor Tensor::zeros_like(const TensorOptions& options) const { return full_like(0, options); }
inline Tensor Tensor::ones_like(std::optional<DType> dtype) const { return full_like(1, dtype); }
inline Tensor Tensor::ones_like(const TensorOptions& options) const { return full_like(1, options); }
inline Tensor Tensor::pad(const ExtentPairs& amounts) const { return pad(amounts, 0); }
inline Tensor Tensor::pad_to(const Extents& shape) const { return pad_to(shape, 0); }
inline Tensor Tensor::masked_select(const Tensor& mask, std::optional<int64_t> size) const { return masked_select(mask, size, 0); }
inline Tensor Tensor::nonzero(std::optional<int64_t> size) const { return nonzero(size, 0); }
inline Tensor Tensor::clamp(const std::optional<Operand>& min) const { return clamp(min, {}); }
inline Tensor Tensor::clip(const std::optional<Operand>& min, const std::optional<Operand>& max) const { return clamp(min, max); }
inline Tensor Tensor::clip(const std::optional<Operand>& min) const { return clamp(min, {}); }
inline Tensor Tensor::hardtanh(const Operand& min) const { return hardtanh(min, 1); }
inline Tensor Tensor::hardtanh() const { return hardtanh(-1, 1); }

template <Element E>
Tensor::Tensor(std::initializer_list<std::initializer_list<E>> rows, const TensorOptions& options) {
  std::vector<std::byte> all;
  const size_t width = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    if (row.size() != width) throw ShapeError("Tensor: the rows of a nested list must have one length");
    const auto bytes = as_bytes(row.begin(), row.size());
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  *this =
      Tensor(all, dtype_of<E>(), {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)}, literal(all, dtype_of<E>(), options));
}

template <Element E>
Tensor::Tensor(std::initializer_list<std::initializer_list<std::initializer_list<E>>> planes, const TensorOptions& options) {
  std::vector<Tensor> parts;
  for (const auto& plane : planes) parts.push_back(Tensor(plane, options));
  *this = stack(parts);
}

template <class L>
  requires detail::List<L> || detail::Text<L>
Tensor::Tensor(const L& values, const TensorOptions& options) {
  using E = typename detail::LeafOf<L>::type;
  static_assert(!detail::Text<L>, "Tensor: text is no list of numbers; Tensor::from_file() reads a file");
  static_assert(!std::is_same_v<E, Tensor>,
                "Tensor: Tensor::stack() joins tensors along a new axis, Tensor::cat() along one that they have");
  static_assert(Element<E> || detail::Text<L> || std::is_same_v<E, Tensor>,
                "Tensor: is made of vectors, arrays or spans of numbers, or of such lists of lists");
  if constexpr (!Element<E>) {
    // said above
  } else if constexpr (requires { std::span<const E>(values); }) {
    *this = Tensor(std::as_bytes(std::span<const E>(values)), dtype_of<E>(), {static_cast<int64_t>(std::size(values))}, options);
  } else {
    detail::Flattened<E> all;
    all.add(values);
    *this = Tensor(all.bytes, dtype_of<E>(), all.shape, options);
  }
}

template <detail::List L>
  requires Element<typename L::value_type>
Tensor::Tensor(const L& values, const Sizes& shape, const TensorOptions& options) {
  using E = typename L::value_type;
  if constexpr (requires { std::span<const E>(values); }) {
    *this = Tensor(std::as_bytes(std::span<const E>(values)), dtype_of<E>(), shape, options);
  } else {
    detail::Flattened<E> all;
    all.add(values);
    *this = Tensor(all.bytes, dtype_of<E>(), shape, options);
  }
}

template <Element E>
std::vector<E> Tensor::tolist() const {
  // From memory that the host reaches, the vector is made at once; else it is made first, and filled.
  struct Taker {
    size_t count;
    std::vector<E> values;
    std::unique_ptr<E[]> room;
    static void* take(void* self, const void* ready) {
      auto& [count, values, room] = *static_cast<Taker*>(self);
      if (ready) {
        values.assign(static_cast<const E*>(ready), static_cast<const E*>(ready) + count);
        return nullptr;
      }
      if constexpr (std::is_same_v<E, bool>) {
        room.reset(new E[count]);
        return room.get();
      } else {
        values.resize(count);
        return values.data();
      }
    }
  } taker{static_cast<size_t>(numel()), {}, {}};
  read(dtype_of<E>(), taker.count, Taker::take, &taker);
  if (taker.room) taker.values.assign(taker.room.get(), taker.room.get() + taker.count);
  return std::move(taker.values);
}

template <Element E>
E Tensor::item() const {
  if (numel() != 1) throw ShapeError("item: " + to_string() + " has " + std::to_string(numel()) + " elements, expects one; use tolist()");
  E value{};
  read(&value, dtype_of<E>(), 1);
  return value;
}

}  // namespace tinygrad
