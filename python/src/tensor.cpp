// The class Tensor: creation, what a tensor is, running, changing and gradients.
#include "common.h"

namespace tinygrad::python {

namespace {

void bind_constants(TensorClass& tensor) {
#define TG_CREATE(name, to_shape)                                                       \
  tensor.def_static(                                                                    \
      #name,                                                                            \
      [](const nb::args& shape, const DeviceName& device, const OptionalDType& dtype) { \
        return Tensor::name(to_shape(shape, #name), to_options(device, dtype));         \
      },                                                                                \
      "shape"_a, "device"_a = nb::none(), "dtype"_a = nb::none())
  TG_CREATE(empty, to_extents);
  TG_CREATE(invalids, to_extents);
#undef TG_CREATE
  // What tinygrad is told of memory by `buffer` and `contiguous` does not show in values, and is up to the library.
#define TG_CREATE(name, to_shape, memory)                                                     \
  tensor.def_static(                                                                          \
      #name,                                                                                  \
      [](const nb::args& shape, const DeviceName& device, const OptionalDType& dtype, bool) { \
        return Tensor::name(to_shape(shape, #name), to_options(device, dtype));               \
      },                                                                                      \
      "shape"_a, "device"_a = nb::none(), "dtype"_a = nb::none(), memory = true)
  TG_CREATE(zeros, to_extents, "buffer"_a);
  TG_CREATE(ones, to_extents, "buffer"_a);
  TG_CREATE(rand, to_sizes, "contiguous"_a);
  TG_CREATE(scaled_uniform, to_sizes, "contiguous"_a);
  TG_CREATE(glorot_uniform, to_sizes, "contiguous"_a);
#undef TG_CREATE
#define TG_LIKE(name, memory)                                                           \
  tensor.def(                                                                           \
      #name,                                                                            \
      [](const Tensor& t, const OptionalDType& dtype, const DeviceName& device, bool) { \
        return t.name({.dtype = get(dtype), .device = device.value_or("")});            \
      },                                                                                \
      "dtype"_a = nb::none(), "device"_a = nb::none(), memory = true)
  TG_LIKE(zeros_like, "buffer"_a);
  TG_LIKE(ones_like, "buffer"_a);
  TG_LIKE(rand_like, "contiguous"_a);
  TG_LIKE(randn_like, "contiguous"_a);
#undef TG_LIKE
  tensor
      .def(
          "empty_like",
          [](const Tensor& t, const OptionalDType& dtype, const DeviceName& device) { return t.empty_like(to_options(device, dtype)); },
          "dtype"_a = nb::none(), "device"_a = nb::none())
      .def_static(
          "full",
          [](nb::handle shape, const Value& value, const OptionalDType& dtype, const DeviceName& device, bool) {
            return Tensor::full(to_extents(nb::borrow<nb::args>(nb::make_tuple(shape)), "full"), value, to_options(device, dtype));
          },
          "shape"_a, "fill_value"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), "buffer"_a = true)
      .def(
          "full_like",
          [](const Tensor& t, const Value& value, const OptionalDType& dtype, const DeviceName& device, bool) {
            return t.full_like(value, to_options(device, dtype));
          },
          "fill_value"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), "buffer"_a = true)
      .def_static(
          "const", [](const Value& value, const OptionalDType& dtype) { return Tensor::scalar(value, {.dtype = get(dtype)}); }, "b"_a,
          "dtype"_a = nb::none())
      .def(
          "const_like", [](const Tensor& t, const Value& value, const OptionalDType& dtype) { return t.const_like(value, get(dtype)); },
          "b"_a, "dtype"_a = nb::none())
      .def_static(
          "arange",
          [](nb::handle start, nb::handle stop, nb::handle step, const OptionalDType& dtype, const DeviceName& device) {
            const nb::object zero = nb::int_(0);
            const nb::handle first = stop.is_none() ? nb::handle(zero) : start, last = stop.is_none() ? start : stop;
            Sizes whole;
            const TensorOptions options = to_options(device, dtype);
            if (to_ints(nb::make_tuple(first, last, step), whole)) return Tensor::arange(whole[0], whole[1], whole[2], options);
            const auto begin = to_extent(first), end = to_extent(last), by = to_extent(step);
            if (begin && end && by && by->known()) return Tensor::arange(*begin, *end, by->value(), options);
            const auto number = [](nb::handle x) { return cast_to<double>(x, "arange", "numbers"); };
            return Tensor::arange(number(first), number(last), number(step), options);
          },
          "start"_a, "stop"_a = nb::none(), "step"_a = 1, "dtype"_a = nb::none(), "device"_a = nb::none())
      .def_static(
          "linspace",
          [](double start, double stop, int64_t steps, const OptionalDType& dtype, const DeviceName& device) {
            return Tensor::linspace(start, stop, steps, to_options(device, dtype));
          },
          "start"_a, "stop"_a, "steps"_a, "dtype"_a = nb::none(), "device"_a = nb::none())
      .def_static(
          "eye",
          [](int64_t n, std::optional<int64_t> m, const OptionalDType& dtype, const DeviceName& device) {
            return Tensor::eye(n, m, to_options(device, dtype));
          },
          "n"_a, "m"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none());
}

/// Draws tensors of a shape; the numbers tell how they are distributed.
template <class... Numbers>
struct Distribution {
  const char* name;
  Tensor (*draw)(const Sizes&, Numbers..., const TensorOptions&);

  template <class... Arguments>
  void bind(TensorClass& tensor, const Arguments&... numbers) const {
    tensor.def_static(
        name,
        [*this](const nb::args& shape, Numbers... values, const OptionalDType& dtype, const DeviceName& device, bool) {
          return draw(to_sizes(shape, name), values..., to_options(device, dtype));
        },
        "shape"_a, numbers..., "dtype"_a = nb::none(), "device"_a = nb::none(), "contiguous"_a = true);
  }
};

void bind_random(TensorClass& tensor) {
  Distribution<>{"randn", &Tensor::randn}.bind(tensor);
  Distribution<int64_t, int64_t>{"randint", &Tensor::randint}.bind(tensor, "low"_a = 0, "high"_a = 10);
  Distribution<double, double>{"normal", &Tensor::normal}.bind(tensor, "mean"_a = 0.0, "std"_a = 1.0);
  Distribution<double, double>{"uniform", &Tensor::uniform}.bind(tensor, "low"_a = 0.0, "high"_a = 1.0);
  Distribution<double>{"kaiming_uniform", &Tensor::kaiming_uniform}.bind(tensor, "a"_a = 0.01);
  Distribution<double>{"kaiming_normal", &Tensor::kaiming_normal}.bind(tensor, "a"_a = 0.01);
  tensor
      .def_static(
          "manual_seed",
          [](nb::handle seed) {
            const uint64_t low_bits = PyLong_AsUnsignedLongLongMask(seed.ptr());
            if (PyErr_Occurred()) {
              PyErr_Clear();
              throw nb::type_error((std::string("manual_seed: expects an integer, got ") + nb::repr(seed).c_str()).c_str());
            }
            Tensor::manual_seed(low_bits);
          },
          "seed"_a = 0, nb::sig("def manual_seed(seed: int = 0) -> None"), "Starts the sequence of random numbers by the seed modulo 2^64.")
      .def_static("get_rng_state", &Tensor::get_rng_state,
                  "Where the sequence of random numbers is, a tensor of two uint64 for set_rng_state().")
      .def_static(
          "set_rng_state",
          [](const Tensor& state) {
            const Released released;
            Tensor::set_rng_state(state);
          },
          "state"_a)
      .def_static("random_bits", &Tensor::random_bits, "key"_a, "counter"_a, "num"_a)
      .def_static(
          "randperm",
          [](int64_t n, const DeviceName& device, const OptionalDType& dtype, bool) {
            return Tensor::randperm(n, to_options(device, dtype));
          },
          "n"_a, "device"_a = nb::none(), "dtype"_a = nb::none(), "contiguous"_a = true)
      .def("multinomial", &Tensor::multinomial, "num_samples"_a = 1, "replacement"_a = false)
      .def("dropout", &Tensor::dropout, "p"_a = 0.5);
}

/// What assign() writes: a tensor, or data of this one's dtype and device, broadcast to its shape.
Tensor assigned(nb::handle x, const Tensor& to) {
  const Tensor value = to_tensor_like(x, to);
  const Extents shape = to.symbolic_shape();
  return value.symbolic_shape() == shape ? value : value.expand(shape);
}

void compute(std::span<const Tensor> tensors) {
  const Interruptible interruptible;
  const Released released;
  Tensor::realize(tensors);
}

/// Where Python has made room for it.
void construct(Tensor* self, Tensor value) {
  new (self) Tensor(std::move(value));
  using Caster = nb::detail::type_caster_base<Tensor>;
  if (self->defined()) object_of(*self) = nb::steal(Caster::from_cpp(self, nb::rv_policy::none, nullptr)).ptr();
}

void bind_running(TensorClass& tensor) {
  tensor
      .def(
          "realize",
          [](nb::handle self, const nb::args& lst, bool) {
            const std::vector<Tensor> all = to_tensors(self, lst, "realize");
            compute(all);
            return nb::borrow(self);
          },
          "lst"_a, "do_update_stats"_a = true, "Computes these tensors, in one schedule.")
      .def(
          "assign",
          [](nb::handle self, nb::handle x) {
            Tensor& t = *nb::inst_ptr<Tensor>(self);
            const Tensor value = assigned(x, t);
            {
              const Interruptible interruptible;
              const Released released;
              t.assign(value);
            }
            return nb::borrow(self);
          },
          "x"_a)
      .def(
          "replace",
          [](nb::handle self, const Tensor& x) {
            nb::inst_ptr<Tensor>(self)->replace(x);
            return nb::borrow(self);
          },
          "x"_a)
      .def(
          "clone",
          [](const Tensor& t, const DeviceName& device) {
            if (!device) return t.clone();
            const Tensor out = t.clone().to(*device);
            if (const Tensor g = t.grad(); g.defined()) out.set_grad(g.clone().to(*device));
            return out;
          },
          "device"_a = nb::none())
      .def(
          "to", [](const Tensor& t, const DeviceName& device) { return t.to(device.value_or("")); }, "device"_a.none())
      .def(
          "to_",
          [](nb::handle self, const DeviceName& device) {
            nb::inst_ptr<Tensor>(self)->to_(device.value_or(""));
            return nb::borrow(self);
          },
          "device"_a.none())
      .def("__getstate__",
           [](const Tensor& t) {
             std::vector<std::byte> bytes;
             {
               const Interruptible interruptible;
               const Released released;
               bytes = t.data();
             }
             return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()), std::string(repr(t.dtype())),
                                   to_tuple(t.shape()), t.device(), t.is_param());
           })
      .def("__setstate__", [](Tensor& t, const std::tuple<nb::bytes, std::string, Sizes, std::string, bool>& state) {
        const auto& [bytes, dtype, shape, device, is_param] = state;
        construct(&t, Tensor(std::as_bytes(std::span(bytes.c_str(), bytes.size())), parse_dtype(dtype), shape, {.device = device}));
        t.is_param_(is_param);
      });
  tensor
      .def(
          "shard", [](const Tensor& t, const DeviceName& devices, std::optional<int> axis) { return t.shard(to_list(devices), axis); },
          "devices"_a, "axis"_a = nb::none())
      .def(
          "shard_",
          [](nb::handle self, const DeviceName& devices, std::optional<int> axis) {
            nb::inst_ptr<Tensor>(self)->shard_(to_list(devices), axis);
            return nb::borrow(self);
          },
          "devices"_a, "axis"_a = nb::none())
      .def(
          "shard",
          [](const Tensor& t, const Mesh& mesh, const nb::dict& cuts, const std::vector<std::string>& gathered) {
            return shard_on(t, mesh, cuts, gathered);
          },
          "mesh"_a, "cuts"_a, "gathered"_a = std::vector<std::string>())
      .def(
          "shard_",
          [](nb::handle self, const Mesh& mesh, const nb::dict& cuts, const std::vector<std::string>& gathered) {
            Tensor& t = *nb::inst_ptr<Tensor>(self);
            t.replace(shard_on(t, mesh, cuts, gathered));
            return nb::borrow(self);
          },
          "mesh"_a, "cuts"_a, "gathered"_a = std::vector<std::string>())
      .def("shard_like", &Tensor::shard_like, "y"_a)
      .def("placement", &Tensor::placement);
}

void bind_gradients(TensorClass& tensor) {
  tensor
      .def(
          "backward",
          [](nb::handle self, const std::optional<Tensor>& gradient) {
            const Tensor& t = *nb::inst_ptr<Tensor>(self);
            {
              const Interruptible interruptible;
              const Released released;
              t.backward(gradient.value_or(Tensor()));
            }
            return nb::borrow(self);
          },
          "gradient"_a = nb::none())
      .def(
          "gradient",
          [](const Tensor& t, const nb::args& targets, const std::optional<Tensor>& gradient) {
            const std::vector<Tensor> of = to_tensors(targets, "gradient");
            const Interruptible interruptible;
            const Released released;
            return t.gradient(of, gradient.value_or(Tensor()));
          },
          "targets"_a, "gradient"_a = nb::none())
      .def_prop_rw(
          "grad",
          [](const Tensor& t) {
            const Tensor g = t.grad();
            return g.defined() ? std::optional(g) : std::nullopt;
          },
          [](const Tensor& t, const std::optional<Tensor>& g) { t.set_grad(g.value_or(Tensor())); }, nb::for_setter("value"_a.none()))
      .def(
          "is_param_",
          [](nb::handle self, bool is_param) {
            nb::inst_ptr<Tensor>(self)->is_param_(is_param);
            return nb::borrow(self);
          },
          "is_param"_a = true)
      .def_prop_ro("is_param", &Tensor::is_param);
}

}  // namespace

void bind_creation(TensorClass& tensor) {
  tensor
      .def_static(
          "from_url",
          [](const std::string& url, bool gunzip, const DeviceName& device, const OptionalDType& dtype) {
            return make_tensor(nb::module_::import_("tinygrad_cpp.helpers").attr("fetch")(url, "gunzip"_a = gunzip), device, get(dtype));
          },
          "url"_a, "gunzip"_a = false, "device"_a = nb::none(), "dtype"_a = nb::none(),
          "The bytes of a file from the network: see helpers.fetch.")
      .def(
          "__init__",
          [](Tensor* self, nb::handle data, const DeviceName& device, const OptionalDType& dtype) {
            construct(self, make_tensor(data, device, get(dtype)));
          },
          "data"_a.none(), "device"_a = nb::none(), "dtype"_a = nb::none(),
          "A tensor of a number, nested lists, bytes, a file (pathlib.Path), or an array of NumPy, PyTorch or any library with DLPack or "
          "the\n"
          "buffer protocol. An array's own memory is used where it is writable, row-major, and of the wanted dtype and device: changes to\n"
          "either are seen by the other.")
      .def("__repr__", &Tensor::to_string)
      .def("__hash__", [](nb::handle self) { return Py_hash_t(reinterpret_cast<uintptr_t>(self.ptr()) >> 4); })
      .def("__bool__",
           [](const Tensor&) -> bool { throw nb::type_error("a Tensor is neither true nor false; use item(), any() or all()"); })
      .def_prop_ro("dtype", [](const Tensor& t) { return DTypeArg{t.dtype()}; })
      .def_prop_ro("device", [](const Tensor& t) { return to_object(t.devices()); })
      .def("element_size", &Tensor::element_size)
      .def("nbytes", &Tensor::nbytes)
      .def("is_floating_point", &Tensor::is_floating_point);
  tensor.attr("__array_ufunc__") = nb::none();  // `array + tensor` is Tensor.__radd__
  bind_constants(tensor);
  bind_random(tensor);
  bind_running(tensor);
  bind_gradients(tensor);
}

}  // namespace tinygrad::python
