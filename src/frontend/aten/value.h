#pragma once
/// What operators of PyTorch take and give.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/tensor.h>
#include <tinygrad/variable.h>

namespace tinygrad::aten {

/// A device as PyTorch names it: "cpu", "cuda:1".
struct Device {
  std::string name = "cpu";
  bool operator==(const Device&) const = default;
};
enum class MemoryFormat : uint8_t { contiguous, preserve, channels_last, channels_last_3d };
/// Only strided tensors are computed with; the others are told apart to be refused by name.
enum class Layout : uint8_t { strided, sparse, other };

class Value;
using List = std::vector<Value>;

/// Nothing (None), a tensor, a number, a text, a type or a list of values. A size that is known only when kernels are launched is an
/// Extent; one that is known already is an int64_t.
class TINYGRAD_EXPORT Value {
 public:
  using Held = std::variant<std::monostate, Tensor, bool, int64_t, double, Extent, std::string, DType, Device, MemoryFormat, Layout, List>;

  Value() = default;
  /// An undefined tensor is nothing.
  Value(Tensor t) {
    if (t.defined()) held_ = std::move(t);
  }
  Value(bool b) : held_(b) {}
  template <std::integral T>
  Value(T i) : held_(int64_t(i)) {}
  Value(double d) : held_(d) {}
  Value(const Extent& e) {
    if (e.known())
      held_ = e.value();
    else
      held_ = e;
  }
  Value(const Variable& v) : Value(Extent(v)) {}
  Value(std::string s) : held_(std::move(s)) {}
  Value(const char* s) : held_(std::string(s)) {}
  Value(DType d) : held_(d) {}
  Value(Device d) : held_(std::move(d)) {}
  Value(MemoryFormat f) : held_(f) {}
  Value(Layout l) : held_(l) {}
  Value(List l) : held_(std::move(l)) {}
  Value(const std::vector<Tensor>& tensors) : held_(List(tensors.begin(), tensors.end())) {}
  Value(const Sizes& sizes) : held_(List(sizes.begin(), sizes.end())) {}
  Value(const Extents& sizes) : held_(List(sizes.begin(), sizes.end())) {}

  const Held& held() const { return held_; }
  bool is_none() const { return std::holds_alternative<std::monostate>(held_); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&held_);
  }
  /// A bool, an integer, a float or an Extent.
  bool is_number() const;
  /// "a tensor", "an integer", ..., for messages.
  std::string_view kind() const;

  // What it is; DTypeError, naming what it is, if it is something else.
  const Tensor& tensor() const;
  int64_t integer() const;  ///< of a size that is not known yet, what the values of its variables give
  double number() const;    ///< of any number
  bool boolean() const;
  Extent extent() const;
  const std::string& text() const;
  DType dtype() const;
  const List& list() const;

 private:
  Held held_;
};

/// An argument and its name in PyTorch's schema.
struct Argument {
  std::string name = {};
  Value value = {};
};
using Arguments = std::vector<Argument>;

}  // namespace tinygrad::aten
