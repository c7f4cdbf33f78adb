// Mistakes with layers, optimizers, schedulers, state, data, jitted functions, variables and devices.
#include "mistakes.h"

#include "support/temp_folder.h"

namespace tinygrad::test {
namespace {

using namespace nn;

std::vector<Mistake> layers() {
  return {
      mistake<ValueError>("linear_without_inputs", "Linear: got 0 input features", [](Givens&) { Linear(0, 3); }),
      mistake<ValueError>("linear_of_negative_outputs", "Linear: got -1 output features", [](Givens&) { Linear(3, -1); }),
      mistake<ShapeError>("linear_of_other_features", "cannot multiply (2, 2) by (3, 2): the inner sizes 2 and 3 differ",
                          [](Givens& g) { Linear(3, 2)(g.square); }),
      mistake<ValueError>("conv_of_kernel_size_0", "Conv2d: got 0 as a kernel size", [](Givens&) { Conv2d(3, 4, 0); }),
      mistake<ValueError>("conv_of_groups_that_do_not_divide", "2 groups do not divide 3 input and 4 output channels",
                          [](Givens&) { Conv2d(3, 4, 3, {.groups = 2}); }),
      mistake<ValueError>("conv_of_stride_0", "Conv2d: got 0 as the stride", [](Givens&) { Conv2d(4, 4, 3, {.stride = {0}}); }),
      mistake<ValueError>("conv_to_the_same_size_with_a_stride", "a stride of 2 gives no output of the same size",
                          [](Givens&) { Conv2d(4, 4, 3, {.stride = {2}, .same = true}); }),
      mistake<ShapeError>("conv_of_other_channels", "has 4 channels, the weight (4, 3, 3, 3)", [](Givens& g) { Conv2d(3, 4, 3)(g.image); }),
      mistake<ShapeError>("conv_of_pictures_without_a_batch", "must have as many axes", [](Givens& g) { Conv2d(4, 4, 3)(g.image[0]); }),
      mistake<ShapeError>("conv1d_of_pictures", "must have as many axes", [](Givens& g) { Conv1d(4, 4, 3)(g.image); }),
      mistake<ShapeError>("transposed_conv_of_other_channels", "the weight is (in, out / groups, ...)",
                          [](Givens& g) { ConvTranspose2d(3, 4, 3)(g.image); }),
      mistake<ValueError>("transposed_conv_of_negative_output_padding", "ConvTranspose2d: got -1 as the output padding",
                          [](Givens&) { ConvTranspose2d(4, 4, 3, {.output_padding = {-1}}); }),
      mistake<ValueError>("batch_norm_without_channels", "BatchNorm: got 0 channels", [](Givens&) { BatchNorm(0); }),
      mistake<ShapeError>("batch_norm_of_other_channels",
                          "BatchNorm: got <Tensor (1, 4, 4, 4) dtypes.float32 on INTERP>, expects (batch, 3",
                          [](Givens& g) { BatchNorm(3)(g.image); }),
      mistake<ShapeError>("batch_norm_of_a_vector", "expects (batch, channels, ...)", [](Givens& g) { BatchNorm(3)(g.vector); }),
      mistake<ShapeError>("batch_norm_in_training_of_other_channels", "expects (batch, 3, ...)",
                          [](Givens& g) {
                            const Context training{{.training = true}};
                            BatchNorm(3)(g.image);
                          }),
      mistake<ValueError>("group_norm_of_groups_that_do_not_divide", "3 groups do not divide 4 channels", [](Givens&) { GroupNorm(3, 4); }),
      mistake<ShapeError>("group_norm_of_other_channels", "expects (batch, 6, ...)", [](Givens& g) { GroupNorm(2, 6)(g.image); }),
      mistake<ShapeError>("instance_norm_of_other_channels", "expects (batch, 3, ...)", [](Givens& g) { InstanceNorm(3)(g.image); }),
      mistake<ValueError>("layer_norm_over_nothing", "LayerNorm: got no axes", [](Givens&) { LayerNorm(Sizes{}); }),
      mistake<ValueError>("layer_norm_of_negative_size", "LayerNorm: got -1 elements", [](Givens&) { LayerNorm(-1); }),
      mistake<ShapeError>("layer_norm_of_other_sizes", "expects a tensor whose last axes are (5)",
                          [](Givens& g) { LayerNorm(5)(g.matrix); }),
      mistake<ShapeError>("layer_norm_2d_of_other_channels", "LayerNorm2d: got <Tensor (1, 4, 4, 4)",
                          [](Givens& g) { LayerNorm2d(3)(g.image); }),
      mistake<ValueError>("rms_norm_of_nothing", "RMSNorm: got 0 elements", [](Givens&) { RMSNorm(0); }),
      mistake<ShapeError>("rms_norm_of_other_sizes", "expects a last axis of 5 elements", [](Givens& g) { RMSNorm(5)(g.matrix); }),
      mistake<ValueError>("embedding_of_no_words", "Embedding: got 0 words", [](Givens&) { Embedding(0, 4); }),
      mistake<DTypeError>("embedding_of_floats", "expects integers", [](Givens& g) { Embedding(10, 4)(g.vector); }),
      mistake<ShapeError>("lstm_of_other_inputs", "LSTMCell: got x <Tensor (2, 3)", [](Givens& g) { LSTMCell(2, 4)(g.matrix); }),
      mistake<ShapeError>("lstm_of_another_state", "LSTMCell: got a state <Tensor (2, 3) dtypes.float32 on INTERP>, expects (2, 4)",
                          [](Givens& g) { LSTMCell(3, 4)(g.matrix, LSTMCell::State{g.matrix, g.matrix}); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Layers, Mistakes, testing::ValuesIn(layers()), name_of);

std::vector<Mistake> training() {
  using namespace optim;
  const auto step = [](Optimizer& o) {
    const Context training{{.training = true}};
    o.step();
  };
  const auto sgd = [](Givens& g) { return SGD(std::vector{g.vector}); };
  const auto step_by = [=](Givens& g, const Tensor& gradient) {
    auto o = sgd(g);
    g.vector.set_grad(gradient);
    try {
      step(o);
    } catch (...) {
      o.zero_grad();
      throw;
    }
  };
  const auto with_lr = [](double lr) { return [lr](Givens& g) { SGD(std::vector{g.vector}, {.lr = lr}); }; };
  return {
      mistake<ValueError>("optimizer_of_nothing", "got no parameters", [](Givens&) { SGD(std::vector<Tensor>{}); }),
      mistake<ValueError>("optimizer_of_integers", "no float tensor that is_param()", [](Givens& g) { SGD(std::vector{g.ints}); }),
      mistake<ValueError>("optimizer_of_no_tensor", "holds no tensor", [](Givens&) { SGD(std::vector{Tensor()}); }),
      mistake<ValueError>("negative_learning_rate", "the learning rate is -1, expects at least 0", with_lr(-1)),
      mistake<ValueError>("learning_rate_that_is_nan", "the learning rate is nan", with_lr(std::stod("nan"))),
      mistake<ValueError>("negative_momentum", "the momentum is -0.5", [](Givens& g) { SGD(std::vector{g.vector}, {.momentum = -0.5}); }),
      mistake<ValueError>("negative_weight_decay", "the weight decay is -1",
                          [](Givens& g) { AdamW(std::vector{g.vector}, {.weight_decay = -1}); }),
      mistake<ValueError>("nesterov_without_momentum", "nesterov needs a momentum",
                          [](Givens& g) { SGD(std::vector{g.vector}, {.nesterov = true}); }),
      mistake<ValueError>("b1_of_1", "b1 is 1, expects at least 0 and below 1", [](Givens& g) { Adam(std::vector{g.vector}, {.b1 = 1}); }),
      mistake<ValueError>("negative_b2", "b2 is -0.1", [](Givens& g) { Adam(std::vector{g.vector}, {.b2 = -0.1}); }),
      mistake<ValueError>("negative_eps", "eps is -1", [](Givens& g) { LAMB(std::vector{g.vector}, {.eps = -1}); }),
      mistake<ValueError>("negative_trust", "tcoef is -1", [](Givens& g) { LARS(std::vector{g.vector}, {.tcoef = -1}); }),
      mistake<ShapeError>("muon_of_a_scalar", "expects at least one axis", [](Givens& g) { Muon(std::vector{g.scalar}); }),
      mistake<ValueError>("fused_muon", "cannot be fused", [](Givens& g) { Muon(std::vector{g.matrix}, {.fused = true}); }),
      mistake<DeviceError>("optimizer_on_an_unknown_device", "unknown device 'GPUX'",
                           [](Givens& g) { SGD(std::vector{g.vector}, {.device = "GPUX"}); }),
      mistake<ValueError>("group_of_no_optimizers", "got no optimizers", [](Givens&) { OptimizerGroup({}); }),
      mistake<ValueError>("group_with_a_parameter_twice", "is a parameter of two optimizers",
                          [](Givens& g) {
                            const auto one = std::make_shared<SGD>(std::vector{g.vector}),
                                       two = std::make_shared<SGD>(std::vector{g.vector});
                            OptimizerGroup({one, two});
                          }),
      mistake<ValueError>("step_without_gradients", "no parameter has a gradient; call backward() first",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            step(o);
                          }),
      mistake<ValueError>("step_outside_of_training", "step() while training is off", [=](Givens& g) { sgd(g).step(); }),
      mistake<ShapeError>("step_by_a_gradient_of_another_shape", "grad: a gradient of the shape (2, 2)",
                          [=](Givens& g) { step_by(g, g.square); }),
      mistake<DTypeError>("step_by_a_gradient_of_integers", "give it one of a float dtype", [=](Givens& g) { step_by(g, g.ints[0]); }),
      mistake<ShapeError>("step_by_several_learning_rates", "the learning rate is <Tensor (3,)",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            o.lr = g.vector;
                            step(o);
                          }),
      mistake<ValueError>("negative_milestone", "a milestone is -1",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            MultiStepLR(o, {-1});
                          }),
      mistake<ValueError>("cosine_of_no_steps", "the number of steps is 0",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            CosineAnnealingLR(o, {.steps = 0});
                          }),
      mistake<ValueError>("warmup_of_negative_steps", "the number of warm-up steps is -1",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            CosineAnnealingLRWithWarmup(o, {.warmup_steps = -1});
                          }),
      mistake<ValueError>("one_cycle_that_starts_after_its_end", "pct_start is 1.5",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            OneCycleLR(o, {.pct_start = 1.5});
                          }),
      mistake<ValueError>("plateau_with_a_growing_rate", "the factor is 1.5",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            ReduceLROnPlateau(o, {.factor = 1.5});
                          }),
      mistake<ShapeError>("plateau_of_several_metrics", "expects one element",
                          [=](Givens& g) {
                            auto o = sgd(g);
                            ReduceLROnPlateau(o).step(g.vector);
                          }),
      mistake<ValueError>("scheduler_of_a_group", "an OptimizerGroup has no rate",
                          [](Givens& g) {
                            OptimizerGroup group({std::make_shared<SGD>(std::vector{g.vector})});
                            MultiStepLR(group, {1});
                          }),
  };
}
INSTANTIATE_TEST_SUITE_P(Training, Mistakes, testing::ValuesIn(training()), name_of);

