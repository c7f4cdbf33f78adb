#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include "shape/ranges.h"
#include "spec/alu.h"
#include "spec/scope.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::spec {

namespace {

using ByBase = std::vector<std::vector<WritesPtr>>;  // a list a memory, in order of first appearance

void add_by_base(ByBase& lists, const WritesPtr& w) {
  const auto at = std::ranges::find_if(lists, [&](const auto& l) { return l[0]->base == w->base; });
  if (at != lists.end())
    at->push_back(w);
  else
    lists.push_back({w});
}

/// The writes where `exists` holds.
WritesPtr masked(const WritesPtr& w, const Value& exists) {
  const Value choice[] = {exists, w->index, single(Scalar::from_int(-1, DType::index))};
  return make_writes(w->base, w->origin, alu_values(Op::WHERE, DType::index, choice), w->values);
}

Result effects_result(Effects effects) { return {.effects = std::make_shared<const Effects>(std::move(effects))}; }

/// For the axes of launch dimensions: all of them closed at once.
Effects close_launch(const Evaluator& ev, const UOp& u, const Effects& in, auto&& closes) {
  Effects out;
  ByBase lists;
  AxisIds closed;
  Sizes sizes;
  for (const Written& w : in) {
    bool open = false;
    for (size_t i = 0; i < w.writes->index->axes.size(); ++i) {
      const uint32_t axis = w.writes->index->axes[i];
      if (!ev.axis_node(axis).is(Op::SPECIAL) || !closes(*w.writes, ev.axis_node(axis))) continue;
      open = true;
      if (std::find(closed.begin(), closed.end(), axis) != closed.end()) continue;
      closed.push_back(axis);
      sizes.push_back(w.writes->index->sizes[i]);
    }
    if (open)
      add_by_base(lists, w.writes);
    else
      out.push_back(w);
  }
  for (const auto& list : lists) out.push_back({close_axes(u, list, closed, sizes), true});
  return out;
}

/// The writes with all their lanes made: what reads memory behind them sees those of every lane.
WritesPtr close_lanes(const Evaluator& ev, const WritesPtr& w) {
  AxisIds lanes;
  Sizes sizes;
  for (size_t i = 0; i < w->index->axes.size(); ++i) {
    const UOp& node = ev.axis_node(w->index->axes[i]);
    if (!node.is(Op::RANGE) || node.arg_as<RangeArg>().kind != AxisKind::lane) continue;
    lanes.push_back(w->index->axes[i]);
    sizes.push_back(w->index->sizes[i]);
  }
  return lanes.empty() ? w : close_axes(w->origin, std::span(&w, 1), lanes, sizes);
}

bool is_group_memory(const UOp& base) { return base.is(Op::BUFFER) && base.arg_as<BufferArg>().scope == tinygrad::Scope::group; }

/// Memory of a group that goes from iteration to iteration would have to be joined at the barriers of each; that is not done.
void refuse_items(const Evaluator& ev, const WritesPtr& w) {
  if (!is_group_memory(w->base)) return;
  for (uint32_t axis : w->index->axes)
    if (ev.axis_node(axis).is(Op::SPECIAL))
      throw InternalError(fmt::format("no evaluator runs a loop that carries memory which work-items share: {}", print_expr(w->origin)));
}

}  // namespace

void Scope::append_effects(Effects& to, const UOp& u) const {
  const auto& effects = result(u).effects;
  if (!effects) return;
  for (const Written& w : *effects) {
    const auto same = std::ranges::find_if(to, [&](const Written& o) { return o.writes == w.writes; });
    if (same == to.end())
      to.push_back(w);
    else
      same->own |= w.own;
  }
}

void Scope::collect(const Effects& effects) {
  for (const Written& w : effects)
    if (known_.insert(w.writes.get()).second) collected_.push_back(w.writes);
}

std::vector<WritesPtr> Scope::writes() const {
  std::vector<WritesPtr> out = collected_;
  std::set<const Writes*> known = known_;
  for (const UOp& root : roots_)
    if (const auto& effects = result(root).effects)
      for (const Written& w : *effects)
        if (known.insert(w.writes.get()).second) out.push_back(w.writes);
  return out;
}

