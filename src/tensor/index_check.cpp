#include "tensor/index_check.h"

#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "dtype/visit.h"
#include "ops/elementwise.h"
#include "shape/device.h"
#include "shape/shape.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/observer.h"
#include "tensor/storage.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

void IndexCheck::look(uint64_t found, FunctionRef<int64_t(const UOp&)> value_of) const {
  const int64_t n = value_of(size);
  const auto shift = uint64_t(wraps ? n : 0);
  if (found < uint64_t(n) + shift || value_of(count) == 0) return;
  const bool narrow = itemsize(dtype) == 4;
  const uint64_t index = found - shift;
  const std::string bad = is_unsigned(dtype) ? std::to_string(found) : std::to_string(narrow ? int64_t(int32_t(index)) : int64_t(index));
  throw IndexError(fmt::format("{}: the index {} is out of range for axis {} of size {} of {}", operation, bad, axis, n, subject));
}

namespace {

template <class E>
std::optional<OutOfRange> first_outside(const std::byte* memory, int64_t count, int64_t low, int64_t high, std::optional<int64_t> ignored) {
  const auto* values = reinterpret_cast<const E*>(memory);
  for (int64_t i = 0; i < count; ++i)
    if (const auto v = static_cast<int64_t>(values[i]); (v < low || v >= high) && ignored != v) return OutOfRange{i, v};
  return std::nullopt;
}

}  // namespace

std::optional<OutOfRange> first_out_of_range(const UOp& values, int64_t low, int64_t high, std::optional<int64_t> ignored, int64_t most,
                                             bool& looked) {
  looked = false;
  const UOp state = state_of_view(values);
  if (!is_int(values.dtype()) || !state.is(Op::BUFFER) || is_storage(values) || !all_known(shape_of(values))) return {};
  const Buffer& whole = buffer_of(state);
  if (!whole.is_allocated() || whole.poisoned() || whole.device().is_async()) return {};
  const BufferPtr memory = piece_of_memory(values);
  const std::byte* host = memory && memory->size() <= most ? memory->device().allocator().host_pointer(memory->handle()) : nullptr;
  if (!host) return {};
  looked = true;
  return visit_dtype(values.dtype(), [&]<class E>(std::type_identity<E>) -> std::optional<OutOfRange> {
    if constexpr (std::integral<E> && !std::is_same_v<E, bool>)
      return first_outside<E>(host, memory->size(), std::is_unsigned_v<E> ? std::max<int64_t>(low, 0) : low, high, ignored);
    else
      return {};
  });
}

namespace {

/// What has all elements of an index, each as often as it is in memory.
const UOp& without_repetitions(const UOp& index) {
  const UOp* u = &index;
  while (u->is(Op::RESHAPE) || u->is(Op::EXPAND) || u->is(Op::PERMUTE) || u->is(Op::FLIP) || u->is(Op::DETACH) || u->is(Op::TENSOR))
    u = &u->src(0);
  return *u;
}

/// False for what a function() that is being built makes of its arguments, and for what depends on variables without values.
bool has_value(const UOp& u) {
  NodeSet bound;
  const std::vector<UOp> nodes = toposort(u);
  for (const UOp& n : nodes)
    if (n.is(Op::BIND)) bound.insert(n.src(0));
  return std::ranges::none_of(nodes, [&](const UOp& n) { return n.is(Op::PARAM) || (n.is(Op::VAR) && !bound.contains(n)); });
}

/// More than a little arithmetic with what is in memory: it is used again after it was looked at.
bool costs_much(const UOp& index) {
  constexpr size_t little = 64;
  const std::vector<UOp> nodes = toposort(index);
  return nodes.size() > little || std::ranges::any_of(nodes, [](const UOp& n) { return n.is(Op::REDUCE); });
}

/// 32 bits where that is enough for any index and twice the size: not all devices have more, and it is faster.
DType checked_dtype(DType dtype, const SInt& size) {
  const bool narrow = itemsize(dtype) <= 4 && size.max() <= max_value(DType::int32).as_int();
  if (is_unsigned(dtype)) return narrow ? DType::uint32 : DType::uint64;
  return narrow ? DType::int32 : DType::int64;
}

/// IndexCheck::largest. Below the least in range, numbers wrap to very large ones: one pass over the indices finds both kinds.
Tensor largest_of(const UOp& indices, const IndexCheck& check, const SInt& size, std::optional<int64_t> ignored) {
  Tensor i = wrap(indices).cast(check.dtype);
  if (ignored) i = i.eq(*ignored).where(int64_t{0}, i);
  if (!is_unsigned(check.dtype)) i = i.bitcast(unsigned_like(check.dtype));
  if (check.wraps) i = wrap(ops::add(i.uop(), ops::Operand::number_of(size)));
  return i.max();
}

uint64_t number_in(const Tensor& t) {
  const Observer::Pause pause;  // a replay has its own way to read it
  return t.dtype() == DType::uint32 ? t.item<uint32_t>() : t.item<uint64_t>();
}

}  // namespace

void check_indices(const char* operation, const Tensor& index, const Tensor& of, int axis, bool wraps, std::optional<int64_t> ignored) {
  if (!current_options().check_oob || !is_int(index.dtype())) return;
  const UOp all = index.uop(), indexed = of.uop();
  if (is_empty(shape_of(all)) || is_storage(all) || axis < 0 || size_t(axis) >= shape_of(indexed).size()) return;
  const SInt& size = shape_of(indexed)[size_t(axis)];
  const SInt count = numel(shape_of(all));
  if (!has_value(all) || !has_value(size.uop())) return;

  IndexCheck check{.dtype = checked_dtype(index.dtype(), size), .size = size.uop(), .count = count.uop(), .axis = axis};
  check.wraps = wraps && !is_unsigned(check.dtype);
  const auto describe = [&] {
    check.operation = operation;
    check.subject = fmt::format("{}; the indices are {}{}", of.to_string(), index.to_string(), place_text(ValueOrigin::of(operation)));
  };
  const auto value_of = [](const UOp& expression) { return value_now(SInt(expression)); };
  const auto look = [&](uint64_t found) {
    try {
      check.look(found, value_of);
    } catch (const IndexError&) {
      describe();
      check.look(found, value_of);
    }
  };

  Observer* recorder = Observer::current();
  if (!recorder && size.known()) {
    constexpr int64_t most = int64_t{1} << 15;  // what a loop here does faster than a kernel is made and launched
    bool looked = false;
    const int64_t n = size.value();
    const auto bad = first_out_of_range(without_repetitions(all), check.wraps ? -n : 0, n, ignored, most, looked);
    if (bad) look(uint64_t(bad->value) + uint64_t(check.wraps ? n : 0));
    if (looked) return;
  }
  if (costs_much(all)) index.realize();
  Tensor largest = largest_of(without_repetitions(index.uop()), check, size, ignored);
  if (recorder) largest = wrap(copied(largest.uop()));  // memory of the call in any case
  largest.realize();
  look(number_in(largest));
  if (!recorder) return;
  describe();
  check.largest = buffer_of_state(state_of_view(largest.uop()));
  recorder->looks_at(std::move(check));
}

}  // namespace tinygrad::tensor
