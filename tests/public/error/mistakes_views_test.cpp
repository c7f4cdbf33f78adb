// Mistakes with creation, dtypes, views, indices and assignment.
#include "mistakes.h"

namespace tinygrad::test {
namespace {

std::vector<Mistake> creation() {
  const Sizes huge{int64_t{1} << 62, int64_t{1} << 62};
  return {
      mistake<ShapeError>("negative_size", "(2, -1) has a negative size", [](Givens&) { Tensor::zeros({2, -1}); }),
      mistake<ShapeError>("empty_of_negative_size", "empty: (-2,)", [](Givens&) { Tensor::empty({-2}); }),
      mistake<ShapeError>("more_elements_than_can_be_counted", "more elements", [huge](Givens&) { Tensor::ones(huge); }),
      mistake<ShapeError>("rand_of_too_many", "rand: the shape has more elements", [huge](Givens&) { Tensor::rand(huge); }),
      mistake<ShapeError>("values_for_another_shape", "3 values of dtypes.float32 cannot have the shape (2, 2)",
                          [](Givens&) { Tensor(std::vector<float>{1, 2, 3}, Sizes{2, 2}); }),
      mistake<ShapeError>("ragged_rows", "one length", [](Givens&) { Tensor({{1, 2}, {3}}); }),
      mistake<DTypeError>("full_of_void", "dtypes.void has no values", [](Givens&) { Tensor::full({2}, 1, {.dtype = DType::void_}); }),
      mistake<DTypeError>("empty_of_void", "dtypes.void has no values", [](Givens&) { Tensor::empty({2}, {.dtype = DType::void_}); }),
      mistake<ValueError>("from_null", "from_blob: got a null pointer", [](Givens&) { Tensor::from_blob(nullptr, {2}); }),
      mistake<ValueError>("from_an_odd_address", "begin at a multiple of 4 bytes",
                          [](Givens&) {
                            alignas(8) char memory[16];
                            Tensor::from_blob(memory + 1, {2}, {.dtype = DType::float32});
                          }),
      mistake<DTypeError>("from_memory_of_void", "dtypes.void has no values",
                          [](Givens&) {
                            float memory[2];
                            Tensor::from_blob(memory, {2}, {.dtype = DType::void_});
                          }),
      mistake<ValueError>("arange_without_a_step", "arange: the step is 0",
                          [](Givens&) { Tensor::arange(int64_t{0}, int64_t{10}, int64_t{0}); }),
      mistake<ValueError>("arange_to_nan", "arange: 0 to nan by 1", [](Givens&) { Tensor::arange(0.0, std::stod("nan")); }),
      mistake<ValueError>("arange_to_infinity", "arange: 0 to inf by 1", [](Givens&) { Tensor::arange(0.0, std::stod("inf")); }),
      mistake<ValueError>("arange_of_a_narrow_dtype", "dtypes.int8 does not hold 0 to 299",
                          [](Givens&) { Tensor::arange(300, {.dtype = DType::int8}); }),
      mistake<ValueError>("linspace_of_negative_steps", "linspace: -1 steps", [](Givens&) { Tensor::linspace(0, 1, -1); }),
      mistake<DTypeError>("linspace_of_bools", "got dtypes.bool", [](Givens&) { Tensor::linspace(0, 1, 3, {.dtype = DType::bool_}); }),
      mistake<ValueError>("eye_of_negative_size", "eye: negative size (-1, -1)", [](Givens&) { Tensor::eye(-1); }),
      mistake<DeviceError>("unknown_device", "unknown device 'GPUX'; known are", [](Givens&) { Tensor({1.0}, {.device = "GPUX"}); }),
      mistake<DeviceError>("unknown_renderer", "unknown renderer 'X'; known are", [](Givens&) { Tensor::ones({2}, {.device = "CPU:X"}); }),
      mistake<DeviceError>("too_many_cpus", "NUM_CPU_THREADS", [](Givens& g) { g.vector.to("CPU:700"); }),
      mistake<ShapeError>("full_like_of_a_larger_tensor", "expand", [](Givens& g) { g.vector.full_like(g.square); }),
      mistake<DTypeError>("rand_of_integers", "rand: got dtypes.int32", [](Givens&) { Tensor::rand({2}, {.dtype = DType::int32}); }),
      mistake<DTypeError>("randn_of_bools", "randn: got dtypes.bool", [](Givens& g) { g.ints.randn_like(DType::bool_); }),
      mistake<ValueError>("uniform_integers_from_a_fraction", "uniform: low 0.5 is no dtypes.int32",
                          [](Givens&) { Tensor::uniform({2}, 0.5, 9, {.dtype = DType::int32}); }),
      mistake<ValueError>("uniform_upside_down", "low 2 must be less than high 1", [](Givens&) { Tensor::uniform({2}, 2, 1); }),
      mistake<ValueError>("randint_of_nothing", "low 5 must be less than high 5", [](Givens&) { Tensor::randint({2}, 5, 5); }),
      mistake<DTypeError>("randint_of_floats", "expects an integer dtype",
                          [](Givens&) { Tensor::randint({2}, 0, 5, {.dtype = DType::float32}); }),
      mistake<ValueError>("normal_of_negative_deviation", "standard deviation -1", [](Givens&) { Tensor::normal({2}, 0, -1); }),
      mistake<ShapeError>("glorot_without_axes", "at least one axis", [](Givens&) { Tensor::glorot_uniform({}); }),
      mistake<ValueError>("randperm_of_negative_size", "randperm: -1 elements", [](Givens&) { Tensor::randperm(-1); }),
      mistake<ValueError>("randperm_of_a_narrow_dtype", "dtypes.uint8 does not hold 0 to 299",
                          [](Givens&) { Tensor::randperm(300, {.dtype = DType::uint8}); }),
      mistake<DTypeError>("random_bits_of_floats", "two uint32 words", [](Givens& g) { Tensor::random_bits(g.vector, g.vector, 3); }),
      mistake<ValueError>("multinomial_of_more_than_there_are", "4 samples without replacement from 3",
                          [](Givens& g) { g.vector.multinomial(4); }),
      mistake<ValueError>("multinomial_of_no_samples", "0 samples", [](Givens& g) { g.vector.multinomial(0); }),
      mistake<ShapeError>("multinomial_of_a_scalar", "expects weights (n) or (rows, n)", [](Givens& g) { g.scalar.multinomial(); }),
      mistake<ValueError>("dropout_of_more_than_all", "dropout: p = 1.5", [](Givens& g) { g.vector.dropout(1.5); }),
      mistake<ValueError>("dropout_of_nan", "dropout: p = nan", [](Givens& g) { g.vector.dropout(std::stod("nan")); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Creation, Mistakes, testing::ValuesIn(creation()), name_of);

std::vector<Mistake> dtypes() {
  return {
      mistake<ValueError>("no_tensor", "this handle holds no tensor; give it one first", [](Givens&) { Tensor().sum(); }),
      mistake<DTypeError>("cast_to_void", "dtypes.void has no values", [](Givens& g) { g.vector.cast(DType::void_); }),
      mistake<DTypeError>("bitcast_to_void", "dtypes.void has no values", [](Givens& g) { g.vector.bitcast(DType::void_); }),
      mistake<ShapeError>("bitcast_of_a_part", "not a whole number of dtypes.float64", [](Givens& g) { g.vector.bitcast(DType::float64); }),
      mistake<DTypeError>("shift_of_floats", "lshift: got dtypes.float32", [](Givens& g) { g.vector << 1; }),
      mistake<DTypeError>("bits_of_floats", "bitwise_and: got dtypes.float32", [](Givens& g) { g.ints & 1.5; }),
      mistake<DTypeError>("not_of_floats", "bitwise_not: got dtypes.float32", [](Givens& g) { ~g.vector; }),
      mistake<DTypeError>("power_of_bools", "pow: got dtypes.bool", [](Givens& g) { g.mask.pow(g.mask); }),
      mistake<DTypeError>("threefry_of_floats", "expects dtypes.uint64", [](Givens& g) { g.vector.threefry(g.vector); }),
      mistake<ShapeError>("addition_of_other_shapes", "cannot broadcast (2, 3) with (2, 2)", [](Givens& g) { g.matrix + g.square; }),
      mistake<ShapeError>("comparison_of_other_shapes", "cannot broadcast", [](Givens& g) { (void)(g.matrix < g.square); }),
      mistake<ShapeError>("maximum_of_other_shapes", "cannot broadcast", [](Givens& g) { g.matrix.maximum(g.square); }),
      mistake<ShapeError>("where_of_other_shapes", "cannot broadcast", [](Givens& g) { g.mask.where(g.square, 0); }),
      mistake<ShapeError>("mask_of_another_shape", "cannot broadcast", [](Givens& g) { g.square.masked_fill(g.mask, 0); }),
      mistake<ShapeError>("lerp_of_other_shapes", "cannot broadcast", [](Givens& g) { g.square.lerp(g.vector, 0.5); }),
      mistake<ShapeError>("isclose_of_other_shapes", "cannot broadcast", [](Givens& g) { g.square.isclose(g.vector); }),
      mistake<ValueError>("clamp_to_nothing", "neither a minimum nor a maximum", [](Givens& g) { g.vector.clamp({}, {}); }),
      mistake<ShapeError>("item_of_several", "has 3 elements, expects one; use tolist()", [](Givens& g) { g.vector.item(); }),
      mistake<ShapeError>("item_of_none", "has 0 elements, expects one", [](Givens& g) { g.none.item(); }),
      mistake<IndexError>("size_of_no_axis", "axis 5 is out of range for (2, 3)", [](Givens& g) { g.matrix.size(5); }),
      mistake<DeviceError>("sum_across_devices", "live on INTERP and CPU", [](Givens& g) { (g.vector + g.away).realize(); }),
      mistake<DeviceError>("product_across_devices", "live on INTERP and CPU", [](Givens& g) { g.matrix.matmul(g.away).realize(); }),
      mistake<DeviceError>("join_across_devices", "INTERP", [](Givens& g) { Tensor::cat({g.vector, g.away}).realize(); }),
      mistake<DeviceError>("several_where_one_is_wrong", "live on",
                           [](Givens& g) {
                             const std::vector<Tensor> both{g.vector + 1, g.vector + g.away};
                             Tensor::realize(both);
                           }),
      mistake<ShapeError>("usum_of_other_shapes", "cannot broadcast", [](Givens& g) { g.vector.usum(std::vector{g.square}); }),
  };
}
INSTANTIATE_TEST_SUITE_P(DTypes, Mistakes, testing::ValuesIn(dtypes()), name_of);

std::vector<Mistake> views() {
  return {
      mistake<ShapeError>("reshape_to_another_count", "cannot view (2, 3) as (4,): 6 elements against 4",
                          [](Givens& g) { g.matrix.reshape({4}); }),
      mistake<ShapeError>("reshape_with_two_open_sizes", "only one size of (-1, -1)", [](Givens& g) { g.matrix.reshape({-1, -1}); }),
      mistake<ShapeError>("reshape_that_does_not_divide", "do not divide 6 elements", [](Givens& g) { g.matrix.reshape({-1, 4}); }),
      mistake<ShapeError>("reshape_of_nothing_is_ambiguous", "cannot infer the -1", [](Givens& g) { g.none.reshape({0, -1}); }),
      mistake<ShapeError>("reshape_to_a_negative_size", "(-2, -3) has a negative size", [](Givens& g) { g.matrix.reshape({-2, -3}); }),
      mistake<ShapeError>("expand_of_a_real_axis", "the sizes 2 and 4 differ and neither is 1", [](Givens& g) { g.matrix.expand({4, 3}); }),
      mistake<ShapeError>("expand_to_fewer_axes", "to the fewer axes of (3,)", [](Givens& g) { g.matrix.expand({3}); }),
      mistake<ShapeError>("expand_of_an_open_new_axis", "stands for a new axis", [](Givens& g) { g.vector.expand({-1, 3}); }),
      mistake<ShapeError>("permute_of_too_few_axes", "has 2 axes, got 1", [](Givens& g) { g.matrix.permute({0}); }),
      mistake<ValueError>("permute_of_an_axis_twice", "axis 0 is given twice", [](Givens& g) { g.matrix.permute({0, -2}); }),
      mistake<IndexError>("permute_of_no_axis", "axis 2 is out of range, expects -2 to 1", [](Givens& g) { g.matrix.permute({0, 2}); }),
      mistake<IndexError>("transpose_of_a_vector", "transpose: axis 1 is out of range", [](Givens& g) { g.vector.T(); }),
      mistake<IndexError>("transpose_of_a_scalar", "of a scalar, which has none", [](Givens& g) { g.scalar.transpose(); }),
      mistake<ValueError>("flip_of_an_axis_twice", "axis 0 is given twice", [](Givens& g) { g.matrix.flip({0, 0}); }),
      mistake<ShapeError>("shrink_beyond_the_end", "[0, 4) is not within axis 1", [](Givens& g) { g.matrix.shrink({{0, 2}, {0, 4}}); }),
      mistake<ShapeError>("shrink_of_too_few_axes", "has 2 axes, got 1 bounds", [](Givens& g) { g.matrix.shrink({{0, 1}}); }),
      mistake<ShapeError>("pad_of_too_few_axes", "has 2 axes, got padding for 1", [](Givens& g) { g.matrix.pad({{1, 1}}); }),
      mistake<ValueError>("pad_that_reflects_too_much", "must be less than its size 2",
                          [](Givens& g) { g.square.pad({{2, 2}, {0, 0}}, 0, PadMode::reflect); }),
      mistake<ValueError>("pad_around_twice", "more than once", [](Givens& g) { g.square.pad({{3, 3}, {0, 0}}, 0, PadMode::circular); }),
      mistake<ShapeError>("pad_to_less", "axis 0 would shrink", [](Givens& g) { g.matrix.pad_to({1, 3}); }),
      mistake<ShapeError>("shrink_to_more", "is not within axis 0", [](Givens& g) { g.matrix.shrink_to({3, 3}); }),
      mistake<IndexError>("squeeze_of_no_axis", "squeeze: axis 2", [](Givens& g) { g.matrix.squeeze(2); }),
      mistake<IndexError>("unsqueeze_too_far", "unsqueeze: axis 4 is out of range, expects -3 to 2",
                          [](Givens& g) { g.matrix.unsqueeze(4); }),
      mistake<ValueError>("flatten_backwards", "the first axis 1 comes after the last, 0", [](Givens& g) { g.matrix.flatten(1, 0); }),
      mistake<ShapeError>("unflatten_to_another_count", "has 3 elements, (2, 2) takes 4", [](Givens& g) { g.matrix.unflatten(1, {2, 2}); }),
      mistake<ShapeError>("unflatten_with_two_open_sizes", "unflatten", [](Givens& g) { g.matrix.unflatten(1, {-1, -1}); }),
      mistake<ValueError>("rearrange_that_loses_an_axis", "b is only on the left", [](Givens& g) { g.matrix.rearrange("a b -> a"); }),
      mistake<ShapeError>("rearrange_of_other_axes", "has 2 axes, expects 3", [](Givens& g) { g.matrix.rearrange("a b c -> a b c"); }),
      mistake<ValueError>("rearrange_without_an_arrow", "exactly one \"->\"", [](Givens& g) { g.matrix.rearrange("a b"); }),
      mistake<ShapeError>("rearrange_with_a_wrong_size", "no multiple of 2",
                          [](Givens& g) { g.matrix.rearrange("a (b c) -> a b c", {{"b", 2}}); }),
      mistake<ValueError>("repeat_negatively", "has a negative count", [](Givens& g) { g.matrix.repeat({-1, 1}); }),
      mistake<ShapeError>("repeat_of_too_few_axes", "has 2 axes, got 1 repeats", [](Givens& g) { g.matrix.repeat({2}); }),
      mistake<ValueError>("repeat_interleave_negatively", "-1 repeats", [](Givens& g) { g.vector.repeat_interleave(-1); }),
      mistake<ValueError>("roll_of_other_counts", "2 shifts for 1 axes", [](Givens& g) { g.matrix.roll({1, 2}, {0}); }),
      mistake<ValueError>("unfold_longer_than_the_axis", "size 4 for axis 1", [](Givens& g) { g.matrix.unfold(1, 4, 1); }),
      mistake<ValueError>("unfold_in_place", "step 0", [](Givens& g) { g.matrix.unfold(1, 2, 0); }),
      mistake<ShapeError>("diag_of_a_matrix", "expects a vector, got (2, 3)", [](Givens& g) { g.matrix.diag(); }),
      mistake<ValueError>("diagonal_of_one_axis", "the two axes are both 0", [](Givens& g) { g.matrix.diagonal(0, 0, 0); }),
      mistake<ShapeError>("triu_of_a_vector", "at least two axes", [](Givens& g) { g.vector.triu(); }),
      mistake<ValueError>("split_into_nothing", "size 0", [](Givens& g) { g.matrix.split(0); }),
      mistake<ShapeError>("split_into_more", "add up to 3, axis 0 of (2, 3) has 2", [](Givens& g) { g.matrix.split(Sizes{1, 2}); }),
      mistake<ValueError>("no_chunks", "0 chunks", [](Givens& g) { g.matrix.chunk(0); }),
      mistake<ShapeError>("cat_of_other_shapes", "only that axis may differ", [](Givens& g) { Tensor::cat({g.matrix, g.square}); }),
      mistake<ValueError>("cat_of_nothing", "got no values", [](Givens&) { Tensor::cat(std::vector<Tensor>{}); }),
      mistake<IndexError>("cat_of_scalars", "of a scalar", [](Givens& g) { Tensor::cat({g.scalar, g.scalar}); }),
      mistake<ShapeError>("stack_of_other_shapes", "must have one shape", [](Givens& g) { Tensor::stack({g.matrix, g.square}); }),
      mistake<IndexError>("stack_too_far", "axis 5", [](Givens& g) { Tensor::stack({g.matrix, g.matrix}, 5); }),
      mistake<ShapeError>("meshgrid_of_matrices", "expects vectors", [](Givens& g) { Tensor::meshgrid({g.matrix, g.vector}); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Views, Mistakes, testing::ValuesIn(views()), name_of);

std::vector<Mistake> indices() {
  return {
      mistake<IndexError>("index_too_large", "indexing: index 2 is out of range for axis 0 of size 2", [](Givens& g) { g.matrix[2]; }),
      mistake<IndexError>("index_too_small", "index -4", [](Givens& g) { g.matrix[{0, -4}]; }),
      mistake<IndexError>("too_many_indices", "indexing: 3 indices for (2, 3)", [](Givens& g) { g.matrix[{0, 0, 0}]; }),
      mistake<IndexError>("index_of_a_scalar", "which has 0 axes", [](Givens& g) { g.scalar[0]; }),
      mistake<IndexError>("two_ellipses", "only one ellipsis", [](Givens& g) { g.matrix[{Ellipsis{}, Ellipsis{}}]; }),
      mistake<ValueError>("slice_without_a_step", "indexing: a slice has a step of 0", [](Givens& g) { g.vector[Slice{.step = 0}]; }),
      mistake<IndexError>("floats_as_index", "dtypes.float32 as index, expects integers", [](Givens& g) { g.matrix[g.vector]; }),
      mistake<IndexError>("a_mask_of_another_shape", "a bool mask of (3,) does not fit (2, 3)", [](Givens& g) { g.matrix[g.mask]; }),
      mistake<ShapeError>("index_tensors_of_other_shapes", "cannot broadcast", [](Givens& g) { g.image[{g.ints, Tensor({0, 1})}]; }),
      mistake<ValueError>("a_variable_without_a_value", "has no value; use bind()",
                          [](Givens& g) { g.vector[Variable("i", 0, 2)].item(); }),
      mistake<IndexError>("a_variable_out_of_range", "BIND(i, 4) is out of range for axis 0 of size 3",
                          [](Givens& g) { g.vector[Variable("i", 0, 9).bind(4)]; }),
      mistake<IndexError>("a_slice_by_a_variable_out_of_range", "is not within an axis of size 3",
                          [](Givens& g) { g.vector[Slice{.stop = Variable("n", 1, 9).bind(5)}]; }),
      mistake<ShapeError>("a_reshape_by_a_variable_that_does_not_divide", "6 elements against",
                          [](Givens& g) { g.matrix.reshape({Variable("n", 1, 9).bind(4), -1}); }),
      mistake<DTypeError>("gather_by_floats", "the index is dtypes.float32", [](Givens& g) { g.matrix.gather(0, g.matrix); }),
      mistake<ShapeError>("gather_of_other_axes", "must have as many axes", [](Givens& g) { g.vector.gather(0, g.ints); }),
      mistake<IndexError>("gather_along_no_axis", "gather: axis 2", [](Givens& g) { g.matrix.gather(2, g.ints); }),
      mistake<ShapeError>("scatter_of_too_little", "is larger than (2, 2) in axis 1",
                          [](Givens& g) { g.matrix.scatter(0, g.ints, g.square); }),
      mistake<DTypeError>("scatter_of_another_dtype", "the source is dtypes.int32", [](Givens& g) { g.matrix.scatter(0, g.ints, g.ints); }),
      mistake<DTypeError>("scatter_reduce_by_floats", "expects integers",
                          [](Givens& g) { g.matrix.scatter_reduce(0, g.matrix, g.matrix, ScatterMode::sum); }),
      mistake<DTypeError>("masked_select_by_integers", "expects dtypes.bool", [](Givens& g) { g.matrix.masked_select(g.ints); }),
      mistake<ShapeError>("masked_select_of_another_shape", "cannot broadcast", [](Givens& g) { g.square.masked_select(g.mask); }),
      mistake<ValueError>("masked_select_of_negative_size", "the size -1", [](Givens& g) { g.vector.masked_select(g.mask, -1); }),
      mistake<ValueError>("nonzero_of_negative_size", "the size -2", [](Givens& g) { g.vector.nonzero(-2); }),
      mistake<DTypeError>("one_hot_of_floats", "one_hot: the index is dtypes.float32", [](Givens& g) { g.vector.one_hot(3); }),
      mistake<ValueError>("one_hot_of_negative_classes", "-1 classes", [](Givens& g) { g.ints.one_hot(-1); }),
      mistake<ShapeError>("assignment_of_another_shape", "assign: cannot write (2, 2) into (2, 3)",
                          [](Givens& g) { g.matrix.assign(g.square); }),
      mistake<DTypeError>("assignment_of_another_dtype", "cannot write dtypes.int32 into dtypes.float32; cast the value",
                          [](Givens& g) { g.matrix.assign(g.ints); }),
      mistake<DeviceError>("assignment_from_another_device", "cannot write a value on CPU into a tensor on INTERP; use to()",
                           [](Givens& g) { g.vector.assign(g.away); }),
      mistake<DTypeError>("division_in_place_of_integers", "cast the value", [](Givens& g) { g.ints /= 2; }),
      mistake<ShapeError>("addition_in_place_that_grows", "the shapes must be equal", [](Givens& g) { g.vector += g.matrix; }),
      mistake<IndexError>("write_beyond_the_end", "index 5", [](Givens& g) { g.matrix.set_item({5}, 1.0); }),
      mistake<ShapeError>("write_of_another_shape", "cannot broadcast", [](Givens& g) { g.matrix.set_item({0}, Tensor({1.0, 2.0})); }),
      mistake<IndexError>("write_by_floats", "expects integers", [](Givens& g) { g.matrix.set_item({g.vector}, 1.0); }),
      mistake<IndexError>("write_by_a_mask_of_another_shape", "does not fit", [](Givens& g) { g.square.set_item({g.mask}, 1.0); }),
      mistake<DeviceError>("write_from_another_device", "use to()", [](Givens& g) { g.matrix.set_item({0}, g.away); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Indices, Mistakes, testing::ValuesIn(indices()), name_of);

}  // namespace
}  // namespace tinygrad::test
