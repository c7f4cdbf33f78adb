#pragma once
/// What `tg bench` can measure: kernels, their sizes and options, and the work that each is by definition.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/tensor_arguments.h>

namespace tinygrad::apps {

/// As the user wrote them. What is not given has a default that depends on the kernel.
struct CaseOptions {
  std::string kernel;
  Sizes size = {};
  std::optional<std::string> dtype = {};
  std::optional<std::string> op = {};  ///< of elementwise
  std::optional<int64_t> batch = {}, stride = {}, groups = {};
  std::optional<int64_t> keys = {}, kv_heads = {};  ///< of attention
  std::optional<int> axis = {};                     ///< of softmax
  std::vector<int> order = {};                      ///< of transpose
  bool causal = false, backward = false;
};

/// A kernel with everything decided.
struct BenchCase {
  std::string kernel;
  Sizes size;  ///< as many numbers as the kernel has (see kernel_help())
  DType dtype = DType::float32;
  std::string op = {};
  int64_t batch = 1, stride = 1, groups = 1;
  int64_t keys = 0, kv_heads = 0;  ///< of attention: tokens attended to, and heads that those have
  int axis = -1;
  std::vector<int> order = {};
  bool causal = false, backward = false;

  double flops = 0;   ///< arithmetic operations by definition; a transcendental function counts as one
  double bytes = 0;   ///< of the inputs, read once, and of the outputs, written once
  int64_t depth = 1;  ///< terms of the longest sum, which rounding errors grow with

  std::string title() const;
  /// Rows and columns of a convolution's result.
  int64_t image_out() const { return (size[2] + stride - 1) / stride; }
};

/// Names of kernels and of the elementwise ops.
std::vector<std::string> kernel_names();
std::vector<std::string> elementwise_names();
/// A line a kernel: what its sizes mean, their defaults and its options.
std::string kernel_help();

/// Throws ValueError for what the kernel does not take.
BenchCase make_case(const CaseOptions& options);

}  // namespace tinygrad::apps
