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

/// The parts of a step, which are protected.
struct Parts : Optimizer {
  static constexpr auto begin_step_of = &Parts::begin_step;
  static constexpr auto update_of = &Parts::update;
  static constexpr auto make_state_of = &Parts::make_state;
};

/// What a class in Python begins with that says itself how parameters change, by `_step`.
class OwnOptimizer : public Optimizer {
 public:
  OwnOptimizer(std::span<const Tensor> params, const LARSOptions& o)
      : Optimizer(params, {.lr = o.lr, .device = o.device, .fused = o.fused}) {}
  void add_fields(nn::Fields& fields) const override { fields.add("lr", lr); }

  // What the library's own optimizers do for one parameter, and zeros for all.
  static std::pair<std::vector<Tensor>, std::vector<Tensor>> step_of(Optimizer& o, const std::vector<Tensor>& params,
                                                                     const std::vector<Tensor>& grads) {
    std::vector<Tensor> assigned = (o.*Parts::begin_step_of)(), changes;
    for (size_t i = 0; i < params.size(); ++i) {
      const DType wide = least_upper_dtype(params[i].dtype(), DType::float32);
      const auto prepared = [&](const Tensor& t) { return (t.device() == o.device() ? t : t.to(o.device())).detach().cast(wide); };
      const Tensor p = prepared(params[i]);
      changes.push_back(p - (o.*Parts::update_of)(i, p, prepared(grads.at(i)), assigned));
    }
    return {std::move(changes), std::move(assigned)};
  }
  static std::vector<Tensor> zeros_of(const Optimizer& o) { return (o.*Parts::make_state_of)(); }

 private:
  Tensor update(size_t, const Tensor&, const Tensor&, std::vector<Tensor>&) override {
    const nb::gil_scoped_acquire gil;
    PyErr_SetString(PyExc_NotImplementedError, "Optimizer: a subclass says by _step(params, grads) what is subtracted from parameters");
    throw nb::python_error();
  }
};

/// Whether a subclass in Python, or one in a group, has a step of its own.
bool has_own_step(nb::handle optimizer) {
  const nb::object base = nb::module_::import_("tinygrad_cpp._core").attr("Optimizer");
  for (const char* method : {"_step", "_apply_update"})
    if (!nb::object(optimizer.type().attr(method)).is(base.attr(method))) return true;
  if (!nb::isinstance<OptimizerGroup>(optimizer)) return false;
  for (nb::handle o : nb::list(optimizer.attr("optimizers")))
    if (has_own_step(o)) return true;
  return false;
}

