#pragma once
#include <functional>
#include <string>
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad {

/// Sources that belong to the same scope as `u`: none of a FUNCTION, all but the body of a CALL, the memory of a
/// REALIZED, all of anything else.
std::span<const UOp> scope_sources(const UOp& u);

enum class Scopes {
  stop,   ///< bodies of FUNCTION and CALL are not entered
  enter,  ///< they are
};

/// Every node reachable from the roots, sources before users, in an order that depends on structure only. Bodies are not entered unless
/// asked.
std::vector<UOp> toposort(std::span<const UOp> roots, Scopes scopes = Scopes::stop);
std::vector<UOp> toposort(const UOp& root, Scopes scopes = Scopes::stop);
/// The same as handles inside of what the roots hold, and of those themselves: no counting, valid as long as they are.
std::vector<const UOp*> borrowed_toposort(std::span<const UOp> roots);
std::vector<const UOp*> borrowed_toposort(const UOp& root);
/// The same, without what is only reachable through nodes for which `enter` is false (those nodes themselves are listed).
std::vector<UOp> toposort_where(std::span<const UOp> roots, const std::function<bool(const UOp&)>& enter);

/// True if `node` is `root` or can be reached from it.
bool reaches(const UOp& root, const UOp& node);

/// `root` with every node that is a key of the map replaced by its value; values are not searched again. Bodies are not entered.
UOp substitute(const UOp& root, const NodeMap<UOp>& map);
/// The same over several roots with one memo.
std::vector<UOp> substitute(std::span<const UOp> roots, const NodeMap<UOp>& map);

/// 128-bit hash of the structure (bodies included), equal for equal structure in every run on every machine.
ContentKey content_key(const UOp& u);

/// Total order by op, arg, dtype, then content key: the same in every run.
std::strong_ordering compare(const UOp& a, const UOp& b);
struct StructuralLess {
  bool operator()(const UOp& a, const UOp& b) const { return compare(a, b) < 0; }
};

/// The graph as text, one numbered node a line, sources before users.
std::string print_graph(std::span<const UOp> roots);
std::string print_graph(const UOp& root);
/// An expression on one line, for messages and tests: `(r0*4+r1)`. Deep and large graphs are cut with "...".
std::string print_expr(const UOp& u);

}  // namespace tinygrad
