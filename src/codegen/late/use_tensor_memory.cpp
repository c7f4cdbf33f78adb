#include "codegen/late/use_tensor_memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "kernel/address_parts.h"
#include "target/target.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

using Users = NodeMap<std::vector<UOp>>;
/// An element of private memory: the BUFFER's id and the place in it.
using Slot = std::pair<uint64_t, int64_t>;
using Slots = std::vector<Slot>;

bool is_private(const UOp& memory) { return memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope == Scope::reg; }

/// The element of private memory that an INDEX names, if it is one at a constant place.
std::optional<Slot> slot_at(const UOp& index) {
  if (!index.is(Op::INDEX) || !is_private(index.src(0)) || index.arg_as<IndexArg>().width != 1) return std::nullopt;
  const auto parts = address_parts(index.src(1));
  if (!parts || parts->base || parts->offsets.size() != 1) return std::nullopt;
  return Slot{index.src(0).arg_as<BufferArg>().id, parts->offsets[0]};
}

/// Products each of which adds to the sums of the one before.
struct Chain {
  UOps products;
  Slots from, to;  ///< elements that the first one's sums are loaded from and the last one's are stored to; empty if they are no such
  UOps loads, stores;
  int32_t first = 0, last = 0;  ///< places in the list
};

/// Private memory whose elements move to a tile.
struct Resident {
  Slots slots;
  int32_t finished_at = 0;  ///< a place in the list: the last product, or the end of the loop that it is in
};

/// Accesses of an element that belong to no chain.
struct Others {
  std::vector<int32_t> zeros, loads;  ///< places in the list
  bool has_more = false;
};

class Finder {
 public:
  explicit Finder(const UOp& linear) : linear_(linear) {
    for (size_t i = 0; i < linear.src_count(); ++i) {
      const UOp& u = linear.src(i);
      place_[u] = int32_t(i);
      if (u.is(Op::RANGE) || u.is(Op::IF)) open_.push_back(int32_t(i));
      around_.push_back(open_);
      if (u.is(Op::END) || u.is(Op::ENDIF)) {
        end_of_[open_.back()] = int32_t(i);
        open_.pop_back();
      }
      if (!u.is(Op::END) && !u.is(Op::ENDIF) && !u.is(Op::BARRIER) && !u.is(Op::COMMIT) && !u.is(Op::WAIT) && !u.is(Op::WMMA_WAIT))
        for (const UOp& s : u.src()) users_[s].push_back(u);
    }
  }

  bool find_chains() {
    for (const UOp& u : linear_.src()) {
      if (!u.is(Op::WMMA)) continue;
      const TensorCore* core = find_tensor_core(u.arg_as<WmmaArg>().name);
      if (!core || !core->tensor_memory) continue;
      const UOp& sum = u.src(2);
      const bool goes_on = !chains_.empty() && sum == chains_.back().products.back() && users(sum).size() == 1;
      if (!goes_on) chains_.push_back(begin(u));
      Chain& c = chains_.back();
      c.products.push_back(u);
      c.last = *place_.find(u);
    }
    for (Chain& c : chains_) end(c);
    return !chains_.empty();
  }

  void note_others() {
    NodeSet of_chains;
    for (const Chain& c : chains_) {
      for (const UOp& u : c.loads) of_chains.insert(u);
      for (const UOp& u : c.stores) of_chains.insert(u);
    }
    for (size_t i = 0; i < linear_.src_count(); ++i) {
      const UOp& u = linear_.src(i);
      if ((!u.is(Op::LOAD) && !u.is(Op::STORE)) || !is_private(u.src(0).src(0)) || of_chains.contains(u)) continue;
      const auto slot = slot_at(u.src(0));
      if (!slot) {
        anywhere_.push_back(u.src(0).src(0).arg_as<BufferArg>().id);
        continue;
      }
      Others& o = others_[*slot];
      const bool is_zero = u.is(Op::STORE) && u.src_count() == 2 && is_const(u.src(1), 0);
      if (u.is(Op::LOAD) && u.src_count() == 1)
        o.loads.push_back(int32_t(i));
      else if (is_zero)
        o.zeros.push_back(int32_t(i));
      else
        o.has_more = true;
    }
  }

  std::vector<Resident> residents() {
    std::vector<Slots> candidates;
    for (const Chain& c : chains_)
      if (!c.from.empty() && c.from == c.to && std::ranges::find(candidates, c.from) == candidates.end()) candidates.push_back(c.from);
    std::vector<Resident> out;
    for (const Slots& s : candidates)
      if (const auto at = finished_at(s)) out.push_back({s, *at});
    return out;
  }

  const std::vector<Chain>& chains() const { return chains_; }
  const Others& others(const Slot& s) { return others_[s]; }