/// `m` with what the effects write to its memory on top.
std::shared_ptr<const Memory> Scope::with_effects(const std::shared_ptr<const Memory>& m, std::span<const UOp> effects) const {
  Effects all;
  for (const UOp& e : effects) append_effects(all, e);
  Memory out = *m;
  std::vector<WritesPtr> added;
  for (const Written& w : all) {
    if (w.writes->base != m->base || std::ranges::find(m->history, w.writes) != m->history.end()) continue;
    out.history.push_back(w.writes);
    added.push_back(close_lanes(ev_, w.writes));
  }
  if (added.empty()) return m;
  out.state = after_writes(m->state_or_zeros(), added);
  return std::make_shared<Memory>(std::move(out));
}

Result Scope::after_node(const UOp& u) {
  for (const UOp& e : u.src().subspan(1))
    if (const auto& effects = result(e).effects) collect(*effects);
  const Result& x = result(u.src(0));
  if (!x.memory) return x;
  Result out{.value = x.value, .memory = with_effects(x.memory, u.src().subspan(1))};
  if (out.memory != x.memory) out.value = out.memory->contents();
  return out;
}

/// Nothing here can tell when it is done.
Result Scope::fetch_node(const UOp& u) const {
  const UOp valid = u.src_count() > 2 ? UOp(u.src(2)) : UOp(), gate = u.src_count() > 3 ? UOp(u.src(3)) : UOp();
  const UOp& read = gate && is_const(valid, 1) ? gate : valid;
  return stored(u, read ? loaded(u, u.src(1), UOp(), read) : value(u.src(1)), gate);
}

/// A value at the place that is the first source, where the gate, if there is one, holds.
Result Scope::stored(const UOp& u, const Value& given, const UOp& if_true) const {
  const Result& target = result(u.src(0));
  const auto& memory = target.address ? target.address->memory : target.memory;
  if (!memory) throw InternalError(fmt::format("STORE to what is no memory: {}", print_expr(u)));
  const bool converts = target.address && target.address->dtype != DType::void_;
  const Value x = converts ? cast_value(given, memory->dtype) : given;
  if (x->dtype != memory->dtype)
    throw DTypeError(fmt::format("STORE: a value of {} into memory of {}: {}", repr(x->dtype), repr(memory->dtype), print_expr(u)));

  Frame frame;
  frame.include_axes(*x);
  Value gate = if_true ? value(if_true) : nullptr;
  if (gate) frame.include_axes(*gate);
  if (const Value exists = ev_.existing(frame.axes)) {
    const Value both[] = {gate, exists};
    gate = gate ? alu_values(Op::AND, DType::bool_, both) : exists;
  }
  Value places;
  if (target.address) {
    const Address each = each_element(*target.address, gate), *a = &each;
    const Value both[] = {a->valid, gate};
    const Value valid = a->valid && gate ? alu_values(Op::AND, DType::bool_, both) : a->valid ? a->valid : gate;
    places = store_places(u, memory->size, a->index, valid, a->width);
  } else {
    places = memory->places();
    const Value choice[] = {gate, places, single(Scalar::from_int(-1, DType::index))};
    if (gate) places = alu_values(Op::WHERE, DType::index, choice);
  }
  Effects out;
  for (const WritesPtr& w : memory->history) out.push_back({w, false});
  out.push_back({make_writes(memory->base, u, places, x), true});
  return effects_result(std::move(out));
}

Result Scope::group_node(const UOp& u) const {
  Effects all;
  for (const UOp& s : u.src()) append_effects(all, s);
  if (u.is(Op::SINK)) all = close_launch(ev_, u, all, [](const Writes&, const UOp&) { return true; });
  return effects_result(std::move(all));
}

/// From here on every work-item of a group sees what the others wrote to the group's memory.
Result Scope::barrier_node(const UOp& u) const {
  Effects all;
  for (const UOp& s : u.src()) append_effects(all, s);
  return effects_result(close_launch(ev_, u, all, [](const Writes& w, const UOp& special) {
    return is_group_memory(w.base) && special.arg_as<SpecialArg>().kind == AxisKind::local;
  }));
}

