#pragma once
/// What methods of Tensor take besides tensors: axes, slices, and structs of optional arguments. Operand and Index, which may hold a
/// tensor, are in tensor.h.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/op_arguments.h>
#include <tinygrad/variable.h>

namespace tinygrad {

class Tensor;
class Operand;
class Index;

/// Dtype and device of a created tensor; by default the device is default_device() and the dtype follows from the values.
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

/// start:stop:step as in Python; what is left out reaches to the end.
struct Slice {
  std::optional<Extent> start = {}, stop = {};
  int64_t step = 1;
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

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0.0;
  std::optional<int64_t> ignore_index = {};  ///< a class index that does not count; by default -100
};

struct SparseCrossEntropyOptions {
  std::optional<int64_t> ignore_index = {};  ///< a class index that does not count; by default -100
  double label_smoothing = 0.0;
  Reduction reduction = Reduction::mean;
};

struct NllOptions {
  std::optional<int64_t> ignore_index = {};  ///< a class index that does not count; by default -100
  Reduction reduction = Reduction::mean;
};

struct InfOptions {
  bool detect_positive = true, detect_negative = true;
};

}  // namespace tinygrad
