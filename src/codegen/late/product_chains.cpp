#include "codegen/late/product_chains.h"

#include <algorithm>

#include "kernel/address_parts.h"
#include "shape/shape.h"
#include "target/target.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

bool is_private(const UOp& memory) { return memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope == Scope::reg; }

/// The element of private memory that an INDEX names, if it is one at a constant place.
std::optional<Slot> slot_at(const UOp& index) {
  if (!index.is(Op::INDEX) || !is_private(index.src(0))) return std::nullopt;
  const auto parts = address_parts(index.src(1));
  if (!parts || parts->base || parts->offsets.size() != 1) return std::nullopt;
  return Slot{index.src(0).arg_as<BufferArg>().id, parts->offsets[0], index.arg_as<IndexArg>().width};
}

bool is_zero(const UOp& x) { return is_const(x.is(Op::EXPAND) ? x.src(0) : x, 0); }

bool is_lane(const UOp& u) { return u.is(Op::INDEX) && !is_address(u); }

bool only_orders(const UOp& u) {
  return u.is(Op::END) || u.is(Op::ENDIF) || u.is(Op::BARRIER) || u.is(Op::COMMIT) || u.is(Op::WAIT) || u.is(Op::WMMA_WAIT);
}

bool overlap(const Slots& a, const Slots& b) {
  return std::ranges::any_of(a, [&](const Slot& s) { return std::ranges::find(b, s) != b.end(); });
}

/// A product whose sums may stay in a memory of the core's own.
bool is_product(const UOp& u) {
  if (!u.is(Op::WMMA)) return false;
  const TensorCore* core = find_tensor_core(u.arg_as<WmmaArg>().name);
  return core && core->tensor_memory;
}

}  // namespace

UOps loaded_rows(const UOp& stack) {
  UOps rows;
  if (!stack.is(Op::STACK)) return rows;
  int64_t left = 0;  // lanes of the last row
  for (const UOp& x : stack.src()) {
    if (x.is(Op::LOAD) && left == 0) {
      rows.push_back(x);
      continue;
    }
    if (!is_lane(x) || !x.src(0).is(Op::LOAD)) return {};
    const int64_t lanes = shape_of(x.src(0))[0].value();
    if (left == 0) rows.push_back(x.src(0)), left = lanes;
    if (x.src(0) != rows.back() || !is_const(x.src(1), lanes - left)) return {};
    --left;
  }
  return left == 0 ? rows : UOps();
}

ProductChains::ProductChains(const UOp& linear) : linear_(linear) {
  if (std::ranges::none_of(linear.src(), is_product)) return;
  for (size_t i = 0; i < linear.src_count(); ++i) {
    const UOp& u = linear.src(i);
    place_[u] = int32_t(i);
    if (u.is(Op::RANGE) || u.is(Op::IF)) open_.push_back(int32_t(i));
    around_.push_back(open_);
    if (u.is(Op::END) || u.is(Op::ENDIF)) {
      end_of_[open_.back()] = int32_t(i);
      open_.pop_back();
    }
    if (!only_orders(u))
      for (const UOp& s : u.src()) users_[s].push_back(u);
  }
  find_chains();
  if (!chains_.empty()) note_others();
}

void ProductChains::find_chains() {
  for (const UOp& u : linear_.src()) {
    if (!is_product(u)) continue;
    const UOp& sum = u.src(2);
    const bool goes_on = !chains_.empty() && sum == chains_.back().products.back() && users(sum).size() == 1;
    if (!goes_on) chains_.push_back(begin(u));
    ProductChain& c = chains_.back();
    c.products.push_back(u);
    c.last = *place_.find(u);
  }
  for (ProductChain& c : chains_) end(c);
}

