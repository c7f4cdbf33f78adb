#pragma once
/// What the rule tables of the verifiers are made of.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/small_vector.h"
#include "rewrite/rules.h"
#include "uop/node_map.h"

namespace tinygrad::spec {

/// What a rule found at a node.
struct Violation {
  std::string got, expects;
};
using Verdict = std::optional<Violation>;

/// A table of {which nodes it is about, what must hold there, name}. A rule gives nothing for a node that keeps it; the first violation is
/// reported. The cheap and basic rules stand first, so that later ones may rely on them: sources are checked before their users.
template <class Ctx>
using BorderRules = rewrite::Rules<Ctx, Violation>;

/// The violation is made only where the rule is broken.
template <class MakeViolation>
Verdict expect(bool holds, MakeViolation&& make) {
  if (holds) return {};
  return make();
}
inline Verdict verdict(bool holds, std::string_view got, std::string_view expects) {
  return expect(holds, [&] { return Violation{std::string(got), std::string(expects)}; });
}

/// Nodes of these ops, whatever their sources; of all others; of any.
rewrite::OpSet ops(std::initializer_list<Op> list);
rewrite::OpSet ops(Group group);
rewrite::Pat any_of(const rewrite::OpSet& set);
rewrite::Pat any_but(const rewrite::OpSet& set);
rewrite::Pat any_node();

/// A graph of effects, while its nodes are walked, sources first.
struct Graph {
  UOp root;
  NodeSet own;          ///< nodes outside of FUNCTION bodies
  NodeMap<UOp> memory;  ///< of BUFFER, PARAM with a shape, AFTER and views: the BUFFER or PARAM below
  NodeMap<UOp> ended;   ///< the END that closes a RANGE

  explicit Graph(const UOp& r);
  void enter(const UOp& u);
  /// The memory that a view, an AFTER or an INDEX of one belongs to; null for values.
  UOp memory_of(const UOp& u) const;
};

struct TensorGraph : Graph {
  using Graph::Graph;
  std::map<uint64_t, UOp> buffers;  ///< by id
};

struct KernelGraph : Graph {
  explicit KernelGraph(const UOp& r);
  bool optimized;
  std::map<int32_t, UOp> params, ranges;  ///< by slot and id

  UOps reduces_in(std::span<const UOp> values) const;
  void enter(const UOp& u);

 private:
  using Bits = SmallVector<uint64_t, 2>;  ///< by number
  UOps reduces_;
  NodeMap<Bits> inside_;
};

/// A list of instructions, while it is walked.
class Program {
 public:
  explicit Program(const std::function<bool(const UOp&)>& s) : supports(s) {}

  const std::function<bool(const UOp&)>& supports;
  std::map<int32_t, UOp> params;  ///< by slot
  bool has_threads = false;

  bool is_listed(const UOp& u) const { return block_of_.contains(u); }
  /// Listed in this block or in one around it.
  bool in_scope(const UOp& u) const;
  /// The RANGE or IF of the innermost open block; null outside of all.
  const UOp& innermost() const { return blocks_.back().opener; }
  size_t depth() const { return blocks_.size() - 1; }
  /// True for an asynchronous WMMA that was not waited for, for what names lanes of its sums, and for a tile that it adds to in place.
  bool is_under_way(const UOp& u) const { return under_way_.contains(u); }
  bool has_products_under_way() const { return under_way_.size() != 0; }
  /// True for sums that another product has been added to.
  bool is_overwritten(const UOp& u) const { return overwritten_.contains(u); }
  void enter(const UOp& u);

 private:
  void enter_product(const UOp& u);

  struct Block {
    UOp opener;
    size_t number;
  };
  std::vector<Block> blocks_{{UOp(), 0}};
  std::vector<bool> is_open_{true};
  NodeMap<size_t> block_of_;
  NodeSet under_way_, overwritten_;
};

/// Sources, arg, dtype and shape of every op: hold in every graph, linear programs included.
const BorderRules<void>& typed_rules();
/// Effects, memory and ranges: hold in every graph of effects.
const BorderRules<Graph>& effect_rules();
const BorderRules<TensorGraph>& tensor_rules();
const BorderRules<KernelGraph>& kernel_rules();
const BorderRules<Program>& linear_rules();

/// "dtypes.float32 of shape (3,)", for messages.
std::string describe_value(const UOp& u);

}  // namespace tinygrad::spec
