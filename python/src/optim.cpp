// Optimizers and learning-rate schedulers.
#include <nanobind/stl/function.h>
#include <nanobind/stl/shared_ptr.h>

#include "common.h"

namespace tinygrad::python {

namespace {

using namespace nn::optim;

std::vector<Tensor> params_of(nb::handle params) {
  if (nb::isinstance<Tensor>(params)) throw nb::type_error("params: expects a list of tensors, got one tensor");
  return to_tensors(nb::borrow<nb::args>(nb::tuple(nb::borrow<nb::object>(params))), "params");
}

/// Parameters are computed, and get memory for their state.
template <class O, class Options>
void construct(O* self, nb::handle params, const Options& options) {
  const std::vector<Tensor> given = params_of(params);
  const Interruptible interruptible;
  const Released released;
  new (self) O(given, options);
}

/// A scheduler sets the first rate.
template <class S, class... Arguments>
void construct_scheduler(S* self, Optimizer& optimizer, Arguments&&... arguments) {
  const Interruptible interruptible;
  const Released released;
  new (self) S(optimizer, std::forward<Arguments>(arguments)...);
}

/// `step()` and `schedule_step()`.
template <class C, class B>
void bind_steps(nb::class_<C, B>& type) {
  type.def("step",
           [](C& o) {
             const Interruptible interruptible;
             const Released released;
             o.step();
           })
      .def("schedule_step", [](C& o) {
        const Released released;
        return o.schedule_step();
      });
}

#define TG_COMMON_ARGUMENTS "device"_a = nb::none(), "fused"_a = nb::none()
using Device = std::optional<std::string>;
using Fused = std::optional<bool>;

void bind_momentum(nb::module_& m) {
  nb::class_<LARS, Optimizer>(m, "LARS", nb::dynamic_attr())
      .def(
          "__init__",
          [](LARS* self, nb::handle params, double lr, double momentum, double weight_decay, int64_t ns_steps,
             const std::optional<std::vector<double>>& ns_coefficients, bool nesterov, bool classic, bool pre_wd, double tcoef,
             const Device& device, Fused fused) {
            construct(self, params,
                      LARSOptions{.lr = lr,
                                  .momentum = momentum,
                                  .weight_decay = weight_decay,
                                  .ns_steps = ns_steps,
                                  .ns_coefficients = ns_coefficients.value_or(std::vector<double>()),
                                  .nesterov = nesterov,
                                  .classic = classic,
                                  .pre_wd = pre_wd,
                                  .tcoef = tcoef,
                                  .device = device.value_or(""),
                                  .fused = fused});
          },
          "params"_a, "lr"_a = 0.001, "momentum"_a = 0.9, "weight_decay"_a = 1e-4, "ns_steps"_a = 0, "ns_coefficients"_a = nb::none(),
          "nesterov"_a = false, "classic"_a = true, "pre_wd"_a = true, "tcoef"_a = 0.001, TG_COMMON_ARGUMENTS);
  nb::class_<SGD, LARS>(m, "SGD", nb::dynamic_attr())
      .def(
          "__init__",
          [](SGD* self, nb::handle params, double lr, double momentum, double weight_decay, bool nesterov, bool classic,
             const Device& device, Fused fused) {
            construct(self, params,
                      SGDOptions{.lr = lr,
                                 .momentum = momentum,
                                 .weight_decay = weight_decay,
                                 .nesterov = nesterov,
                                 .classic = classic,
                                 .device = device.value_or(""),
                                 .fused = fused});
          },
          "params"_a, "lr"_a = 0.001, "momentum"_a = 0.0, "weight_decay"_a = 0.0, "nesterov"_a = false, "classic"_a = false,
          TG_COMMON_ARGUMENTS);
  nb::class_<Muon, LARS>(m, "Muon", nb::dynamic_attr())
      .def(
          "__init__",
          [](Muon* self, nb::handle params, double lr, double momentum, double weight_decay, int64_t ns_steps,
             const std::vector<double>& ns_coefficients, bool nesterov, const Device& device, Fused fused) {
            construct(self, params,
                      MuonOptions{.lr = lr,
                                  .momentum = momentum,
                                  .weight_decay = weight_decay,
                                  .ns_steps = ns_steps,
                                  .ns_coefficients = ns_coefficients,
                                  .nesterov = nesterov,
                                  .device = device.value_or(""),
                                  .fused = fused});
          },
          "params"_a, "lr"_a = 0.001, "momentum"_a = 0.95, "weight_decay"_a = 0.1, "ns_steps"_a = 5,
          "ns_coefficients"_a = nb::make_tuple(3.4445, -4.775, 2.0315), "nesterov"_a = true, TG_COMMON_ARGUMENTS);
}

void bind_adaptive(nb::module_& m) {
  nb::class_<LAMB, Optimizer>(m, "LAMB", nb::dynamic_attr())
      .def(
          "__init__",
          [](LAMB* self, nb::handle params, double lr, double b1, double b2, double eps, double weight_decay, bool adam,
             const Device& device, Fused fused) {
            construct(self, params,
                      LAMBOptions{.lr = lr,
                                  .b1 = b1,
                                  .b2 = b2,
                                  .eps = eps,
                                  .weight_decay = weight_decay,
                                  .adam = adam,
                                  .device = device.value_or(""),
                                  .fused = fused});
          },
          "params"_a, "lr"_a = 0.001, "b1"_a = 0.9, "b2"_a = 0.999, "eps"_a = 1e-6, "weight_decay"_a = 0.0, "adam"_a = false,
          TG_COMMON_ARGUMENTS);
  nb::class_<AdamW, LAMB>(m, "AdamW", nb::dynamic_attr())
      .def(
          "__init__",
          [](AdamW* self, nb::handle params, double lr, double b1, double b2, double eps, double weight_decay, const Device& device,
             Fused fused) {
            construct(
                self, params,
                AdamWOptions{
                    .lr = lr, .b1 = b1, .b2 = b2, .eps = eps, .weight_decay = weight_decay, .device = device.value_or(""), .fused = fused});
          },
          "params"_a, "lr"_a = 0.001, "b1"_a = 0.9, "b2"_a = 0.999, "eps"_a = 1e-8, "weight_decay"_a = 0.01, TG_COMMON_ARGUMENTS);
  nb::class_<Adam, LAMB>(m, "Adam", nb::dynamic_attr())
      .def(
          "__init__",
          [](Adam* self, nb::handle params, double lr, double b1, double b2, double eps, const Device& device, Fused fused) {
            construct(self, params, AdamOptions{.lr = lr, .b1 = b1, .b2 = b2, .eps = eps, .device = device.value_or(""), .fused = fused});
          },
          "params"_a, "lr"_a = 0.001, "b1"_a = 0.9, "b2"_a = 0.999, "eps"_a = 1e-8, TG_COMMON_ARGUMENTS);
}

void bind_schedulers(nb::module_& m) {
  nb::class_<LRScheduler, nn::Module> scheduler(m, "LRScheduler", nb::dynamic_attr());
  scheduler.def("get_lr", &LRScheduler::get_lr);
  bind_steps(scheduler);
  using Lives = nb::keep_alive<1, 2>;  // the scheduler keeps its optimizer
  nb::class_<MultiStepLR, LRScheduler>(m, "MultiStepLR")
      .def(
          "__init__",
          [](MultiStepLR* self, Optimizer& o, const std::vector<int64_t>& milestones, double gamma) {
            construct_scheduler(self, o, milestones, gamma);
          },
          "optimizer"_a, "milestones"_a, "gamma"_a = 0.1, Lives());
  nb::class_<CosineAnnealingLR, LRScheduler>(m, "CosineAnnealingLR")
      .def(
          "__init__",
          [](CosineAnnealingLR* self, Optimizer& o, int64_t steps, double end) {
            construct_scheduler(self, o, CosineAnnealingOptions{.steps = steps, .end_lr = end});
          },
          "optimizer"_a, "T_max"_a, "eta_min"_a = 0.0, Lives());
  nb::class_<CosineAnnealingLRWithWarmup, LRScheduler>(m, "CosineAnnealingLRWithWarmup")
      .def(
          "__init__",
          [](CosineAnnealingLRWithWarmup* self, Optimizer& o, double end, int64_t warmup, int64_t decay) {
            construct_scheduler(self, o, CosineWarmupOptions{.warmup_steps = warmup, .decay_steps = decay, .end_lr = end});
          },
          "optimizer"_a, "end_lr"_a, "warmup_steps"_a, "decay_steps"_a, Lives());
  nb::class_<OneCycleLR, LRScheduler>(m, "OneCycleLR")
      .def(
          "__init__",
          [](OneCycleLR* self, Optimizer& o, double max_lr, int64_t total, double pct_start, const std::string& anneal, double div,
             double final_div, bool three_phase) {
            construct_scheduler(self, o,
                                OneCycleOptions{.max_lr = max_lr,
                                                .total_steps = total,
                                                .pct_start = pct_start,
                                                .anneal = choose<Anneal>("OneCycleLR: anneal_strategy", anneal,
                                                                         {{"cos", Anneal::cosine}, {"linear", Anneal::linear}}),
                                                .div_factor = div,
                                                .final_div_factor = final_div,
                                                .three_phase = three_phase});
          },
          "optimizer"_a, "max_lr"_a, "total_steps"_a, "pct_start"_a = 0.3, "anneal_strategy"_a = "cos", "div_factor"_a = 25.0,
          "final_div_factor"_a = 1e4, "three_phase"_a = false, Lives());
  nb::class_<LambdaLR, LRScheduler>(m, "LambdaLR")
      .def(
          "__init__",
          [](LambdaLR* self, Optimizer& o, nb::callable factor) {
            // The scheduler's own attribute, where Python's collector of cycles sees it; while it is made, the argument.
            const auto object = std::make_shared<nb::handle>();
            construct_scheduler(self, o, [object, given = nb::handle(factor)](int64_t step) {
              const nb::gil_scoped_acquire gil;
              const nb::object function = *object ? object->attr("lr_lambda") : nb::borrow(given);
              return cast_to<double>(function(step), "LambdaLR: lr_lambda", "to return a number");
            });
            *object = nb::find(*self).ptr();
            object->attr("lr_lambda") = factor;
          },
          "optimizer"_a, "lr_lambda"_a, Lives());
  nb::class_<ReduceLROnPlateau, nn::Module>(m, "ReduceLROnPlateau", nb::dynamic_attr())
      .def(
          "__init__",
          [](ReduceLROnPlateau* self, Optimizer& o, const std::string& mode, double factor, int64_t patience, double threshold,
             const std::string& threshold_mode, int64_t cooldown, double min_lr, double eps) {
            construct_scheduler(
                self, o,
                ReduceLROnPlateauOptions{
                    .mode = choose<PlateauMode>("ReduceLROnPlateau: mode", mode, {{"min", PlateauMode::min}, {"max", PlateauMode::max}}),
                    .factor = factor,
                    .patience = patience,
                    .threshold = threshold,
                    .threshold_mode = choose<PlateauThreshold>("ReduceLROnPlateau: threshold_mode", threshold_mode,
                                                               {{"rel", PlateauThreshold::rel}, {"abs", PlateauThreshold::abs}}),
                    .cooldown = cooldown,
                    .min_lr = min_lr,
                    .eps = eps});
          },
          "optimizer"_a, "mode"_a = "min", "factor"_a = 0.1, "patience"_a = 10, "threshold"_a = 1e-4, "threshold_mode"_a = "rel",
          "cooldown"_a = 0, "min_lr"_a = 0.0, "eps"_a = 1e-8, Lives())
      .def(
          "step",
          [](ReduceLROnPlateau& s, const Value& metric) {
            const Operand& x = metric;
            const auto* tensor = std::get_if<const Tensor*>(&x.value());
            const Tensor t = tensor ? **tensor : Tensor::full({}, x);
            const Released released;
            s.step(t);
          },
          "metrics"_a)
      .def("schedule_step", [](ReduceLROnPlateau& s, const Tensor& metric) { return s.schedule_step(metric); }, "metrics"_a);
}

}  // namespace

void bind_optim(nb::module_& m) {
  nb::class_<Optimizer, nn::Module> optimizer(m, "Optimizer", nb::dynamic_attr());
  optimizer.def("zero_grad", &Optimizer::zero_grad)
      .def_prop_ro("params", [](const Optimizer& o) { return o.params(); })
      .def_rw("lr", &Optimizer::lr);
  bind_steps(optimizer);
  bind_momentum(m);
  bind_adaptive(m);
  nb::class_<OptimizerGroup, Optimizer>(m, "OptimizerGroup", nb::dynamic_attr())
      .def("__init__",
           [](OptimizerGroup* self, const nb::args& optimizers) {
             std::vector<std::shared_ptr<Optimizer>> group;
             for (nb::handle o : optimizers) group.push_back(cast_to<std::shared_ptr<Optimizer>>(o, "OptimizerGroup", "optimizers"));
             new (self) OptimizerGroup(std::move(group));
           })
      .def("__getitem__",
           [](const OptimizerGroup& g, size_t i) {
             if (i >= g.size())
               throw IndexError("OptimizerGroup: index " + std::to_string(i) + " is out of range for " + std::to_string(g.size()) +
                                " optimizers");
             return g.optimizers[i];
           })
      .def("__len__", &OptimizerGroup::size)
      .def_prop_ro("optimizers", [](const OptimizerGroup& g) { return g.optimizers; });
  bind_schedulers(m);
}

}  // namespace tinygrad::python