 private:
  const std::vector<UOp>& users(const UOp& u) const {
    static const auto& none = *new std::vector<UOp>;
    const std::vector<UOp>* known = users_.find(u);
    return known ? *known : none;
  }

  Chain begin(const UOp& wmma) {
    Chain c;
    c.first = *place_.find(wmma);
    const UOp& sum = wmma.src(2);
    if (!sum.is(Op::STACK) || users(sum).size() != 1) return c;
    for (const UOp& x : sum.src()) {
      const auto slot = x.is(Op::LOAD) && x.src_count() == 1 && users(x).size() == 1 ? slot_at(x.src(0)) : std::nullopt;
      if (!slot) return c.from.clear(), c.loads.clear(), c;
      c.from.push_back(*slot);
      c.loads.push_back(x);
    }
    return c;
  }

  void end(Chain& c) {
    const UOp& last = c.products.back();
    const std::vector<UOp>& lanes = users(last);
    Slots to(lanes.size());
    UOps stores;
    for (const UOp& lane : lanes) {
      if (!lane.is(Op::INDEX) || users(lane).size() != 1) return;
      const UOp& store = users(lane)[0];
      const int64_t number = const_value(lane.src(1))->as_int();
      const auto slot = store.is(Op::STORE) && store.src_count() == 2 && store.src(1) == lane ? slot_at(store.src(0)) : std::nullopt;
      if (!slot || number >= int64_t(to.size())) return;
      to[size_t(number)] = *slot;
      stores.push_back(store);
    }
    c.to = std::move(to);
    c.stores = std::move(stores);
  }

  static bool overlap(const Slots& a, const Slots& b) {
    return std::ranges::any_of(a, [&](const Slot& s) { return std::ranges::find(b, s) != b.end(); });
  }

  bool is_inside(int32_t at, const std::vector<int32_t>& blocks) const {
    const std::vector<int32_t>& around = around_[size_t(at)];
    return around.size() >= blocks.size() && std::equal(blocks.begin(), blocks.end(), around.begin());
  }

  /// The place at which the sums are finished; nothing if its elements are used for anything else.
  std::optional<int32_t> finished_at(const Slots& slots) {
    // The first access of each element stores a zero.
    int32_t first = INT32_MAX, last = -1;
    for (const Slot& s : slots) {
      const Others& o = others_[s];
      if (o.has_more || o.zeros.size() != 1 || std::ranges::find(anywhere_, s.first) != anywhere_.end()) return std::nullopt;
      first = std::min(first, o.zeros[0]);
      last = std::max(last, o.zeros[0]);
    }
    const std::vector<int32_t>& blocks = around_[size_t(first)];
    if (blocks != around_[size_t(last)]) return std::nullopt;
    int32_t finished = last;
    for (const Chain& c : chains_) {
      if (!overlap(c.from, slots) && !overlap(c.to, slots)) continue;
      if (c.from != slots || c.to != slots || c.first < last || !is_inside(c.last, blocks)) return std::nullopt;
      const std::vector<int32_t>& around = around_[size_t(c.last)];
      int32_t done = c.last;
      if (around.size() > blocks.size()) {
        if (linear_.src(size_t(around[blocks.size()])).is(Op::IF)) return std::nullopt;
        done = end_of_[around[blocks.size()]];
      }
      finished = std::max(finished, done);
    }
    for (const Slot& s : slots)
      for (const int32_t at : others_[s].loads)
        if (at < finished || !is_inside(at, blocks)) return std::nullopt;
    return finished;
  }

  const UOp& linear_;
  NodeMap<int32_t> place_;
  Users users_;
  std::vector<int32_t> open_;                 ///< blocks, by their places
  std::vector<std::vector<int32_t>> around_;  ///< each instruction
  std::map<int32_t, int32_t> end_of_;
  std::vector<Chain> chains_;
  std::map<Slot, Others> others_;
  std::vector<uint64_t> anywhere_;  ///< memories with an access whose place is not a constant
};

/// Writes the program anew, with tiles.
class Writer {
 public:
  explicit Writer(const UOp& linear) : linear_(linear) {
    for (const UOp& u : linear.src()) {
      if (u.is(Op::BUFFER)) next_buffer_ = std::max(next_buffer_, u.arg_as<BufferArg>().id + 1);
      if (u.is(Op::CONST)) constants_.insert(u);
    }
  }

