// Random tensors: each draw gets the next stretch of one sequence for the process.
#include <fmt/core.h>

#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "comm/group.h"
#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/random.h"
#include "shape/device.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/random.h"

#include <limits>
#include "tensor/observer.h"

namespace tinygrad {

using namespace tensor;

namespace {

struct Sequence {
  std::mutex mutex;
  uint64_t seed = comm::seed();
  uint64_t drawn = 0;  ///< words
};

Sequence& sequence() {
  static auto* s = new Sequence;
  return *s;
}

thread_local OwnSequence* own_sequence = nullptr;

}  // namespace

tensor::OwnSequence::OwnSequence(uint64_t seed) : seed_(seed), before_(std::exchange(own_sequence, this)) {}
tensor::OwnSequence::~OwnSequence() { own_sequence = before_; }

DrawState tensor::next_draw(int64_t words) {
  if (OwnSequence* own = own_sequence) {
    const uint64_t from = own->drawn_;
    own->drawn_ += static_cast<uint64_t>(words);
    return {uint32_t(own->seed_), uint32_t(own->seed_ >> 32), uint32_t(from), uint32_t(from >> 32)};
  }
  Sequence& s = sequence();
  const std::lock_guard lock(s.mutex);
  const uint64_t from = s.drawn;
  s.drawn += static_cast<uint64_t>(words);
  return {uint32_t(s.seed), uint32_t(s.seed >> 32), uint32_t(from), uint32_t(from >> 32)};
}

namespace {

/// The next `words` words. Where they begin is data in memory of its own, so that the same program is scheduled and compiled once.
ops::RandomState draw(int64_t words, const Devices& devices) {
  const DrawState state = next_draw(words);
  const UOp memory = upload(std::as_bytes(std::span(state)), DType::uint32, devices.first());
  if (Observer* r = Observer::current()) r->drew(memory, words);
  const UOp there = placed(memory, {devices, {}});
  return {.key = ops::shrink_axis(there, 0, 0, 2), .counter = ops::shrink_axis(there, 0, 2, 4)};
}

int64_t count_of(const Sizes& shape) {
  int64_t n = 1;
  for (int64_t s : shape) {
    if (s < 0) throw ShapeError(fmt::format("rand: {} has a negative size", to_string(to_shape(shape))));
    if (__builtin_mul_overflow(n, s, &n)) throw ShapeError("rand: the shape has more elements than fit into 64 bits");
  }
  return n;
}

/// A builder called with what it draws: `values` random floats of `dtype` an element.
template <class Build>
Tensor drawn(const Sizes& shape, DType dtype, int values, const std::string& device, const Build& build,
             const char* operation = __builtin_FUNCTION()) {
  const Devices devices = named_devices(device);
  ops::OpsContext ctx = context();
  if (!devices.are_several()) ctx.device = devices.only();
  const int64_t n = count_of(shape);
  if (n == 0) return wrap(placed(ops::zeros(to_shape(shape), dtype, ctx), {devices, {}}), operation);
  return wrap(build(draw(ops::random_words(n * values, dtype), devices), to_shape(shape), ctx), operation);
}

DType float_dtype(const TensorOptions& o) { return o.dtype.value_or(context().default_float); }

}  // namespace

void Tensor::manual_seed(uint64_t seed) {
  if (Observer* r = Observer::current()) r->used_host("manual_seed()", "Call it before the function");
  Sequence& s = sequence();
  const std::lock_guard lock(s.mutex);
  s.seed = seed;
  s.drawn = 0;
}

Tensor Tensor::get_rng_state() {
  if (Observer* r = Observer::current()) r->used_host("get_rng_state()", "Call it outside");
  Sequence& s = sequence();
  const std::lock_guard lock(s.mutex);
  const uint64_t state[] = {s.seed, s.drawn};
  return Tensor(state, {.device = "CPU"});
}

void Tensor::set_rng_state(const Tensor& state) {
  if (Observer* r = Observer::current()) r->used_host("set_rng_state()", "Call it before the function");
  if (state.dtype() != DType::uint64 || state.shape() != Sizes{2})
    throw ValueError(fmt::format("set_rng_state: got {}, expects what get_rng_state() gave: two uint64", state.to_string()));
  const std::vector<uint64_t> values = state.tolist<uint64_t>();
  Sequence& s = sequence();
  const std::lock_guard lock(s.mutex);
  s.seed = values[0];
  s.drawn = values[1];
}

Tensor Tensor::rand(const Sizes& shape, const TensorOptions& o) {
  return drawn(shape, float_dtype(o), 1, o.device, [&](auto state, auto s, auto ctx) { return ops::rand(state, s, o.dtype, ctx); });
}
Tensor Tensor::randn(const Sizes& shape, const TensorOptions& o) {
  return drawn(shape, DType::float32, 2, o.device, [&](auto state, auto s, auto ctx) { return ops::randn(state, s, o.dtype, ctx); });
}
Tensor Tensor::randint(const Sizes& shape, int64_t low, int64_t high, const TensorOptions& o) {
  if (low >= high) throw ValueError(fmt::format("randint: low {} must be less than high {}", low, high));
  return drawn(shape, DType::float32, int(ops::randint_words(low, high)), o.device,
               [&](auto state, auto s, auto ctx) { return ops::randint(state, s, low, high, o.dtype.value_or(DType::int32), ctx); });
}
Tensor Tensor::normal(const Sizes& shape, double mean, double std, const TensorOptions& o) {
  return drawn(shape, DType::float32, 2, o.device,
               [&](auto state, auto s, auto ctx) { return ops::normal(state, s, mean, std, o.dtype, ctx); });
}
Tensor Tensor::uniform(const Sizes& shape, double low, double high, const TensorOptions& o) {
  return drawn(shape, context().default_float, 1, o.device,
               [&](auto state, auto s, auto ctx) { return ops::uniform(state, s, low, high, o.dtype, ctx); });
}
Tensor Tensor::scaled_uniform(const Sizes& shape, const TensorOptions& o) {
  return drawn(shape, context().default_float, 1, o.device,
               [&](auto state, auto s, auto ctx) { return ops::scaled_uniform(state, s, o.dtype, ctx); });
}
Tensor Tensor::glorot_uniform(const Sizes& shape, const TensorOptions& o) {
  return drawn(shape, context().default_float, 1, o.device,
               [&](auto state, auto s, auto ctx) { return ops::glorot_uniform(state, s, o.dtype, ctx); });
}
Tensor Tensor::kaiming_uniform(const Sizes& shape, double a, const TensorOptions& o) {
  return drawn(shape, context().default_float, 1, o.device,
               [&](auto state, auto s, auto ctx) { return ops::kaiming_uniform(state, s, a, o.dtype, ctx); });
}
Tensor Tensor::kaiming_normal(const Sizes& shape, double a, const TensorOptions& o) {
  return drawn(shape, DType::float32, 2, o.device,
               [&](auto state, auto s, auto ctx) { return ops::kaiming_normal(state, s, a, o.dtype, ctx); });
}
Tensor Tensor::randperm(int64_t n, const TensorOptions& o) {
  if (n < 0) throw ValueError(fmt::format("randperm: {} elements, expects at least 0", n));
  return drawn({n}, DType::float32, 1, o.device,
               [&](auto state, auto, auto ctx) { return ops::randperm(state, n, o.dtype.value_or(DType::int32), ctx); });
}
Tensor Tensor::random_bits(const Tensor& key, const Tensor& counter, int64_t count) {
  return wrap(ops::random_bits({.key = key.uop(), .counter = counter.uop()}, count));
}
namespace {

/// Draws need a weight above 0 each, or one where they are put back. That is looked at on the host, which a replay could not do.
void check_weights(const Tensor& weights, int64_t samples, bool replacement) {
  const int64_t needed = replacement ? 1 : samples;
  if (Observer::current() || weights.ndim() < 1 || weights.ndim() > 2 || samples < 1 || weights.size(-1) < needed) return;
  const Tensor usable = (weights >= 0) & (weights < std::numeric_limits<double>::infinity());
  const Tensor drawable = (weights > 0).sum({-1}, {.dtype = DType::int64}).min();
  const auto least = usable.min().where(drawable, int64_t{-1}).item<int64_t>();
  if (least < 0) throw ValueError("multinomial: the weights must be finite and at least 0");
  if (least < needed)
    throw ValueError(replacement ? std::string("multinomial: none of the weights of a row is above 0")
                                 : fmt::format("multinomial: {} samples without replacement from {} weights above 0", samples, least));
}

}  // namespace

Tensor Tensor::multinomial(int64_t samples, bool replacement) const {
  const int64_t rows = ndim() == 2 ? size(0) : 1;
  if (rows == 0 && samples > 0) return zeros({0, samples}, {.dtype = DType::int32, .device = device()});
  check_weights(*this, samples, replacement);
  return drawn({replacement || samples == 1 ? rows * std::max<int64_t>(samples, 1) : numel()}, DType::float32, 1, device(),
               [&](auto state, auto, auto ctx) { return ops::multinomial(state, uop(), samples, replacement, ctx); });
}
Tensor Tensor::rand_like(const TensorOptions& o) const {
  const Tensor drawn = rand(shape(), {o.dtype.value_or(dtype()), o.device.empty() ? device() : o.device});
  return o.device.empty() ? wrap(placed_like(uop(), drawn.uop())) : drawn;
}
Tensor Tensor::randn_like(const TensorOptions& o) const {
  const Tensor drawn = randn(shape(), {o.dtype.value_or(dtype()), o.device.empty() ? device() : o.device});
  return o.device.empty() ? wrap(placed_like(uop(), drawn.uop())) : drawn;
}

Tensor Tensor::dropout(double p) const {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("dropout: p = {} is no probability", p));
  if (!current_options().training || p == 0) return wrap(uop());
  return drawn(shape(), context().default_float, 1, device(),
               [&](auto state, auto, auto ctx) { return ops::dropout(state, uop(), p, ctx); });
}

}  // namespace tinygrad
