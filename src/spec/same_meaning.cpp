#include "spec/same_meaning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/log.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "symbolic/bounds.h"
#include "uop/graph.h"

namespace tinygrad::spec {

namespace {

constexpr double most_elements = 1 << 20;

/// Elements that all nodes have together, over their loops.
double elements(const UOp& sink) {
  double total = 0;
  for (const UOp& u : toposort(sink)) {
    double n = 1;
    for (const UOp& r : ranges_of(u)) n *= double(symbolic::bounds(r.src(0)).max);
    for (const SInt& s : shape_of(u)) n *= double(s.max());
    total += n;
  }
  return total;
}

/// Integers are small, so that those used as indices have a chance to be within memory.
Array seeded(DType dtype, int64_t size, std::mt19937_64& random) {
  Array out = Array::zeros(dtype, std::span(&size, 1));
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t bits = random();
    const Scalar s = is_float(dtype) ? Scalar::from_double(double(int64_t(bits % 4096) - 2048) / 1024, dtype)
                                     : Scalar::of(int64_t(bits % (is_bool(dtype) ? 2 : 4)), dtype);
    s.to_bytes(out.bytes.data() + size_t(i) * itemsize(dtype));
  }
  return out;
}

EvalInputs seeded_inputs(const UOp& sink) {
  EvalInputs inputs;
  std::mt19937_64 random(1);
  for (const UOp& u : toposort(sink)) {
    if (u.is(Op::PARAM) && u.src_count() > 0) inputs.set(u, seeded(u.dtype(), numel(shape_of(u)).value(), random));
    if (const auto* v = std::get_if<VarArg>(&u.arg()); v && u.is(Op::VAR))
      inputs.variables[v->name] = v->min + int64_t(random() % uint64_t(std::min<int64_t>(v->max - v->min, 1 << 10) + 1));
  }
  return inputs;
}

bool is_close(double a, double b, double bound) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= bound;
}

/// Mantissa bits of the coarsest float that the kernel computes in; many for a kernel of integers.
int fewest_mantissa_bits(const UOp& sink) {
  int bits = std::numeric_limits<int>::max();
  for (const UOp& u : toposort(sink))
    if (is_float(u.dtype())) bits = std::min(bits, finfo(u.dtype()).mantissa_bits);
  return bits;
}

/// The first element that differs; for floats by more than 1024 units in the last place of the largest one, with so many bits.
std::optional<size_t> difference(const Array& a, const Array& b, int mantissa_bits) {
  if (a.size() != b.size()) return 0;
  if (!is_float(a.dtype)) {
    const auto at = std::mismatch(a.bytes.begin(), a.bytes.end(), b.bytes.begin()).first;
    if (at == a.bytes.end()) return std::nullopt;
    return size_t(at - a.bytes.begin()) / itemsize(a.dtype);
  }
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (const double v = std::abs(a[i].as_double()); std::isfinite(v)) largest = std::max(largest, v);
  const double bound = largest * std::min(std::ldexp(1, 10 - mantissa_bits), 0.125);
  for (size_t i = 0; i < a.size(); ++i)
    if (!is_close(a[i].as_double(), b[i].as_double(), bound)) return i;
  return std::nullopt;
}

/// Where a dtype that the target lacks is emulated, the kernel takes the memory as the integers that hold its bits, one or two an element.
void take_as_stored(const UOp& graph, EvalInputs& memory) {
  for (const UOp& u : toposort(graph)) {
    if (!u.is(Op::PARAM) || u.src_count() == 0) continue;
    const auto at = memory.params.find(u.arg_as<ParamArg>().slot);
    if (at == memory.params.end() || at->second.dtype == u.dtype()) continue;
    Array& array = at->second;
    array.shape = {array.shape[0] * int64_t(itemsize(array.dtype) / itemsize(u.dtype()))};
    array.dtype = u.dtype();
  }
}

std::string kernel_name(const UOp& sink) {
  const auto* kernel = std::get_if<KernelArg>(&sink.arg());
  return kernel ? std::string(kernel->name.str()) : "kernel";
}

void log_skipped(std::string_view kernel, std::string_view step, std::string_view why) {
  if (log_enabled(2)) log_line(fmt::format("SPEC=3: {}: {} is not checked: {}", kernel, step, why));
}

}  // namespace

MeaningCheck::MeaningCheck(const UOp& sink) : kernel_(kernel_name(sink)), mantissa_bits_(fewest_mantissa_bits(sink)) {
  if (elements(sink) > most_elements) {
    log_skipped(kernel_, "the kernel", "too large to evaluate");
    return;
  }
  inputs_ = seeded_inputs(sink);
  try {
    active_ = run("the kernel", sink, before_);
  } catch (const IndexError& e) {  // seeded indices
    log_skipped(kernel_, "the kernel", e.what());
  }
}

bool MeaningCheck::run(std::string_view step, const UOp& graph, EvalInputs& memory) const {
  memory = inputs_;
  take_as_stored(graph, memory);
  try {
    evaluate(std::span(&graph, 1), memory);
    for (auto& [slot, array] : memory.params)
      if (const auto given = inputs_.params.find(slot); given != inputs_.params.end()) {
        array.dtype = given->second.dtype;
        array.shape = given->second.shape;
      }
    return true;
  } catch (const InternalError& e) {
    log_skipped(kernel_, step, e.what());
    return false;
  }
}

void MeaningCheck::after(std::string_view step, const UOp& graph) {
  if (!active_ || elements(graph) > 4 * most_elements) return;
  EvalInputs now;
  try {
    if (!run(step, graph, now)) return;
  } catch (const Error& e) {
    throw InternalError(fmt::format("SPEC=3: '{}' changed the meaning of {}: it ran before, now: {}", step, kernel_, e.what()));
  }
  for (const auto& [slot, was] : before_.params) {
    const Array& is = now.params.at(slot);
    const std::optional<size_t> at = difference(was, is, mantissa_bits_);
    if (!at) continue;
    throw InternalError(fmt::format("SPEC=3: '{}' changed the meaning of {}: argument {}, element {} was {}, is {}", step, kernel_, slot,
                                    *at, was[*at].to_string(), is[*at].to_string()));
  }
  before_ = std::move(now);
}

}  // namespace tinygrad::spec