  void add_tile(Finder& finder, const Resident& resident) {
    const auto number = int32_t(tiles_.size());
    const UOp& begin = linear_.src(size_t(finder.others(resident.slots[0]).zeros[0]));
    Tile t{.zero = begin.src(1), .place = constant_in_front(Scalar::from_int(0, begin.src(0).src(1).dtype()))};
    t.memory = buffer(t.zero.dtype(), {.id = next_buffer_++, .size = int64_t(resident.slots.size()), .scope = Scope::tensor});
    begins_[begin] = number;
    for (const Chain& c : finder.chains()) {
      if (c.from != resident.slots) continue;
      for (const UOp& product : c.products) tile_of_[product] = number;
      drop(c.products[0].src(2));
      for (const UOp& u : c.loads) drop_access(u);
      for (const UOp& u : c.stores) drop_access(u), drop(u.src(1));
    }
    for (size_t i = 0; i < resident.slots.size(); ++i) {
      const Others& others = finder.others(resident.slots[i]);
      for (const int32_t at : others.zeros) drop_access(linear_.src(size_t(at)));
      for (const int32_t at : others.loads) {
        drop_access(linear_.src(size_t(at)));
        elements_[linear_.src(size_t(at))] = {number, i};
      }
    }
    auto behind = size_t(resident.finished_at);
    if (linear_.src(behind).is(Op::WMMA))
      while (!linear_.src(behind).is(Op::WMMA_WAIT)) ++behind;
    finished_[linear_.src(behind)].push_back(number);
    tiles_.push_back(std::move(t));
  }

  UOp run() {
    for (const UOp& u : linear_.src()) {
      if (const int32_t* tile = begins_.find(u)) begin(tiles_[size_t(*tile)]);
      if (const int32_t* tile = tile_of_.find(u))
        becomes_[u] = add_product(u, tiles_[size_t(*tile)]);
      else if (const Element* e = elements_.find(u))
        becomes_[u] = tiles_[size_t(e->tile)].sums[e->number];
      else if (dropped_.contains(u))
        becomes_[u] = out_.back();  // only what it stands in front of names it
      else
        becomes_[u] = put(u.with_src(sources_of(u)));
      if (const std::vector<int32_t>* tiles = finished_.find(u))
        for (const int32_t t : *tiles) load(tiles_[size_t(t)]);
    }
    front_.append(out_.begin(), out_.end());
    return linear_.with_src(front_);
  }

 private:
  struct Tile {
    UOp zero, place;  ///< what it begins with, and where
    UOp memory = {};
    UOps sums = {};        ///< elements, once it is loaded
    int32_t accesses = 0;  ///< tell the addresses apart
  };
  struct Element {
    int32_t tile = 0;
    size_t number = 0;
  };

  void drop(const UOp& u) { dropped_.insert(u); }
  void drop_access(const UOp& u) {
    drop(u);
    drop(u.src(0));
  }

  UOp put(const UOp& u) {
    out_.push_back(u);
    return u;
  }
  UOp constant_in_front(const Scalar& value) {
    UOp c = constant(value);
    if (constants_.insert(c)) front_.push_back(c);
    return c;
  }
  UOps sources_of(const UOp& u) {
    UOps out;
    for (const UOp& s : u.src()) {
      const UOp* now = becomes_.find(s);
      out.push_back(now ? *now : s);
    }
    return out;
  }

  UOp next_address(Tile& t) {
    return put(UOp(Op::INDEX, t.memory.dtype(), {t.memory, t.place}, IndexArg{.width = int32_t(shape_size(t)), .state = t.accesses++}));
  }
  static int64_t shape_size(const Tile& t) { return t.memory.arg_as<BufferArg>().size; }

  void begin(Tile& t) {
    put(t.memory);
    put(store(next_address(t), t.zero));
  }
  UOp add_product(const UOp& product, Tile& t) {
    UOps sources = sources_of(product);
    sources[2] = next_address(t);
    return put(UOp(Op::WMMA, DType::void_, sources, product.arg()));
  }
  void load(Tile& t) {
    const UOp whole = put(tinygrad::load(next_address(t)));
    for (int64_t i = 0; i < shape_size(t); ++i) t.sums.push_back(put(index(whole, constant_in_front(Scalar::from_int(i, DType::int32)))));
  }

  const UOp& linear_;
  uint64_t next_buffer_ = 0;
  NodeSet constants_;  ///< that the list has
  std::vector<Tile> tiles_;
  NodeMap<int32_t> begins_, tile_of_;  ///< of the first STORE, of WMMAs
  NodeMap<Element> elements_;          ///< that LOADs behind the products take
  NodeMap<std::vector<int32_t>> finished_;
  NodeSet dropped_;
  NodeMap<UOp> becomes_;
  UOps front_, out_;
};

}  // namespace

UOp use_tensor_memory(const UOp& linear) {
  Finder finder(linear);
  if (!finder.find_chains()) return linear;
  finder.note_others();
  const std::vector<Resident> residents = finder.residents();
  if (residents.empty()) return linear;
  Writer writer(linear);
  for (const Resident& r : residents) writer.add_tile(finder, r);
  return writer.run();
}

}  // namespace tinygrad::codegen
