#include "codegen/late/linearize.h"

#include <algorithm>
#include <queue>
#include <span>
#include <tuple>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "kernel/accessed_memory.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

/// Nodes that only say what comes before what.
bool is_ordering(const UOp& u) { return u.is(Op::END) || u.is(Op::AFTER) || u.is(Op::GROUP) || u.is(Op::SINK); }

/// Instructions whose meaning depends on the instructions before them.
bool is_fence(const UOp& u) { return u.is(Op::BARRIER) || u.is(Op::COMMIT) || u.is(Op::WAIT); }

/// Order of loops that are closed together: threads outside, then the order key, then the id.
std::tuple<bool, int32_t, int32_t> nesting_key(const UOp& range) {
  const auto& a = range.arg_as<RangeArg>();
  return {a.kind != AxisKind::thread, a.order, a.id};
}

class Linearizer {
 public:
  explicit Linearizer(const UOp& sink) : nodes_(toposort(sink)), number_(nodes_.size()), emitted_(nodes_.size()), standing_(nodes_.size()) {
    for (size_t i = 0; i < nodes_.size(); ++i) number_[nodes_[i]] = int(i);
    make_blocks();
    place_nodes();
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (const UOp& s : nodes_[i].src()) add_edge(number_[s], int(i));
    order_loads_before_stores();
    sort_edges();
  }

  UOp run() {
    emit_block(0);
    front_.insert(front_.end(), program_.begin(), program_.end());
    return UOp(Op::LINEAR, DType::void_, front_, LinearArg{1});
  }

 private:
  static constexpr int none = -1;

  /// A loop body; block 0 is the kernel.
  struct Block {
    int range = none;   ///< its RANGE among nodes_
    int parent = none;  ///< block
    int depth = 0;
    std::vector<int> items;  ///< nodes and RANGEs of inner loops, in the order of the walk
  };