Result Scope::end_node(const UOp& u) const {
  const std::span<const UOp> ranges = closed_ranges(u);
  AxisIds closed;
  Sizes sizes;
  closed_axes(ranges, closed, sizes);
  Effects out;
  ByBase lists;
  if (const auto& effects = result(u.src(0)).effects)
    for (const Written& w : *effects) {
      if (!w.own && !is_open_over(w.writes->origin, ranges)) {
        out.push_back(w);
        continue;
      }
      AxisIds axes = w.writes->index->axes;
      axes.append(closed.begin(), closed.end());
      const Value exists = ev_.existing(axes);
      add_by_base(lists, exists ? masked(w.writes, exists) : w.writes);
    }
  for (const auto& list : lists) out.push_back({close_axes(u, list, closed, sizes), true});
  return effects_result(std::move(out));
}

/// What goes from one iteration to the next.
struct Scope::LoopState {
  UOp end;
  std::vector<std::pair<UOp, Value>> carried;  ///< memory that iterations read from those before
  Effects before;                              ///< writes from outside that effects inside build upon
  ByBase written;                              ///< to all other memory
};

void Scope::loop_iteration(LoopState& state, const Loop& loop) {
  for (const UOp& head : loop.heads) {
    Result& r = *results_.find(head);
    Memory m = *r.memory;
    m.state = std::ranges::find_if(state.carried, [&](const auto& c) { return c.first == m.base; })->second;
    m.history.clear();
    r.value = m.contents();
    r.memory = std::make_shared<Memory>(std::move(m));
  }
  for (const UOp& u : loop.inside) {
    Result r = compute(u);
    ev_.note(r.value);
    *results_.find(u) = std::move(r);
  }
  if (const auto& effects = result(state.end.src(0)).effects)
    for (const Written& w : *effects) {
      if (w.own || is_open_over(w.writes->origin, closed_ranges(state.end)))
        collect({w});
      else if (std::ranges::none_of(state.before, [&](const Written& o) { return o.writes == w.writes; }))
        state.before.push_back(w);
    }
  for (const UOp& u : loop.inside) *results_.find(u) = {};
  for (const UOp& head : loop.heads) {
    Result& r = *results_.find(head);
    Memory m = *r.memory;
    m.state = nullptr;
    r = {.memory = std::make_shared<Memory>(std::move(m))};
  }
  for (const WritesPtr& lanewise : collected_) {
    const WritesPtr w = close_lanes(ev_, lanewise);
    const auto carried = std::ranges::find_if(state.carried, [&](const auto& c) { return c.first == w->base; });
    if (carried == state.carried.end()) {
      add_by_base(state.written, w);
    } else {
      refuse_items(ev_, w);
      carried->second = after_writes(std::move(carried->second), std::span(&w, 1));
    }
  }
}

/// One iteration after the other. The writes of an iteration, also those that only its own AFTERs knew of, are those of the loop.
Result Scope::loop_node(const UOp& u, const Loop& loop) {
  const std::span<const UOp> ranges = loop.ranges;
  Sizes sizes;
  for (const UOp& r : ranges) sizes.push_back(number(r.src(0)));

  LoopState state{u, {}, {}, {}};
  std::vector<std::pair<UOp, Result>> saved;
  auto save = [&](const UOp& n) { saved.emplace_back(n, std::move(*results_.find(n))); };
  for (const UOp& n : loop.inside) save(n);
  for (const UOp& r : ranges) save(r);
  for (const UOp& head : loop.heads) {
    Result& r = *results_.find(head);
    const Result& x = result(head.src(0));
    UOps before, outer;
    for (const UOp& s : head.src().subspan(1))
      if (s.is(Op::RANGE) && std::ranges::find(ranges, s) == ranges.end()) outer.push_back(s);
    // An outer loop may have set the state it carries, which has what came before that loop.
    for (const UOp& s : head.src().subspan(1))
      if (!s.is(Op::RANGE) && !is_open_over(s, ranges) && (!r.memory || is_open_over(s, outer))) before.push_back(s);
    const auto memory = with_effects(r.memory ? r.memory : x.memory, before);
    save(head);
    *results_.find(head) = {.memory = memory};
    const auto same = std::ranges::find_if(state.carried, [&](const auto& c) { return c.first == memory->base; });
    if (same == state.carried.end()) state.carried.emplace_back(memory->base, memory->state_or_zeros());
  }
  const std::vector<WritesPtr> outer_collected = std::move(collected_);
  const std::set<const Writes*> outer_known = known_;

  const int64_t count = product(sizes);
  const Sizes strides = row_major(sizes);
  for (int64_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < ranges.size(); ++d)
      *results_.find(ranges[d]) = {.value = single(Scalar::from_int(i / strides[d] % sizes[d], ranges[d].dtype()))};
    collected_.clear();
    known_ = outer_known;
    loop_iteration(state, loop);
  }

  collected_ = outer_collected;
  known_ = outer_known;
  for (auto& [node, r] : saved) *results_.find(node) = std::move(r);
  Effects out = std::move(state.before);
  for (const auto& list : state.written) out.push_back({close_axes(u, list, {}, {}), true});
  for (const auto& [base, memory] : state.carried) {
    Value all = memory;
    out.push_back({make_writes(base, u, iota(DType::index, product(memory->shape())), all), true});
  }
  return effects_result(std::move(out));
}

