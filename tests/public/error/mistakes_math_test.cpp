// Mistakes with reductions, products, convolutions, losses, attention, decompositions and gradients.
#include "mistakes.h"

namespace tinygrad::test {
namespace {

std::vector<Mistake> reductions() {
  return {
      mistake<IndexError>("sum_over_no_axis", "sum: axis 2 is out of range, expects -2 to 1", [](Givens& g) { g.matrix.sum(2); }),
      mistake<ValueError>("sum_over_an_axis_twice", "sum: axis 0 is given twice", [](Givens& g) { g.matrix.sum({0, -2}); }),
      mistake<IndexError>("mean_over_no_axis", "mean: axis -3", [](Givens& g) { g.matrix.mean(-3); }),
      mistake<IndexError>("prod_over_no_axis", "prod: axis 2", [](Givens& g) { g.matrix.prod({0, 2}); }),
      mistake<IndexError>("max_over_no_axis", "max: axis 2", [](Givens& g) { g.matrix.max(2); }),
      mistake<IndexError>("min_over_no_axis", "min: axis 2", [](Givens& g) { g.matrix.min(2); }),
      mistake<IndexError>("any_over_no_axis", "any: axis 3", [](Givens& g) { g.matrix.any(3); }),
      mistake<IndexError>("all_over_no_axis", "all: axis 3", [](Givens& g) { g.matrix.all(3); }),
      mistake<IndexError>("variance_over_no_axis", "var: axis 3", [](Givens& g) { g.matrix.var(3); }),
      mistake<IndexError>("sum_of_a_scalar_over_its_second_axis", "sum: axis 1", [](Givens& g) { g.scalar.sum(1); }),
      mistake<ValueError>("max_of_nothing", "max: axis 0 of (0, 3) has no elements", [](Givens& g) { g.none.max(); }),
      mistake<ValueError>("min_of_nothing", "min: axis 0 of (0, 3) has no elements", [](Givens& g) { g.none.min(0); }),
      mistake<ValueError>("argmax_of_nothing", "argmax: axis 0 of (0,) has no elements", [](Givens& g) { g.none.argmax(); }),
      mistake<ValueError>("argmin_of_nothing", "argmin: axis 0 of (0, 3) has no elements", [](Givens& g) { g.none.argmin(0); }),
      mistake<IndexError>("argmax_over_no_axis", "argmax: axis 2", [](Givens& g) { g.matrix.argmax(2); }),
      mistake<IndexError>("argmax_of_a_scalar", "argmax: axis 1", [](Givens& g) { g.scalar.argmax(1); }),
      mistake<IndexError>("softmax_over_no_axis", "softmax: axis 2", [](Givens& g) { g.matrix.softmax(2); }),
      mistake<DTypeError>("softmax_in_integers", "computed in dtypes.int32, expects a float",
                          [](Givens& g) { g.matrix.softmax(-1, DType::int32); }),
      mistake<IndexError>("log_softmax_over_no_axis", "log_softmax: axis -4", [](Givens& g) { g.matrix.log_softmax(-4); }),
      mistake<IndexError>("logsumexp_over_no_axis", "logsumexp: axis 4", [](Givens& g) { g.matrix.logsumexp(4); }),
      mistake<IndexError>("normalize_over_no_axis", "normalize: axis 1", [](Givens& g) { g.vector.normalize(); }),
      mistake<ValueError>("normalize_by_nan", "normalize: the norm's p is NaN", [](Givens& g) { g.matrix.normalize(std::stod("nan")); }),
      mistake<IndexError>("cumsum_over_no_axis", "cumsum: axis 2", [](Givens& g) { g.matrix.cumsum(2); }),
      mistake<IndexError>("cumsum_of_a_scalar", "cumsum: axis 1", [](Givens& g) { g.scalar.cumsum(1); }),
      mistake<IndexError>("cummax_over_no_axis", "cummax: axis 3", [](Givens& g) { g.matrix.cummax(3); }),
      mistake<IndexError>("sort_over_no_axis", "sort: axis 2", [](Givens& g) { g.matrix.sort(2); }),
      mistake<IndexError>("argsort_over_no_axis", "axis 5", [](Givens& g) { g.matrix.argsort(5); }),
      mistake<ValueError>("topk_of_more_than_there_are", "k = 4 for axis 1 of (2, 3)", [](Givens& g) { g.matrix.topk(4); }),
      mistake<ValueError>("topk_of_negative", "k = -1", [](Givens& g) { g.matrix.topk(-1); }),
      mistake<IndexError>("topk_of_a_scalar", "of a scalar", [](Givens& g) { g.scalar.topk(1); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Reductions, Mistakes, testing::ValuesIn(reductions()), name_of);

std::vector<Mistake> products() {
  return {
      mistake<ShapeError>("matmul_of_transposed_shapes", "cannot multiply (2, 3) by (2, 3): the inner sizes 3 and 2 differ",
                          [](Givens& g) { g.matrix.matmul(g.matrix); }),
      mistake<ShapeError>("matmul_by_a_vector", "the inner sizes 2 and 3 differ", [](Givens& g) { g.square.dot(g.vector); }),
      mistake<ShapeError>("matmul_of_a_scalar", "both need at least one axis", [](Givens& g) { g.scalar.matmul(g.matrix); }),
      mistake<ShapeError>("matmul_of_other_batches", "the batches 2 and 3 differ and neither is 1",
                          [](Givens&) { Tensor::ones({2, 4, 4}).matmul(Tensor::ones({3, 4, 4})); }),
      mistake<ShapeError>("linear_of_other_features", "the inner sizes 3 and 2 differ", [](Givens& g) { g.matrix.linear(g.square); }),
      mistake<ShapeError>("linear_with_another_bias", "cannot broadcast", [](Givens& g) { g.square.linear(g.square, g.vector); }),
      mistake<ValueError>("sequential_with_nothing_in_it", "one of the layers is empty",
                          [](Givens& g) { g.vector.sequential({std::function<Tensor(const Tensor&)>()}); }),
      mistake<ValueError>("einsum_of_too_few_operands", "2 operands in the formula, got 1",
                          [](Givens& g) { Tensor::einsum("ij,jk->ik", {g.matrix}); }),
      mistake<ValueError>("einsum_of_other_axes", "operand 1 has the shape (3,), the formula 2 axes",
                          [](Givens& g) { Tensor::einsum("ij,jk->ik", {g.matrix, g.vector}); }),
      mistake<ShapeError>("einsum_of_other_sizes", "j has the sizes 3 and 2",
                          [](Givens& g) { Tensor::einsum("ij,jk->ik", {g.matrix, g.square}); }),
      mistake<ShapeError>("einsum_of_the_diagonal_of_a_rectangle", "i stands for axes of (2, 3) with the sizes 2 and 3",
                          [](Givens& g) { Tensor::einsum("ii->i", {g.matrix}); }),
      mistake<ValueError>("einsum_with_a_digit", "'1' is no letter", [](Givens& g) { Tensor::einsum("i1->i", {g.matrix}); }),
      mistake<ValueError>("einsum_with_half_an_arrow", "'-' is no letter", [](Givens& g) { Tensor::einsum("ij-ij", {g.matrix}); }),
      mistake<ValueError>("einsum_with_an_unknown_letter", "the output has a letter that no operand has",
                          [](Givens& g) { Tensor::einsum("ij->iz", {g.matrix}); }),
      mistake<ValueError>("einsum_with_a_letter_twice_in_the_output", "a letter is twice in the output",
                          [](Givens& g) { Tensor::einsum("ij->ijj", {g.matrix}); }),
      mistake<DeviceError>("einsum_across_devices", "live on INTERP and CPU",
                           [](Givens& g) { Tensor::einsum("i,i->", {g.vector, g.away}).realize(); }),
      mistake<ShapeError>("qr_of_a_vector", "qr: expects at least two axes", [](Givens& g) { g.vector.qr(); }),
      mistake<ShapeError>("svd_of_a_vector", "svd: expects at least two axes", [](Givens& g) { g.vector.svd(); }),
      mistake<ShapeError>("newton_schulz_of_a_vector", "at least two axes", [](Givens& g) { g.vector.newton_schulz(2, {1.0}); }),
      mistake<ValueError>("newton_schulz_of_negative_steps", "-1 steps", [](Givens& g) { g.square.newton_schulz(-1, {1.0}); }),
      mistake<ValueError>("newton_schulz_without_parameters", "got no parameters", [](Givens& g) { g.square.newton_schulz(2, {}); }),
      mistake<ValueError>("keccak_by_another_name", "\"md5\", expects sha3_224", [](Givens& g) { g.vector.keccak("md5"); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Products, Mistakes, testing::ValuesIn(products()), name_of);

std::vector<Mistake> convolutions() {
  const auto weight = [](const Sizes& shape) { return Tensor::ones(shape); };
  return {
      mistake<ShapeError>("conv_of_other_channels", "has 4 channels, the weight (2, 5, 3, 3) with 1 groups takes 5",
                          [=](Givens& g) { g.image.conv2d(weight({2, 5, 3, 3})); }),
      mistake<ShapeError>("conv_without_a_batch", "must have as many axes", [](Givens& g) { g.image[0].conv2d(g.kernel); }),
      mistake<ShapeError>("conv_of_matrices", "at least 3", [](Givens& g) { g.square.conv2d(g.square); }),
      mistake<ShapeError>("conv_by_a_kernel_that_is_too_large", "conv2d: a window of 9 elements 1 apart does not fit axis 2",
                          [=](Givens& g) { g.image.conv2d(weight({2, 4, 9, 9})); }),
      mistake<ValueError>("conv_of_groups_that_do_not_divide", "3 groups do not divide the 2 output channels",
                          [](Givens& g) { g.image.conv2d(g.kernel, {}, {.groups = 3}); }),
      mistake<ValueError>("conv_of_no_groups", "0 groups", [](Givens& g) { g.image.conv2d(g.kernel, {}, {.groups = 0}); }),
      mistake<ShapeError>("conv_of_channels_for_other_groups", "with 2 groups takes 8",
                          [](Givens& g) { g.image.conv2d(g.kernel, {}, {.groups = 2}); }),
      mistake<ShapeError>("conv_with_another_bias", "the bias (3,) does not fit 2 output channels",
                          [](Givens& g) { g.image.conv2d(g.kernel, g.vector); }),
      mistake<ValueError>("conv_of_stride_0", "conv2d: the kernel size 3, the stride 0",
                          [](Givens& g) { g.image.conv2d(g.kernel, {}, {.stride = {0}}); }),
      mistake<ValueError>("conv_of_dilation_0", "the dilation 0 must be at least 1",
                          [](Givens& g) { g.image.conv2d(g.kernel, {}, {.dilation = {0}}); }),
      mistake<ShapeError>("conv_of_padding_that_cuts_all", "conv2d: the padding (-100, -100) cuts off more than the",
                          [](Givens& g) { g.image.conv2d(g.kernel, {}, {.padding = {-100}}); }),
      mistake<ValueError>("conv_of_too_many_strides", "3 numbers for the stride of 2 axes",
                          [](Givens& g) { g.image.conv2d(g.kernel, {}, {.stride = {1, 2, 3}}); }),
      mistake<ValueError>("conv_by_a_kernel_of_no_elements", "the kernel size 0", [=](Givens& g) { g.image.conv2d(weight({2, 4, 0, 3})); }),
      mistake<DeviceError>("conv_across_devices", "live on", [](Givens& g) { g.image.conv2d(g.kernel.to("CPU")).realize(); }),
      mistake<ShapeError>("transposed_conv_of_other_channels", "the weight is (in, out / groups, ...)",
                          [](Givens& g) { g.image.conv_transpose2d(g.kernel); }),
      mistake<ValueError>("transposed_conv_of_stride_0", "conv_transpose2d: the kernel size 3, the stride 0",
                          [=](Givens& g) { g.image.conv_transpose2d(weight({4, 2, 3, 3}), {}, {.stride = {0}}); }),
      mistake<ValueError>("transposed_conv_of_too_much_output_padding", "the output_padding 2 must be less than the stride 2",
                          [=](Givens& g) { g.image.conv_transpose2d(weight({4, 2, 3, 3}), {}, {.stride = {2}, .output_padding = {2}}); }),
      mistake<ShapeError>("transposed_conv_of_too_much_padding", "cuts off more than the 6 elements",
                          [=](Givens& g) { g.image.conv_transpose2d(weight({4, 2, 3, 3}), {}, {.padding = {9}}); }),
      mistake<ShapeError>("transposed_conv_with_another_bias", "the bias (3,) does not fit 2 output channels",
                          [=](Givens& g) { g.image.conv_transpose2d(weight({4, 2, 3, 3}), g.vector); }),
      mistake<ShapeError>("pool_larger_than_the_input", "max_pool2d: a window of 9 elements",
                          [](Givens& g) { g.image.max_pool2d({.kernel_size = {9, 9}}); }),
      mistake<ValueError>("pool_of_size_0", "the kernel size 0", [](Givens& g) { g.image.max_pool2d({.kernel_size = {0, 0}}); }),
      mistake<ShapeError>("pool_over_no_axes", "a kernel of 0 axes", [](Givens& g) { g.image.avg_pool2d({.kernel_size = {}}); }),
      mistake<ShapeError>("pool_over_more_axes_than_there_are", "a kernel of 2 axes for (3,)", [](Givens& g) { g.vector.avg_pool2d(); }),
      mistake<ValueError>("pool_of_padding_alone", "must be less than the 2 elements that a window reaches over",
                          [](Givens& g) { g.image.max_pool2d({.padding = {2}}); }),
      mistake<ShapeError>("unpool_by_floats", "expects integers of the shape (1, 4, 4, 4)",
                          [](Givens& g) { g.image.max_unpool2d(g.image); }),
      mistake<ShapeError>("unpool_by_other_indices", "the indices are (2, 3) dtypes.int32",
                          [](Givens& g) { g.image.max_unpool2d(g.ints); }),
      mistake<ValueError>("interpolate_to_nothing", "the size (0, 4), expects at least 1", [](Givens& g) { g.image.interpolate({0, 4}); }),
      mistake<ValueError>("interpolate_of_too_many_axes", "5 sizes for the last axes",
                          [](Givens& g) { g.image.interpolate({4, 4, 4, 4, 4}); }),
      mistake<IndexError>("layernorm_over_no_axis", "axis 2", [](Givens& g) { g.matrix.layernorm({2}); }),
      mistake<ShapeError>("batchnorm_of_other_channels", "batchnorm: (3,) does not fit the channels 2 of (2, 2)",
                          [](Givens& g) { g.square.batchnorm({}, {}, g.vector, g.vector); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Convolutions, Mistakes, testing::ValuesIn(convolutions()), name_of);

std::vector<Mistake> losses() {
  const auto heads = [](int64_t n) { return Tensor::ones({1, n, 3, 4}); };
  return {
      mistake<ShapeError>("cross_entropy_of_another_batch", "the targets have the shape (3,), expects (2,)",
                          [](Givens& g) { g.matrix.cross_entropy(Tensor({0, 1, 2})); }),
      mistake<ShapeError>("cross_entropy_of_other_classes", "the targets have the shape (2, 2), expects (2,)",
                          [](Givens& g) { g.matrix.cross_entropy(g.square); }),
      mistake<DTypeError>("cross_entropy_of_float_classes", "expects integer class indices",
                          [](Givens& g) { g.matrix.cross_entropy(Tensor({0.0, 1.0})); }),
      mistake<ValueError>("cross_entropy_with_too_much_smoothing", "label_smoothing 1.5 is not within [0, 1]",
                          [](Givens& g) { g.matrix.cross_entropy(Tensor({0, 1}), {.label_smoothing = 1.5}); }),
      mistake<ShapeError>("cross_entropy_of_scalars", "expects (classes) or (batch, classes, ...)",
                          [](Givens& g) { g.scalar.cross_entropy(g.scalar); }),
      mistake<ShapeError>("sparse_cross_entropy_of_another_batch", "sparse_categorical_crossentropy: the targets",
                          [](Givens& g) { g.matrix.sparse_categorical_crossentropy(Tensor({0, 1, 2})); }),
      mistake<DTypeError>("nll_of_float_classes", "nll_loss: the targets are dtypes.float32",
                          [](Givens& g) { g.matrix.nll_loss(Tensor({0.0, 1.0})); }),
      mistake<ShapeError>("nll_with_too_few_weights", "expects one for each of 3 classes",
                          [](Givens& g) { g.matrix.nll_loss(Tensor({0, 1}), Tensor({1.0, 2.0})); }),
      mistake<ShapeError>("binary_cross_entropy_of_another_shape", "the targets have the shape (3,), expects (2, 3)",
                          [](Givens& g) { g.matrix.binary_crossentropy(g.vector); }),
      mistake<ShapeError>("binary_cross_entropy_of_logits_of_another_shape", "binary_crossentropy_logits: the targets",
                          [](Givens& g) { g.matrix.binary_crossentropy_logits(g.vector); }),
      mistake<ShapeError>("positive_weights_of_another_shape", "pos_weight",
                          [](Givens& g) { g.square.binary_crossentropy_logits(g.square, Reduction::mean, g.vector); }),
      mistake<ShapeError>("attention_of_other_features", "the features of query and key differ",
                          [=](Givens&) { heads(2).scaled_dot_product_attention(Tensor::ones({1, 2, 3, 5}), heads(2)); }),
      mistake<ShapeError>("attention_of_other_lengths", "the lengths of key and value differ",
                          [=](Givens&) { heads(2).scaled_dot_product_attention(heads(2), Tensor::ones({1, 2, 4, 4})); }),
      mistake<ShapeError>("attention_of_other_heads", "the heads differ; a multiple needs enable_gqa",
                          [=](Givens&) { heads(4).scaled_dot_product_attention(heads(2), heads(2)); }),
      mistake<ShapeError>("grouped_attention_of_heads_that_do_not_divide", "the heads of the query are no multiple",
                          [=](Givens&) { heads(2).scaled_dot_product_attention(heads(3), heads(3), {.enable_gqa = true}); }),
      mistake<ShapeError>("attention_with_another_mask", "mask: cannot broadcast (2, 3)",
                          [=](Givens& g) { heads(2).scaled_dot_product_attention(heads(2), heads(2), {.mask = g.matrix}); }),
      mistake<ValueError>(
          "causal_attention_with_a_mask", "exclude each other; put both into the mask",
          [=](Givens&) { heads(2).scaled_dot_product_attention(heads(2), heads(2), {.mask = Tensor::ones({3, 3}), .is_causal = true}); }),
      mistake<ValueError>("attention_with_a_wrong_dropout", "p = 1.5 is no probability",
                          [=](Givens&) { heads(2).scaled_dot_product_attention(heads(2), heads(2), {.dropout_p = 1.5}); }),
      mistake<ShapeError>("attention_of_vectors", "expects (..., length, features)",
                          [](Givens& g) { g.vector.scaled_dot_product_attention(g.vector, g.vector); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Losses, Mistakes, testing::ValuesIn(losses()), name_of);

std::vector<Mistake> gradients() {
  const auto doubled = [](GradientFunction gradient) {
    return function([](const Tensor& x) { return x * 2; }, {.name = "doubled", .gradient = std::move(gradient)});
  };
  using Tensors = std::vector<Tensor>;
  using Span = std::span<const Tensor>;
  return {
      mistake<ShapeError>("backward_from_several_elements", "has the shape (3,), expects one element; give the gradient or reduce it first",
                          [](Givens& g) { (g.vector * 2).backward(); }),
      mistake<ShapeError>("backward_with_a_gradient_of_another_shape", "the gradient has the shape (2, 2), expects (3,)",
                          [](Givens& g) { g.vector.backward(g.square); }),
      mistake<DTypeError>("backward_with_a_gradient_of_integers", "the gradient is dtypes.int32",
                          [](Givens& g) { g.matrix.backward(g.ints); }),
      mistake<DTypeError>("backward_from_integers", "dtypes.int64 has no gradient", [](Givens& g) { g.ints.sum().backward(); }),
      mistake<DTypeError>("backward_from_an_index", "only tensors of floats have one", [](Givens& g) { g.matrix.argmax().backward(); }),
      mistake<ShapeError>("gradient_of_several_elements", "expects one element", [](Givens& g) { g.vector.gradient({g.vector}); }),
      mistake<DTypeError>("gradient_with_respect_to_integers", "target 1 is <Tensor (2, 3) dtypes.int32",
                          [](Givens& g) { (g.matrix * g.ints).sum().gradient({g.matrix, g.ints}); }),
      mistake<ValueError>("gradient_with_respect_to_no_tensor", "holds no tensor", [](Givens& g) { g.vector.sum().gradient({Tensor()}); }),
      mistake<ValueError>("a_gradient_function_that_gives_too_few", "doubled",
                          [=](Givens& g) { doubled([](Span, Span, Span) { return Tensors{}; })(g.vector).sum().backward(); }),
      mistake<ShapeError>("a_gradient_function_that_gives_another_shape", "doubled",
                          [=](Givens& g) { doubled([](Span s, Span, Span) { return Tensors{s[0].sum()}; })(g.vector).sum().backward(); }),
      mistake<ValueError>("a_function_that_assigns", "it assigns to argument 0, which a function() may not",
                          [](Givens& g) {
                            const auto gradient = [](Span s, Span, Span) { return Tensors{s[0]}; };
                            function([](Tensor x) { return x.assign(x + 1); }, {.name = "writes", .gradient = gradient})(g.vector);
                          }),
      mistake<ValueError>("a_function_that_reads_values", "have no values while it is being built",
                          [](Givens& g) {
                            const auto gradient = [](Span s, Span, Span) { return Tensors{s[0]}; };
                            function([](const Tensor& x) { return x * x.item(); }, {.name = "reads", .gradient = gradient})(g.scalar);
                          }),
  };
}
INSTANTIATE_TEST_SUITE_P(Gradients, Mistakes, testing::ValuesIn(gradients()), name_of);

}  // namespace
}  // namespace tinygrad::test