  /// Each loop's parent is the innermost loop that it must be inside of: what its body still depends on when the loop is closed, then
  /// the loops closed by the same END.
  void make_blocks() {
    blocks_.emplace_back();
    std::vector<UOps> outer(nodes_.size());
    std::vector<bool> is_loop(nodes_.size(), false);
    for (const UOp& u : nodes_) {
      if (!u.is(Op::END)) continue;
      UOps chain = ranges_of(u);
      UOps closed(closed_ranges(u));
      std::sort(closed.begin(), closed.end(), [](const UOp& a, const UOp& b) { return nesting_key(a) < nesting_key(b); });
      for (const UOp& r : closed) {
        const auto n = size_t(number_[r]);
        if (is_loop[n]) throw InternalError(fmt::format("linearize: range {} is closed twice", r.arg_as<RangeArg>().id));
        is_loop[n] = true;
        outer[n] = chain;
        chain.push_back(r);
      }
    }
    add_indirect_outer(outer);
    std::vector<int> order;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (is_loop[i]) order.push_back(int(i));
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return outer[size_t(a)].size() < outer[size_t(b)].size(); });
    for (int n : order) {
      Block b{.range = n, .parent = innermost(outer[size_t(n)]), .depth = 0, .items = {}};
      b.depth = blocks_[size_t(b.parent)].depth + 1;
      block_of_range_[nodes_[size_t(n)]] = int(blocks_.size());
      blocks_.push_back(b);
    }
  }

  /// A loop is also inside of what its outer loops are inside of.
  void add_indirect_outer(std::vector<UOps>& outer) {
    for (bool changed = true; changed;) {
      changed = false;
      for (UOps& ranges : outer)
        for (size_t i = 0; i < ranges.size(); ++i)
          for (const UOp& r : UOps(outer[size_t(number_[ranges[i]])]))
            if (std::find(ranges.begin(), ranges.end(), r) == ranges.end()) {
              ranges.push_back(r);
              changed = true;
            }
    }
  }

  /// The deepest block among the loops; they must be on one path.
  int innermost(std::span<const UOp> ranges) {
    int best = 0;
    for (const UOp& r : ranges) {
      const int* b = block_of_range_.find(r);
      if (!b) throw InternalError(fmt::format("linearize: range {} is used and never closed", r.arg_as<RangeArg>().id));
      if (blocks_[size_t(*b)].depth > blocks_[size_t(best)].depth) best = *b;
    }
    for (const UOp& r : ranges) {
      int b = best;
      while (b != none && b != block_of_range_[r]) b = blocks_[size_t(b)].parent;
      if (b == none) throw InternalError(fmt::format("linearize: loop {} would have to be in two loops at once", r.arg_as<RangeArg>().id));
    }
    return best;
  }

  void place_nodes() {
    const UOp* known = nullptr;  // nodes that follow each other mostly share their list of ranges
    size_t known_size = 0;
    int known_block = 0;
    block_.reserve(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const UOp& u = nodes_[i];
      const int* own = u.is(Op::RANGE) ? block_of_range_.find(u) : nullptr;
      // A loop stands as one item, under the number of its RANGE, in the block around it.
      if (own) {
        block_.push_back(blocks_[size_t(*own)].parent);
      } else if (const OpenRanges open = ranges_of(u); u.is(Op::RANGE)) {
        block_.push_back(innermost(open));
      } else if (i == 0 || open.begin() != known || open.size() != known_size) {
        known = open.begin(), known_size = open.size();
        block_.push_back(known_block = innermost(open));
      } else {
        block_.push_back(known_block);
      }
      blocks_[size_t(block_.back())].items.push_back(int(i));
    }
    waits_for_.resize(nodes_.size(), 0);
    fetches_.resize(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (const int range = blocks_[size_t(block_[i])].range; nodes_[i].is(Op::FETCH) && range != none) fetches_[size_t(range)] = true;
  }

  /// The item of block `at` that holds node `n`.
  int item_in(int n, int at) const {
    int b = block_[size_t(n)];
    if (b == at) return n;
    while (blocks_[size_t(b)].parent != at) b = blocks_[size_t(b)].parent;
    return blocks_[size_t(b)].range;
  }

  /// `a` before `b`, as an order of the items that hold them in the innermost block around both.
  void add_edge(int a, int b) {
    int x = block_[size_t(a)], y = block_[size_t(b)];
    while (x != y) {
      int& deeper = blocks_[size_t(x)].depth >= blocks_[size_t(y)].depth ? x : y;
      deeper = blocks_[size_t(deeper)].parent;
    }
    // A RANGE is an item of the block around its loop; its users inside are in the loop anyway.
    const int from = item_in(a, x), to = item_in(b, x);
    if (from == to) return;
    edges_.push_back({from, to});
    ++waits_for_[size_t(to)];
  }

  /// Sorts the edges by the item that they start from; edges of one item stay in the order in which they were added.
  void sort_edges() {
    first_edge_.assign(nodes_.size() + 1, 0);
    for (const Edge& e : edges_) ++first_edge_[size_t(e.from) + 1];
    for (size_t i = 1; i < first_edge_.size(); ++i) first_edge_[i] += first_edge_[i - 1];
    next_.resize(edges_.size());
    std::vector<int> place(first_edge_.begin(), first_edge_.end() - 1);
    for (const Edge& e : edges_) next_[size_t(place[size_t(e.from)]++)] = e.to;
  }
  std::span<const int> next(int item) const {
    const auto first = size_t(first_edge_[size_t(item)]), last = size_t(first_edge_[size_t(item) + 1]);
    return std::span(next_).subspan(first, last - first);
  }

  /// A LOAD reads the state that its memory names, so it stands before the stores to that state. A LOAD of memory without a state stands
  /// before all stores to it, but for those that it waits for.
  void order_loads_before_stores() {
    const auto state = [&](int access) { return nodes_[size_t(access)].src(0).src(0); };
    std::vector<int> loads, stores;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if ((nodes_[i].is(Op::LOAD) || nodes_[i].is(Op::STORE)) && memory_of(nodes_[i].src(0)).is(Op::PARAM))
        (nodes_[i].is(Op::LOAD) ? loads : stores).push_back(int(i));
    for (int s : stores)
      for (int l : loads)
        if (state(l) == state(s) || state(l) == memory_of(nodes_[size_t(s)].src(0))) add_edge(l, s);
  }

  /// Priorities of items that are ready: computation and asynchronous copies first, then loops and barriers, then stores.
  int rank(int item) const {
    const UOp& u = nodes_[size_t(item)];
    if (fetches_[size_t(item)]) return 0;
    return u.is(Op::STORE) ? 2 : block_of_range_.contains(u) || u.is(Op::BARRIER) || u.is(Op::WAIT) ? 1 : 0;
  }

  void emit_block(int root) {
    struct Frame {
      int block;
      size_t begin;  ///< of its items in order_
      size_t next, end;
    };
    std::vector<int> order;
    std::vector<Frame> stack;
    const auto open = [&](int block) {
      scopes_.emplace_back();
      const size_t begin = order.size();
      sort_block(block, order);
      stack.push_back({block, begin, begin, order.size()});
    };
    open(root);
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next < f.end) {
        const int item = order[f.next++];
        const int* inner = block_of_range_.find(nodes_[size_t(item)]);
        if (!inner) {
          emit(item);
        } else if (!blocks_[size_t(*inner)].items.empty()) {
          emit(item);
          open(*inner);
        }
      } else {
        order.resize(f.begin);
        close(f.block);
        stack.pop_back();
      }
    }
  }

  void sort_block(int block, std::vector<int>& order) {
    const auto later = [&](int a, int b) { return std::pair(rank(a), a) > std::pair(rank(b), b); };
    std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
    const auto& items = blocks_[size_t(block)].items;
    size_t count = 0;
    for (int i : items)
      if (waits_for_[size_t(i)] == 0) ready.push(i);
    while (!ready.empty()) {
      const int item = ready.top();
      ready.pop();
      order.push_back(item);
      ++count;
      for (int n : next(item))
        if (--waits_for_[size_t(n)] == 0) ready.push(n);
    }
    if (count != items.size()) throw InternalError("linearize: loads and stores of the kernel wait for each other");
  }

  void emit(int item) {
    const UOp& u = nodes_[size_t(item)];
    if (u.is(Op::AFTER)) {
      emitted_[u] = emitted_[u.src(0)];
      return;
    }
    if (is_ordering(u)) return;
    if (is_fence(u)) return push(UOp(u.op(), DType::void_, std::span(program_).last(program_.empty() ? 0 : 1), u.arg()));
    UOps sources;
    for (const UOp& s : u.src()) sources.push_back(emitted_[s]);
    UOp made = u.with_src(sources);
    // Without AFTER, a load before a store and one behind it read the same place in the same way, and an accumulator may be set to the same
    // value again: the later one is of another state, so that each instruction stands in the list once.
    if (const auto place = place_among(sources); place != sources.end() && !made.is(Op::INDEX))
      while (standing(made).listed) {
        push_if_new(*place = reachable(next_state(*place)));
        made = made.with_src(sources);
      }
    if (made.is(Op::INDEX)) made = reachable(made);
    emitted_[u] = made;
    if (is_constant(made))
      push_constant(made);
    else
      push_if_new(made);
  }

  /// The first of the sources that is an address in memory.
  static UOps::iterator place_among(UOps& sources) {
    return std::ranges::find_if(sources, [](const UOp& s) { return s.is(Op::INDEX) && s.src(0).in(Group::memory); });
  }
  static UOp next_state(const UOp& address) {
    IndexArg arg = address.arg_as<IndexArg>();
    ++arg.state;
    return address.with_arg(arg);
  }
  /// The address, or that of a later state where a loop that has ended holds it.
  UOp reachable(UOp address) const {
    while (standing(address).listed && !standing(address).in_scope) address = next_state(address);
    return address;
  }

  void push_if_new(const UOp& u) {
    if (!standing(u).in_scope) push(u);
  }
  bool is_constant(const UOp& u) const {
    return u.is(Op::CONST) || (u.is(Op::EXPAND) && standing(u.src(0)).in_front && standing(u.src(1)).in_front);
  }
  /// Constants stand in front of the list: any block may use them.
  void push_constant(const UOp& u) {
    if (standing(u).in_scope) return;
    front_.push_back(u);
    standing_[u] = {.listed = true, .in_scope = true, .in_front = true};
    scopes_.front().push_back(u);
  }
  void push(const UOp& u) {
    program_.push_back(u);
    Standing& s = standing_[u];
    if (!s.in_scope) scopes_.back().push_back(u);
    s.listed = s.in_scope = true;
  }
  /// Where an instruction stands in the list; it is held by the list if anywhere.
  struct Standing {
    bool listed = false;    ///< somewhere
    bool in_scope = false;  ///< in this block or one of those around it
    bool in_front = false;  ///< among the constants
  };
  Standing standing(const UOp& u) const {
    const Standing* s = standing_.find(u);
    return s ? *s : Standing{};
  }

  void close(int block) {
    for (const UOp& u : scopes_.back()) standing_[u].in_scope = false;
    scopes_.pop_back();
    const int range = blocks_[size_t(block)].range;
    if (range == none) return;
    const UOp last = program_.back();
    push(UOp(Op::END, DType::void_, {last, emitted_[nodes_[size_t(range)]]}));
  }

  std::vector<UOp> nodes_;
  NodeMap<int> number_;
  std::vector<Block> blocks_;
  NodeMap<int> block_of_range_;
  std::vector<int> block_;     ///< of each node
  std::vector<bool> fetches_;  ///< RANGEs of loops around FETCHes: they go on beside what follows
  struct Edge {
    int from, to;
  };
  std::vector<Edge> edges_;
  std::vector<int> first_edge_, next_;  ///< edges_, sorted
  std::vector<int> waits_for_;
  NodeMap<UOp> emitted_;  ///< what stands in the program for a node
  NodeMap<Standing> standing_;
  std::vector<std::vector<UOp>> scopes_;
  std::vector<UOp> front_, program_;
};

}  // namespace

UOp linearize(const UOp& sink) { return Linearizer(sink).run(); }

}  // namespace tinygrad::codegen
