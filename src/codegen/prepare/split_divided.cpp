#include "codegen/prepare/split_divided.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "codegen/kernel_axes.h"
#include "codegen/simplify.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t least_row = 8;      // a loop over consecutive elements is not cut into shorter pieces: they make no vectors
constexpr int64_t most_residues = 4;  // of a loop that is written out
constexpr int64_t most_reduced = 8;   // of a reduction that is
constexpr int64_t most_copies = 64;   // of both together

bool is_division(const UOp& u) { return u.is(Op::FLOORDIV) || u.is(Op::FLOORMOD); }

int64_t divisor(const UOp& division) {
  const Scalar* c = const_value(division.src(1));
  return c ? std::max<int64_t>(c->as_int(), 0) : 0;
}

bool is_kind(const UOp& u, AxisKind kind) { return u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == kind; }

/// How the loop is to be cut.
struct Cut {
  UOp range;
  int64_t inner = 0;
};

/// The indices of a kernel, and what is open over a range among them.
class Indices {
 public:
  explicit Indices(const UOp& sink) {
    for (const UOp* node : borrowed_toposort(sink)) {
      if (is_division(*node) && node->dtype() == DType::index) divisions_.push_back(*node);
      if (node->is(Op::INDEX)) places_.push_back(node->src(1));
      if (node->is(Op::WHERE)) conditions_.push_back(node->src(0));
      if (node->dtype() == DType::index) continue;
      for (const UOp& s : node->src())
        if (s.dtype() == DType::index && s.in(Group::alu)) indices_.push_back(s);
    }
  }

  bool has_divisions() const { return !divisions_.empty(); }

  /// Cuts at which a division of the loop's own multiple falls, the largest pieces first: those are cut again.
  std::vector<Cut> cuts() const {
    std::vector<Cut> out;
    for (const UOp& d : divisions_) {
      const int64_t c = divisor(d);
      const auto n = symbolic::linear(d.src(0));
      if (c <= 1 || !n) continue;
      for (const auto& t : n->terms) {
        if (!is_kind(t.node, AxisKind::loop) && !is_kind(t.node, AxisKind::reduce)) continue;
        const int64_t inner = c / std::gcd(c, t.factor), size = constant_size(t.node);
        const auto same = [&](const Cut& other) { return other.range == t.node && other.inner == inner; };
        const bool fits = size % inner == 0 || inner <= most_residues;
        if (inner > 1 && size > inner && fits && std::ranges::none_of(out, same)) out.push_back({t.node, inner});
      }
    }
    std::ranges::stable_sort(out, std::greater(), &Cut::inner);
    return out;
  }

  /// All that are open over the range, under one node.
  UOp open_over(const UOp& range) const {
    UOps out;
    for (const UOp& u : indices_)
      if (is_open_over(u, std::span(&range, 1))) out.push_back(u);
    return UOp(Op::SINK, DType::void_, out);
  }

  /// Some memory is accessed one element after the other.
  bool steps_along(const UOp& range) const {
    return std::ranges::any_of(places_, [&](const UOp& u) {
      const auto stride = stride_of(u, range);
      return stride && std::abs(*stride) == 1;
    });
  }

  /// The place in a short piece chooses between values.
  bool chooses_by(const Cut& cut) const {
    return cut.inner <= most_reduced && std::ranges::any_of(divisions_, [&](const UOp& d) {
             return d.is(Op::FLOORMOD) && d.src(0) == cut.range && divisor(d) == cut.inner &&
                    std::ranges::any_of(conditions_, [&](const UOp& c) { return deciding_loop(c) && reaches(c, d); });
           });
  }

 private:
  std::vector<UOp> divisions_, indices_, places_, conditions_;
};

std::vector<UOp> divisions_in(const UOp& root) {
  std::vector<UOp> out;
  for (const UOp* u : borrowed_toposort(root))
    if (is_division(*u)) out.push_back(*u);
  return out;
}

