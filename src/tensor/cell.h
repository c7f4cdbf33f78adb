#pragma once
/// What a Tensor points to, and the registry of all that live.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tinygrad/tensor.h>

#include "uop/uop.h"

namespace tinygrad::detail {

/// The state of a tensor: its node, a TENSOR, which realize and assign replace, and its gradient. Made by make_cell() only.
struct TensorCell : std::enable_shared_from_this<TensorCell> {
  TensorCell(const UOp& node, bool is_view, const char* operation);
  ~TensorCell();
  TensorCell(const TensorCell&) = delete;
  TensorCell& operator=(const TensorCell&) = delete;

  UOp node() const;
  void set_node(UOp node);
  /// Replaces the node if it is still `expected`.
  bool exchange(const UOp& expected, UOp replacement);
  /// Changes whenever the node does.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  Tensor grad() const;
  void set_grad(Tensor grad);
  bool is_param() const;
  void set_is_param(bool is_param);

  /// Tensors that have it.
  uint32_t handles() const { return handles_.load(std::memory_order_acquire); }

  const uint64_t number;           ///< cells count up, which gives them an order
  bool is_among_historic = false;  ///< see realize.cpp; under the lock of the states

 private:
  friend class CellHandle;
  friend std::shared_ptr<TensorCell> make_cell(const UOp& node, bool is_view, const char* operation);
  void swap_node(UOp& node);

  mutable std::mutex mutex_;
  UOp node_;
  std::atomic<uint64_t> version_{0};
  std::atomic<uint32_t> handles_{0};
  bool filed_finished_ = false;  // in which list of the registry it is
  Tensor grad_;
  bool is_param_ = true;
};

using CellPtr = std::shared_ptr<TensorCell>;

/// A registered cell of TENSOR(node), which `operation` made.
CellPtr make_cell(const UOp& node, bool is_view, const char* operation);
/// That of a cell, or of another value of one, made now; those that were there before have smaller ones.
uint64_t next_cell_number();
/// Whether several threads have made cells.
bool several_threads_made_cells();
/// All cells alive, in the order they were made.
std::vector<CellPtr> live_cells();
/// Those that are more than a view of a BUFFER, and perhaps some others.
std::vector<CellPtr> unfinished_cells();

}  // namespace tinygrad::detail
