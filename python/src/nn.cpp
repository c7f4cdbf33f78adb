// Layers.
#include "common.h"

namespace tinygrad::python {

namespace {

using nn::Module;

/// A tensor of a layer, which may be replaced; None where there is none.
template <class L, class B>
void bind_field(nb::class_<L, B>& layer, const char* name, Tensor L::* field) {
  layer.def_prop_rw(
      name, [field](const L& l) { return (l.*field).defined() ? std::optional(l.*field) : std::nullopt; },
      [field](L& l, const std::optional<Tensor>& t) { l.*field = t.value_or(Tensor()); }, nb::for_setter("value"_a.none()));
}

/// Running statistics are assigned to, which may wait for another thread.
template <class L, class B>
void bind_call(nb::class_<L, B>& layer) {
  layer.def(
      "__call__",
      [](const L& l, const Tensor& x) {
        const Interruptible interruptible;
        const Released released;
        return l(x);
      },
      "x"_a);
}

template <class L, class B>
void bind_fields(nb::class_<L, B>& layer, std::initializer_list<std::pair<const char*, Tensor L::*>> fields) {
  for (const auto& [name, field] : fields) bind_field(layer, name, field);
  bind_call(layer);
}

/// Copies and pickles are made of the tensors, the settings, and what Python has put into the object.
template <class L, class B>
void bind_state(nb::class_<L, B>& layer, std::vector<Tensor L::*> tensors, auto... settings) {
  using Settings = std::tuple<std::remove_cvref_t<decltype(std::declval<L&>().*settings)>...>;
  using State = std::tuple<std::vector<std::optional<Tensor>>, Settings, nb::dict>;
  layer
      .def("__getstate__",
           [=](nb::handle self) {
             const L& l = *nb::inst_ptr<L>(self);
             std::vector<std::optional<Tensor>> values;
             for (Tensor L::* t : tensors) values.push_back((l.*t).defined() ? std::optional(l.*t) : std::nullopt);
             return State(std::move(values), Settings(l.*settings...), nb::borrow<nb::dict>(self.attr("__dict__")));
           })
      .def("__setstate__", [=](L& l, const State& state) {
        const auto& [values, given, attributes] = state;
        if (values.size() != tensors.size()) throw ValueError("__setstate__: this is not the state of such a layer");
        new (&l) L;
        for (size_t i = 0; i < tensors.size(); ++i) l.*tensors[i] = values[i].value_or(Tensor());
        std::tie(l.*settings...) = given;
        nb::find(l).attr("__dict__").attr("update")(attributes);
      });
}

/// A setting that is not to be changed.
template <class L, class B>
void bind_sizes(nb::class_<L, B>& layer, const char* name, Sizes L::* field) {
  layer.def_prop_ro(name, [field](const L& l) { return to_tuple(l.*field); });
}

/// padding is integers, or "same" or "valid".
nn::Conv2dOptions conv_options(const Ints& stride, nb::handle padding, const Ints& dilation, int64_t groups, bool bias) {
  nn::Conv2dOptions o{.stride = stride.values, .dilation = dilation.values, .groups = groups, .bias = bias};
  if (PyUnicode_Check(padding.ptr()))
    o.same = choose<bool>("padding", nb::cast<std::string>(padding), {{"same", true}, {"valid", false}});
  else if (!to_ints(padding, o.padding))
    throw nb::type_error((std::string("padding: expects integers, 'same' or 'valid'; got ") + nb::repr(padding).c_str()).c_str());
  return o;
}

nn::ConvTranspose2dOptions transposed_options(const Ints& stride, const Ints& padding, const Ints& output_padding, const Ints& dilation,
                                              int64_t groups, bool bias) {
  return {.stride = stride.values,
          .padding = padding.values,
          .output_padding = output_padding.values,
          .dilation = dilation.values,
          .groups = groups,
          .bias = bias};
}

Sizes two(const Ints& x) { return x.values.size() == 1 ? Sizes{x.values[0], x.values[0]} : x.values; }

#define TG_CONV_ARGUMENTS \
  "in_channels"_a, "out_channels"_a, "kernel_size"_a, "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1, "groups"_a = 1, "bias"_a = true
#define TG_TRANSPOSED_ARGUMENTS                                                                                                  \
  "in_channels"_a, "out_channels"_a, "kernel_size"_a, "stride"_a = 1, "padding"_a = 0, "output_padding"_a = 0, "dilation"_a = 1, \
                                                      "groups"_a = 1, "bias"_a = true

template <class L>
void bind_convolution(nb::class_<L, Module>& layer, auto... more) {
  bind_sizes<L>(layer, "kernel_size", &L::kernel_size);
  bind_sizes<L>(layer, "stride", &L::stride);
  bind_sizes<L>(layer, "padding", &L::padding);
  bind_sizes<L>(layer, "dilation", &L::dilation);
  layer.def_prop_ro("groups", [](const L& l) { return l.groups; });
  bind_state(layer, {&L::weight, &L::bias}, &L::kernel_size, &L::stride, &L::padding, &L::dilation, &L::groups, more...);
}

void bind_convolutions(nb::module_& m) {
  nb::class_<nn::Conv2d, Module> conv(m, "Conv2d", nb::dynamic_attr());
  conv.def(
      "__init__",
      [](nn::Conv2d* self, int64_t in, int64_t out, const Ints& kernel, const Ints& stride, nb::handle padding, const Ints& dilation,
         int64_t groups, bool bias) { new (self) nn::Conv2d(in, out, two(kernel), conv_options(stride, padding, dilation, groups, bias)); },
      TG_CONV_ARGUMENTS);
  bind_fields(conv, {{"weight", &nn::Conv2d::weight}, {"bias", &nn::Conv2d::bias}});
  bind_convolution(conv);
  m.def(
      "Conv1d",
      [](int64_t in, int64_t out, int64_t kernel, const Ints& stride, nb::handle padding, const Ints& dilation, int64_t groups, bool bias) {
        return nn::Conv2d(in, out, Sizes{kernel}, conv_options(stride, padding, dilation, groups, bias));
      },
      TG_CONV_ARGUMENTS);

  nb::class_<nn::ConvTranspose2d, Module> transposed(m, "ConvTranspose2d", nb::dynamic_attr());
  transposed.def(
      "__init__",
      [](nn::ConvTranspose2d* self, int64_t in, int64_t out, const Ints& kernel, const Ints& stride, const Ints& padding,
         const Ints& output_padding, const Ints& dilation, int64_t groups, bool bias) {
        new (self) nn::ConvTranspose2d(in, out, two(kernel), transposed_options(stride, padding, output_padding, dilation, groups, bias));
      },
      TG_TRANSPOSED_ARGUMENTS);
  bind_fields(transposed, {{"weight", &nn::ConvTranspose2d::weight}, {"bias", &nn::ConvTranspose2d::bias}});
  bind_convolution(transposed, &nn::ConvTranspose2d::output_padding);
  bind_sizes(transposed, "output_padding", &nn::ConvTranspose2d::output_padding);
  m.def(
      "ConvTranspose1d",
      [](int64_t in, int64_t out, int64_t kernel, const Ints& stride, const Ints& padding, const Ints& output_padding, const Ints& dilation,
         int64_t groups, bool bias) {
        return nn::ConvTranspose2d(in, out, Sizes{kernel}, transposed_options(stride, padding, output_padding, dilation, groups, bias));
      },
      TG_TRANSPOSED_ARGUMENTS);
}

template <class L, class B>
void bind_group_state(nb::class_<L, B>& layer) {
  bind_state(layer, {&L::weight, &L::bias}, &L::num_groups, &L::num_channels, &L::eps);
}

template <class L, class B>
void bind_layer_state(nb::class_<L, B>& layer) {
  bind_state(layer, {&L::weight, &L::bias}, &L::normalized_shape, &L::eps);
}

void bind_norms(nb::module_& m) {
  nb::class_<nn::BatchNorm, Module> batch(m, "BatchNorm", nb::dynamic_attr());
  batch.def(
      "__init__",
      [](nn::BatchNorm* self, int64_t channels, double eps, bool affine, bool track, double momentum) {
        new (self) nn::BatchNorm(channels, {.eps = eps, .affine = affine, .track_running_stats = track, .momentum = momentum});
      },
      "sz"_a, "eps"_a = 1e-5, "affine"_a = true, "track_running_stats"_a = true, "momentum"_a = 0.1);
  bind_fields(batch, {{"weight", &nn::BatchNorm::weight},
                      {"bias", &nn::BatchNorm::bias},
                      {"num_batches_tracked", &nn::BatchNorm::num_batches_tracked},
                      {"running_mean", &nn::BatchNorm::running_mean},
                      {"running_var", &nn::BatchNorm::running_var}});
  batch.def_rw("eps", &nn::BatchNorm::eps).def_rw("momentum", &nn::BatchNorm::momentum);
  bind_state(batch,
             {&nn::BatchNorm::weight, &nn::BatchNorm::bias, &nn::BatchNorm::num_batches_tracked, &nn::BatchNorm::running_mean,
              &nn::BatchNorm::running_var},
             &nn::BatchNorm::eps, &nn::BatchNorm::momentum);
  m.attr("BatchNorm2d") = m.attr("BatchNorm");
  m.attr("BatchNorm3d") = m.attr("BatchNorm");

  nb::class_<nn::GroupNorm, Module> group(m, "GroupNorm", nb::dynamic_attr());
  group.def(
      "__init__",
      [](nn::GroupNorm* self, int64_t groups, int64_t channels, double eps, bool affine) {
        new (self) nn::GroupNorm(groups, channels, {.eps = eps, .affine = affine});
      },
      "num_groups"_a, "num_channels"_a, "eps"_a = 1e-5, "affine"_a = true);
  bind_fields(group, {{"weight", &nn::GroupNorm::weight}, {"bias", &nn::GroupNorm::bias}});
  group.def_ro("num_groups", &nn::GroupNorm::num_groups)
      .def_ro("num_channels", &nn::GroupNorm::num_channels)
      .def_rw("eps", &nn::GroupNorm::eps);
  bind_group_state(group);
  nb::class_<nn::InstanceNorm, nn::GroupNorm> instance(m, "InstanceNorm", nb::dynamic_attr());
  instance.def(
      "__init__",
      [](nn::InstanceNorm* self, int64_t features, double eps, bool affine) {
        new (self) nn::InstanceNorm(features, {.eps = eps, .affine = affine});
      },
      "num_features"_a, "eps"_a = 1e-5, "affine"_a = true);
  bind_group_state(instance);

  nb::class_<nn::LayerNorm, Module> layer(m, "LayerNorm", nb::dynamic_attr());
  layer.def(
      "__init__",
      [](nn::LayerNorm* self, const Ints& shape, double eps, bool affine) {
        new (self) nn::LayerNorm(shape.values, {.eps = eps, .elementwise_affine = affine});
      },
      "normalized_shape"_a, "eps"_a = 1e-5, "elementwise_affine"_a = true);
  bind_fields(layer, {{"weight", &nn::LayerNorm::weight}, {"bias", &nn::LayerNorm::bias}});
  bind_sizes(layer, "normalized_shape", &nn::LayerNorm::normalized_shape);
  layer.def_rw("eps", &nn::LayerNorm::eps);
  bind_layer_state(layer);
  nb::class_<nn::LayerNorm2d, nn::LayerNorm> layer2d(m, "LayerNorm2d", nb::dynamic_attr());
  layer2d.def(
      "__init__",
      [](nn::LayerNorm2d* self, const Ints& shape, double eps, bool affine) {
        new (self) nn::LayerNorm2d(shape.values, {.eps = eps, .elementwise_affine = affine});
      },
      "normalized_shape"_a, "eps"_a = 1e-5, "elementwise_affine"_a = true);
  bind_call(layer2d);
  bind_layer_state(layer2d);

  nb::class_<nn::RMSNorm, Module> rms(m, "RMSNorm", nb::dynamic_attr());
  rms.def(
      "__init__",
      [](nn::RMSNorm* self, int64_t size, double eps, bool affine) {
        new (self) nn::RMSNorm(size, {.eps = eps, .elementwise_affine = affine});
      },
      "dim"_a, "eps"_a = 1e-6, "elementwise_affine"_a = true);
  bind_fields(rms, {{"weight", &nn::RMSNorm::weight}});
  rms.def_rw("eps", &nn::RMSNorm::eps);
  bind_state(rms, {&nn::RMSNorm::weight}, &nn::RMSNorm::eps);
}

}  // namespace

void bind_nn(nb::module_& m) {
  nb::class_<Module>(m, "Module", nb::dynamic_attr())
      .def(
          "tensors",
          [](const Module& module, const std::string& path) {
            nn::Fields fields;
            if (path.empty())
              module.add_fields(fields);
            else
              fields.add(path, module);
            return fields.tensors();
          },
          "path"_a = "", "Its tensors and their names, below a path by which errors name the layer from now on.");
  bind_convolutions(m);
  bind_norms(m);

  nb::class_<nn::Linear, Module> linear(m, "Linear", nb::dynamic_attr());
  linear.def(
      "__init__", [](nn::Linear* self, int64_t in, int64_t out, bool bias) { new (self) nn::Linear(in, out, {.bias = bias}); },
      "in_features"_a, "out_features"_a, "bias"_a = true);
  bind_fields(linear, {{"weight", &nn::Linear::weight}, {"bias", &nn::Linear::bias}});
  bind_state(linear, {&nn::Linear::weight, &nn::Linear::bias});

  nb::class_<nn::Embedding, Module> embedding(m, "Embedding", nb::dynamic_attr());
  embedding.def(nb::init<int64_t, int64_t>(), "vocab_size"_a, "embed_size"_a);
  bind_fields(embedding, {{"weight", &nn::Embedding::weight}});
  bind_state(embedding, {&nn::Embedding::weight});

  nb::class_<nn::LSTMCell, Module> lstm(m, "LSTMCell", nb::dynamic_attr());
  lstm.def(
          "__init__",
          [](nn::LSTMCell* self, int64_t in, int64_t hidden, bool bias) { new (self) nn::LSTMCell(in, hidden, {.bias = bias}); },
          "input_size"_a, "hidden_size"_a, "bias"_a = true)
      .def(
          "__call__",
          [](const nn::LSTMCell& l, const Tensor& x, const std::optional<std::pair<Tensor, Tensor>>& state) { return l(x, state); }, "x"_a,
          "hc"_a = nb::none());
  for (const auto& [name, field] : {std::pair{"weight_ih", &nn::LSTMCell::weight_ih}, std::pair{"weight_hh", &nn::LSTMCell::weight_hh},
                                    std::pair{"bias_ih", &nn::LSTMCell::bias_ih}, std::pair{"bias_hh", &nn::LSTMCell::bias_hh}})
    bind_field(lstm, name, field);
  bind_state(lstm, {&nn::LSTMCell::weight_ih, &nn::LSTMCell::weight_hh, &nn::LSTMCell::bias_ih, &nn::LSTMCell::bias_hh});
}

}  // namespace tinygrad::python
