#include "codegen/opt/window_axes.h"

#include <algorithm>
#include <cstdlib>

#include "codegen/kernel_axes.h"
#include "shape/ranges.h"
#include "symbolic/gated.h"
#include "symbolic/linear.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

/// True if the expression changes along the ranges as their sum weighted by the ratios does, or not at all.
bool follows(const std::optional<symbolic::Linear>& sum, const std::vector<WindowAxis::Part>& parts) {
  if (!sum) return false;
  std::vector<int64_t> factors(parts.size(), 0);
  for (const symbolic::Term& t : sum->terms)
    for (size_t i = 0; i < parts.size(); ++i) {
      if (t.node == parts[i].range)
        factors[i] = t.factor;
      else if (is_open_over(t.node, std::span(&parts[i].range, 1)))
        return false;
    }
  for (size_t i = 1; i < parts.size(); ++i)
    if (factors[i] * parts[0].ratio != factors[0] * parts[i].ratio) return false;
  return true;
}

bool compares_indices(const UOp& u) { return u.in(Group::comparison) && u.src(0).dtype() == DType::index; }

/// The same for the differences that a gate is made of.
bool gate_follows(const UOp& gate, const std::vector<WindowAxis::Part>& parts) {
  const auto nodes = toposort_where(std::span(&gate, 1), [](const UOp& u) { return !compares_indices(u); });
  return std::all_of(nodes.begin(), nodes.end(), [&](const UOp& u) {
    if (compares_indices(u)) return follows(symbolic::difference(u.src(0), u.src(1)), parts);
    return u.dtype() == DType::bool_ && (u.in(Group::alu) || u.is(Op::CONST));
  });
}

bool gate_allows(const UOp& gate, const WindowAxis& window, std::span<const UOp> masks) {
  return std::ranges::all_of(symbolic::clauses_of(gate), [&](const UOp& clause) {
    return gate_follows(clause, window.parts) || (std::ranges::find(masks, clause) != masks.end() && bound_of(clause, window));
  });
}

/// The window of both, if it has fewer elements than the two axes apart.
std::optional<WindowAxis> joined(const UOp& load, const WindowAxis& wide, const WindowAxis& narrow, std::span<const UOp> masks) {
  if (wide.stride == 0 || narrow.stride == 0 || wide.size < 2 || narrow.size < 2 || wide.stride % narrow.stride != 0) return std::nullopt;
  const int64_t times = wide.stride / narrow.stride;
  if (times >= narrow.size) return std::nullopt;
  WindowAxis out = narrow;
  for (const WindowAxis::Part& p : wide.parts) out.parts.push_back({p.range, p.ratio * times});
  out.first += wide.first * times;
  out.size += (wide.size - 1) * times;
  const UOp& index = load.src(0);
  if (!follows(symbolic::linear(index.src(1)), out.parts) || (index.src_count() > 2 && !gate_allows(index.src(2), out, masks)))
    return std::nullopt;
  return out;
}

bool join_two(const UOp& load, std::vector<WindowAxis>& axes, std::span<const UOp> masks) {
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t k = 0; k < axes.size(); ++k)
      if (const auto both = i == k ? std::nullopt : joined(load, axes[i], axes[k], masks)) {
        axes[k] = *both;
        axes.erase(axes.begin() + std::ptrdiff_t(i));
        return true;
      }
  return false;
}

}  // namespace

bool moves_along(const UOp& value, const std::vector<WindowAxis::Part>& parts) {
  return std::ranges::all_of(toposort(value), [&](const UOp& u) {
    if (u.dtype() == DType::index) return true;
    if (compares_indices(u)) return follows(symbolic::difference(u.src(0), u.src(1)), parts);
    return std::ranges::all_of(u.src(), [&](const UOp& s) { return s.dtype() != DType::index || follows(symbolic::linear(s), parts); });
  });
}

UOp WindowAxis::place() const {
  UOp at = index_const(-first);
  for (const Part& p : parts) at = at + p.range * p.ratio;
  return at;
}

UOp bound_of(const UOp& clause, const WindowAxis& window) {
  if (!clause.is(Op::CMPLT) || !compares_indices(clause) || gate_follows(clause, window.parts)) return {};
  const auto sum = symbolic::difference(clause.src(0), clause.src(1));  // below 0
  if (!sum) return {};
  symbolic::Linear others;
  others.offset = sum->offset;
  std::vector<const WindowAxis::Part*> bounded;
  int64_t steps = 0;  // of the window, for each that the sum goes on
  for (const symbolic::Term& t : sum->terms) {
    const auto part = std::ranges::find(window.parts, t.node, &WindowAxis::Part::range);
    if (part == window.parts.end()) {
      for (const WindowAxis::Part& p : window.parts)
        if (is_open_over(t.node, std::span(&p.range, 1))) return {};
      if (!others.add(t.node, t.factor)) return {};
      continue;
    }
    if (t.factor < 1 || part->ratio < 1 || part->ratio % t.factor != 0) return {};
    const int64_t each = part->ratio / t.factor;
    if (steps != 0 && each != steps) return {};
    steps = each;
    bounded.push_back(&*part);
  }
  if (bounded.empty()) return {};
  int64_t rest = 1 - window.first;  // behind the last place of the other loops
  for (const WindowAxis::Part& p : window.parts)
    if (std::ranges::find(bounded, &p) == bounded.end()) rest += std::max<int64_t>(0, p.ratio) * (constant_size(p.range) - 1);
  return index_const(rest - steps) - others.build() * steps;
}

namespace {

std::vector<WindowAxis> joined_axes(const UOp& load, std::span<const UOp> inside, std::span<const UOp> masks) {
  std::vector<WindowAxis> axes;
  for (const UOp& r : inside) {
    WindowAxis a{.parts = {{r}}, .size = constant_size(r)};
    const int64_t stride = r.arg_as<RangeArg>().kind == AxisKind::element ? 0 : stride_of(load.src(0).src(1), r).value_or(0);
    a.stride = std::abs(stride);
    if (stride < 0) a.parts[0].ratio = -1, a.first = 1 - a.size;
    axes.push_back(std::move(a));
  }
  while (join_two(load, axes, masks)) {}
  return axes;
}

/// True if a mask that bounds a window also depends on loops of another one, whose places say nothing of these loops by themselves.
bool mix_windows(const std::vector<WindowAxis>& axes, std::span<const UOp> masks) {
  const auto depends = [](const UOp& mask, const WindowAxis& a) {
    return std::ranges::any_of(a.parts, [&](const WindowAxis::Part& p) { return is_open_over(mask, std::span(&p.range, 1)); });
  };
  return std::ranges::any_of(masks, [&](const UOp& mask) {
    return std::ranges::count_if(axes, [&](const WindowAxis& a) { return a.is_window() && depends(mask, a); }) > 1;
  });
}

}  // namespace

std::vector<WindowAxis> window_axes(const UOp& load, std::span<const UOp> inside, std::span<const UOp> masks) {
  const std::vector<WindowAxis> axes = joined_axes(load, inside, masks);
  return mix_windows(axes, masks) ? joined_axes(load, inside, {}) : axes;
}

}  // namespace tinygrad::codegen