Split split_at(const UOp& sink, const Cut& cut, AxisKind inner_kind) {
  const RangeArg& old = cut.range.arg_as<RangeArg>();
  const UOp outer(Op::RANGE, DType::index, {rounds_of(cut.range, cut.inner)}, old);
  const UOp inner = range(index_const(cut.inner), RangeArg{.id = next_range_id(sink), .kind = inner_kind, .order = old.order});
  Split split{.range = cut.range, .parts = {outer, inner}, .value = outer * cut.inner + inner, .valid = {}};
  if (constant_size(cut.range) % cut.inner != 0) split.valid = split.value < cut.range.src(0);
  return split;
}

/// The divisions that are left in the indices after a split.
std::vector<UOp> divisions_after(const UOp& indices, const Split& split) {
  NodeMap<UOp> map;
  map[split.range] = split.value;
  return divisions_in(symbolic::simplify_index(substitute(indices, map)));
}

/// The short reductions that make up all numerators together with the inner loop; none if something else does.
std::optional<UOps> settled_by(const std::vector<UOp>& divisions, const Split& split) {
  const UOp &outer = split.parts[0], &inner = split.parts[1];
  UOps out;
  int64_t copies = constant_size(inner);
  for (const UOp& d : divisions) {
    const OpenRanges open = ranges_of(d);
    if (std::ranges::find(open, outer) != open.end()) return std::nullopt;
    if (std::ranges::find(open, inner) == open.end()) continue;
    for (const UOp& r : open) {
      if (r == inner || std::ranges::find(out, r) != out.end()) continue;
      const int64_t size = constant_size(r);
      if (!is_kind(r, AxisKind::reduce) || size < 1 || size > most_reduced) return std::nullopt;
      copies *= size;
      out.push_back(r);
    }
  }
  if (copies > most_copies || out.empty()) return std::nullopt;
  return out;
}

/// The reductions written out.
UOp unrolled(const UOp& sink, const UOps& reductions) {
  UOp graph = sink;
  for (const UOp& r : reductions) {
    const RangeArg& old = r.arg_as<RangeArg>();
    const UOp unroll(Op::RANGE, DType::index, {r.src(0)}, RangeArg{.id = old.id, .kind = AxisKind::unroll, .order = old.order});
    graph = apply_split(graph, {.range = r, .parts = {unroll}, .value = unroll, .valid = {}});
  }
  return graph;
}

/// At most a quarter more iterations of an output's loop than it has.
bool has_few_masked(const Cut& cut) {
  const int64_t size = constant_size(cut.range), rounds = (size + cut.inner - 1) / cut.inner;
  return is_kind(cut.range, AxisKind::loop) && 4 * rounds * cut.inner <= 5 * size;
}

/// The kernel after one cut; null if none is worth it.
UOp cut_once(const UOp& sink, const Indices& indices) {
  for (const Cut& cut : indices.cuts()) {
    const UOp touched = indices.open_over(cut.range);
    const Split split = split_at(sink, cut, cut.range.arg_as<RangeArg>().kind);
    const std::vector<UOp> left = divisions_after(touched, split);
    const bool chooses = indices.chooses_by(cut);
    const bool pays =
        split.valid ? chooses && has_few_masked(cut) : cut.inner % least_row == 0 || chooses || !indices.steps_along(cut.range);
    if (pays && left.size() < divisions_in(touched).size()) return apply_split(sink, split);
    if (cut.inner > most_residues || !is_kind(cut.range, AxisKind::loop)) continue;
    if (const auto reductions = settled_by(left, split))
      return unrolled(apply_split(sink, split_at(sink, cut, AxisKind::upcast)), *reductions);
  }
  return {};
}

}  // namespace

UOp split_divided(const UOp& sink) {
  UOp graph = sink;
  for (;;) {
    const Indices indices(graph);
    if (!indices.has_divisions()) return graph;
    const UOp next = cut_once(graph, indices);
    if (!next) return graph;
    graph = simplify(next);
  }
}

}  // namespace tinygrad::codegen
