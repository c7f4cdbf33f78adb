#pragma once
/// A walk over a graph, sources first, that builds it anew.

#include "uop/graph.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The graph with each node replaced by `f(node, sources)`, where the sources are what `f` made of the node's own. Equal graphs give the
/// same pointer where `f` returns `node.with_src(sources)`.
template <class F>
UOp rebuild(const UOp& root, F&& f) {
  const std::vector<const UOp*> order = borrowed_toposort(root);
  NodeMap<UOp> done(order.size());
  for (const UOp* node : order) {
    const UOp& u = *node;
    UOps sources;
    for (const UOp& s : u.src()) {
      const UOp* d = done.find(s);
      sources.push_back(d ? *d : s);
    }
    done[u] = f(u, std::as_const(sources));
  }
  return *done.find(root);
}

}  // namespace tinygrad::codegen
