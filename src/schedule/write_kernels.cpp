#include "schedule/write_kernels.h"

#include <algorithm>
#include <span>
#include <utility>

#include "schedule/idle_terms.h"
#include "schedule/kernel_calls.h"
#include "schedule/recognize_reduces.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "symbolic/bounds.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

/// What is loaded of a value, with what its kernel knows of its place: scores that a mask made -inf are masked again, and what such
/// scores made 0 is a WEIGHT. It tells loops what they may leave out.
UOp as_stored(const UOp& stored, const Place& stored_at, const UOp& loaded, const Place& at) {
  if (!is_float(stored.dtype())) return loaded;
  NodeMap<UOp> there;
  for (size_t i = 0; i < at.at.size(); ++i)
    if (stored_at.at[i].is(Op::RANGE)) there[stored_at.at[i]] = at.at[i];
  const auto known_there = [&](Idle idle) {
    Conditions all, out;
    add_conditions(stored, idle, all);
    for (const Condition& c : all)
      if (is_of_places_only(c.test) && std::ranges::all_of(ranges_of(c.test), [&](const UOp& r) { return there.contains(r); }))
        out.push_back({substitute(c.test, there), c.is});
    return out;
  };
  if (const UOp counts = all_hold(known_there(Idle::weight))) return UOp(Op::WEIGHT, loaded.dtype(), {loaded, counts});
  const UOp counts = all_hold(known_there(Idle::least));
  return counts ? where(counts, loaded, constant(min_value(stored.dtype()))) : loaded;
}

bool always_inside(const UOp& at, const UOp& memory) {
  const SInt size = numel(shape_of(memory));
  const symbolic::Bounds b = symbolic::bounds(at);
  return size.known() && b.min >= 0 && b.max < size.value();
}

/// The gate only keeps the access inside the memory: what is read where it is false does not matter.
UOp read(const UOp& memory, const UOp& at, const UOp& valid) {
  const bool gated = valid && !is_const(valid, 1) && !always_inside(at, memory);
  return load(gated ? index_valid(memory, at, valid) : index(memory, at));
}

UOp padded(const UOp& u, const Use& use, const UOp& inside) {
  const UOp valid = source_place(u, {use.place.at, {}}).valid;
  if (!valid || is_const(valid, 1)) return inside;
  const bool gated = inside.is(Op::LOAD) && inside.src(0).src_count() == 3 && inside.src(0).src(2) == both(use.place.valid, valid);
  return gated ? inside : where(valid, inside, constant(u.dtype(), 0));
}

class KernelWriter {
 public:
  explicit KernelWriter(Placement placement) : placed_(std::move(placement)), exprs_(placed_.values.size()) {}

  void write(const UOp& u) {
    Value& v = value(u);
    if (u.is(Op::STORE)) {
      if (const Use* use = placed_.stores.find(u)) kernel(use->kernel).value = exprs(u.src(1))[size_t(use->source_uses[0])];
    } else if (v.kernel) {
      write_stored(u, v);
    } else {
      for (const Use& use : v.uses) exprs(u).push_back(expression(u, use));
    }
  }

  /// Kernels were made from outputs to inputs.
  Kernels take() {
    std::vector<Kernel>& kernels = placed_.kernels;
    for (size_t i = 0; i < kernels.size(); ++i) give_own_ids(kernels[i], placed_.loops.with_own_ids(int(i)));
    std::ranges::reverse(kernels);
    for (Kernel& k : kernels)
      for (int& a : k.after) a = reversed(a);
    for (ValueNote& note : placed_.notes) {
      if (note.kernel) note.kernel = reversed(*note.kernel);
      for (int& user : note.users) user = reversed(user);
    }
    std::ranges::reverse(placed_.notes);
    return {std::move(kernels), std::move(placed_.notes)};
  }

 private:
  Value& value(const UOp& u) { return placed_.values[number(u)]; }
  size_t number(const UOp& u) const { return size_t(*placed_.numbers.find(u)); }
  std::vector<UOp>& exprs(const UOp& u) { return exprs_[number(u)]; }
  int reversed(int kernel) const { return int(placed_.kernels.size()) - 1 - kernel; }
  Kernel& kernel(int number) { return placed_.kernels[size_t(number)]; }

  static void give_own_ids(Kernel& k, const NodeMap<UOp>& ids) {
    if (!k.value) return;
    const UOp roots[] = {k.value, k.target_index};
    const std::vector<UOp> own = substitute(roots, ids);
    k.value = own[0];
    k.target_index = own[1];
    for (UOp& r : k.ranges) r = *ids.find(r);
  }

  void write_stored(const UOp& u, Value& v) {
    Kernel& k = kernel(*v.kernel);
    const Use& root = *placed_.roots.find(u);
    if (is_transfer(u)) {
      const UOp* s = &u.src(0);
      while (s->is(Op::RESHAPE)) s = &s->src(0);
      const Value& source = value(*s);
      k.copied = source.storage ? source.storage : *s;
      if (source.kernel)
        k.after.push_back(*source.kernel);
      else
        k.reads.push_back(*s);
      k.target_index = UOp();
    } else {
      k.value = expression(u, root);
    }
    for (const Use& use : v.uses) {
      kernel(use.kernel).after.push_back(*v.kernel);
      const UOp loaded = read(v.storage, flat_index(u, use.place), use.place.valid);
      exprs(u).push_back(k.value ? as_stored(k.value, root.place, loaded, use.place) : loaded);
    }
  }

  /// `u` at a place, from the expressions of its sources.
  UOp expression(const UOp& u, const Use& use) {
    auto source = [&](size_t i) -> const UOp& { return exprs(u.src(i))[size_t(use.source_uses[i])]; };
    switch (u.op()) {
      case Op::CONST: return constant(u.arg_as<ConstArg>().value);
      case Op::VAR: return u;
      case Op::IOTA: return cast(use.place.at[0], u.dtype());
      case Op::PARAM:
      case Op::AFTER: return read_state(u, use);
      case Op::RESHAPE:
      case Op::PERMUTE:
      case Op::EXPAND:
      case Op::SHRINK:
      case Op::FLIP:
      case Op::CONTIGUOUS: return source(0);
      case Op::PAD: return padded(u, use, source(0));
      case Op::REDUCE: return reduces_.written(use.kernel, u, use.ranges, source(0));
      case Op::STACK: {
        UOp out = source(0);
        for (size_t i = 1; i < u.src_count(); ++i) out = where(use.place.at[0] < int64_t(i), out, source(i));
        return out;
      }
      default: {
        UOps sources;
        for (size_t i = 0; i < u.src_count(); ++i) sources.push_back(source(i));
        return UOp(u.op(), u.dtype(), sources, u.arg());
      }
    }
  }

  UOp read_state(const UOp& state, const Use& use) {
    kernel(use.kernel).reads.push_back(state);
    Place p = use.place;
    const UOp* t = &state;
    for (; !t->is(Op::PARAM); t = &t->src(0))
      if (!t->is(Op::AFTER)) p = source_place(*t, p);
    return read(*t, p.at[0], p.valid);
  }

  Placement placed_;
  std::vector<std::vector<UOp>> exprs_;  ///< of each value, one a use
  ReduceWriter reduces_{placed_.loops};
};

}  // namespace

Kernels write_kernels(const std::vector<UOp>& order, Placement placement) {
  KernelWriter writer(std::move(placement));
  for (const UOp& u : order) writer.write(u);
  return writer.take();
}

}  // namespace tinygrad::schedule
