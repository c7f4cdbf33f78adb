#pragma once
#include <unordered_map>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// One element of a value: an index expression an axis, and a condition (null: always true) outside which it is not to be read.
struct Place {
  UOps at;
  UOp valid;

  friend bool operator==(const Place& a, const Place& b) { return a.valid == b.valid && a.at == b.at; }
};

/// Where element `out` of the movement node `u` comes from in its source. A PAD adds the condition that the element is not padding.
Place source_place(const UOp& u, const Place& out);

/// The flat index of a place in row-major storage of a value of `u`'s shape, laid out for the upper bounds of its sizes.
UOp flat_index(const UOp& u, const Place& place);

/// The places of sources that were asked for: rounds of placing ask for the same again.
class SourcePlaces {
 public:
  /// source_place(); valid until the next call.
  const Place& of(const UOp& u, const Place& out);

 private:
  struct Key {
    UOp node;
    Place out;
    friend bool operator==(const Key& a, const Key& b) { return a.node == b.node && a.out == b.out; }
  };
  struct Hash {
    size_t operator()(const Key& k) const;
  };
  std::unordered_map<Key, Place, Hash> known_;
};

/// The values of a graph, in walking order, that have more elements than anything that they are made of, such as the products of a matrix
/// product.
NodeSet broadcasts_of(const std::vector<UOp>& order);

/// Both conditions; either may be null.
UOp both(const UOp& a, const UOp& b);

}  // namespace tinygrad::schedule
