#include "symbolic/usual.h"

#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::symbolic {

UOp usual(const UOp& u) {
  NodeMap<UOp> middle;
  for (const UOp& v : toposort(u))
    if (v.is(Op::RANGE) || v.is(Op::SPECIAL)) middle[v] = floor_div(v.src(0), 2);
  if (middle.size() == 0) return u;
  // A loop may be bounded by one that is bounded itself.
  UOp out = substitute(u, middle);
  static const rewrite::Rules<> rules = index_rules() + data_rules();
  return rewrite::graph_rewrite(usual(out), rules, {.name = "usual"});
}

}  // namespace tinygrad::symbolic
