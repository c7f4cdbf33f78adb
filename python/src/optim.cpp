// Optimizers.
#include "common.h"

namespace tinygrad::python {

namespace {

using namespace nn::optim;

std::vector<Tensor> params_of(nb::handle params) {
  if (nb::isinstance<Tensor>(params)) throw nb::type_error("params: expects a list of tensors, got one tensor");
  return to_tensors(nb::borrow<nb::args>(nb::tuple(nb::borrow<nb::object>(params))), "params");
}

}  // namespace

void bind_optim(nb::module_& m) {
  nb::class_<Optimizer, nn::Module>(m, "Optimizer", nb::dynamic_attr())
      .def("zero_grad", &Optimizer::zero_grad)
      .def("step",
           [](Optimizer& o) {
             const Interruptible interruptible;
             const Released released;
             o.step();
           })
      .def("schedule_step",
           [](Optimizer& o) {
             const Released released;
             return o.schedule_step();
           })
      .def_prop_ro("params", [](const Optimizer& o) { return o.params(); })
      .def_rw("lr", &Optimizer::lr);
#define TG_COMMON_ARGUMENTS "device"_a = nb::none(), "fused"_a = nb::none()
  nb::class_<SGD, Optimizer>(m, "SGD", nb::dynamic_attr())
      .def(
          "__init__",
          [](SGD* self, nb::handle params, double lr, double momentum, double weight_decay, bool nesterov, bool classic, nb::handle,
             nb::handle) {
            new (self) SGD(params_of(params),
                           {.lr = lr, .momentum = momentum, .weight_decay = weight_decay, .nesterov = nesterov, .classic = classic});
          },
          "params"_a, "lr"_a = 0.001, "momentum"_a = 0.0, "weight_decay"_a = 0.0, "nesterov"_a = false, "classic"_a = false,
          TG_COMMON_ARGUMENTS);
  nb::class_<AdamW, Optimizer>(m, "AdamW", nb::dynamic_attr())
      .def(
          "__init__",
          [](AdamW* self, nb::handle params, double lr, double b1, double b2, double eps, double weight_decay, nb::handle, nb::handle) {
            new (self) AdamW(params_of(params), {.lr = lr, .b1 = b1, .b2 = b2, .eps = eps, .weight_decay = weight_decay});
          },
          "params"_a, "lr"_a = 0.001, "b1"_a = 0.9, "b2"_a = 0.999, "eps"_a = 1e-8, "weight_decay"_a = 0.01, TG_COMMON_ARGUMENTS);
  nb::class_<Adam, AdamW>(m, "Adam", nb::dynamic_attr())
      .def(
          "__init__",
          [](Adam* self, nb::handle params, double lr, double b1, double b2, double eps, nb::handle, nb::handle) {
            new (self) Adam(params_of(params), {.lr = lr, .b1 = b1, .b2 = b2, .eps = eps});
          },
          "params"_a, "lr"_a = 0.001, "b1"_a = 0.9, "b2"_a = 0.999, "eps"_a = 1e-8, TG_COMMON_ARGUMENTS);
#undef TG_COMMON_ARGUMENTS
}

}  // namespace tinygrad::python
