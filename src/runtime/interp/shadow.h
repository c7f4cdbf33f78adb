#pragma once
/// Who touched which element of memory last: finds accesses of two work-items that nothing orders.

#include <cstdint>
#include <vector>

namespace tinygrad::runtime::interp {

/// A moment of a launch. Epochs count up at each barrier and each group; items are numbered from 1 over all groups.
struct Moment {
  uint32_t epoch = 1;
  uint32_t group_begin = 1;  ///< the first epoch of the running group
  uint32_t first_item = 1;   ///< the number of its first item
};

/// The shadow of one piece of memory that several items see.
class Shadow {
 public:
  void resize(int64_t elements) {
    if (static_cast<size_t>(elements) > cells_.size()) cells_.resize(static_cast<size_t>(elements));
  }
  void clear() { cells_.assign(cells_.size(), Cell{}); }
  bool written(int64_t at) const { return cells_[static_cast<size_t>(at)].writer != nobody; }

  /// False if another item has written the element and nothing orders that before this read.
  bool read(int64_t at, uint32_t item, const Moment& now) {
    Cell& c = cells_[static_cast<size_t>(at)];
    if (unordered(c.writer, c.write_epoch, item, now)) return false;
    if (c.reader == item || c.reader == nobody || c.reader == everybody) {
      if (c.reader != everybody) c.reader = item;
    } else if (c.read_epoch < now.group_begin) {
      c.reader = everybody;  // items of two groups: no barrier orders a write after both
    } else {
      c.reader = c.read_epoch == now.epoch ? several : item;
    }
    c.read_epoch = now.epoch;
    return true;
  }

  /// False if another item has read or written the element and nothing orders that before this write.
  bool write(int64_t at, uint32_t item, const Moment& now) {
    Cell& c = cells_[static_cast<size_t>(at)];
    if (unordered(c.writer, c.write_epoch, item, now) || unordered(c.reader, c.read_epoch, item, now)) return false;
    c.writer = item;
    c.write_epoch = now.epoch;
    return true;
  }

 private:
  static constexpr uint32_t nobody = 0, several = ~uint32_t{1}, everybody = ~uint32_t{0};
  struct Cell {
    uint32_t writer = nobody, write_epoch = 0;
    uint32_t reader = nobody, read_epoch = 0;
  };

  static bool unordered(uint32_t other, uint32_t epoch, uint32_t item, const Moment& now) {
    if (other == nobody || other == item) return false;
    return other == everybody || epoch == now.epoch || epoch < now.group_begin;
  }

  std::vector<Cell> cells_;
};

}  // namespace tinygrad::runtime::interp
