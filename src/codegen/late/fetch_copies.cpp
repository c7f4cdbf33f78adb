#include "codegen/late/fetch_copies.h"

#include <algorithm>

#include "codegen/rebuild.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

constexpr int least_bytes = 4;

bool is_zero(const UOp& u) {
  if (u.is(Op::STACK)) return std::ranges::all_of(u.src(), is_zero);
  const Scalar* c = const_value(u);
  return c && c->is_zero() && c->storage_bits() == 0;
}

/// One access of as many bytes as a copy may have.
bool is_piece(const UOp& place, const Target& target) {
  const int width = place.arg_as<IndexArg>().width, bytes = width * int(itemsize(place.dtype()));
  return shape_of(place.src(1)).empty() && bytes >= least_bytes && bytes <= target.async_copy_bytes && (bytes & (bytes - 1)) == 0 &&
         (width == 1 || !target.unaligned_vectors);
}

/// The copy that the STORE is; null if it is another thing.
UOp as_fetch(const UOp& u, const UOps& sources, const Target& target) {
  const UOp &value = u.src(1), &to = u.src(0);
  if (!value.is(Op::LOAD) || !value.src(0).src(0).is(Op::PARAM) || !is_piece(to, target)) return {};
  if (value.src_count() == 3 && !is_zero(value.src(1))) return {};
  UOps out{sources[0], sources[1].src(0)};
  const bool same_gate = value.src_count() == 3 && u.src_count() == 3 && value.src(2) == u.src(2);
  if (value.src_count() == 3 && !same_gate) out.push_back(sources[1].src(2));
  if (u.src_count() == 3) {
    if (out.size() == 2) out.push_back(bool_const(true));
    out.push_back(sources[2]);
  }
  return UOp(Op::FETCH, DType::void_, out);
}

/// The STOREs that COMMITs are about.
NodeSet committed_stores(const UOp& sink) {
  NodeSet stores, seen;
  std::vector<UOp> left;
  for (const UOp& u : toposort(sink))
    if (u.is(Op::COMMIT)) left.push_back(u);
  while (!left.empty()) {
    const UOp u = left.back();
    left.pop_back();
    if (!seen.insert(u)) continue;
    if (u.is(Op::STORE)) stores.insert(u);
    if (u.is(Op::END)) left.push_back(u.src(0));
    if (u.is(Op::COMMIT) || u.is(Op::GROUP)) left.insert(left.end(), u.src().begin(), u.src().end());
  }
  return stores;
}

UOp without_waits(const UOp& sink) {
  return rebuild(sink, [](const UOp& u, const UOps& sources) -> UOp {
    if (u.is(Op::COMMIT)) return group(sources);
    UOps out;
    for (const UOp& s : sources) {
      if (s.is(Op::WAIT))
        out.append(s.src().begin(), s.src().end());
      else
        out.push_back(s);
    }
    return u.with_src(out);
  });
}

}  // namespace

UOp fetch_copies(const UOp& sink, const Target& target) {
  if (target.async_copy_bytes == 0) return sink;
  const NodeSet stores = committed_stores(sink);
  bool any = false;
  const UOp fetched = rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    const UOp fetch = stores.contains(u) ? as_fetch(u, sources, target) : UOp();
    any |= bool(fetch);
    return fetch ? fetch : u.with_src(sources);
  });
  return any ? fetched : without_waits(sink);
}

}  // namespace tinygrad::codegen
