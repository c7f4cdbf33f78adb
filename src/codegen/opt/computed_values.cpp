#include "codegen/opt/computed_values.h"

#include <algorithm>

#include "shape/ranges.h"

namespace tinygrad::codegen {

namespace {

bool computes(const UOp& u) { return (u.in(Group::alu) || u.in(Group::convert) || u.is(Op::WEIGHT)) && u.dtype() != DType::index; }

bool moves_with(const UOp& u, const OpenRanges& loops) {
  const OpenRanges own = ranges_of(u);
  return std::all_of(own.begin(), own.end(), [&](const UOp& r) { return std::find(loops.begin(), loops.end(), r) != loops.end(); });
}

}  // namespace

ComputedValues computed_of(const UOp& load, std::span<const UOp> nodes) {
  const OpenRanges loops = ranges_of(load);
  ComputedValues out;
  NodeSet carried;  // what needs a reduction or a tile
  for (const UOp& u : nodes) {
    const auto any = [&](const NodeSet& set) { return std::ranges::any_of(u.src(), [&](const UOp& s) { return set.contains(s); }); };
    if (u.is(Op::REDUCE) || u.is(Op::STAGE) || any(carried))
      carried.insert(u);
    else if (u == load || (any(out.nodes) && computes(u) && moves_with(u, loops)))
      out.nodes.insert(u);
  }
  NodeSet used, elsewhere;
  for (const UOp& u : nodes)
    if (!out.nodes.contains(u))
      for (const UOp& s : u.src())
        if (out.nodes.contains(s) && used.insert(s)) out.last.push_back(s);
  for (size_t i = nodes.size(); i-- > 0;) {
    const UOp& u = nodes[i];
    const bool needed = i + 1 == nodes.size() || elsewhere.contains(u);
    if (!needed && !out.nodes.contains(u)) out.nodes.insert(u);
    if (!out.nodes.contains(u))
      for (const UOp& s : u.src()) elsewhere.insert(s);
  }
  return out;
}

}  // namespace tinygrad::codegen
