#include "schedule/place.h"

#include <algorithm>

#include <tinygrad/errors.h>

#include "base/hash.h"
#include "shape/shape.h"
#include "symbolic/build.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::schedule {

using symbolic::simplify_index;
using symbolic::sym_add;
using symbolic::sym_div;
using symbolic::sym_mod;
using symbolic::sym_mul;

namespace {

bool is_one(const SInt& n) { return n.known() && n.value() == 1; }

/// Row-major index over some axes of sizes `sizes`.
UOp flatten(std::span<const SInt> sizes, std::span<const UOp> at) {
  UOp flat = index_const(0);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!is_one(sizes[i])) flat = sym_add(sym_mul(flat, sizes[i].uop()), at[i]);
  return flat;
}

/// The inverse; writes one index an axis.
void unflatten(UOp flat, std::span<const SInt> sizes, UOps& out) {
  UOps reversed;
  size_t outermost = 0;
  while (outermost < sizes.size() && is_one(sizes[outermost])) ++outermost;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (is_one(sizes[i])) {
      reversed.push_back(index_const(0));
    } else if (i == outermost) {
      reversed.push_back(flat);
    } else {
      const UOp n = sizes[i].uop();
      reversed.push_back(simplify_index(sym_mod(flat, n)));
      flat = simplify_index(sym_div(flat, n));
    }
  }
  for (size_t i = reversed.size(); i-- > 0;) out.push_back(reversed[i]);
}

/// Splits both shapes into runs of axes with equal products, as short as possible, so that untouched axes need no division.
UOps reshape_place(const Shape& in, const Shape& out, const UOps& at) {
  UOps result;
  size_t i = 0, j = 0;
  while (i < in.size() || j < out.size()) {
    const size_t i0 = i, j0 = j;
    SInt a = 1, b = 1;
    if (i < in.size()) a = in[i++];
    if (j < out.size()) b = out[j++];
    while (a != b) {
      const bool more_in = i < in.size(), more_out = j < out.size();
      if (!more_in && !more_out) break;  // symbolic sizes that are equal but do not look it: one run to the end
      const bool take_in = a.known() && b.known() ? a.value() < b.value() : more_in;
      if (more_in && (take_in || !more_out))
        a = a * in[i++];
      else
        b = b * out[j++];
    }
    const std::span ins(in.begin() + i0, i - i0), outs(out.begin() + j0, j - j0);
    if (ins.size() == 1 && outs.size() == 1)
      result.push_back(at[j0]);
    else
      unflatten(simplify_index(flatten(outs, std::span(at).subspan(j0, outs.size()))), ins, result);
  }
  return result;
}

}  // namespace

UOp both(const UOp& a, const UOp& b) { return !a ? b : !b ? a : a == b ? a : simplify_index(a & b); }

Place source_place(const UOp& u, const Place& out) {
  const Shape& in = shape_of(u.src(0));
  Place p{{}, out.valid};
  switch (u.op()) {
    case Op::RESHAPE: p.at = reshape_place(in, shape_of(u), out.at); return p;
    case Op::PERMUTE: {
      const Axes& axes = u.arg_as<AxesArg>().axes;
      p.at.resize(in.size());
      for (size_t i = 0; i < axes.size(); ++i) p.at[size_t(axes[i])] = out.at[i];
      return p;
    }
    case Op::EXPAND:
      for (size_t i = 0; i < in.size(); ++i) p.at.push_back(is_one(in[i]) ? index_const(0) : out.at[i]);
      return p;
    case Op::FLIP:
      p.at = out.at;
      for (int a : u.arg_as<AxesArg>().axes) {
        UOp& x = p.at[size_t(a)];
        x = simplify_index(sym_add(sym_add(in[size_t(a)].uop(), index_const(-1)), sym_mul(x, index_const(-1))));
      }
      return p;
    case Op::SHRINK:
      for (size_t i = 0; i < in.size(); ++i) p.at.push_back(simplify_index(sym_add(out.at[i], u.src(1 + 2 * i))));
      return p;
    case Op::PAD:
      for (size_t i = 0; i < in.size(); ++i) {
        const UOp &before = u.src(1 + 2 * i), &after = u.src(2 + 2 * i);
        const UOp at = simplify_index(sym_add(out.at[i], sym_mul(before, index_const(-1))));
        if (!is_const(before, 0)) p.valid = both(p.valid, simplify_index(logical_not(at < 0)));
        if (!is_const(after, 0)) p.valid = both(p.valid, simplify_index(at < in[i].uop()));
        p.at.push_back(at);
      }
      return p;
    default: throw InternalError("source_place: not a movement op: " + std::string(name(u.op())));
  }
}

UOp flat_index(const UOp& u, const Place& place) {
  const Shape& shape = shape_of(u);
  const auto strides = row_major_strides(shape);
  UOp flat = index_const(0);
  for (size_t i = 0; i < shape.size(); ++i)
    if (!is_one(shape[i])) flat = sym_add(flat, sym_mul(place.at[i], index_const(strides[i])));
  return simplify_index(flat);
}

size_t SourcePlaces::Hash::operator()(const Key& k) const {
  const std::hash<UOp> hash;
  uint64_t h = hash_combine(hash(k.node), hash(k.out.valid));
  for (const UOp& at : k.out.at) h = hash_combine(h, hash(at));
  return h;
}

const Place& SourcePlaces::of(const UOp& u, const Place& out) {
  const auto [at, is_new] = known_.try_emplace({u, out});
  if (is_new) at->second = source_place(u, out);
  return at->second;
}

NodeSet broadcasts_of(const std::vector<UOp>& order) {
  NodeSet out;
  for (const UOp& u : order) {
    if (!u.in(Group::elementwise) || u.src_count() == 0) continue;
    const bool is_broadcast = std::ranges::all_of(u.src(), [&](const UOp& s) {
      const UOp* x = &s;
      while (x->in(Group::movement) && !x->is(Op::EXPAND)) x = &x->src(0);
      return x->is(Op::EXPAND) || shape_of(*x).empty() || out.contains(*x);
    });
    if (is_broadcast) out.insert(u);
  }
  return out;
}

}  // namespace tinygrad::schedule
