// Values joined along an axis.
#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

void check_cat(std::span<const UOp> values, size_t axis) {
  const Shape& first = shape_of(values[0]);
  for (const UOp& v : values) {
    const Shape& s = shape_of(v);
    bool fits = s.size() == first.size();
    for (size_t i = 0; fits && i < s.size(); ++i) fits = i == axis || s[i] == first[i];
    if (!fits)
      throw ShapeError(
          fmt::format("cat: cannot join {} and {} along axis {}: only that axis may differ", to_string(first), to_string(s), axis));
  }
}

/// Each element of what is joined asks for its part, so of very many a few are joined at a time, all in the same way.
constexpr size_t most_parts = 32, parts_at_once = 16;

std::vector<UOp> joined_parts(std::span<const UOp> parts, int axis) {
  std::vector<UOp> out;
  for (size_t i = 0; i < parts.size(); i += parts_at_once)
    out.push_back(contiguous(cat(parts.subspan(i, std::min(parts_at_once, parts.size() - i)), axis)));
  return out;
}

}  // namespace

UOp cat(std::span<const UOp> values, int axis) {
  if (values.empty()) throw ValueError("cat: got no values, expects at least one");
  const size_t rank = rank_of(values[0]);
  const auto a = size_t(resolve_axis("cat", axis, rank));
  check_cat(values, a);
  const DType dtype = common_dtype(values);
  SInt total = 0;
  std::vector<UOp> parts;
  for (const UOp& v : values) {
    total += shape_of(v)[a];
    if (!(shape_of(v)[a] == 0)) parts.push_back(v);
  }
  if (parts.empty()) return tinygrad::cast(values[0], dtype);
  if (parts.size() > most_parts) return cat(joined_parts(parts, axis), axis);
  // The first part whose end lies behind the position; adding the padded parts would lose the sign of -0.0.
  const UOp position = iota_along(int(a), rank, total);
  UOp joined;
  SInt end = total;
  for (size_t i = parts.size(); i-- > 0;) {
    const SInt begin = end - shape_of(parts[i])[a];
    const UOp part = pad_axis(tinygrad::cast(parts[i], dtype), int(a), begin, total - end);
    joined = joined ? ops::where(lt(position, end), part, joined) : part;
    end = begin;
  }
  return joined;
}

UOp stack(std::span<const UOp> values, int axis) {
  if (values.empty()) throw ValueError("stack: got no values, expects at least one");
  const Shape& first = shape_of(values[0]);
  const int a = resolve_axis("stack", axis, first.size(), true);
  std::vector<UOp> parts;
  for (const UOp& v : values) {
    if (shape_of(v) != first)
      throw ShapeError(fmt::format("stack: the values must have one shape, got {} and {}", to_string(first), to_string(shape_of(v))));
    parts.push_back(ops::unsqueeze(v, a));
  }
  return cat(parts, a);
}

}  // namespace tinygrad::ops
