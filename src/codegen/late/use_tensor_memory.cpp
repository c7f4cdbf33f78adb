#include "codegen/late/use_tensor_memory.h"

#include <algorithm>

#include "codegen/late/product_chains.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

/// Writes the program anew, with tiles.
class Writer {
 public:
  explicit Writer(const UOp& linear) : linear_(linear) {
    for (const UOp& u : linear.src()) {
      if (u.is(Op::BUFFER)) next_buffer_ = std::max(next_buffer_, u.arg_as<BufferArg>().id + 1);
      if (u.is(Op::CONST)) constants_.insert(u);
    }
  }

  void add_tile(ProductChains& chains, const Resident& resident) {
    const auto number = int32_t(tiles_.size());
    const UOp& begin = linear_.src(size_t(chains.others(resident.slots[0]).zeros[0]));
    Tile t{.zero = begin.src(1), .place = constant_in_front(Scalar::from_int(0, begin.src(0).src(1).dtype()))};
    t.memory = buffer(t.zero.dtype(), {.id = next_buffer_++, .size = int64_t(resident.slots.size()), .scope = Scope::tensor});
    begins_[begin] = number;
    for (const ProductChain& c : chains.chains()) {
      if (c.from != resident.slots) continue;
      for (const UOp& product : c.products) tile_of_[product] = number;
      drop(c.products[0].src(2));
      for (const UOp& u : c.loads) drop_access(u);
      for (const UOp& u : c.stores) drop_access(u), drop(u.src(1));
    }
    for (size_t i = 0; i < resident.slots.size(); ++i) {
      const OtherAccesses& others = chains.others(resident.slots[i]);
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
  ProductChains chains(linear);
  if (chains.chains().empty()) return linear;
  const std::vector<Resident> residents = chains.residents();
  if (residents.empty()) return linear;
  Writer writer(linear);
  for (const Resident& r : residents) writer.add_tile(chains, r);
  return writer.run();
}

}  // namespace tinygrad::codegen
