#pragma once
/// Modules: structs that hold tensors, and the names of those.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tinygrad/export.h>
#include <tinygrad/symbol.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn {

class Fields;

/// A struct of tensors and other modules that tells their names with TG_FIELDS.
struct TINYGRAD_EXPORT Module {
  Module() = default;
  Module(const Module& other) noexcept : path_(other.path_.load(std::memory_order_relaxed)) {}
  Module& operator=(const Module& other) noexcept {
    path_.store(other.path_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return *this;
  }
  virtual ~Module();
  /// Adds every field; TG_FIELDS writes it.
  virtual void add_fields(Fields&) const {}
  /// Where it is in the module that get_state_dict(), get_parameters() or load_state_dict() was called for, "blocks.4.up", which errors of
  /// layers begin with; empty before. Of several calls the one from farthest outside counts.
  std::string_view path() const { return path_.load(std::memory_order_relaxed).str(); }

 private:
  friend class Fields;
  mutable std::atomic<Symbol> path_{};
};

namespace detail {

template <class T>
concept Map = requires {
  typename T::key_type;
  typename T::mapped_type;
};
template <class T>
concept Pointer = requires(const T& p) {
  static_cast<bool>(p);
  *p;
};
template <class T>
concept Tuple = requires { std::tuple_size<T>::value; };
template <class T>
inline constexpr bool is_field = false;

}  // namespace detail

/// Collects the tensors in fields under dotted names: "layers.0.weight". A field is a Tensor, a Module, or a vector, array, tuple, map (by
/// key), optional or pointer of such; tensors that are not defined are left out.
class TINYGRAD_EXPORT Fields {
 public:
  explicit Fields(std::string_view prefix = "") : prefix_(prefix) {}

  /// `names` are those of the fields, separated by commas.
  template <class... F>
  void add_all(std::string_view names, const F&... fields) {
    (add(next_name(names), fields), ...);
  }
  template <class F>
  void add(std::string_view name, const F& field) {
    if constexpr (std::is_same_v<F, Tensor>) {
      add_tensor(name, field);
    } else if constexpr (std::derived_from<F, Module>) {
      add_module(name, field);
    } else if constexpr (detail::Map<F>) {
      add_map(name, field);
    } else if constexpr (tinygrad::detail::List<F>) {
      size_t i = 0;
      for (const auto& element : field) add(element_name(name, std::to_string(i++)), element);
    } else if constexpr (detail::Tuple<F>) {
      size_t i = 0;
      std::apply([&](const auto&... elements) { (add(element_name(name, std::to_string(i++)), elements), ...); }, field);
    } else if constexpr (detail::Pointer<F>) {
      if (field) add(name, *field);
    } else {
      static_assert(
          detail::is_field<F>,
          "TG_FIELDS: a field is a Tensor, a Module, or a vector, array, tuple, map, optional or pointer of such; leave others out");
    }
  }

  const std::vector<std::pair<std::string, Tensor>>& tensors() const& { return tensors_; }
  std::vector<std::pair<std::string, Tensor>> tensors() && { return std::move(tensors_); }

 private:
  static std::string_view next_name(std::string_view& names);
  static std::string element_name(std::string_view list, std::string_view element);
  void add_tensor(std::string_view name, const Tensor& tensor);
  void add_module(std::string_view name, const Module& module);
  /// In the order of the keys, also where the map has none.
  template <class M>
  void add_map(std::string_view name, const M& map) {
    std::map<typename M::key_type, const typename M::mapped_type*> sorted;
    for (const auto& [key, value] : map) sorted.emplace(key, &value);
    for (const auto& [key, value] : sorted) {
      if constexpr (std::integral<typename M::key_type>)
        add(element_name(name, std::to_string(key)), *value);
      else
        add(element_name(name, key), *value);
    }
  }

  std::string prefix_;
  std::vector<std::pair<std::string, Tensor>> tensors_;
};

}  // namespace tinygrad::nn

/// Names the fields of a Module, in the order of the state dict: `TG_FIELDS(l1, l2)` inside the struct.
#define TG_FIELDS(...) \
  void add_fields(::tinygrad::nn::Fields& fields) const override { fields.add_all(#__VA_ARGS__, __VA_ARGS__); }