/// The writes of a body as writes to the call's arguments.
Effects Scope::call_effects(const UOp& call, std::span<const WritesPtr> writes) const {
  Effects out;
  for (const WritesPtr& w : writes) {
    if (w->base.is(Op::BUFFER)) {
      if (w->base.arg_as<BufferArg>().scope == tinygrad::Scope::device) out.push_back({w, true});
      continue;
    }
    const auto slot = size_t(w->base.arg_as<ParamArg>().slot);
    const auto& memory = result(call.src(slot + 1)).memory;
    if (!memory) throw InternalError(fmt::format("CALL writes argument {}, which is no memory: {}", slot, print_expr(call)));
    const Value places = memory->places();
    Value index = w->index;
    if (!memory->moves.empty()) {
      auto moved_index = copy_of(*index);
      auto* at = moved_index->as<int64_t>();
      for (size_t i = 0; i < moved_index->count(); ++i)
        if (at[i] >= 0) at[i] = places->as<int64_t>()[at[i]];
      index = moved_index;
    }
    for (const WritesPtr& h : memory->history) out.push_back({h, false});
    out.push_back({std::make_shared<Writes>(Writes{memory->base, call, index, w->values}), true});
  }
  return out;
}

Result Scope::call_node(const UOp& u) {
  const UOp& body = u.src(0).is(Op::FUNCTION) ? u.src(0).src(0) : u.src(0);
  if (body.is(Op::COPY)) {
    const auto& to = result(u.src(1)).memory;
    if (!to) throw InternalError(fmt::format("a copy to what is no memory: {}", print_expr(u)));
    const Value from = value(u.src(2)), places = to->places();
    return effects_result(
        {{make_writes(to->base, u, with_shape(places, Sizes{product(places->shape())}), with_shape(from, Sizes{product(from->shape())})),
          true}});
  }
  Environment env{.params = {}, .buffers = env_->buffers, .variables = env_->variables};
  for (size_t i = 1; i < u.src_count(); ++i) {
    const UOp& arg = u.src(i);
    if (arg.is(Op::BIND)) env.variables[arg.src(0).arg_as<VarArg>().name] = number(arg);
    Result r = result(arg);
    if (r.address) r = {.value = value(arg)};
    env.params[int32_t(i - 1)] = {.value = r.value};
  }
  Scope inner(ev_, std::span(&body, 1));
  inner.run(env);
  const Result& r = inner.result(body);
  Result out{.value = r.value, .tuple = r.tuple};
  if (r.address) out.value = inner.value(body);
  out.effects = std::make_shared<const Effects>(call_effects(u, inner.writes()));
  return out;
}

/// Each call sees the memory that those before have left.
Result Scope::linear_node(const UOp& u) const {
  if (u.arg_as<LinearArg>().kind != 0) throw InternalError("the evaluator does not run linear programs of instructions");
  Environment env = *env_;
  Effects out;
  for (const UOp& call : u.src()) {
    Scope one(ev_, std::span(&call, 1));
    one.run(env);
    for (const WritesPtr& w : one.writes()) {
      out.push_back({w, true});
      Value state = after_writes(one.memory(w->base).state_or_zeros(), std::span(&w, 1));
      if (w->base.is(Op::BUFFER))
        env.buffers[w->base.arg_as<BufferArg>().id] = std::move(state);
      else
        env.params[w->base.arg_as<ParamArg>().slot] = {.value = std::move(state)};
    }
  }
  return effects_result(std::move(out));
}

}  // namespace tinygrad::spec
