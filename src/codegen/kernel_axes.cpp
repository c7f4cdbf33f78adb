#include "codegen/kernel_axes.h"

#include <algorithm>
#include <tuple>

#include "shape/ranges.h"
#include "shape/sint.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

bool is_reduced(const UOp& range) {
  const AxisKind kind = range.arg_as<RangeArg>().kind;
  return kind == AxisKind::reduce || kind == AxisKind::outer;
}

namespace {

template <class Keep, class Key>
std::vector<UOp> sorted_ranges(const UOp& sink, Keep&& keep, Key&& key) {
  std::vector<UOp> out;
  for (const UOp& u : toposort(sink))
    if (u.is(Op::RANGE) && keep(u)) out.push_back(u);
  std::sort(out.begin(), out.end(), [&](const UOp& a, const UOp& b) { return key(a) < key(b); });
  return out;
}

bool is_axis(const UOp& range) { return is_reduced(range) || range.arg_as<RangeArg>().kind == AxisKind::loop; }
int32_t order_of(const UOp& range) { return range.arg_as<RangeArg>().order; }
int32_t id_of(const UOp& range) { return range.arg_as<RangeArg>().id; }

}  // namespace

std::vector<UOp> kernel_axes(const UOp& sink) {
  return sorted_ranges(sink, is_axis, [](const UOp& u) { return std::tuple(is_reduced(u), order_of(u), id_of(u)); });
}

std::vector<UOp> nested_axes(const UOp& sink) {
  return sorted_ranges(sink, is_axis, [](const UOp& u) { return std::tuple(order_of(u), is_reduced(u), id_of(u)); });
}

bool meet(const UOp& sink, const UOp& a, const UOp& b) {
  return std::ranges::any_of(toposort(sink), [&](const UOp& u) {
    const OpenRanges open = ranges_of(u);
    const auto has = [&](const UOp& range) {
      return std::ranges::find(open, range) != open.end() || (u.is(Op::REDUCE) && closes(u, range));
    };
    return has(a) && has(b);
  });
}

std::vector<UOp> item_ranges(const UOp& sink) {
  const auto is_item = [](const UOp& u) {
    const AxisKind kind = u.arg_as<RangeArg>().kind;
    return kind == AxisKind::local || kind == AxisKind::group;
  };
  return sorted_ranges(sink, is_item, [](const UOp& u) { return std::pair(order_of(u), id_of(u)); });
}

bool updates_in_place(const UOp& sink) {
  const auto memory = [](const UOp& access) {
    UOp m = access.src(0).src(0);
    while (m.is(Op::AFTER)) m = UOp(m.src(0));
    return m;
  };
  const std::vector<UOp> nodes = toposort(sink);
  NodeSet loaded;
  for (const UOp& u : nodes)
    if (u.is(Op::LOAD)) loaded.insert(memory(u));
  return std::any_of(nodes.begin(), nodes.end(), [&](const UOp& u) { return u.is(Op::STORE) && loaded.contains(memory(u)); });
}

int32_t next_range_id(const UOp& sink) {
  int32_t next = 0;
  for (const UOp& u : toposort(sink))
    if (u.is(Op::RANGE)) next = std::max(next, u.arg_as<RangeArg>().id + 1);
  return next;
}

uint64_t next_memory_id(const UOp& sink) {
  uint64_t next = 0;
  for (const UOp& u : toposort(sink))
    if (u.is(Op::BUFFER)) next = std::max(next, u.arg_as<BufferArg>().id + 1);
  return next;
}

int64_t constant_size(const UOp& range) {
  const Scalar* size = const_value(range.src(0));
  return size ? size->as_int() : 0;
}

namespace {

bool depends_on(const UOp& expr, const UOp& range) { return is_open_over(expr, std::span(&range, 1)); }

}  // namespace

UOp deciding_loop(const UOp& condition) {
  const OpenRanges open = ranges_of(condition);
  if (open.size() != 1) return {};
  for (const UOp* u : borrowed_toposort(condition))
    if (u->is(Op::LOAD) || u->is(Op::REDUCE)) return {};
  return open[0];
}

int64_t most_iterations(const UOp& range) { return SInt(range.src(0)).max(); }

std::optional<int64_t> stride_of(const UOp& expr, const UOp& range) {
  // Sums and products by constants are walked with an explicit stack; what else depends on the range is not linear.
  struct Part {
    const UOp* node;
    int64_t factor;
  };
  SmallVector<Part, 16> stack{{&expr, 1}};
  int64_t stride = 0;
  while (!stack.empty()) {
    const auto [node, factor] = stack.back();
    const UOp& u = *node;
    stack.pop_back();
    if (u == range) {
      stride += factor;
    } else if (!depends_on(u, range)) {
      continue;
    } else if (u.is(Op::ADD) || u.is(Op::SUB)) {
      stack.push_back({&u.src(0), factor});
      stack.push_back({&u.src(1), u.is(Op::SUB) ? -factor : factor});
    } else if (u.is(Op::NEG)) {
      stack.push_back({&u.src(0), -factor});
    } else if (u.is(Op::MUL) && (u.src(0).is(Op::CONST) || u.src(1).is(Op::CONST))) {
      const size_t c = u.src(1).is(Op::CONST) ? 1 : 0;
      stack.push_back({&u.src(1 - c), factor * const_value(u.src(c))->as_int()});
    } else {
      return std::nullopt;
    }
  }
  return stride;
}

}  // namespace tinygrad::codegen
