#pragma once
/// The loops a value is open over.

#include <algorithm>
#include <span>
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad {

/// A list of RANGEs that is cached in a node: valid as long as the handle it was asked of.
class OpenRanges {
 public:
  OpenRanges(const OpenRanges&) = delete;
  OpenRanges& operator=(const OpenRanges&) = delete;

  const UOp* begin() const { return view_.data(); }
  const UOp* end() const { return view_.data() + view_.size(); }
  const UOp& operator[](size_t i) const { return view_[i]; }
  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  operator std::span<const UOp>() const { return view_; }
  operator UOps() const { return UOps(begin(), end()); }
  friend bool operator==(const OpenRanges& a, const OpenRanges& b) { return std::ranges::equal(a, b); }

 private:
  friend OpenRanges ranges_of(const UOp& u);
  explicit OpenRanges(std::span<const UOp> view) : view_(view) {}
  explicit OpenRanges(UOps own) : own_(std::move(own)), view_(own_.begin(), own_.size()) {}

  UOps own_;  ///< for a RANGE in whose size there are others
  std::span<const UOp> view_;
};

/// The RANGE nodes that a node's value depends on and that no END, REDUCE or STAGE below it has closed, sorted by (order key, id).
/// A RANGE is open over itself. Cached in the node.
OpenRanges ranges_of(const UOp& u);
inline UOps ranges_of(UOp&& u) { return ranges_of(u); }

/// True if the value does not depend on any open range.
bool is_closed(const UOp& u);

/// True if one of `ranges` is among ranges_of(u).
bool is_open_over(const UOp& u, std::span<const UOp> ranges);

/// The ranges that a node closes itself: the trailing sources of END, REDUCE and STAGE; none for other ops.
std::span<const UOp> closed_ranges(const UOp& u);
/// Whether `range` is one of them.
bool closes(const UOp& u, const UOp& range);

/// The roots with the keys of `map` replaced, as substitute() does, but only in what is open over `ranges`: a loop inside that closes one
/// of them runs over its own.
std::vector<UOp> substitute_open(std::span<const UOp> roots, std::span<const UOp> ranges, NodeMap<UOp> map);

/// True for ReduceArg.op = FUNCTION: REDUCE(TUPLE(x...), TUPLE(identity...), step, merge, r...).
bool is_general_reduce(const UOp& u);

}  // namespace tinygrad
