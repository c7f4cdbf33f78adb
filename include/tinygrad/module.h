#pragma once
/// Modules: structs that hold tensors, and the names of those.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn {

class Fields;

/// A struct of tensors and other modules that tells their names with TG_FIELDS.
struct TINYGRAD_EXPORT Module {
  virtual ~Module();
  /// Adds every field; TG_FIELDS writes it.
  virtual void add_fields(Fields&) const {}
};

/// Collects the tensors in fields under dotted names: "layers.0.weight". A field is a Tensor, a Module, or a vector, optional or pointer of
/// such; tensors that are not defined are left out.
class TINYGRAD_EXPORT Fields {
 public:
  explicit Fields(std::string_view prefix = "") : prefix_(prefix) {}

  /// `names` are those of the fields, separated by commas.
  template <class... F>
  void add_all(std::string_view names, const F&... fields) {
    (add(next_name(names), fields), ...);
  }
  void add(std::string_view name, const Tensor& tensor);
  void add(std::string_view name, const Module& module);
  template <class F>
  void add(std::string_view name, const std::vector<F>& list) {
    for (size_t i = 0; i < list.size(); ++i) add(std::string(name) + "." + std::to_string(i), list[i]);
  }
  template <class F>
  void add(std::string_view name, const std::optional<F>& field) {
    if (field) add(name, *field);
  }
  template <class F>
  void add(std::string_view name, const std::unique_ptr<F>& field) {
    if (field) add(name, *field);
  }
  template <class F>
  void add(std::string_view name, const std::shared_ptr<F>& field) {
    if (field) add(name, *field);
  }

  const std::vector<std::pair<std::string, Tensor>>& tensors() const { return tensors_; }

 private:
  static std::string_view next_name(std::string_view& names);

  std::string prefix_;
  std::vector<std::pair<std::string, Tensor>> tensors_;
};

}  // namespace tinygrad::nn

/// Names the fields of a Module, in the order of the state dict: `TG_FIELDS(l1, l2)` inside the struct.
#define TG_FIELDS(...) \
  void add_fields(::tinygrad::nn::Fields& fields) const override { fields.add_all(#__VA_ARGS__, __VA_ARGS__); }
