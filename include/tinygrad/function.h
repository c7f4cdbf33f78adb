#pragma once
/// function: a function of tensors as one node of the graph, with a gradient of its own where one is given.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tinygrad/export.h>
#include <tinygrad/jit.h>
#include <tinygrad/tensor.h>

namespace tinygrad {

/// Gives the gradients of the inputs: one for each, of its shape, not defined() where there is none. It gets those of the outputs, the
/// inputs and the outputs.
using GradientFunction =
    std::function<std::vector<Tensor>(std::span<const Tensor> gradients, std::span<const Tensor> inputs, std::span<const Tensor> outputs)>;

struct FunctionOptions {
  std::string name = "function";
  GradientFunction gradient = {};  ///< by default that of what the function computes
};

namespace detail {
class FunctionGradient;

/// A function but for its types.
class TINYGRAD_EXPORT FunctionCore {
 public:
  explicit FunctionCore(FunctionOptions options);
  ~FunctionCore();
  using Body = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;
  std::vector<Tensor> call(std::span<const Tensor> inputs, const Body& body) const;

 private:
  const FunctionOptions options_;
  FunctionGradient* gradient_ = nullptr;  ///< counted
};
}  // namespace detail

/// A function of tensors (in the containers that jit() takes) that gives tensors. Tensors that it finds elsewhere are inputs too; a
/// gradient of its own gives them none. Calls build the graph anew. ValueError for a function that assigns to tensors or reads values.
template <class F>
class Function {
 public:
  explicit Function(F f, FunctionOptions options = {}) : shared_(std::make_shared<Shared>(std::move(f), std::move(options))) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    using Kept = std::tuple<typename detail::JitKept<Args>::type...>;
    Kept kept(std::forward<Args>(args)...);
    using R = std::remove_cvref_t<decltype(std::apply(shared_->f, kept))>;
    static_assert(detail::holds_tensors<R>(), "function: it must return tensors in containers");
    detail::JitArguments arguments;
    detail::JitCollector collector(arguments);
    std::apply([&](auto&... a) { (detail::visit_argument(a, collector), ...); }, kept);
    std::optional<R> result;
    const std::vector<Tensor> outputs = shared_->core.call(arguments.tensors, [&](std::span<const Tensor> inputs) {
      detail::JitFiller filler(inputs);
      std::apply([&](auto&... a) { (detail::visit_argument(a, filler), ...); }, kept);
      result.emplace(std::apply(shared_->f, kept));
      detail::JitArguments found;
      detail::JitCollector results(found);
      detail::visit_leaves(*result, results);
      return std::move(found.tensors);
    });
    detail::JitFiller filler(outputs);
    detail::visit_leaves(*result, filler);
    return std::move(*result);
  }

 private:
  struct Shared {
    Shared(F function, FunctionOptions options) : f(std::move(function)), core(std::move(options)) {}
    F f;
    detail::FunctionCore core;
  };
  std::shared_ptr<Shared> shared_;
};

/// `function([](const Tensor& x) { return x.clamp(0, 1); }, {.gradient = straight_through})`: see Function.
template <class F>
Function<std::decay_t<F>> function(F&& f, FunctionOptions options = {}) {
  return Function<std::decay_t<F>>(std::forward<F>(f), std::move(options));
}

/// Runs a kernel written as graph nodes, on these tensors: `build` gets a PARAM for each, in their order, and gives the SINK (what a kernel
/// is like is in docs/ir.md). It runs at once, in place; the tensors that it writes must have memory of their own
/// (Tensor::empty). Returns the tensors as they are after it. `gradient` gives the gradients of all tensors, from those of the ones that
/// were written; without it, asking for a gradient throws ValueError.
TINYGRAD_EXPORT std::vector<Tensor> custom_kernel(std::span<const Tensor> tensors, const std::function<UOp(std::span<const UOp>)>& build,
                                                  const GradientFunction& gradient = {});

}  // namespace tinygrad
