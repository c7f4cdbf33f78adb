// Windows that slide over axes, as views.
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "ops/movement.h"

namespace tinygrad::ops {

namespace {

struct Window {
  int64_t kernel, stride, dilation;
};

/// Windows over the last axis: (..., out, kernel).
UOp pool_last(const UOp& x, Window w) {
  const Shape& in = shape_of(x);
  const int last = int(in.size()) - 1;
  const SInt n = in[size_t(last)];
  const SInt out = floor_div(n - w.dilation * (w.kernel - 1) - 1, w.stride) + 1;
  if (w.kernel <= 1 || (w.dilation == 1 && w.kernel <= w.stride)) {  // windows do not overlap: cut the axis, then each piece
    UOp y = x;
    if (!n.known())
      y = shrink_axis(pad_axis(x, last, 0, w.stride - 1), last, 0, out * w.stride);
    else
      y = surely_less(n, out * w.stride) ? pad_axis(x, last, 0, out * w.stride - n) : shrink_axis(x, last, 0, out * w.stride);
    return shrink_axis(ops::unflatten(y, last, Shape{out, w.stride}), last + 1, 0, w.kernel);
  }
  // Copies of x read as rows longer than they are by the dilation: row k begins k * dilation further into x. The gap before each row lets
  // the adjoint, where rows begin further and further before x, stay within its own row: both are free of divisions.
  const int64_t gap = w.dilation * (w.kernel - 1);
  const SInt row = n + gap + w.dilation;
  Shape copies = in;
  copies.insert(copies.begin() + last, SInt(w.kernel));
  UOp y = pad_axis(ops::expand(ops::unsqueeze(x, last), copies), last + 1, gap, 0);
  y = pad_axis(ops::flatten(y, last), last, 0, w.kernel * w.dilation);
  const SInt read = (out - 1) * w.stride + 1, room = out * w.stride;
  // The last window ends within n, so what follows it is less than a stride.
  const bool has_room = n.known() ? surely_not_greater(room + gap, row) : w.stride <= gap + 1 + w.dilation;
  y = shrink_axis(ops::unflatten(y, last, Shape{w.kernel, row}), last + 1, gap, (has_room ? room : read) + gap);
  if (!has_room) y = pad_axis(y, last + 1, 0, room - read);
  y = shrink_axis(ops::unflatten(y, last + 1, Shape{out, w.stride}), last + 2, 0, 1);
  return ops::transpose(ops::squeeze(y, last + 2), last, last + 1);
}

}  // namespace

UOp pool(const UOp& x, std::span<const int64_t> kernel, std::span<const int64_t> stride, std::span<const int64_t> dilation,
         std::string_view op) {
  const Shape in = shape_of(x);
  const size_t count = kernel.size(), lead = in.size() - count;
  if (count > in.size() || stride.size() != count || dilation.size() != count)
    throw ValueError(
        fmt::format("{}: {} kernel sizes, {} strides and {} dilations for {}", op, count, stride.size(), dilation.size(), to_string(in)));
  UOp y = x;
  for (size_t i = 0; i < count; ++i) {
    const Window w{kernel[i], stride[i], dilation[i]};
    if (w.kernel < 0 || w.stride < 1 || w.dilation < 1)
      throw ValueError(
          fmt::format("{}: the kernel size {}, the stride {} and the dilation {} must be at least 1", op, w.kernel, w.stride, w.dilation));
    if (less_now(in[lead + i], w.dilation * (w.kernel - 1) + 1))
      throw ShapeError(fmt::format("{}: a window of {} elements {} apart does not fit axis {} of {}", op, w.kernel, w.dilation, lead + i,
                                   to_string(in)));
    // The axis to the end, its windows behind those made before: (lead..., later axes..., o0, k0, ..., oi, ki).
    Axes order;
    for (size_t a = 0; a < rank_of(y); ++a)
      if (a != lead) order.push_back(int(a));
    order.push_back(int(lead));
    y = pool_last(ops::permute(y, order), w);
  }
  Axes order;
  for (size_t a = 0; a < lead; ++a) order.push_back(int(a));
  for (size_t i = 0; i < count; ++i) order.push_back(int(lead + 2 * i));
  for (size_t i = 0; i < count; ++i) order.push_back(int(lead + 2 * i + 1));
  return ops::permute(y, order);
}

}  // namespace tinygrad::ops
