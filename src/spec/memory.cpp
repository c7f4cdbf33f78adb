#include "spec/memory.h"

#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include "spec/alu.h"
#include "uop/graph.h"

namespace tinygrad::spec {

Value Memory::places() const {
  Value at = iota(DType::index, size);
  for (const Move& m : moves) at = moved(at, m, Scalar::from_int(-1, DType::index));
  return at;
}

Value Memory::state_or_zeros() const { return state ? state : filled(Scalar::from_int(0, dtype), {}, {size}); }

Value Memory::contents() const {
  Value x = state;
  for (const Move& m : moves) x = moved(x, m, Scalar::from_int(0, x->dtype));
  return x;
}

namespace {

/// For each point of the frame's axes the offset of the block of `x` that belongs to it.
std::vector<int64_t> block_offsets(const Frame& frame, const Data& x) {
  const Sizes strides = row_major(x.sizes);
  std::vector<int64_t> out{0};
  for (size_t a = 0; a < frame.axes.size(); ++a) {
    const auto at = std::find(x.axes.begin(), x.axes.end(), frame.axes[a]);
    const int64_t stride = at == x.axes.end() ? 0 : strides[size_t(at - x.axes.begin())];
    std::vector<int64_t> next;
    next.reserve(out.size() * size_t(frame.axis_sizes[a]));
    for (int64_t o : out)
      for (int64_t i = 0; i < frame.axis_sizes[a]; ++i) next.push_back(o + i * stride);
    out = std::move(next);
  }
  return out;
}

[[noreturn]] void out_of_bounds(const UOp& node, int64_t at, int32_t width, int64_t size) {
  throw IndexError(fmt::format("{}: element {} of memory with {} elements, in {}", name(node.op()), at + (at < 0 ? 0 : width - 1), size,
                               print_expr(node)));
}

bool holds(const Value& valid, size_t i) { return !valid || valid->as<uint8_t>()[i] != 0; }

Frame index_frame(const Value& index, const Value& valid) {
  Frame frame;
  frame.include(*index);
  if (valid) frame.include(*valid);
  return frame;
}

Value sized_index(const Value& index) { return cast_value(index, DType::index); }

}  // namespace

Value gather(const UOp& node, const Value& from, const Value& index, const Value& valid, int32_t width) {
  Frame frame = index_frame(index, valid);
  frame.include_axes(*from);
  const Value at = broadcast(sized_index(index), frame), ok = valid ? broadcast(valid, frame) : nullptr;
  Sizes sizes = frame.sizes();
  if (width > 1) sizes.push_back(width);
  auto out = filled(Scalar::from_int(0, from->dtype), frame.axes, sizes);

  const int64_t size = product(from->shape());
  const size_t item = itemsize(from->dtype), run = item * size_t(width), points = size_t(product(frame.shape));
  const std::vector<int64_t> blocks = block_offsets(frame, *from);
  for (size_t b = 0, i = 0; b < blocks.size(); ++b)
    for (size_t p = 0; p < points; ++p, ++i) {
      if (!holds(ok, i)) continue;
      const int64_t k = at->as<int64_t>()[i];
      if (k < 0 || k + width > size) out_of_bounds(node, k, width, size);
      std::memcpy(out->bytes() + i * run, from->bytes() + size_t(blocks[b] + k) * item, run);
    }
  return out;
}

Value store_places(const UOp& node, int64_t size, const Value& index, const Value& valid, int32_t width) {
  const Frame frame = index_frame(index, valid);
  const Value at = broadcast(sized_index(index), frame), ok = valid ? broadcast(valid, frame) : nullptr;
  Sizes sizes = frame.sizes();
  if (width > 1) sizes.push_back(width);
  auto out = std::make_shared<Data>(DType::index, frame.axes, sizes);
  for (size_t i = 0; i < at->count(); ++i) {
    const int64_t k = at->as<int64_t>()[i];
    if (holds(ok, i) && (k < 0 || k + width > size)) out_of_bounds(node, k, width, size);
    for (int64_t w = 0; w < width; ++w) out->as<int64_t>()[int64_t(i) * width + w] = holds(ok, i) ? k + w : -1;
  }
  return out;
}

WritesPtr make_writes(const UOp& base, const UOp& origin, Value places, Value values) {
  Frame frame;
  frame.include(*places);
  frame.include_axes(*values);
  const int64_t n = product(frame.shape);
  places = with_shape(broadcast(places, frame), Sizes{n});
  values = with_shape(broadcast(values, frame), Sizes{n});
  return std::make_shared<Writes>(Writes{base, origin, std::move(places), std::move(values)});
}

Value after_writes(Value state, std::span<const WritesPtr> list) {
  Frame frame;
  frame.include(*state);
  for (const WritesPtr& w : list) frame.include_axes(*w->index);
  const bool ours = state.use_count() == 1 && state->axes == frame.axes;
  std::shared_ptr<Data> out;
  if (ours) {
    out = std::const_pointer_cast<Data>(state);  // every Data is made as a mutable object
  } else {
    out = copy_of(*broadcast(state, frame));
  }
  const size_t item = itemsize(out->dtype);
  const auto size = size_t(product(out->shape()));
  for (const WritesPtr& w : list) {
    const std::vector<int64_t> blocks = block_offsets(frame, *w->index);
    const auto n = size_t(product(w->index->shape()));
    for (size_t b = 0; b < blocks.size(); ++b) {
      std::byte* to = out->bytes() + b * size * item;
      const int64_t* at = w->index->as<int64_t>() + blocks[b];
      const std::byte* from = w->values->bytes() + size_t(blocks[b]) * item;
      for (size_t j = 0; j < n; ++j)
        if (at[j] >= 0) std::memcpy(to + size_t(at[j]) * item, from + j * item, item);
    }
  }
  return out;
}

WritesPtr close_axes(const UOp& origin, std::span<const WritesPtr> list, const AxisIds& closed, std::span<const int64_t> sizes) {
  Frame frame;
  for (const WritesPtr& w : list) frame.include_axes(*w->index);
  AxisIds open, order;
  Sizes open_sizes, order_sizes;
  for (size_t i = 0; i < frame.axes.size(); ++i) {
    if (std::find(closed.begin(), closed.end(), frame.axes[i]) != closed.end()) continue;
    open.push_back(frame.axes[i]);
    open_sizes.push_back(frame.axis_sizes[i]);
  }
  order = open;
  order_sizes = open_sizes;
  order.append(closed.begin(), closed.end());
  order_sizes.append(sizes.begin(), sizes.end());

  int64_t each = 0;
  for (const WritesPtr& w : list) each += product(w->index->shape());
  const int64_t points = product(order_sizes);
  Sizes out_sizes = open_sizes;
  out_sizes.push_back(product(sizes) * each);
  const size_t item = itemsize(list[0]->values->dtype);
  auto index = std::make_shared<Data>(DType::index, open, out_sizes);
  auto values = std::make_shared<Data>(list[0]->values->dtype, open, out_sizes);

  size_t offset = 0;
  for (const WritesPtr& w : list) {
    const auto n = size_t(product(w->index->shape()));
    const Value at = broadcast(w->index, order, order_sizes, w->index->shape());
    const Value from = broadcast(w->values, order, order_sizes, w->values->shape());
    for (size_t p = 0; p < size_t(points); ++p) {
      const size_t to = p * size_t(each) + offset;
      std::memcpy(index->bytes() + to * 8, at->bytes() + p * n * 8, n * 8);
      std::memcpy(values->bytes() + to * item, from->bytes() + p * n * item, n * item);
    }
    offset += n;
  }
  return std::make_shared<Writes>(Writes{list[0]->base, origin, index, values});
}

}  // namespace tinygrad::spec