std::vector<Tensor> scheduled_step(nb::handle optimizer) {
  if (has_own_step(optimizer))
    return nb::cast<std::vector<Tensor>>(nb::module_::import_("tinygrad_cpp.nn.optim").attr("scheduled_step")(optimizer));
  Optimizer& o = *nb::inst_ptr<Optimizer>(optimizer);
  const Released released;
  return o.schedule_step();
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
using Fused = std::optional<bool>;

/// A setting that is not to be changed.
template <class C, class B, class O, class T>
void bind_setting(nb::class_<C, B>& type, const char* name, T O::* field) {
  type.def_prop_ro(name, [field](const C& o) { return o.options().*field; });
}

void bind_momentum(nb::module_& m) {
  nb::class_<LARS, Optimizer> lars(m, "LARS", nb::dynamic_attr());
  bind_setting(lars, "momentum", &LARSOptions::momentum);
  bind_setting(lars, "wd", &LARSOptions::weight_decay);
  bind_setting(lars, "ns_steps", &LARSOptions::ns_steps);
  bind_setting(lars, "ns_coefficients", &LARSOptions::ns_coefficients);
  bind_setting(lars, "nesterov", &LARSOptions::nesterov);
  bind_setting(lars, "classic", &LARSOptions::classic);
  bind_setting(lars, "pre_wd", &LARSOptions::pre_wd);
  bind_setting(lars, "tcoef", &LARSOptions::tcoef);
  lars.def_rw("b", &LARS::b, "Momentum, where there is one.")
      .def(
          "__init__",
          [](LARS* self, nb::handle params, double lr, double momentum, double weight_decay, int64_t ns_steps,
             const std::optional<std::vector<double>>& ns_coefficients, bool nesterov, bool classic, bool pre_wd, double tcoef,
             const DeviceName& device, Fused fused) {
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
             const DeviceName& device, Fused fused) {
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
             const std::vector<double>& ns_coefficients, bool nesterov, const DeviceName& device, Fused fused) {
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
  nb::class_<LAMB, Optimizer> lamb(m, "LAMB", nb::dynamic_attr());
  bind_setting(lamb, "b1", &LAMBOptions::b1);
  bind_setting(lamb, "b2", &LAMBOptions::b2);
  bind_setting(lamb, "eps", &LAMBOptions::eps);
  bind_setting(lamb, "wd", &LAMBOptions::weight_decay);
  bind_setting(lamb, "adam", &LAMBOptions::adam);
  lamb.def_rw("m", &LAMB::m, "Running means of gradients.")
      .def_rw("v", &LAMB::v, "Running means of squared gradients.")
      .def_rw("b1_t", &LAMB::b1_t)
      .def_rw("b2_t", &LAMB::b2_t)
      .def(
          "__init__",
          [](LAMB* self, nb::handle params, double lr, double b1, double b2, double eps, double weight_decay, bool adam,
             const DeviceName& device, Fused fused) {
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
          [](AdamW* self, nb::handle params, double lr, double b1, double b2, double eps, double weight_decay, const DeviceName& device,
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
          [](Adam* self, nb::handle params, double lr, double b1, double b2, double eps, const DeviceName& device, Fused fused) {
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
            const Tensor* tensor = x.tensor();
            const Tensor t = tensor ? *tensor : Tensor::full({}, x);
            const Released released;
            s.step(t);
          },
          "metrics"_a)
      .def("schedule_step", [](ReduceLROnPlateau& s, const Tensor& metric) { return s.schedule_step(metric); }, "metrics"_a);
}

}  // namespace

void bind_optim(nb::module_& m) {
  m.def(
      "clip_grad_norm",
      [](nb::handle parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
        const std::vector<Tensor> params =
            nb::isinstance<Tensor>(parameters) ? std::vector{nb::cast<Tensor>(parameters)} : params_of(parameters);
        const Interruptible interruptible;
        const Released released;
        return nn::utils::clip_grad_norm_(params, max_norm, {.norm_type = norm_type, .error_if_nonfinite = error_if_nonfinite});
      },
      "parameters"_a, "max_norm"_a, "norm_type"_a = 2.0, "error_if_nonfinite"_a = false,
      "Scales gradients down so that the norm of all together is at most max_norm; gives the norm that they had.");
  m.def(
      "clip_grad_value",
      [](nb::handle parameters, double clip_value) {
        const std::vector<Tensor> params =
            nb::isinstance<Tensor>(parameters) ? std::vector{nb::cast<Tensor>(parameters)} : params_of(parameters);
        const Released released;
        nn::utils::clip_grad_value_(params, clip_value);
      },
      "parameters"_a, "clip_value"_a, "Brings every element of every gradient into [-clip_value, clip_value].");
  nb::class_<Optimizer, nn::Module, OwnOptimizer> optimizer(m, "Optimizer", nb::dynamic_attr(),
                                                            "Updates parameters by their gradients. A subclass in Python says how, by\n"
                                                            "`_step(params, grads)`, which gives two lists: what is subtracted from each\n"
                                                            "parameter, and what else it has assigned to.");
  optimizer
      .def(
          "__init__",
          [](Optimizer* self, nb::handle params, double lr, const DeviceName& device, Fused fused) {
            void* place = self;  // there is no object yet
            construct(static_cast<OwnOptimizer*>(place), params, LARSOptions{.lr = lr, .device = device.value_or(""), .fused = fused});
          },
          "params"_a, "lr"_a, "device"_a = nb::none(), "fused"_a = nb::none())
      .def("zero_grad", &Optimizer::zero_grad)
      .def_prop_ro("params", [](const Optimizer& o) { return o.params(); })
      .def_prop_ro("buffers", [](const Optimizer& o) { return o.buffers(); })
      .def_prop_ro("device", &Optimizer::device)
      .def_prop_ro("fused", &Optimizer::fused)
      .def_rw("lr", &Optimizer::lr)
      .def("_step", &OwnOptimizer::step_of, "params"_a, "grads"_a)
      .def("_new_optim_param", &OwnOptimizer::zeros_of, "Zeros like each parameter or, if fused, as many as all together.")
      .def(
          "_apply_update",
          [](const Optimizer&, const Tensor& t, const Tensor& up) {
            return (t.detach() - (up.device() == t.device() ? up : up.to(t.device()))).cast(t.dtype());
          },
          "t"_a, "up"_a)
      .def("step",
           [](nb::handle self) {
             const Interruptible interruptible;
             const std::vector<Tensor> changed = scheduled_step(self);
             const Released released;
             Tensor::realize(changed);
           })
      .def("schedule_step", &scheduled_step);
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
