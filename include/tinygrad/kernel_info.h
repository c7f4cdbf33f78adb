#pragma once
/// What one must know of a kernel to launch it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/symbol.h>

namespace tinygrad {

class UOp;                // a node of the library's graphs
enum class Op : uint8_t;  // what a node does

/// An integer expression over a kernel's variables, as plain data that is quick to evaluate and easy to store.
class TINYGRAD_EXPORT IndexExpr {
 public:
  /// Zero.
  IndexExpr() = default;
  IndexExpr(int64_t constant) : constant_(constant) {}
  /// From an integer expression of CONST, VAR and integer ALU nodes; `variables` gives the order of the values at evaluation. Throws
  /// InternalError for any other node and for a variable that is not listed.
  IndexExpr(const UOp& expression, std::span<const Symbol> variables);

  bool is_constant() const { return steps_.empty(); }
  /// The value for the given values of the variables; wraps like an int64, a quotient by zero is 0.
  int64_t evaluate(std::span<const int64_t> variables) const;

  /// One operation: the sources are earlier steps.
  struct Step {
    Op op{};
    int32_t a = 0, b = 0, c = 0;
    int64_t value = 0;  ///< of a CONST; the position of a VAR
    friend bool operator==(const Step&, const Step&) = default;
  };
  std::span<const Step> steps() const { return steps_; }
  /// From the steps of another one; is_valid() tells whether they can be evaluated.
  explicit IndexExpr(std::vector<Step> steps) : steps_(std::move(steps)) {}
  /// True if evaluate() is defined for this number of variables.
  bool is_valid(size_t variables) const;
  friend bool operator==(const IndexExpr&, const IndexExpr&) = default;

 private:
  int64_t constant_ = 0;
  std::vector<Step> steps_;  // empty for a constant; the last one is the result
};

/// One buffer argument of a kernel.
struct KernelParam {
  int32_t slot = 0;  ///< position among the buffers given at launch
  DType dtype = DType::void_;
  IndexExpr size;  ///< elements that the kernel may touch
  bool read = false, written = false;
  uint16_t align = 0;       ///< bytes, promised by the caller; 0: that of the dtype
  uint16_t alias = 0;       ///< class of buffers that may overlap, see ParamArg
  int32_t image_width = 0;  ///< texels of 4 elements in a row, if the kernel takes the memory as an image; else 0
  friend bool operator==(const KernelParam&, const KernelParam&) = default;
};

/// Numbers of one launch.
struct LaunchDims {
  int64_t global[3] = {1, 1, 1};  ///< work-groups
  int64_t local[3] = {1, 1, 1};   ///< work-items of a group
  int64_t chunks = 1;             ///< length of the thread range, 1 without one
  friend bool operator==(const LaunchDims&, const LaunchDims&) = default;
};

/// What one must know of a kernel to launch it, beside its binary: plain data.
struct TINYGRAD_EXPORT KernelInfo {
  std::string name;
  std::vector<KernelParam> params;  ///< by slot; a slot that the kernel does not use is left out
  std::vector<Symbol> variables;    ///< sorted by name; their values are given at launch in this order
  IndexExpr global[3] = {1, 1, 1};
  IndexExpr local[3] = {1, 1, 1};
  IndexExpr chunks = 1;
  IndexExpr flops;            ///< arithmetic operations of one launch
  IndexExpr bytes;            ///< bytes of all buffers that one launch reads or writes, each counted once a direction
  int64_t scratch_bytes = 0;  ///< bytes of scratch memory that each thread brings which runs a CPU kernel: see render_c()
  int64_t group_bytes = 0;    ///< bytes that the work-items of a group share; each array takes a multiple of 16

  LaunchDims launch_dims(std::span<const int64_t> variable_values) const;
  /// The number of buffers a launch takes: one more than the last slot.
  size_t buffer_count() const { return params.empty() ? 0 : static_cast<size_t>(params.back().slot) + 1; }
  friend bool operator==(const KernelInfo&, const KernelInfo&) = default;
};

/// The name of a kernel's function in its text and its binary: "kernel_" and the kernel's name, with everything but letters and digits as
/// '_'.
TINYGRAD_EXPORT std::string kernel_symbol(std::string_view kernel_name);

}  // namespace tinygrad
