// Products, convolutions, pooling, normalizations and losses.
#include "common.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/variant.h>

namespace tinygrad::python {

namespace {

Tensor or_none(const std::optional<Tensor>& t) { return t.value_or(Tensor()); }

Reduction reduction_of(const std::string& name) {
  return choose<Reduction>("reduction", name, {{"mean", Reduction::mean}, {"sum", Reduction::sum}, {"none", Reduction::none}});
}

/// One number is a square; a list of one is a window of one axis.
PoolOptions pool(nb::handle kernel, const std::optional<Ints>& stride, const Ints& dilation, const Ints& padding, bool ceil_mode) {
  PoolOptions o;
  if (int64_t one = 0; to_int(kernel, one))
    o.kernel_size = {one, one};
  else if (!to_ints(kernel, o.kernel_size))
    throw nb::type_error((std::string("kernel_size: expects integers, got ") + nb::repr(kernel).c_str()).c_str());
  if (stride) o.stride = stride->values;
  o.dilation = dilation.values;
  o.padding = padding.values;
  o.ceil_mode = ceil_mode;
  return o;
}

void bind_convolutions(TensorClass& tensor) {
  // Whether a kernel reads images is the option IMAGE's to say, not the function's.
  for (const char* name : {"conv2d", "image_conv2d"})
    tensor.def(
        name,
        [](const Tensor& t, const Tensor& weight, const std::optional<Tensor>& bias, int64_t groups, const Ints& stride,
           const Ints& dilation, const Ints& padding, const OptionalDType& dtype) {
          return t.conv2d(
              weight, or_none(bias),
              {.groups = groups, .stride = stride.values, .dilation = dilation.values, .padding = padding.values, .dtype = get(dtype)});
        },
        "weight"_a, "bias"_a = nb::none(), "groups"_a = 1, "stride"_a = 1, "dilation"_a = 1, "padding"_a = 0, "dtype"_a = nb::none());
  tensor
      .def(
          "conv_transpose2d",
          [](const Tensor& t, const Tensor& weight, const std::optional<Tensor>& bias, int64_t groups, const Ints& stride,
             const Ints& dilation, const Ints& padding, const Ints& output_padding) {
            return t.conv_transpose2d(weight, or_none(bias),
                                      {.groups = groups,
                                       .stride = stride.values,
                                       .dilation = dilation.values,
                                       .padding = padding.values,
                                       .output_padding = output_padding.values});
          },
          "weight"_a, "bias"_a = nb::none(), "groups"_a = 1, "stride"_a = 1, "dilation"_a = 1, "padding"_a = 0, "output_padding"_a = 0)
      .def(
          "avg_pool2d",
          [](const Tensor& t, nb::handle kernel, const std::optional<Ints>& stride, const Ints& dilation, const Ints& padding,
             bool ceil_mode, bool count_include_pad) {
            PoolOptions o = pool(kernel, stride, dilation, padding, ceil_mode);
            o.count_include_pad = count_include_pad;
            return t.avg_pool2d(o);
          },
          "kernel_size"_a = nb::make_tuple(2, 2), "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0, "ceil_mode"_a = false,
          "count_include_pad"_a = true)
      .def(
          "max_pool2d",
          [](const Tensor& t, nb::handle kernel, const std::optional<Ints>& stride, const Ints& dilation, const Ints& padding,
             bool ceil_mode, bool return_indices) -> nb::object {
            const PoolOptions o = pool(kernel, stride, dilation, padding, ceil_mode);
            if (!return_indices) return nb::cast(t.max_pool2d(o));
            const ValuesAndIndices both = t.max_pool2d_with_indices(o);
            return nb::make_tuple(both.values, both.indices);
          },
          "kernel_size"_a = nb::make_tuple(2, 2), "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0, "ceil_mode"_a = false,
          "return_indices"_a = false)
      .def(
          "max_unpool2d",
          [](const Tensor& t, const Tensor& indices, nb::handle kernel, const std::optional<Ints>& stride, const Ints& dilation,
             const Ints& padding, const std::optional<Ints>& output_size) {
            return t.max_unpool2d(indices, pool(kernel, stride, dilation, padding, false), output_size ? output_size->values : Sizes());
          },
          "indices"_a, "kernel_size"_a = nb::make_tuple(2, 2), "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0,
          "output_size"_a = nb::none())
      .def(
          "interpolate",
          [](const Tensor& t, const Ints& size, const std::string& mode, bool align_corners) {
            return t.interpolate(size.values, {.mode = choose<Interpolation>("interpolate: mode", mode,
                                                                             {{"linear", Interpolation::linear},
                                                                              {"nearest", Interpolation::nearest},
                                                                              {"nearest-exact", Interpolation::nearest_exact}}),
                                               .align_corners = align_corners});
          },
          "size"_a, "mode"_a = "linear", "align_corners"_a = false);
}

void bind_losses(TensorClass& tensor) {
  tensor
      .def(
          "binary_crossentropy",
          [](const Tensor& t, const Tensor& y, const std::string& reduction) { return t.binary_crossentropy(y, reduction_of(reduction)); },
          "Y"_a, "reduction"_a = "mean")
      .def(
          "binary_crossentropy_logits",
          [](const Tensor& t, const Tensor& y, const std::string& reduction, const std::optional<Tensor>& pos_weight) {
            return t.binary_crossentropy_logits(y, reduction_of(reduction), or_none(pos_weight));
          },
          "Y"_a, "reduction"_a = "mean", "pos_weight"_a = nb::none())
      .def(
          "sparse_categorical_crossentropy",
          [](const Tensor& t, const Tensor& y, std::optional<int64_t> ignore_index, double label_smoothing, const std::string& reduction) {
            return t.sparse_categorical_crossentropy(
                y, {.ignore_index = ignore_index, .label_smoothing = label_smoothing, .reduction = reduction_of(reduction)});
          },
          "Y"_a, nb::arg("ignore_index").sig("-1") = nb::none(), "label_smoothing"_a = 0.0, "reduction"_a = "mean")
      .def(
          "cross_entropy",
          [](const Tensor& t, const Tensor& y, const std::string& reduction, double label_smoothing) {
            return t.cross_entropy(y, {.reduction = reduction_of(reduction), .label_smoothing = label_smoothing});
          },
          "Y"_a, "reduction"_a = "mean", "label_smoothing"_a = 0.0)
      .def(
          "nll_loss",
          [](const Tensor& t, const Tensor& y, const std::optional<Tensor>& weight, std::optional<int64_t> ignore_index,
             const std::string& reduction) {
            return t.nll_loss(y, or_none(weight), {.ignore_index = ignore_index, .reduction = reduction_of(reduction)});
          },
          "Y"_a, "weight"_a = nb::none(), "ignore_index"_a = nb::none(), "reduction"_a = "mean");
}

}  // namespace

void bind_products(TensorClass& tensor) {
  bind_convolutions(tensor);
  bind_losses(tensor);
  for (const char* name : {"dot", "image_dot"})
    tensor.def(
        name, [](const Tensor& t, const Tensor& w, const OptionalDType& dtype) { return t.dot(w, get(dtype)); }, "w"_a,
        "dtype"_a = nb::none());
  tensor
      .def(
          "matmul",
          [](const Tensor& t, const Tensor& x, bool reverse, const OptionalDType& dtype) {
            return reverse ? x.matmul(t, get(dtype)) : t.matmul(x, get(dtype));
          },
          "x"_a, "reverse"_a = false, "dtype"_a = nb::none())
      .def_static(
          "einsum",
          [](const std::string& formula, const nb::args& operands, const OptionalDType& dtype) {
            return Tensor::einsum(formula, to_tensors(operands, "einsum"), get(dtype));
          },
          "formula"_a, "operands"_a, "dtype"_a = nb::none())
      .def(
          "linear",
          [](const Tensor& t, const Tensor& weight, const std::optional<Tensor>& bias, const OptionalDType& dtype) {
            return t.linear(weight, or_none(bias), get(dtype));
          },
          "weight"_a, "bias"_a = nb::none(), "dtype"_a = nb::none())
      .def(
          "sequential",
          [](nb::object t, const nb::sequence& layers) {
            for (nb::handle layer : layers) t = layer(t);
            return t;
          },
          "ll"_a)
      .def(
          "layernorm", [](const Tensor& t, const Ints& axes, double eps) { return t.layernorm(to_axes(axes.values), eps); }, "axis"_a = -1,
          "eps"_a = 1e-5)
      .def(
          "batchnorm",
          [](const Tensor& t, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const Tensor& mean,
             const Tensor& invstd, const AxesArg& axis) { return t.batchnorm(or_none(weight), or_none(bias), mean, invstd, axis.axes); },
          "weight"_a.none(), "bias"_a.none(), "mean"_a, "invstd"_a, "axis"_a = 1)
      .def(
          "scaled_dot_product_attention",
          [](const Tensor& t, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
             bool enable_gqa) {
            return t.scaled_dot_product_attention(
                key, value, {.mask = or_none(mask), .dropout_p = dropout_p, .is_causal = is_causal, .enable_gqa = enable_gqa});
          },
          "key"_a, "value"_a, "attn_mask"_a = nb::none(), "dropout_p"_a = 0.0, "is_causal"_a = false, "enable_gqa"_a = false)
      .def("qr",
           [](const Tensor& t) {
             const QR x = t.qr();
             return nb::make_tuple(x.q, x.r);
           })
      .def(
          "svd",
          [](const Tensor& t, bool full) {
            const SVD x = t.svd(full);
            return nb::make_tuple(x.u, x.s, x.vt);
          },
          "full_matrices"_a = true)
      .def("newton_schulz", &Tensor::newton_schulz, "steps"_a, "params"_a, "eps"_a = 1e-7)
      .def(
          "keccak",
          [](const Tensor& t, const std::variant<std::string, std::pair<int64_t, uint8_t>>& cfg) {
            const auto* own = std::get_if<std::pair<int64_t, uint8_t>>(&cfg);
            return own ? t.keccak(own->first, own->second) : t.keccak(std::get<std::string>(cfg));
          },
          "cfg"_a = "sha3_256", "By the name of a hash, or the bytes of a block and the bits that follow the message.")
      .def("hash", &Tensor::hash);
}

}  // namespace tinygrad::python
