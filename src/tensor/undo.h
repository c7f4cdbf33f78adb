#pragma once
/// What assignments of the thread have replaced, for calls that fail.

#include <map>
#include <memory>
#include <vector>

#include "tensor/cell.h"

namespace tinygrad::tensor {

/// Notes, while it lives, the tensors that the thread assigns to, and what they were.
class Undo {
 public:
  Undo();
  ~Undo();
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  struct Change {
    detail::CellPtr cell;
    UOp before;
  };
  /// Tensors still alive that were there before this object, in the order they were made.
  std::vector<Change> changes() const;

  /// Before a change of a cell by this thread.
  static void note(detail::TensorCell& cell);

 private:
  struct Entry {
    std::weak_ptr<detail::TensorCell> cell;
    UOp before;
  };
  Undo* const outer_;
  const uint64_t first_new_;
  std::map<uint64_t, Entry> entries_;  // by the cell's number
};

}  // namespace tinygrad::tensor
