#include "codegen/prepare/simplify_gates.h"

#include "rewrite/rewrite.h"
#include "symbolic/gated.h"
#include "uop/build.h"

namespace tinygrad::codegen {

UOp simplify_gates(const UOp& graph) {
  using namespace rewrite;
  static constexpr Capture memory{0}, at{1}, valid{2};
  static const auto& rules = *new Rules<>{
      {pat(Op::INDEX, {memory, at.dtype(DType::index), valid.dtype(DType::bool_)}).ordered(),
       [](const Match& m) {
         const symbolic::Gated g = symbolic::simplify_gated(m[at], m[valid]);
         const UOp& u = m.root();
         return is_const(g.valid, 1) ? u.with_src(UOps{m[memory], g.index}) : u.with_src(UOps{m[memory], g.index, g.valid});
       },
       "gated index"},
  };
  return graph_rewrite(graph, rules, {.name = "simplify gates", .single_walk = true});
}

}  // namespace tinygrad::codegen
