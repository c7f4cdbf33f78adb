#include "jit/graph_file.h"

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "uop/build.h"

namespace tinygrad::jitted {

namespace {

/// All nodes below the roots, sources and bodies first.
std::vector<UOp> with_bodies(std::span<const UOp> roots) {
  std::vector<UOp> order;
  NodeSet seen;
  struct Visit {
    UOp node;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  for (const UOp& root : roots) {
    if (!root || !seen.insert(root)) continue;
    stack.push_back({root});
    while (!stack.empty()) {
      Visit& v = stack.back();
      if (v.next == v.node.src_count()) {
        order.push_back(v.node);
        stack.pop_back();
      } else if (const UOp s = v.node.src(v.next++); seen.insert(s)) {
        stack.push_back({s});
      }
    }
  }
  return order;
}

}  // namespace

void GraphWriter::put_node(const UOp& u) { put(u ? *numbers_.find(u) : uint32_t{0}); }

void GraphWriter::put_arg(const UOp& u) {
  const auto put_axes = [&](const Axes& axes) { put_each(axes, [&](int a) { put(static_cast<int32_t>(a)); }); };
  if (const auto* c = std::get_if<ConstArg>(&u.arg())) {
    put(u.dtype() == DType::index ? static_cast<uint64_t>(c->value.as_int()) : c->value.storage_bits());
    put_text(c->device.str());
  } else if (const auto* v = std::get_if<VarArg>(&u.arg())) {
    put_text(v->name.str());
    put(v->min);
    put(v->max);
  } else if (const auto* a = std::get_if<AxesArg>(&u.arg())) {
    put_axes(a->axes);
  } else if (const auto* r = std::get_if<ReduceArg>(&u.arg())) {
    put(r->op);
    put_axes(r->axes);
  } else if (const auto* p = std::get_if<ParamArg>(&u.arg())) {
    put(p->slot);
    put(p->align);
    put(p->alias);
    put_text(p->device.only().str());
  } else if (const auto* i = std::get_if<IndexArg>(&u.arg())) {
    put(i->width);
    put(i->state);
  } else if (const auto* g = std::get_if<RangeArg>(&u.arg())) {
    put(g->id);
    put(g->kind);
    put(g->order);
  } else if (const auto* d = std::get_if<DeviceArg>(&u.arg())) {
    put_text(d->device.str());
  } else if (const auto* f = std::get_if<FunctionArg>(&u.arg())) {
    put_text(f->name.str());
  } else if (const auto* t = std::get_if<TupleArg>(&u.arg())) {
    put(t->index);
  } else if (const auto* k = std::get_if<KernelArg>(&u.arg()); k && k->opts.empty() && !k->optimized) {
    put_text(k->name.str());
  } else if (!std::holds_alternative<NoArg>(u.arg())) {
    if (u.is(Op::SHARD) || u.is(Op::UNSHARD) || u.is(Op::MSTACK))
      throw ValueError("save: a call with tensors on several devices cannot be saved");
    throw ValueError(fmt::format("save: a file cannot hold a {}", name(u.op())));
  }
}

void GraphWriter::put_graph(std::span<const UOp> roots) {
  const std::vector<UOp> order = with_bodies(roots);
  put_each(order, [&](const UOp& u) {
    put(u.op());
    put(u.dtype());
    put(static_cast<uint8_t>(u.arg().index()));
    put_arg(u);
    put_each(u.src(), [&](const UOp& s) { put_node(s); });
    const auto number = static_cast<uint32_t>(numbers_.size() + 1);
    numbers_[u] = number;
  });
}

DType GraphReader::take_dtype() { return take_up_to<DType>(uint64_t(dtype_count - 1)); }

UOp GraphReader::take_node() {
  const auto number = take<uint32_t>();
  if (number > nodes_.size()) wrong("a node that is not there");
  return number ? nodes_[number - 1] : UOp();
}

Arg GraphReader::take_arg(Op op, DType dtype) {
  const auto take_axes = [&] {
    Axes axes;
    take_each([&] { axes.push_back(take<int32_t>()); });
    return axes;
  };
  switch (op) {
    case Op::CONST: {
      const auto bits = take<uint64_t>();
      const Scalar value =
          dtype == DType::index ? Scalar::from_int(static_cast<int64_t>(bits), dtype) : Scalar::from_storage_bits(bits, dtype);
      return ConstArg{value, Symbol(take_text())};
    }
    case Op::VAR: {
      const Symbol name(take_text());
      const auto min = take<int64_t>(), max = take<int64_t>();
      if (min < 0 || max < min) wrong("the bounds of a variable");
      return VarArg{name, min, max};
    }
    case Op::PERMUTE:
    case Op::FLIP: return AxesArg{take_axes()};
    case Op::REDUCE: {
      const Op by = take_up_to<Op>(uint64_t(op_count - 1));
      return ReduceArg{by, take_axes()};
    }
    case Op::PARAM: {
      ParamArg p;
      p.slot = take<int32_t>();
      p.align = take<uint16_t>();
      p.alias = take<uint16_t>();
      p.device = Symbol(take_text());
      return p;
    }
    case Op::INDEX: {
      const auto width = take<int32_t>();
      return IndexArg{width, take<int32_t>()};
    }
    case Op::RANGE: {
      RangeArg r;
      r.id = take<int32_t>();
      r.kind = take_up_to<AxisKind>(uint64_t(AxisKind::outer));
      r.order = take<int32_t>();
      return r;
    }
    case Op::COPY: return DeviceArg{Symbol(take_text())};
    case Op::FUNCTION: return FunctionArg{.name = Symbol(take_text()), .gradient_id = 0, .gradient = {}};
    case Op::GETTUPLE: return TupleArg{take<int32_t>()};
    case Op::SINK: return KernelArg{.name = Symbol(take_text())};
    default: return NoArg{};
  }
}

void GraphReader::take_graph() {
  take_each([&] {
    const Op op = take_up_to<Op>(uint64_t(op_count - 1));
    const DType dtype = take_dtype();
    if (op == Op::CONST && (dtype == DType::void_)) wrong("a constant without a dtype");
    const auto kind = take<uint8_t>();
    const Arg arg = take_arg(op, dtype);
    if (arg.index() != kind) wrong(fmt::format("the argument of a {}", name(op)));
    UOps sources;
    take_each([&] {
      sources.push_back(take_node());
      if (!sources.back()) wrong("a node without a source");
    });
    const int arity = info(op).arity;
    if (arity >= 0 && sources.size() != size_t(arity)) wrong(fmt::format("{} with {} sources", name(op), sources.size()));
    nodes_.push_back(UOp(op, dtype, sources, arg));
  });
}

}  // namespace tinygrad::jitted