void ProductChains::note_others() {
  NodeSet of_chains;
  for (const ProductChain& c : chains_) {
    for (const UOp& u : c.loads) of_chains.insert(u);
    for (const UOp& u : c.stores) of_chains.insert(u);
  }
  for (size_t i = 0; i < linear_.src_count(); ++i) {
    const UOp& u = linear_.src(i);
    if ((!u.is(Op::LOAD) && !u.is(Op::STORE)) || !is_private(u.src(0).src(0))) continue;
    const auto slot = slot_at(u.src(0));
    const int32_t width = slot ? slot->width : 0;
    if (int32_t& known = widths_.try_emplace(u.src(0).src(0).arg_as<BufferArg>().id, width).first->second; known != width) known = 0;
    if (!slot || of_chains.contains(u)) continue;
    OtherAccesses& o = others_[*slot];
    if (u.is(Op::LOAD) && u.src_count() == 1)
      o.loads.push_back(int32_t(i));
    else if (u.is(Op::STORE) && u.src_count() == 2 && is_zero(u.src(1)))
      o.zeros.push_back(int32_t(i));
    else
      o.has_more = true;
  }
}

std::vector<Resident> ProductChains::residents() {
  std::vector<Slots> candidates;
  for (const ProductChain& c : chains_)
    if (!c.from.empty() && c.from == c.to && std::ranges::find(candidates, c.from) == candidates.end()) candidates.push_back(c.from);
  std::vector<Resident> out;
  for (const Slots& s : candidates)
    if (auto r = resident(s)) out.push_back(*std::move(r));
  return out;
}

const std::vector<UOp>& ProductChains::users(const UOp& u) const {
  static const auto& none = *new std::vector<UOp>;
  const std::vector<UOp>* known = users_.find(u);
  return known ? *known : none;
}

ProductChain ProductChains::begin(const UOp& wmma) const {
  ProductChain c;
  c.first = *place_.find(wmma);
  const UOp& sum = wmma.src(2);
  if (users(sum).size() != 1) return c;
  const auto is_used_once = [&](const UOp& u) { return users(u).size() == 1; };
  for (const UOp& x : loaded_rows(sum)) {
    const auto slot = x.src_count() == 1 ? slot_at(x.src(0)) : std::nullopt;
    const auto& lanes = users(x);
    const bool is_alone = slot && lanes.size() == size_t(slot->width) && (slot->width == 1 || std::ranges::all_of(lanes, is_used_once));
    if (!is_alone) return c.from.clear(), c.loads.clear(), c;
    c.from.push_back(*slot);
    c.loads.push_back(x);
  }
  return c;
}

void ProductChains::end(ProductChain& c) const {
  const UOp& last = c.products.back();
  const std::vector<UOp>& rows = users(last);
  Slots to(rows.size());
  UOps stores;
  for (const UOp& row : rows) {
    if ((!row.is(Op::INDEX) && !row.is(Op::SHRINK)) || users(row).size() != 1) return;
    const UOp& store = users(row)[0];
    const int64_t width = row.is(Op::SHRINK) ? shape_of(row)[0].value() : 1, number = const_value(row.src(1))->as_int();
    const auto slot = store.is(Op::STORE) && store.src_count() == 2 && store.src(1) == row ? slot_at(store.src(0)) : std::nullopt;
    if (!slot || slot->width != width || number % width != 0 || number / width >= int64_t(to.size())) return;
    to[size_t(number / width)] = *slot;
    stores.push_back(store);
  }
  c.to = std::move(to);
  c.stores = std::move(stores);
}

bool ProductChains::is_inside(int32_t at, const std::vector<int32_t>& blocks) const {
  const std::vector<int32_t>& around = around_[size_t(at)];
  return around.size() >= blocks.size() && std::equal(blocks.begin(), blocks.end(), around.begin());
}

std::optional<Resident> ProductChains::resident(const Slots& slots) {
  // The first access of each element stores a zero.
  int32_t first = INT32_MAX, last = -1;
  for (const Slot& s : slots) {
    const OtherAccesses& o = others_[s];
    if (o.has_more || o.zeros.size() != 1 || widths_[s.memory] != s.width) return std::nullopt;
    first = std::min(first, o.zeros[0]);
    last = std::max(last, o.zeros[0]);
  }
  const std::vector<int32_t>& blocks = around_[size_t(first)];
  if (blocks != around_[size_t(last)]) return std::nullopt;
  int32_t finished = last;
  for (const ProductChain& c : chains_) {
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
  return Resident{slots, first, finished};
}

}  // namespace tinygrad::codegen
