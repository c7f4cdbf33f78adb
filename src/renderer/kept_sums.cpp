#include "renderer/kept_sums.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "kernel/address_parts.h"
#include "uop/arg.h"
#include "uop/build.h"

namespace tinygrad::renderer {
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
      if (!u.is(Op::END) && !u.is(Op::ENDIF) && !u.is(Op::BARRIER) && !u.is(Op::COMMIT) && !u.is(Op::WAIT))
        for (const UOp& s : u.src()) users_[s].push_back(u);
    }
  }

  bool find_chains() {
    for (const UOp& u : linear_.src()) {
      if (!u.is(Op::WMMA)) continue;
      const TensorCore* core = find_tensor_core(u.arg_as<WmmaArg>().name);
      if (!core || !core->keeps_sums) continue;
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

  /// The elements of tiles that may stay, with the place in the list behind which they are read.
  std::vector<std::pair<Slots, int32_t>> tiles() {
    std::vector<Slots> candidates;
    for (const Chain& c : chains_)
      if (!c.from.empty() && c.from == c.to && std::ranges::find(candidates, c.from) == candidates.end()) candidates.push_back(c.from);
    std::vector<std::pair<Slots, int32_t>> out;
    for (const Slots& s : candidates)
      if (const auto at = read_at(s)) out.emplace_back(s, *at);
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

  static bool share(const Slots& a, const Slots& b) {
    return std::ranges::any_of(a, [&](const Slot& s) { return std::ranges::find(b, s) != b.end(); });
  }

  bool is_inside(int32_t at, const std::vector<int32_t>& blocks) const {
    const std::vector<int32_t>& around = around_[size_t(at)];
    return around.size() >= blocks.size() && std::equal(blocks.begin(), blocks.end(), around.begin());
  }

  /// The place behind which the tile is finished; nothing if its elements are used for anything else.
  std::optional<int32_t> read_at(const Slots& slots) {
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
    int32_t read = last;
    for (const Chain& c : chains_) {
      if (!share(c.from, slots) && !share(c.to, slots)) continue;
      if (c.from != slots || c.to != slots || c.first < last || !is_inside(c.last, blocks)) return std::nullopt;
      const std::vector<int32_t>& around = around_[size_t(c.last)];
      int32_t done = c.last;
      if (around.size() > blocks.size()) {
        if (linear_.src(size_t(around[blocks.size()])).is(Op::IF)) return std::nullopt;
        done = end_of_[around[blocks.size()]];
      }
      read = std::max(read, done);
    }
    for (const Slot& s : slots)
      for (const int32_t at : others_[s].loads)
        if (at < read || !is_inside(at, blocks)) return std::nullopt;
    return read;
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

}  // namespace

bool is_zero(const UOp& sums) {
  if (sums.is(Op::EXPAND)) return is_zero(sums.src(0));
  return sums.is(Op::STACK) ? std::ranges::all_of(sums.src(), is_zero) : is_const(sums, 0);
}

KeptSums::KeptSums(const UOp& linear) {
  Finder finder(linear);
  if (!finder.find_chains()) return;
  finder.note_others();
  const auto tiles = finder.tiles();
  for (size_t t = 0; t < tiles.size(); ++t) {
    const auto& [slots, read] = tiles[t];
    sizes_.push_back(int32_t(slots.size()));
    read_behind_[linear.src(size_t(read))].push_back(int32_t(t));
    for (const Chain& c : finder.chains()) {
      if (c.from != slots) continue;
      for (const UOp& w : c.products) tile_of_[w] = int32_t(t);
      for (const auto* accesses : {&c.loads, &c.stores})
        for (const UOp& u : *accesses) elements_[u] = {int32_t(t), -1};
    }
    for (size_t i = 0; i < slots.size(); ++i)
      for (const auto* places : {&finder.others(slots[i]).zeros, &finder.others(slots[i]).loads})
        for (const int32_t at : *places) elements_[linear.src(size_t(at))] = {int32_t(t), int32_t(i)};
  }
}

int32_t KeptSums::tile_of(const UOp& wmma) const {
  const int32_t* tile = tile_of_.find(wmma);
  return tile ? *tile : -1;
}

std::vector<int32_t> KeptSums::read_behind(const UOp& u) const {
  const std::vector<int32_t>* tiles = read_behind_.find(u);
  return tiles ? *tiles : std::vector<int32_t>();
}

}  // namespace tinygrad::renderer
