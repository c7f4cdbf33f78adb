#include "codegen/late/load_behind_loops.h"

#include <algorithm>
#include <vector>

#include "kernel/accessed_memory.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

constexpr int none = -1;
constexpr double unknown_trips = 16;
constexpr double instructions_a_prefetch = 16;  ///< that the loop must have, so that prefetches cost next to nothing
constexpr int64_t registers_to_spare = 16;      ///< values that may stay in registers while a loop runs

class Moves {
 public:
  Moves(const UOp& linear, const Target& target) : linear_(linear), list_(linear.src()), target_(target) {}

  UOp run() {
    find_blocks();
    if (loops_.empty()) return linear_;
    find_uses();
    find_accesses();
    for (Loop& l : loops_) l.is_used = is_worth_it(l);
    if (std::ranges::none_of(loops_, &Loop::is_used)) return linear_;
    move_behind();
    return in_new_order();
  }

 private:
  /// The outermost loop of a reduction.
  struct Loop {
    int begin = 0, end = 0, block = none;
    double work = 0;  ///< instructions in all iterations
    bool is_used = false;
    std::vector<int> accesses;  ///< LOADs and STOREs of arguments that only instructions behind the loop need
    std::vector<int> behind;    ///< instructions that move behind the loop
  };

  const UOp& at(int i) const { return list_[size_t(i)]; }
  static bool is_reduce(const UOp& u) { return u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == AxisKind::reduce; }

  /// The block of each instruction is where the RANGE or IF around it stands.
  void find_blocks() {
    std::vector<int> open{none};
    std::vector<double> trips{1};
    int loop = none;  // the outermost reduction around
    for (int i = 0; i < int(list_.size()); ++i) {
      const UOp& u = at(i);
      if (u.is(Op::END) || u.is(Op::ENDIF)) {
        if (loop != none && open.back() == loops_[size_t(loop)].begin) {
          loops_[size_t(loop)].end = i;
          loop = none;
        }
        open.pop_back();
        trips.pop_back();
      }
      block_.push_back(open.back());
      place_[u] = i;
      stores_before_.push_back(stores_before_.back() + (u.is(Op::STORE) && memory_of(u.src(0)).is(Op::PARAM)));
      if (loop != none) loops_[size_t(loop)].work += trips.back();
      if (!u.is(Op::RANGE) && !u.is(Op::IF)) continue;
      if (is_reduce(u) && loop == none) {
        loop = int(loops_.size());
        loops_.push_back({.begin = i, .end = i, .block = open.back(), .accesses = {}, .behind = {}});
      }
      const Scalar* n = u.is(Op::RANGE) ? const_value(u.src(0)) : nullptr;
      trips.push_back(loop == none ? 1 : trips.back() * (u.is(Op::IF) ? 1 : n ? n->as_double() : unknown_trips));
      open.push_back(i);
    }
  }

  /// Where it is, or what it is inside of, in the block.
  int place_in(int i, int block) const {
    while (i != none && block_[size_t(i)] != block) i = block_[size_t(i)];
    return i;
  }

  bool is_far(const UOp& place) const { return shape_of(place.src(1)).empty() && memory_bytes(memory_of(place)) > target_.l2_bytes; }
  bool may_move(const UOp& u) const {
    return u.is(Op::LOAD) && (target_.has_cache_hints ? is_far(u.src(0)) : memory_of(u.src(0)).is(Op::PARAM));
  }
  bool is_worth_it(const Loop& l) const {
    return target_.has_cache_hints ? !l.accesses.empty() && l.work >= instructions_a_prefetch * double(l.accesses.size())
                                   : registers(l) > registers_to_spare;
  }
  /// Registers that the loaded values take while the loop runs.
  int64_t registers(const Loop& l) const {
    int64_t n = 0;
    for (int i : l.accesses) n += target_.vector_math ? 1 : at(i).src(0).arg_as<IndexArg>().width;
    return n;
  }
  static bool is_lane(const UOp& u) { return u.is(Op::INDEX) && !memory_of(u).in(Group::memory); }
  static bool is_pure(const UOp& u) {
    return u.in(Group::elementwise) || u.is(Op::EXPAND) || u.is(Op::STACK) || u.is(Op::SHRINK) || is_lane(u);
  }

