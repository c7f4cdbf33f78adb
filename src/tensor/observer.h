#pragma once
/// What tensors tell of a call that is recorded.

#include <cstddef>
#include <cstdint>
#include <span>

#include "schedule/schedule.h"
#include "tensor/cell.h"
#include "tensor/index_check.h"
#include "uop/uop.h"

namespace tinygrad::tensor {

/// Sees what the thread that made it does with tensors, until it is destroyed; jit/recorder.h is one. What it throws ends what was done.
class Observer {
 public:
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Of this thread; null if nobody looks.
  static Observer* current();
  /// Nobody looks in this scope.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Observer* const paused_;
  };

  // Memory.
  virtual void made(const UOp& buffer) = 0;
  virtual void uploaded(const UOp& buffer, std::span<const std::byte> bytes) = 0;
  /// `buffer` holds where a draw of random words begins.
  virtual void drew(const UOp& buffer, int64_t words) = 0;

  // Tensors.
  virtual void created(detail::TensorCell& cell) = 0;
  virtual void changed(detail::TensorCell& cell) = 0;
  virtual void reads(detail::TensorCell& cell) = 0;
  /// A StoreArg with this id was made.
  virtual void stores(uint64_t id) = 0;
  /// True for a cell that was neither made nor changed while this looks, and for a store that waited before.
  virtual bool is_outside(const detail::TensorCell& cell) const = 0;
  virtual bool is_outside(const StoreArg& store) const = 0;

  /// Something that a replay would leave out.
  virtual void used_host(const char* what, const char* instead = "Return the tensor and do it outside") = 0;
  /// What the host looks at of memory: whether indices are in range.
  virtual void looks_at(IndexCheck check) = 0;

  // Realizes.
  /// Before a graph of stores runs.
  virtual void check(const UOp& sink) = 0;
  virtual void ran(const UOp& sink, const schedule::Schedule& schedule) = 0;
  /// By what others know a BUFFER; null where it has no other name.
  virtual UOp original_of(const UOp& buffer) const = 0;

 protected:
  Observer();
  virtual ~Observer();

 private:
  Observer* const outer_;
};

}  // namespace tinygrad::tensor
