#include "engine/fuzz/check_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/options.h"
#include "device/buffer.h"
#include "device/device.h"
#include "engine/fuzz/error_bound.h"
#include "engine/fuzz/random_opts.h"
#include "engine/run.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::test {

namespace {

/// The contents of all memory, in the order of Program::memories.
using Contents = std::vector<spec::Array>;

spec::EvalInputs inputs_of(const Program& p) {
  spec::EvalInputs inputs;
  for (const auto& m : p.memories) inputs.set(m.buffer, m.data);
  return inputs;
}

Contents contents(const Program& p, const spec::EvalInputs& inputs) {
  Contents out;
  for (const auto& m : p.memories) out.push_back(inputs.at(m.buffer));
  return out;
}

/// What the memory should hold, and how far from it results may be.
struct Expected {
  Contents exact;
  Contents bounds;  ///< empty arrays: exactly
  double largest_magnitude = 0;
};

Expected expected(const Program& p) {
  const UOp root = sink(p.effects);
  NodeSet exact;
  for (const UOp& u : toposort(p.exact)) exact.insert(u);
  ErrorBounds bounds = error_bounds(root, exact);
  spec::EvalInputs inputs = inputs_of(p);
  Expected e;
  for (const auto& m : p.memories)
    if (const UOp* b = bounds.of_memory.find(m.buffer))
      inputs.set(*b, spec::Array::zeros(DType::float64, std::array{int64_t(m.data.size())}));
  const UOp roots[] = {root, bounds.sink};
  e.largest_magnitude = spec::evaluate(roots, inputs, {.exact = true}).largest_magnitude;
  e.exact = contents(p, inputs);
  for (const auto& m : p.memories) {
    const UOp* b = bounds.of_memory.find(m.buffer);
    e.bounds.push_back(b ? inputs.at(*b) : spec::Array{});
  }
  return e;
}

double coarsest_ulp(const Program& p) {
  double ulp = 0;
  for (const UOp& u : toposort(p.effects))
    if (is_float(u.dtype())) ulp = std::max(ulp, ulp_of_one(u.dtype()));
  return ulp;
}

/// An infinity that is cast to a dtype without infinities becomes a NaN: an error without a bound.
bool may_lose_infinities(const Program& p) {
  const std::vector<UOp> nodes = toposort(p.effects);
  if (std::ranges::none_of(nodes, [](const UOp& u) { return is_float(u.dtype()) && !max_value(u.dtype()).is_inf(); })) return false;
  for (const auto& m : p.memories)
    for (size_t i = 0; i < m.data.size(); ++i)
      if (m.data[i].is_inf()) return true;
  return false;
}

bool is_fair(const Program& p, const Expected& e) {
  if (may_lose_infinities(p)) return false;
  const double most = most_ulps * coarsest_ulp(p) * e.largest_magnitude;
  for (size_t m = 0; m < e.bounds.size(); ++m)
    for (size_t i = 0; i < e.bounds[m].size(); ++i)
      if (std::isfinite(e.exact[m][i].as_double()) && !(2 * e.bounds[m][i].as_double() <= most)) return false;
  return true;
}

bool agree(const Scalar& got, const Scalar& want, double bound) {
  if (!is_float(got.dtype())) return got == want;
  const double g = got.as_double(), w = want.as_double();
  if (std::isnan(w) || std::isnan(g)) return std::isnan(w) == std::isnan(g);
  return g == w || std::abs(g - w) <= 2 * bound;
}

/// The first difference; empty if there is none.
std::string compare(const Program& p, const Expected& e, const Contents& got) {
  for (size_t m = 0; m < got.size(); ++m)
    for (size_t i = 0; i < got[m].size(); ++i) {
      const double bound = e.bounds[m].size() ? e.bounds[m][i].as_double() : 0;
      if (!agree(got[m][i], e.exact[m][i], bound))
        return fmt::format("{}, element {}: got {}, expected {} within {}", print_expr(p.memories[m].buffer), i, got[m][i].to_string(),
                           e.exact[m][i].to_string(), 2 * bound);
    }
  return {};
}

/// A device, with the opts of the heuristics or with others, which are left in `opts`.
struct Run {
  const char* device;
  bool other_opts = false;
  std::string opts = {};