std::string file_of(const std::string& name, const std::string& bytes) {
  static const test::TempFolder folder;
  return bytes.empty() ? folder.path(name) : folder.write(name, bytes);
}

/// A file with this header.
std::string safetensors(const std::string& name, const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = char(header.size() >> 8 * i & 0xff);
  return file_of(name, length + header + data);
}

struct Net : Module {
  Tensor weight, bias;
  TG_FIELDS(weight, bias)
};

Mistake bad_file(const std::string& name, const std::string& says, const std::string& header, const std::string& data) {
  return mistake<FormatError>(name, says, [=](Givens&) { state::safe_load(safetensors(name, header, data)); });
}

std::vector<Mistake> files() {
  using namespace state;
  const LoadOptions quiet{.verbose = false};
  const auto net = [](Givens& g) {
    Net n;
    n.weight = g.matrix;
    n.bias = g.vector;
    return n;
  };
  return {
      mistake<IoError>("a_missing_file", "No such file or directory", [](Givens&) { safe_load("/nonexistent/x.safetensors"); }),
      mistake<IoError>("a_folder_as_a_file", "Is a directory", [](Givens&) { safe_load("/"); }),
      mistake<FormatError>("a_file_of_another_kind", "no safetensors, or cut off",
                           [](Givens&) { safe_load(file_of("other", std::string(64, '\xff'))); }),
      mistake<FormatError>("a_file_of_some_bytes", "too short for safetensors", [](Givens&) { safe_load(file_of("short", "abc")); }),
      bad_file("a_header_that_is_no_json", "no JSON", "{nothing", ""),
      bad_file("an_unknown_dtype_in_a_file", "'F33', which is not supported", R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})",
               "1234"),
      bad_file("a_shape_that_does_not_fit_the_bytes", "which does not fit", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
               "1234"),
      bad_file("a_hole_in_a_file", "'a' begins at 4", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "12345678"),
      bad_file("a_tensor_without_offsets", "lacks one of dtype, shape and data_offsets", R"({"a":{"dtype":"F32","shape":[1]}})", "1234"),
      bad_file("a_file_that_is_cut_off", "does not fit", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234"),
      mistake<DTypeError>("floats_as_the_bytes_of_a_file", "expects uint8", [](Givens& g) { safe_load(g.vector); }),
      mistake<IoError>("a_folder_that_is_missing", "No such file or directory",
                       [](Givens& g) { safe_save({{"a", g.vector}}, "/nonexistent/folder/x"); }),
      mistake<ValueError>("a_reserved_name", "no tensor can be named __metadata__",
                          [](Givens& g) { safe_save({{"__metadata__", g.vector}}, file_of("reserved", "")); }),
      mistake<FormatError>("no_zip_archive", "zip archive", [](Givens&) { zip_extract(file_of("no.zip", "abcdefgh")); }),
      mistake<FormatError>("no_tar_archive", "cut off", [](Givens&) { tar_extract(file_of("no.tar", "abcdefgh")); }),
      mistake<ValueError>("a_state_without_a_name", "the state has no bias; give all, or set strict to false",
                          [=](Givens& g) { load_state_dict(net(g), StateDict{{"weight", g.matrix + 1}}, quiet); }),
      mistake<ShapeError>("a_state_of_another_shape", "weight is (2, 3), (2, 2) in the state",
                          [=](Givens& g) { load_state_dict(net(g), StateDict{{"weight", g.square}, {"bias", g.vector + 1}}, quiet); }),
      mistake<ValueError>("a_state_for_a_module_without_tensors", "the module has no tensors, the state 1",
                          [=](Givens& g) { load_state_dict(Net(), StateDict{{"weight", g.matrix}}, quiet); }),
      mistake<DeviceError>(
          "a_state_that_cannot_be_computed", "live on",
          [=](Givens& g) { load_state_dict(net(g), StateDict{{"weight", g.matrix + 1}, {"bias", g.vector + g.away}}, quiet); }),
      mistake<IoError>("data_that_is_missing", "no train-images-idx3-ubyte; put the files",
                       [](Givens&) { datasets::mnist({.folder = "/nonexistent"}); }),
      mistake<DeviceError>("data_on_an_unknown_device", "unknown device 'GPUX'",
                           [](Givens&) { datasets::mnist({.device = "GPUX", .verbose = false}); }),
      mistake<IoError>("pictures_that_are_missing", "cifar-10: no files", [](Givens&) { datasets::cifar({.folder = "/nonexistent"}); }),
      mistake<ShapeError>("data_of_other_counts", "has 3 rows, the first tensor 2",
                          [](Givens& g) { tensor_dataset({g.matrix, g.vector}); }),
      mistake<ShapeError>("data_without_an_axis", "expects an axis of examples", [](Givens& g) { tensor_dataset({g.scalar}); }),
      mistake<ValueError>("batches_of_nothing", "batch_size is 0",
                          [](Givens& g) { DataLoader(tensor_dataset({g.matrix}), {.batch_size = 0}); }),
      mistake<ValueError>("loader_of_negative_threads", "threads is -2",
                          [](Givens& g) { DataLoader(tensor_dataset({g.matrix}), {.threads = -2}); }),
      mistake<ShapeError>("examples_of_other_shapes", "others in its batch are (1)",
                          [](Givens&) {
                            const auto decode = [](const ExampleRequest& r) -> Example {
                              return {std::vector<float>(size_t(r.index) + 1)};
                            };
                            DataLoader loader({.size = 4, .decode = decode}, {.batch_size = 2});
                            for ([[maybe_unused]] const Batch& b : loader) {}
                          }),
      mistake<ShapeError>("an_array_of_other_bytes", "HostArray", [](Givens& g) { HostArray(g.vector.data(), DType::float32, {2}); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Files, Mistakes, testing::ValuesIn(files()), name_of);

std::vector<Mistake> programs() {
  return {
      mistake<JitError>("jit_that_reads_a_value", "the function calls item(), tolist() or data()",
                        [](Givens&) {
                          const auto f = jit([](const Tensor& x) { return x * x.item(); });
                          for (int i = 0; i < 3; ++i) f(Tensor({1.0 * i}));
                        }),
      mistake<JitError>("jit_that_seeds", "manual_seed(); a replay runs only kernels and would not do it. Call it before the function",
                        [](Givens& g) {
                          const auto f = jit([](const Tensor& x) {
                            Tensor::manual_seed(1);
                            return x + Tensor::rand({3});
                          });
                          for (int i = 0; i < 3; ++i) f(g.vector);
                        }),
      mistake<JitError>("jit_with_another_number", "numbers, strings and objects among the arguments are part of what was captured",
                        [](Givens& g) {
                          const auto f = jit([](const Tensor& x, int by) { return x * by; });
                          for (int i = 0; i < 3; ++i) f(g.vector, 2);
                          f(g.vector, 3);
                        }),
      mistake<JitError>("jit_of_no_tensor", "no Tensor",
                        [](Givens& g) {
                          const auto f = jit([](const Tensor& x) { return x * 2; });
                          for (int i = 0; i < 3; ++i) f(g.vector);
                          f(Tensor());
                        }),
      mistake<JitError>("jit_that_writes_what_two_arguments_share", "two arguments share it",
                        [](Givens& g) {
                          const auto f = jit([](Tensor a, const Tensor& b) {
                            a += b;
                            return a + b;
                          });
                          f(g.vector, g.vector);
                        }),
      mistake<JitError>("jit_that_writes_a_part", "which is a view of a part of a tensor's memory",
                        [](Givens& g) { jit([](Tensor x) { x += 1; })(g.matrix[1]); }),
      mistake<JitError>("save_before_anything_is_captured", "nothing is captured that could be saved",
                        [](Givens&) { jit([](const Tensor& x) { return x + 1; }).save("/tmp/nothing"); }),
      mistake<ShapeError>("jit_of_a_function_that_fails", "cannot view (3,) as (7,)",
                          [](Givens& g) { jit([](const Tensor& x) { return x.reshape({7}); })(g.vector); }),
      mistake<IoError>("a_captured_function_that_is_missing", "/nonexistent", [](Givens&) { LoadedJit("/nonexistent"); }),
      mistake<FormatError>("a_captured_function_that_is_none", "", [](Givens&) { LoadedJit(file_of("no.jit", std::string(64, 'x'))); }),
      mistake<JitError>("jit_with_a_value_out_of_range", "a view reaches beyond its axis",
                        [](Givens& g) {
                          const Variable n("n", 1, 9);
                          const auto f = jit([](const Tensor& x, const Variable& v) { return x[Slice{.stop = v}].sum(); });
                          for (int i = 1; i < 4; ++i) f(g.vector, n.bind(i));
                          f(g.vector, n.bind(5));
                        }),
      mistake<ValueError>("a_variable_upside_down", "got the bounds 5 to 1, expects 0 <= min <= max", [](Givens&) { Variable("n", 5, 1); }),
      mistake<ValueError>("a_negative_variable", "got the bounds -1 to 5", [](Givens&) { Variable("n", -1, 5); }),
      mistake<ValueError>("a_variable_without_a_name", "the name is empty", [](Givens&) { Variable("", 1, 5); }),
      mistake<ValueError>("a_variable_of_the_librarys", "that begin with _", [](Givens&) { Variable("_shard_2_1", 0, 1); }),
      mistake<ValueError>("a_value_out_of_bounds", "9 is not from 1 to 5", [](Givens&) { Variable("n", 1, 5).bind(9); }),
      mistake<ValueError>("a_size_without_a_value", "has no value; use bind()",
                          [](Givens&) { Tensor::ones({Variable("n", 1, 5)}).realize(); }),
      mistake<ShapeError>("symbolic_sizes_that_differ", "cannot broadcast",
                          [](Givens& g) { Tensor::ones({Variable("n", 1, 5).bind(3)}) + g.vector; }),
      mistake<ValueError>("one_variable_of_two_values", "variable n is bound to both 2 and 3",
                          [](Givens&) {
                            const Variable n("n", 1, 5);
                            (Tensor::ones({n.bind(2)}).sum() + Tensor::ones({n.bind(3)}).sum()).realize();
                          }),
      mistake<ValueError>(
          "two_variables_of_one_name", "two variables have the name n and other bounds",
          [](Givens&) {
            (Tensor::ones({Variable("n", 1, 5).bind(2)}).sum() + Tensor::ones({Variable("n", 1, 9).bind(2)}).sum()).realize();
          }),
      mistake<ValueError>("division_of_a_size_by_0", "by 0", [](Givens&) { Extent(Variable("n", 1, 5).bind(3)) / 0; }),
      mistake<ValueError>("an_option_out_of_range", "DEBUG: got '99', expected an integer from 0 to 9",
                          [](Givens&) { Context({.debug = 99}); }),
      mistake<ValueError>("an_option_of_another_kind", "DEFAULT_FLOAT: got 'int32', expected one of",
                          [](Givens&) { Context({.default_float = "int32"}); }),
      mistake<DeviceError>("an_unknown_default_device", "unknown device 'TOASTER'",
                           [](Givens&) {
                             const Context context{{.dev = "TOASTER"}};
                             Tensor({1.0});
                           }),
      mistake<DeviceError>("an_unknown_device_to_wait_for", "unknown device 'GPUX'", [](Givens&) { synchronize("GPUX"); }),
      mistake<DTypeError>("an_unknown_dtype", "unknown dtype 'float33'", [](Givens&) { parse_dtype("float33"); }),
      mistake<DTypeError>("the_mantissa_of_integers", "expects a floating-point dtype", [](Givens&) { finfo(DType::int32); }),
      mistake<OutOfMemoryError>("more_memory_than_there_is", "out of memory",
                                [](Givens&) { Tensor::zeros({int64_t{1} << 45}).contiguous().realize(); }),
  };
}
INSTANTIATE_TEST_SUITE_P(Programs, Mistakes, testing::ValuesIn(programs()), name_of);

}  // namespace
}  // namespace tinygrad::test
