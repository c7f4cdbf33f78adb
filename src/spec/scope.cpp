#include "spec/scope.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include "shape/ranges.h"
#include "shape/sint.h"
#include "spec/alu.h"
#include "uop/build.h"

namespace tinygrad::spec {

void Evaluator::note(const Value& v) {
  if (!exact || !v || v->dtype != DType::float64) return;
  const double* x = v->as<double>();
  for (size_t i = 0; i < v->count(); ++i)
    if (std::isfinite(x[i])) largest = std::max(largest, std::abs(x[i]));
}

uint32_t Evaluator::new_axis(const UOp& node, int64_t size, Value extent) {
  axes_.push_back({node, size, std::move(extent)});
  return uint32_t(axes_.size() - 1);
}

Value Evaluator::existing(const AxisIds& axes) const {
  Value all;
  AxisIds pending = axes;
  for (size_t i = 0; i < pending.size(); ++i) {
    const Axis& a = axes_[pending[i]];
    if (!a.extent) continue;
    const Value pair[] = {axis_iota(DType::index, pending[i], a.size), a.extent};
    const Value exists = alu_values(Op::CMPLT, DType::bool_, pair);
    const Value both[] = {all, exists};
    all = all ? alu_values(Op::AND, DType::bool_, both) : exists;
    for (uint32_t outer : a.extent->axes)
      if (std::find(pending.begin(), pending.end(), outer) == pending.end()) pending.push_back(outer);
  }
  return all;
}

Scope::Scope(Evaluator& ev, std::span<const UOp> roots) : ev_(ev), roots_(roots.begin(), roots.end()), plan_(roots_) {
  for (const UOp& u : plan_.nodes()) {
    results_.insert(u, {});
    if (u.is(Op::PARAM)) param_base_.emplace(u.arg_as<ParamArg>().slot, u);
  }
  const std::vector<UOp>& order = plan_.order();
  NodeMap<size_t> last(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    for (const UOp& s : plan_.needs(order[i])) last[s] = i;
  NodeSet stay;
  for (const UOp& root : roots_) stay.insert(root);
  for (const UOp& u : order) {
    // Memory shares its data with the inputs, and effects are asked for it after the run.
    if (!u.is(Op::BUFFER) && !u.is(Op::PARAM)) continue;
    stay.insert(u);
    for (const UOp& size : u.src()) stay.insert(size);
  }
  last_uses_.resize(order.size());
  for (const UOp& u : order)
    if (const size_t* at = last.find(u); at && !stay.contains(u)) last_uses_[*at].push_back(u);
}

void Scope::run(const Environment& env) {
  env_ = &env;
  collected_.clear();
  known_.clear();
  const std::vector<UOp>& order = plan_.order();
  for (size_t i = 0; i < order.size(); ++i) {
    Result r = compute(order[i]);
    ev_.note(r.value);
    *results_.find(order[i]) = std::move(r);
    for (const UOp& u : last_uses_[i]) *results_.find(u) = {};
  }
}

Value Scope::read(const UOp& u, const Result& r) const {
  if (r.value) return r.value;
  if (const Address* a = r.address.get()) {
    const Value from = a->memory ? a->memory->state : a->from;
    if (!from) throw ValueError(fmt::format("{} is read, but no data were given for it", print_expr(a->memory->base)));
    const Value found = gather(u, from, a->index, a->valid, a->width);
    return a->dtype == DType::void_ ? found : cast_value(found, ev_.storage(a->dtype));
  }
  if (r.memory) throw ValueError(fmt::format("{} is read, but no data were given for it", print_expr(r.memory->base)));
  throw InternalError(fmt::format("{} has no value: {}", name(u.op()), print_expr(u)));
}

Value Scope::value(const UOp& u) const { return read(u, result(u)); }

int64_t Scope::number(const UOp& u) const {
  if (u.is(Op::CONST)) return const_value(u)->as_int();
  const Value v = value(u);
  if (!v->is_single()) throw InternalError(fmt::format("a size depends on a loop: {}", print_expr(u)));
  return v->element(0).as_int();
}

Result Scope::constant_node(const UOp& u) const { return {.value = single(const_value(u)->cast(ev_.storage(u.dtype())))}; }

Result Scope::variable_node(const UOp& u) const {
  const VarArg& v = u.arg_as<VarArg>();
  const auto at = env_->variables.find(v.name);
  if (at == env_->variables.end()) throw ValueError(fmt::format("no value was given for the variable {}", v.name.str()));
  if (at->second < v.min || at->second > v.max)
    throw ValueError(fmt::format("the value {} of the variable {} is not within {} .. {}", at->second, v.name.str(), v.min, v.max));
  return {.value = single(Scalar::from_int(at->second, u.dtype()))};
}

Result Scope::memory_node(const UOp& u) const {
  Memory m{.base = u, .dtype = ev_.storage(u.dtype())};
  Value data;
  if (u.is(Op::BUFFER)) {
    m.size = u.arg_as<BufferArg>().size;
    if (const auto at = env_->buffers.find(u.arg_as<BufferArg>().id); at != env_->buffers.end()) data = at->second;
  } else {
    const int32_t slot = u.arg_as<ParamArg>().slot;
    m.base = param_base_.at(slot);
    Sizes shape;
    for (const UOp& s : u.src()) shape.push_back(number(s));
    m.size = product(shape);
    if (const auto at = env_->params.find(slot); at != env_->params.end()) data = at->second.value;
    if (!data && shape.empty()) throw ValueError(fmt::format("no value was given for {}", print_expr(u)));
    if (!shape.empty()) m.moves.push_back({Op::RESHAPE, {}, shape});
  }
  if (!data) return {.memory = std::make_shared<Memory>(std::move(m))};
  if (data->dtype != m.dtype) throw DTypeError(fmt::format("{} takes {}, got {}", print_expr(u), repr(m.dtype), repr(data->dtype)));
  if (product(data->shape()) != m.size)
    throw ShapeError(fmt::format("{} has {} elements, got {}", print_expr(u), m.size, product(data->shape())));
  if (u.src().empty() && u.is(Op::PARAM)) return {.value = with_shape(data, {})};
  m.state = with_shape(data, Sizes{m.size});
  Value contents = m.contents();
  return {.value = std::move(contents), .memory = std::make_shared<Memory>(std::move(m))};
}

Result Scope::movement_node(const UOp& u) const {
  Move m{.op = u.op(), .axes = {}, .args = {}};
  if (const AxesArg* a = std::get_if<AxesArg>(&u.arg())) m.axes = a->axes;
  for (const UOp& s : u.src().subspan(1)) m.args.push_back(number(s));
  const Result& x = result(u.src(0));
  Result out;
  if (x.memory) {
    Memory view = *x.memory;
    view.moves.push_back(m);
    out.memory = std::make_shared<Memory>(std::move(view));
    if (!x.value) return out;
  }
  const Value v = read(u.src(0), x);
  out.value = moved(v, m, Scalar::from_int(0, v->dtype));
  return out;
}

Result Scope::alu_node(const UOp& u) const {
  SmallVector<Value, 3> sources;
  for (const UOp& s : u.src()) sources.push_back(value(s));
  return {.value = alu_values(u.op(), ev_.storage(u.dtype()), sources)};
}

Value Scope::bitcast(const UOp& u) const {
  const Value x = cast_value(value(u.src(0)), u.src(0).dtype());  // in exact evaluation floats are wider than their dtype
  if (itemsize(u.dtype()) != itemsize(x->dtype))
    throw DTypeError(fmt::format("BITCAST: {} and {} differ in size", repr(x->dtype), repr(u.dtype())));
  return cast_value(bitcast_value(x, u.dtype()), ev_.storage(u.dtype()));
}

Result Scope::axis_node(const UOp& u) {
  const Value n = value(u.src(0));
  if (!n->shape().empty()) throw InternalError(fmt::format("{}: the size is no scalar: {}", name(u.op()), print_expr(u)));
  int64_t size = 0;
  for (size_t i = 0; i < n->count(); ++i) size = std::max(size, n->element(i).as_int());
  const uint32_t axis = ev_.new_axis(u, size, n->is_single() ? nullptr : cast_value(n, DType::index));
  return {.value = axis_iota(u.dtype(), axis, size)};
}

void Scope::closed_axes(std::span<const UOp> ranges, AxisIds& axes, Sizes& sizes) const {
  for (const UOp& r : ranges) {
    const Value v = value(r);
    if (v->axes.size() != 1) throw InternalError(fmt::format("a loop is closed twice: {}", print_expr(r)));
    axes.push_back(v->axes[0]);
    sizes.push_back(v->sizes[0]);
  }
}

Result Scope::reduce_node(const UOp& u) {
  if (is_general_reduce(u)) return general_reduce_node(u);
  const ReduceArg& arg = u.arg_as<ReduceArg>();
  Value x = value(u.src(0));
  AxisIds closed;
  Sizes sizes;
  closed_axes(closed_ranges(u), closed, sizes);
  AxisIds all = x->axes;
  all.append(closed.begin(), closed.end());
  if (const Value exists = ev_.existing(all)) {
    const Value choice[] = {exists, x, single(reduce_identity(arg.op, x->dtype))};
    x = alu_values(Op::WHERE, x->dtype, choice);
  }
  return {.value = reduce_value(arg.op, x, closed, sizes, arg.axes, ev_.exact ? &ev_.largest : nullptr)};
}

namespace {

/// Both row-major; no axis of `from` is longer than that of `to`.
void copy_into_corner(const std::byte* from, const Sizes& sizes, std::byte* to, const Sizes& to_sizes, size_t item) {
  if (sizes == to_sizes) {
    for (int64_t n : sizes) item *= size_t(n);
    std::memcpy(to, from, item);
    return;
  }
  const Sizes inner(sizes.begin() + 1, sizes.end()), to_inner(to_sizes.begin() + 1, to_sizes.end());
  size_t step = item, to_step = item;
  for (size_t i = 0; i < inner.size(); ++i) step *= size_t(inner[i]), to_step *= size_t(to_inner[i]);
  for (int64_t i = 0; i < sizes[0]; ++i) copy_into_corner(from + size_t(i) * step, inner, to + size_t(i) * to_step, to_inner, item);
}

}  // namespace

/// Places in a tile are counted for loops as long as they may be.
Result Scope::stage_node(const UOp& u) const {
  const Value x = value(u.src(0));
  AxisIds staged, order;
  Sizes sizes, order_sizes, shape;
  closed_axes(closed_ranges(u), staged, sizes);
  for (size_t i = 0; i < x->axes.size(); ++i) {
    if (std::find(staged.begin(), staged.end(), x->axes[i]) != staged.end()) continue;
    order.push_back(x->axes[i]);
    order_sizes.push_back(x->sizes[i]);
  }
  const AxisIds open = order;
  Sizes out_sizes = order_sizes;
  for (const UOp& r : closed_ranges(u)) out_sizes.push_back(std::max(sizes[out_sizes.size() - open.size()], SInt(r.src(0)).max()));
  out_sizes.append(x->shape().begin(), x->shape().end());
  order.append(staged.begin(), staged.end());
  order_sizes.append(sizes.begin(), sizes.end());
  const Value laid_out = broadcast(x, order, order_sizes, x->shape());
  auto out = std::make_shared<Data>(x->dtype, open, out_sizes);
  order_sizes.append(x->shape().begin(), x->shape().end());
  copy_into_corner(laid_out->bytes(), order_sizes, out->bytes(), out_sizes, itemsize(x->dtype));
  return {.value = out};
}

Result Scope::stack_node(const UOp& u) const {
  std::vector<Value> values;
  for (const UOp& s : u.src()) values.push_back(value(s));
  return {.value = stacked(values)};
}

/// Four elements follow each other in a texel, and there is nothing outside of the rows.
Result Scope::texel_node(const UOp& u) const {
  const UOp& image = u.src(0);
  const auto num = [](int64_t n) { return single(Scalar::from_int(n, DType::index)); };
  const auto op = [](Op o, DType d, const Value& a, const Value& b) {
    const Value both[] = {a, b};
    return alu_values(o, d, both);
  };
  const auto inside = [&](const Value& at, int64_t size) {
    return op(Op::AND, DType::bool_, op(Op::CMPLT, DType::bool_, num(-1), at), op(Op::CMPLT, DType::bool_, at, num(size)));
  };
  const Value y = cast_value(value(u.src(1)), DType::index), x = cast_value(value(u.src(2)), DType::index);
  const int64_t height = number(image.src(0)), width = number(image.src(1));
  Value at = op(Op::MUL, DType::index, op(Op::ADD, DType::index, op(Op::MUL, DType::index, y, num(width)), x), num(4));
  if (u.src_count() > 3) at = op(Op::ADD, DType::index, at, cast_value(value(u.src(3)), DType::index));
  Address a{.memory = result(image).memory, .from = {}, .index = at, .valid = {}, .width = u.arg_as<IndexArg>().width, .dtype = u.dtype()};
  a.valid = op(Op::AND, DType::bool_, inside(y, height), inside(x, width));
  Frame frame;
  frame.include_axes(*a.index);
  if (const Value exists = ev_.existing(frame.axes)) a.valid = op(Op::AND, DType::bool_, a.valid, exists);
  return {.address = std::make_shared<Address>(std::move(a))};
}

Result Scope::index_node(const UOp& u) const {
  if (is_image(u.src(0))) return texel_node(u);
  const Result& source = result(u.src(0));
  Address a{.memory = source.memory, .from = {}, .index = value(u.src(1)), .valid = {}, .width = u.arg_as<IndexArg>().width};
  if (u.src_count() > 2) a.valid = value(u.src(2));
  if (!a.memory) {
    const Value x = read(u.src(0), source);
    a.from = with_shape(x, Sizes{product(x->shape())});
  }
  Frame frame;
  frame.include_axes(*a.index);
  if (a.valid) frame.include_axes(*a.valid);
  if (const Value exists = ev_.existing(frame.axes)) {
    const Value both[] = {a.valid, exists};
    a.valid = a.valid ? alu_values(Op::AND, DType::bool_, both) : exists;
  }
  return {.address = std::make_shared<Address>(std::move(a))};
}

Address each_element(const Address& a, const Value& gate) {
  if (a.width == 1 || !gate || gate->shape().empty() || !a.index->shape().empty()) return a;
  Address out = a;
  const Value both[] = {a.index, iota(a.index->dtype, a.width)};
  out.index = alu_values(Op::ADD, a.index->dtype, both);
  out.width = 1;
  return out;
}

Result Scope::load_node(const UOp& u) const {
  if (u.src_count() == 1) return {.value = value(u.src(0))};
  return {.value = loaded(u, u.src(0), u.src(1), u.src_count() > 2 ? u.src(2) : UOp())};
}

/// What is at a place, and `instead` where the gate, if there is one, does not hold.
Value Scope::loaded(const UOp& u, const UOp& from, const UOp& instead, const UOp& gate) const {
  const Result& place = result(from);
  if (!place.address) return value(from);
  Address a = *place.address;
  Value ok = a.valid;
  if (gate) {
    ok = value(gate);
    a = each_element(a, ok);
    const Value both[] = {a.valid, ok};
    a.valid = a.valid ? alu_values(Op::AND, DType::bool_, both) : ok;
  }
  Value x = read(from, {.address = std::make_shared<Address>(a)});
  if (!ok) return x;
  if (a.width > 1 && !ok->shape().empty() && ok->shape().size() < x->shape().size())
    throw InternalError(fmt::format("LOAD: one gate for {} elements each: {}", a.width, print_expr(u)));
  const Value choice[] = {ok, x, instead ? value(instead) : single(Scalar::from_int(0, DType::int32).cast(x->dtype))};
  return alu_values(Op::WHERE, x->dtype, choice);
}

Result Scope::compute(const UOp& u) {
  if (u.in(Group::movement)) return movement_node(u);
  if (u.in(Group::alu)) return alu_node(u);
  switch (u.op()) {
    case Op::CONST: return constant_node(u);
    case Op::VAR: return variable_node(u);
    case Op::BIND: return {.value = value(u.src(1))};
    case Op::IOTA: return {.value = iota(u.dtype(), number(u.src(0)))};
    case Op::BUFFER:
    case Op::PARAM: return memory_node(u);
    case Op::CAST: return {.value = cast_value(value(u.src(0)), ev_.storage(u.dtype()))};
    case Op::BITCAST: return {.value = bitcast(u)};
    case Op::RANGE:
    case Op::SPECIAL: return axis_node(u);
    case Op::REDUCE: return reduce_node(u);
    case Op::STAGE: return stage_node(u);
    case Op::STACK: return stack_node(u);
    case Op::INDEX: return index_node(u);
    case Op::LOAD: return load_node(u);
    case Op::COPY:
    case Op::CONTIGUOUS:
    case Op::CONTIGUOUS_BACKWARD:
    case Op::DETACH:
    case Op::TENSOR:
    case Op::WEAK:
    case Op::REALIZED:
    case Op::KNOWN: return {.value = value(u.src(0))};
    case Op::WEIGHT: {
      const Value choice[] = {value(u.src(1)), value(u.src(0)), single(Scalar::from_double(0, u.dtype()))};
      return {.value = alu_values(Op::WHERE, value(u.src(0))->dtype, choice)};
    }
    case Op::TUPLE: {
      std::vector<Result> elements;
      for (const UOp& s : u.src()) elements.push_back(result(s));
      return {.tuple = std::make_shared<const std::vector<Result>>(std::move(elements))};
    }
    case Op::GETTUPLE: {
      const Result& from = result(u.src(0));
      if (!from.tuple) throw InternalError(fmt::format("GETTUPLE of what is no tuple: {}", print_expr(u)));
      return from.tuple->at(size_t(u.arg_as<TupleArg>().index));
    }
    case Op::AFTER: return after_node(u);
    case Op::STORE: return stored(u, value(u.src(1)), u.src_count() > 2 ? u.src(2) : UOp());
    case Op::FETCH: return fetch_node(u);
    case Op::COMMIT:
    case Op::WAIT:
    case Op::GROUP:
    case Op::SINK: return group_node(u);
    case Op::BARRIER: return barrier_node(u);
    case Op::END: {
      const Loop* loop = plan_.loop(u);
      return loop ? loop_node(u, *loop) : end_node(u);
    }
    case Op::CALL: return call_node(u);
    case Op::LINEAR: return linear_node(u);
    case Op::FUNCTION: return {};
    default: throw InternalError(fmt::format("the evaluator does not run {}: {}", name(u.op()), print_expr(u)));
  }
}

}  // namespace tinygrad::spec