  std::string name() const { return other_opts ? fmt::format("{} with TG_FUZZ_OPTS='{}'", device, opts) : device; }
};

schedule::Schedule optimized(const schedule::Schedule& s, Run& run, uint64_t seed) {
  if (!run.other_opts) return s;
  const char* given = std::getenv("TG_FUZZ_OPTS");
  const KernelOpts opts = given ? parse_kernel_opts(given) : random_opts(s, engine::target_of, seed);
  run.opts = to_string(opts);
  return with_opts(s, opts);
}

Contents run_on_device(const Program& p, Run& run, uint64_t seed) {
  const Context choice{{.dev = run.device}};
  Device& device = Device::get(DeviceChoice::parse(run.device).canonical());
  NodeMap<UOp> map;
  std::vector<UOp> keep;
  for (const auto& m : p.memories) {
    const int64_t size = int64_t(m.data.size());
    const BufferPtr resource = Buffer::make(device, size, m.data.dtype);
    resource->copyin(m.data.bytes);
    keep.push_back(buffer(m.data.dtype, {.id = next_buffer_id(), .size = size, .device = device.name(), .resource = resource}));
    map[m.buffer] = keep.back();
  }
  const schedule::Schedule schedule = schedule::make_schedule(substitute(sink(p.effects), map), engine::target_of);
  engine::run_schedule(optimized(schedule, run, seed), current_options());
  Contents out;
  for (size_t i = 0; i < keep.size(); ++i) {
    out.push_back(p.memories[i].data);
    buffer_of(keep[i]).copyout(out.back().bytes);
  }
  return out;
}

/// A program that only stores `value`, with the memory of `p`.
Program storing(const Program& p, const UOp& value) {
  Program out = p;
  Shape most;
  for (int64_t n : max_sizes(shape_of(value))) most.push_back(n);
  UOp to = tinygrad::reshape(out.memory(spec::Array::zeros(value.dtype(), std::array{numel(most).value()})), most);
  std::vector<std::pair<SInt, SInt>> box;
  for (const SInt& n : shape_of(value)) box.emplace_back(0, n);
  if (most != shape_of(value)) to = tinygrad::shrink(to, box);
  out.effects = {store(to, value)};
  return out;
}

/// The program with `value` read from memory that holds it.
Program given(const Program& p, const UOp& value) {
  spec::EvalInputs inputs = inputs_of(p);
  spec::Array data = spec::evaluate(value, inputs);
  Program out = p;
  NodeMap<UOp> map;
  map[value] = tinygrad::reshape(out.memory(std::move(data)), shape_of(value));
  out.effects = substitute(p.effects, map);
  out.exact = substitute(p.exact, map);
  return out;
}

bool is_data(const UOp& u) { return u.dtype() != DType::void_ && u.dtype() != DType::index && !u.is(Op::CONST) && !u.is(Op::BUFFER); }

bool fails(const Program& p, const Runs& runs) {
  try {
    const Verdict v = check(p, runs);
    return v.fair && !v.difference.empty();
  } catch (const Error&) {
    return false;  // a program that makes no sense any more
  }
}

Program without_unused(Program p) {
  NodeSet used;
  for (const UOp& u : toposort(p.effects)) used.insert(u);
  std::erase_if(p.memories, [&](const auto& m) { return !used.contains(m.buffer); });
  std::erase_if(p.exact, [&](const UOp& u) { return !used.contains(u); });
  return p;
}

}  // namespace

Verdict check(const Program& p, const Runs& runs) {
  const Expected e = expected(p);
  if (!is_fair(p, e)) return {.fair = false};
  spec::EvalInputs inputs = inputs_of(p);
  const UOp root = sink(p.effects);
  spec::evaluate(std::span(&root, 1), inputs);
  const std::string rounded = compare(p, e, contents(p, inputs));
  if (!rounded.empty()) return {.difference = "evaluator: " + rounded};
  std::vector<Run> list;
  for (const char* device : runs.devices) list.push_back({.device = device});
  for (const char* device : runs.with_other_opts) list.push_back({.device = device, .other_opts = true});
  for (Run& run : list) try {
      const std::string d = compare(p, e, run_on_device(p, run, runs.seed));
      if (!d.empty()) return {.difference = fmt::format("{}: {}", run.name(), d)};
    } catch (const std::exception& error) {
      return {.difference = fmt::format("{}: {}", run.name(), error.what())};
    }
  return {};
}

Program smallest_failing(Program p, const Runs& runs) {
  int tries = 300;
  for (const UOp& u : toposort(p.effects)) {
    if (!is_data(u) || --tries < 0) continue;
    const Program one = storing(p, u);
    if (!fails(one, runs)) continue;
    p = one;
    break;
  }
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<UOp> order = toposort(p.effects);
    for (size_t i = order.size(); i-- > 0 && !changed;) {
      const UOp& u = order[i];
      if (!is_data(u) || u.is(Op::AFTER) || !all_known(shape_of(u)) || (u.is(Op::RESHAPE) && u.src(0).is(Op::BUFFER)) || --tries < 0)
        continue;
      try {
        Program next = given(p, u);
        if (!fails(next, runs)) continue;
        p = std::move(next);
        changed = true;
      } catch (const Error&) {}
    }
  }
  return without_unused(p);
}

}  // namespace tinygrad::test