  /// Finds the latest place at which each value may be computed; values that are computed of it may move down as well.
  void find_uses() {
    needed_.assign(list_.size(), int(list_.size()));
    for (int i = int(list_.size()); i-- > 0;) {
      const UOp& u = at(i);
      for (const UOp& s : u.src()) {
        const int* source = place_.find(s);
        if (!source) continue;
        const int block = block_[size_t(*source)];
        const bool may_wait = is_pure(u) && block_[size_t(i)] == block;
        int& needed = needed_[size_t(*source)];
        needed = std::min(needed, may_wait ? needed_[size_t(i)] : place_in(i, block));
      }
    }
  }

  /// The last loop between two places of a block such that no argument is stored to between the first place and the end of the loop, since
  /// a load may not move across a store to the same memory.
  Loop* loop_between(int from, int to) {
    for (size_t n = loops_.size(); n-- > 0;) {
      Loop& l = loops_[n];
      if (l.begin > from && l.end < to && l.block == block_[size_t(from)] && stores_before_[size_t(l.end)] == stores_before_[size_t(from)])
        return &l;
    }
    return nullptr;
  }

  void find_accesses() {
    for (int i = 0; i < int(list_.size()); ++i) {
      const UOp& u = at(i);
      const bool stores = target_.has_cache_hints && u.is(Op::STORE) && is_far(u.src(0)) && !u.src(0).arg_as<IndexArg>().streams;
      if (!stores && !may_move(u)) continue;
      const int* address = place_.find(u.src(0));
      const int block = block_[size_t(*address)];
      if (Loop* l = loop_between(stores ? *address : i, stores ? place_in(i, block) : needed_[size_t(i)])) l->accesses.push_back(i);
    }
  }

  void move_behind() {
    loop_of_.assign(list_.size(), nullptr);
    for (Loop& l : loops_)
      for (int i : l.accesses)
        if (l.is_used && at(i).is(Op::LOAD)) loop_of_[size_t(i)] = &l;
    for (int i = 0; i < int(list_.size()); ++i) {
      const auto moves = [&](const UOp& s) {
        const int* source = place_.find(s);
        return source && loop_of_[size_t(*source)];
      };
      if (is_pure(at(i)) && std::ranges::any_of(at(i).src(), moves)) loop_of_[size_t(i)] = loop_between(i, needed_[size_t(i)]);
      if (Loop* l = loop_of_[size_t(i)]) l->behind.push_back(i);
    }
  }

  UOp in_new_order() {
    UOps out;
    size_t next = 0;  // loops are one after another
    for (int i = 0; i < int(list_.size()); ++i) {
      if (target_.has_cache_hints && next < loops_.size() && loops_[next].begin == i && loops_[next].is_used)
        for (int access : loops_[next].accesses) add_prefetch(out, at(access).src(0));
      if (!loop_of_[size_t(i)]) out.push_back(at(i));
      if (next < loops_.size() && loops_[next].end == i) {
        for (int moved : loops_[next].behind) out.push_back(at(moved));
        ++next;
      }
    }
    return linear_.with_src(out);
  }

  /// Two accesses of one address give one PREFETCH.
  void add_prefetch(UOps& out, const UOp& place) {
    const UOp prefetch(Op::PREFETCH, DType::void_, {place});
    if (prefetches_.insert(prefetch)) out.push_back(prefetch);
  }

  const UOp& linear_;
  const std::span<const UOp> list_;
  const Target& target_;
  std::vector<int> block_, needed_;
  std::vector<int> stores_before_{0};  ///< each instruction, to arguments
  NodeMap<int> place_;
  std::vector<Loop> loops_;
  std::vector<Loop*> loop_of_;
  NodeSet prefetches_;
};

}  // namespace

UOp load_behind_loops(const UOp& linear, const Target& target) { return Moves(linear, target).run(); }

}  // namespace tinygrad::codegen
