// Reductions, scans and sorting.
#include "common.h"

namespace tinygrad::python {

namespace {

nb::tuple pair_of(const std::pair<Tensor, Tensor>& p) { return nb::make_tuple(p.first, p.second); }
nb::tuple pair_of(const ValuesAndIndices& p) { return nb::make_tuple(p.values, p.indices); }

}  // namespace

void bind_reduce(TensorClass& tensor) {
  const auto axis = "axis"_a.none() = nb::none();
#define TG_REDUCE(name)                                                                                                        \
  tensor.def(                                                                                                                  \
      #name, [](const Tensor& t, const AxesArg& axes, bool keepdim) { return t.name(axes.axes, {.keepdim = keepdim}); }, axis, \
      "keepdim"_a = false)
  TG_REDUCE(max);
  TG_REDUCE(min);
  TG_REDUCE(mean);
  TG_REDUCE(any);
  TG_REDUCE(all);
  TG_REDUCE(logsumexp);
#undef TG_REDUCE
#define TG_REDUCE_AS(name)                                                                 \
  tensor.def(                                                                              \
      #name,                                                                               \
      [](const Tensor& t, const AxesArg& axes, bool keepdim, const OptionalDType& dtype) { \
        return t.name(axes.axes, {.keepdim = keepdim, .dtype = get(dtype)});               \
      },                                                                                   \
      axis, "keepdim"_a = false, "dtype"_a = nb::none())
  TG_REDUCE_AS(sum);
  TG_REDUCE_AS(prod);
#undef TG_REDUCE_AS
#define TG_VARIANCE(name, result)                                                         \
  tensor.def(                                                                             \
      #name,                                                                              \
      [](const Tensor& t, const AxesArg& axes, bool keepdim, int64_t correction) {        \
        return result(t.name(axes.axes, {.keepdim = keepdim, .correction = correction})); \
      },                                                                                  \
      axis, "keepdim"_a = false, "correction"_a = 1)
  TG_VARIANCE(var, );
  TG_VARIANCE(std, );
  TG_VARIANCE(var_mean, pair_of);
  TG_VARIANCE(std_mean, pair_of);
#undef TG_VARIANCE
#define TG_ARG(name)                                                                                                        \
  tensor.def(                                                                                                               \
      #name, [](const Tensor& t, std::optional<int> dim, bool keepdim) { return t.name(dim, {.keepdim = keepdim}); }, axis, \
      "keepdim"_a = false)
  TG_ARG(argmax);
  TG_ARG(argmin);
#undef TG_ARG
#define TG_SOFTMAX(name)                                                                                                     \
  tensor.def(                                                                                                                \
      #name, [](const Tensor& t, const AxesArg& axes, const OptionalDType& dtype) { return t.name(axes.axes, get(dtype)); }, \
      "axis"_a.none() = -1, "dtype"_a = nb::none())
  TG_SOFTMAX(softmax);
  TG_SOFTMAX(log_softmax);
  TG_SOFTMAX(softmin);
#undef TG_SOFTMAX
  tensor.def("normalize", &Tensor::normalize, "p"_a = 2.0, "dim"_a = 1, "eps"_a = 1e-12)
      .def("cumsum", &Tensor::cumsum, "axis"_a = 0)
      .def("cumprod", &Tensor::cumprod, "axis"_a)
      .def(
          "cummax", [](const Tensor& t, int a) { return pair_of(t.cummax(a)); }, "axis"_a = 0)
      .def(
          "cummin", [](const Tensor& t, int a) { return pair_of(t.cummin(a)); }, "axis"_a = 0)
      .def("logcumsumexp", &Tensor::logcumsumexp, "axis"_a = 0)
      .def(
          "sort", [](const Tensor& t, int dim, bool descending) { return pair_of(t.sort(dim, descending)); }, "dim"_a = -1,
          "descending"_a = false)
      .def("argsort", &Tensor::argsort, "dim"_a = -1, "descending"_a = false)
      .def(
          "topk", [](const Tensor& t, int64_t k, int dim, bool largest, bool) { return pair_of(t.topk(k, dim, largest)); }, "k"_a,
          "dim"_a = -1, "largest"_a = true, "sorted_"_a = true);
}

}  // namespace tinygrad::python
