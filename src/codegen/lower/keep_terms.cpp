#include "codegen/lower/keep_terms.h"

#include <algorithm>
#include <tuple>

#include "codegen/kernel_axes.h"
#include "codegen/lower/repeated_terms.h"
#include "kernel/accessed_memory.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

const RangeArg& arg_of(const UOp& range) { return range.arg_as<RangeArg>(); }
bool is_lane(const UOp& range) { return arg_of(range).kind == AxisKind::lane; }
bool contains(std::span<const UOp> list, const UOp& u) { return std::ranges::find(list, u) != list.end(); }

/// As loops nest, vector axes last.
void sort(UOps& ranges) {
  const auto place = [](const UOp& r) { return std::tuple(is_lane(r), arg_of(r).order, arg_of(r).id); };
  std::sort(ranges.begin(), ranges.end(), [&](const UOp& a, const UOp& b) { return place(a) < place(b); });
}

bool have_the_same_steps(const UOps& of, const UOps& to) {
  return std::ranges::equal(of, to, [](const UOp& a, const UOp& b) {
    return a != b && is_lane(a) == is_lane(b) && (is_lane(b) || arg_of(b).kind == AxisKind::loop) && constant_size(a) != 0 &&
           constant_size(a) == constant_size(b);
  });
}

class TermKeeping {
 public:
  TermKeeping(const UOp& sink, const Target& target) : target_(target), sink_(sink), results_(sink.src(0)), nodes_(toposort(sink)) {}

  UOp run() const {
    for (const UOp& u : nodes_)
      if (u.is(Op::END) && u != results_)
        if (const UOp results = kept_in(u)) return sink_.with_src(UOps{results});
    return sink_;
  }

 private:
  /// The STORE of a result, and the term that is stored in its place before.
  struct Kept {
    UOp result, term, again;
    const UOp& place() const { return result.src(0); }
  };

  /// The loop over results that reads terms, behind the reduction's loop that stores them; null if the loop computes none of its terms
  /// again.
  UOp kept_in(const UOp& loop) const {
    UOps around(ranges_of(loop)), of(closed_ranges(loop)), to;
    for (const UOp& r : closed_ranges(results_))
      if (!contains(around, r)) to.push_back(r);
    sort(of);
    sort(to);
    if (!have_the_same_steps(of, to) || !is_inside(to, around)) return {};
    const std::vector<Kept> kept = kept_terms(loop, of, to, around);
    if (kept.empty()) return {};

    NodeMap<UOp> back;
    for (size_t i = 0; i < to.size(); ++i) back[to[i]] = of[i];
    const UOp& body = loop.src(0);
    UOps effects = body.is(Op::GROUP) ? UOps(body.src()) : UOps{body};
    for (const Kept& k : kept) effects.push_back(store(substitute(k.place(), back), k.term));
    const UOp done = end(group(effects), closed_ranges(loop));
    NodeMap<UOp> changes;
    changes[loop] = done;
    for (const Kept& k : kept) {
      UOps place(k.place().src());
      place[0] = after(place[0], std::span(&done, 1));
      NodeMap<UOp> own;
      own[loop] = done;
      own[k.again] = load(k.place().with_src(place));
      changes[k.result] = store(k.place(), substitute(UOp(k.result.src(1)), own));
    }
    // Once for all of `to`.
    const UOp inner = end(substitute(UOp(results_.src(0)), changes), to);
    return around.empty() ? inner : end(inner, around);
  }

  /// True if the loops around are loops of the results and `to` is inside of them, so that each term is read before the next is stored in
  /// its place.
  bool is_inside(const UOps& to, const UOps& around) const {
    return std::ranges::all_of(around, [&](const UOp& r) {
      const auto before = [&](const UOp& inner) {
        return is_lane(inner) || arg_of(r).kind == AxisKind::thread ||
               std::pair(arg_of(r).order, arg_of(r).id) < std::pair(arg_of(inner).order, arg_of(inner).id);
      };
      return !is_lane(r) && contains(closed_ranges(results_), r) && std::ranges::all_of(to, before);
    });
  }

  std::vector<Kept> kept_terms(const UOp& loop, const UOps& of, const UOps& to, const UOps& around) const {
    std::vector<Kept> out;
    const UOp& all = results_.src(0);
    int64_t bytes = 0;
    for (const UOp& result : all.is(Op::GROUP) ? all.src() : std::span(&all, 1)) {
      if (!result.is(Op::STORE) || result.src_count() != 2) continue;
      if (reaches(result.src(0), loop) || has_loops(result, to)) continue;
      const std::vector<RepeatedTerm> terms = repeated_terms(loop.src(0), of, result.src(1), to);
      if (terms.size() != 1 || terms[0].again == result.src(1)) continue;
      const UOp& place = result.src(0);
      if (!place.is(Op::INDEX) || !place.src(0).is(Op::PARAM) || place.dtype() != terms[0].again.dtype()) continue;
      // Each iteration has an element of its own.
      const auto moves = [&](const UOp& r) { return stride_of(place.src(1), r).value_or(0) != 0; };
      if (!std::ranges::all_of(to, moves) || !std::ranges::all_of(around, moves)) continue;
      out.push_back({result, terms[0].term, terms[0].again});
      bytes += bytes_of(place, of);
    }
    if (bytes > most_kept_bytes(target_) || !is_all(out)) out.clear();
    return out;
  }

  /// True if there are loops inside of `to`, which other results may share.
  static bool has_loops(const UOp& result, const UOps& to) {
    return std::ranges::any_of(toposort(result), [&](const UOp& u) { return u.is(Op::END) && is_open_over(u, to); });
  }

  static int64_t bytes_of(const UOp& place, const UOps& loops) {
    auto bytes = int64_t(itemsize(place.dtype()));
    for (const UOp& r : loops) bytes *= constant_size(r);
    return bytes;
  }

  /// True if nothing but these stores accesses the memory.
  bool is_all(const std::vector<Kept>& kept) const {
    NodeSet memories, results;
    for (const Kept& k : kept) {
      memories.insert(k.place().src(0));
      results.insert(k.result);
    }
    return std::ranges::none_of(nodes_, [&](const UOp& u) {
      return (u.is(Op::LOAD) || u.is(Op::STORE)) && memories.contains(memory_of(u.src(0))) && !results.contains(u);
    });
  }

  const Target& target_;
  const UOp sink_, results_;
  const std::vector<UOp> nodes_;
};

}  // namespace

UOp keep_terms(const UOp& sink, const Target& target) {
  if (target.has_groups || sink.src_count() != 1 || !sink.src(0).is(Op::END)) return sink;
  return TermKeeping(sink, target).run();
}

}  // namespace tinygrad::codegen
