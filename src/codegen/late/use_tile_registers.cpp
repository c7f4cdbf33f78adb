#include "codegen/late/use_tile_registers.h"

#include <algorithm>

#include "codegen/late/product_chains.h"
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

bool is_block_border(const UOp& u) { return u.is(Op::RANGE) || u.is(Op::END) || u.is(Op::IF) || u.is(Op::ENDIF); }

bool is_zero(const UOp& x) { return is_const(x.is(Op::EXPAND) ? x.src(0) : x, 0); }

/// Writes the program anew, with tiles.
class Writer {
 public:
  explicit Writer(const UOp& linear) : linear_(linear) {
    for (const UOp& u : linear.src()) {
      if (u.is(Op::BUFFER)) next_buffer_ = std::max(next_buffer_, u.arg_as<BufferArg>().id + 1);
      if (u.is(Op::CONST)) constants_.insert(u);
    }
  }

  void keep(ProductChains& chains, const Resident& r) {
    const size_t number = new_tile(linear_.src(size_t(r.begins_at)).src(1).dtype(), r.slots.size() * size_t(r.slots[0].width));
    begins_[linear_.src(size_t(r.begins_at))] = number;
    for (const ProductChain& c : chains.chains()) {
      if (c.from != r.slots) continue;
      for (const UOp& product : c.products) tile_of_[product] = number;
      drop_sums(chains, c.products[0].src(2));
      for (const UOp& u : c.loads) drop_access(u);
      for (const UOp& u : c.stores) drop_access(u), dropped_.insert(u.src(1));
    }
    for (size_t i = 0; i < r.slots.size(); ++i) {
      const OtherAccesses& others = chains.others(r.slots[i]);
      for (const int32_t at : others.zeros) drop_access(linear_.src(size_t(at)));
      for (const int32_t at : others.loads) {
        const UOp& load = linear_.src(size_t(at));
        dropped_.insert(load.src(0));
        rows_[load] = {number, int64_t(i) * r.slots[i].width, r.slots[i].width};
      }
    }
    stored_behind_[linear_.src(size_t(r.finished_at))].push_back(number);
  }

  /// A chain whose sums are brought to a tile.
  void bring(const ProductChains& chains, const ProductChain& c) {
    const UOp &first = c.products.front(), &last = c.products.back();
    const size_t number = new_tile(last.dtype(), size_t(shape_of(last)[0].value()));
    brought_[first] = number;
    for (const UOp& product : c.products) tile_of_[product] = number;
    stored_behind_[last].push_back(number);
    if (chains.users(first.src(2)).size() == 1 && !first.src(2).is(Op::WMMA)) drop_sums(chains, first.src(2));
    for (const UOp& row : chains.users(last)) {
      if (row.is(Op::WMMA)) continue;
      const int64_t begin = const_value(row.src(1))->as_int();
      rows_[row] = {number, begin, row.is(Op::SHRINK) ? int32_t(shape_of(row)[0].value()) : 1};
    }
  }

  UOp run() {
    for (const UOp& u : linear_.src()) {
      if (is_block_border(u)) put_rows();
      if (const size_t* tile = begins_.find(u)) clear(tiles_[*tile], u.src(1));
      if (const size_t* tile = tile_of_.find(u))
        multiply(u, *tile);
      else if (rows_.contains(u))
        waiting_.push_back(u);
      else if (dropped_.contains(u))
        becomes_[u] = out_.empty() ? UOp() : out_.back();  // only what it stands in front of names it
      else
        becomes_[u] = put(u.with_src(sources_of(u)));
      if (const auto* tiles = stored_behind_.find(u))
        for (const size_t t : *tiles) store_tile(tiles_[t]);
    }
    front_.append(out_.begin(), out_.end());
    return linear_.with_src(without_idle_memory(front_));
  }

 private:
  struct Tile {
    int32_t size = 0, accesses = 0;  ///< the second tells the addresses apart
    UOp registers = {}, memory = {};
  };
  /// A part of what was stored of a tile.
  struct Row {
    size_t tile = 0;
    int64_t first = 0;
    int32_t width = 0;
  };

  /// Accumulators that moved to tiles are not accessed any more.
  static UOps without_idle_memory(const UOps& list) {
    NodeSet accessed;
    for (const UOp& u : list)
      if (is_address(u)) accessed.insert(u.src(0));
    UOps out;
    for (const UOp& u : list)
      if (!u.is(Op::BUFFER) || accessed.contains(u)) out.push_back(u);
    return out;
  }

  size_t new_tile(DType dtype, size_t elements) {
    Tile t{.size = int32_t(elements)};
    t.registers = buffer(dtype, {.id = next_buffer_++, .size = t.size, .scope = Scope::tensor});
    t.memory = buffer(dtype, {.id = next_buffer_++, .size = t.size, .scope = Scope::reg});
    front_.push_back(t.registers);
    front_.push_back(t.memory);
    tiles_.push_back(t);
    return tiles_.size() - 1;
  }

  /// The STACK, and the lanes that it alone takes.
  void drop_sums(const ProductChains& chains, const UOp& sums) {
    if (!sums.is(Op::STACK)) return;
    dropped_.insert(sums);
    if (loaded_rows(sums).empty()) return;
    for (const UOp& x : sums.src())
      if (!x.is(Op::LOAD) && chains.users(x).size() == 1) dropped_.insert(x);
  }
  void drop_access(const UOp& u) {
    dropped_.insert(u);
    dropped_.insert(u.src(0));
  }

