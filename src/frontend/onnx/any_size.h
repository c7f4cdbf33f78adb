#pragma once
/// Calls whose inputs differ in sizes: one walk and one capture for all of them, whose kernels take the sizes when they run.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tinygrad/jit.h>
#include <tinygrad/variable.h>

#include "frontend/onnx/walk.h"

namespace tinygrad::onnx {

/// What two calls have to share to be of one walk, but for sizes.
struct InputForm {
  bool is_present = false;
  ElementType type = ElementType::undefined;
  Sizes shape = {};  ///< as it lies in tensors

  bool operator==(const InputForm&) const = default;
};
using InputForms = std::vector<InputForm>;

/// Nothing for calls that are not captured for several sizes: of other values than tensors in memory that the host reaches.
std::optional<InputForms> forms_of(std::span<const Value> arguments);

/// One captured walk for all sizes of some axes of the inputs, from 2 on.
class AnySize {
 public:
  /// For the axes in which two calls differ; null where they differ in more than such sizes. `wider` is one that did not fit.
  static std::unique_ptr<AnySize> of(Program& program, const InputForms& before, const InputForms& now, const AnySize* wider);
  bool fits(const InputForms& forms) const;
  /// Which axes are variable.
  std::string axes() const;
  /// Walks for all sizes, and captures by calls for sizes before and for these, whose outputs it gives. An error where something depends on
  /// the sizes that is decided before kernels run.
  Results capture(std::span<const Value> arguments);
  /// JitError for sizes that do not meet what was assumed of them.
  Results run(std::span<const Value> arguments);

  const InputForms& forms() const { return forms_; }
  /// How often these sizes were run, this call included.
  int64_t count_call(const InputForms& forms);

 private:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

  explicit AnySize(Program& program) : program_(program) {}
  std::vector<Variable> bound(const InputForms& forms) const;
  Tensor with_sizes(const Tensor& memory, size_t input, std::span<const Variable> variables) const;
  int64_t most_elements(size_t input) const;
  void walk_for_all() const;
  std::vector<Tensor> walk(const std::vector<Tensor>& given);
  Results named(std::span<const Tensor> computed) const;

  Program& program_;
  InputForms forms_;                        ///< of the first call, with sizes that the variables may have
  std::vector<std::vector<int>> variable_;  ///< for each axis of each input the place of its variable; -1: none
  std::vector<Variable> variables_;
  std::vector<std::optional<Value>> known_;  ///< outputs that no input changes, in their places
  std::vector<ElementType> types_;
  std::unique_ptr<Jit<Body>> replay_;
  std::map<std::vector<Sizes>, int64_t> calls_;
};

/// Those of a model, the one used last first.
class AnySizes {
 public:
  /// The outputs; nothing where the call is to be captured for its sizes alone. `seen` are forms of calls that were.
  std::optional<Results> run(Program& program, std::span<const Value> arguments, std::span<const InputForms> seen);
  void clear() { *this = {}; }

 private:
  std::optional<Results> make(Program& program, std::span<const Value> arguments, const InputForms& forms,
                              std::span<const InputForms> seen);

  std::vector<std::unique_ptr<AnySize>> all_;
  std::map<std::string, std::string> refused_;  ///< axes whose sizes a walk needs as numbers, and what for
  size_t own_ = 0;                              ///< sizes that came often
};

}  // namespace tinygrad::onnx
