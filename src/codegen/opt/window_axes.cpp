#include "codegen/opt/window_axes.h"

#include <algorithm>
#include <cstdlib>

#include "codegen/kernel_axes.h"
#include "shape/ranges.h"
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

/// The window of both, if it has fewer elements than the two axes apart.
std::optional<WindowAxis> joined(const UOp& load, const WindowAxis& wide, const WindowAxis& narrow) {
  if (wide.stride == 0 || narrow.stride == 0 || wide.size < 2 || narrow.size < 2 || wide.stride % narrow.stride != 0) return std::nullopt;
  const int64_t times = wide.stride / narrow.stride;
  if (times >= narrow.size) return std::nullopt;
  WindowAxis out = narrow;
  for (const WindowAxis::Part& p : wide.parts) out.parts.push_back({p.range, p.ratio * times});
  out.first += wide.first * times;
  out.size += (wide.size - 1) * times;
  const UOp& index = load.src(0);
  if (!follows(symbolic::linear(index.src(1)), out.parts) || (index.src_count() > 2 && !gate_follows(index.src(2), out.parts)))
    return std::nullopt;
  return out;
}

bool join_two(const UOp& load, std::vector<WindowAxis>& axes) {
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t k = 0; k < axes.size(); ++k)
      if (const auto both = i == k ? std::nullopt : joined(load, axes[i], axes[k])) {
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

std::vector<WindowAxis> window_axes(const UOp& load, std::span<const UOp> inside) {
  std::vector<WindowAxis> axes;
  for (const UOp& r : inside) {
    WindowAxis a{.parts = {{r}}, .size = constant_size(r)};
    const int64_t stride = r.arg_as<RangeArg>().kind == AxisKind::element ? 0 : stride_of(load.src(0).src(1), r).value_or(0);
    a.stride = std::abs(stride);
    if (stride < 0) a.parts[0].ratio = -1, a.first = 1 - a.size;
    axes.push_back(std::move(a));
  }
  while (join_two(load, axes)) {}
  return axes;
}

}  // namespace tinygrad::codegen