  UOp put(const UOp& u) {
    out_.push_back(u);
    return u;
  }
  UOp number(int64_t n) {
    UOp c = constant(DType::int32, n);
    if (constants_.insert(c)) front_.push_back(c);
    return c;
  }

  UOps sources_of(const UOp& u) {
    UOps out;
    for (const UOp& s : u.src()) {
      if (rows_.contains(s) && !becomes_.contains(s)) put_row(s);
      const UOp* now = becomes_.find(s);
      out.push_back(now ? *now : s);
    }
    return out;
  }

  // Rows are loaded in front of what uses them first, in the block where they stood.

  void put_row(const UOp& u) {
    const Row& r = *rows_.find(u);
    becomes_[u] = put(load(address(tiles_[r.tile], tiles_[r.tile].memory, r.first, r.width)));
  }
  void put_rows() {
    for (const UOp& u : waiting_)
      if (!becomes_.contains(u)) put_row(u);
    waiting_.clear();
  }

  UOp address(Tile& t, const UOp& memory, int64_t at, int32_t width) {
    return put(UOp(Op::INDEX, memory.dtype(), {memory, number(at)}, IndexArg{.width = width, .state = t.accesses++}));
  }
  UOp whole(Tile& t, const UOp& memory) { return address(t, memory, 0, t.size); }

  void clear(Tile& t, const UOp& zero) { put(store(whole(t, t.registers), scalar_zero(zero))); }
  UOp scalar_zero(const UOp& zero) {
    UOp c = zero.is(Op::EXPAND) ? UOp(zero.src(0)) : zero;
    if (constants_.insert(c)) front_.push_back(c);
    return c;
  }

  void store_tile(Tile& t) {
    const UOp sums = put(load(whole(t, t.registers)));
    put(store(whole(t, t.memory), sums));
  }

  void multiply(const UOp& product, size_t number) {
    Tile& t = tiles_[number];
    if (brought_.contains(product)) bring_sums(t, product.src(2));
    UOps sources = sources_of(product.with_src(UOps{product.src(0), product.src(1)}));
    sources.push_back(whole(t, t.registers));
    becomes_[product] = put(UOp(Op::WMMA, DType::void_, sources, product.arg()));
    put(UOp(Op::WMMA_WAIT, DType::void_, {becomes_[product]}));
  }

  void bring_sums(Tile& t, const UOp& sums) {
    if (sums.is(Op::STACK) && std::ranges::all_of(sums.src(), [](const UOp& x) { return is_zero(x); })) return clear(t, sums.src(0));
    UOp from = t.memory;
    if (const size_t* other = tile_of_.find(sums)) {
      from = tiles_[*other].memory;
    } else {
      const UOps rows = loaded_rows(sums);
      int64_t at = 0;
      for (const UOp& row : rows.empty() ? UOps(sums.src()) : rows) {
        const int32_t width = rank_of(row) == 0 ? 1 : int32_t(shape_of(row)[0].value());
        const UOp value = sources_of(UOp(Op::GROUP, DType::void_, {row}))[0];
        put(store(address(t, t.memory, at, width), value));
        at += width;
      }
    }
    const UOp values = put(load(whole(t, from)));
    put(store(whole(t, t.registers), values));
  }

  const UOp& linear_;
  uint64_t next_buffer_ = 0;
  NodeSet constants_;  ///< that the list has
  std::vector<Tile> tiles_;
  NodeMap<size_t> begins_, brought_, tile_of_;  ///< tiles, of the first STORE, of the first WMMA that sums are brought for, of WMMAs
  NodeMap<std::vector<size_t>> stored_behind_;
  NodeMap<Row> rows_;  ///< what LOADs, and parts of products, become
  UOps waiting_;
  NodeSet dropped_;
  NodeMap<UOp> becomes_;
  UOps front_, out_;
};

/// Those that fit the registers beside the others that are there at the time.
std::vector<Resident> fitting(std::vector<Resident> all, size_t most) {
  std::ranges::sort(all, {}, &Resident::begins_at);
  std::vector<Resident> kept;
  for (Resident& r : all) {
    const auto beside = std::ranges::count_if(kept, [&](const Resident& k) { return k.finished_at >= r.begins_at; });
    if (size_t(beside) < most) kept.push_back(std::move(r));
  }
  return kept;
}

}  // namespace

UOp use_tile_registers(const UOp& linear, const Target& target) {
  if (target.has_groups) return linear;
  ProductChains chains(linear);
  if (chains.chains().empty()) return linear;
  const std::vector<Resident> all = chains.residents();
  const auto is_kept = [](const std::vector<Resident>& residents, const ProductChain& c) {
    return !c.from.empty() && std::ranges::find(residents, c.from, &Resident::slots) != residents.end();
  };
  std::vector<Resident> kept = fitting(all, most_resident_tiles);
  // The sums of another product need a register, too.
  if (!std::ranges::all_of(chains.chains(), [&](const ProductChain& c) { return is_kept(kept, c); }))
    kept = fitting(all, most_resident_tiles - 1);
  Writer writer(linear);
  for (const Resident& r : kept) writer.keep(chains, r);
  for (const ProductChain& c : chains.chains())
    if (!is_kept(kept, c)) writer.bring(chains, c);
  return writer.run();
}

}  // namespace tinygrad::codegen
