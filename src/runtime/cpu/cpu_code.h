#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "runtime/cpu/elf_loader.h"

namespace tinygrad::runtime {

/// A kernel's function in a loaded object: all that running it takes beside its arguments.
class CpuCode {
 public:
  /// Throws what LoadedObject throws, for any bytes. `scratch_bytes` is what it needs in each thread.
  CpuCode(std::span<const std::byte> object, std::string_view symbol, size_t scratch_bytes);

  /// Runs the chunks of one launch, several ones on the threads of the pool, which is not asked for before.
  void run(std::span<void* const> buffers, std::span<const int64_t> variables, int64_t chunks, FunctionRef<ComputePool&()> pool) const;
  /// Runs the chunks from `begin` to `end` of a launch in the calling thread.
  void run_piece(std::span<void* const> buffers, std::span<const int64_t> variables, size_t begin, size_t end) const;

  using Function = void(void* const* buffers, const int64_t* variables, int64_t chunk_begin, int64_t chunk_end, void* scratch);

 private:
  LoadedObject object_;
  Function* run_;
  size_t scratch_bytes_;
};

/// Tells what kernels and those who call them agree on, for processes that hand each other kernels: the type of a kernel's function, what
/// its arguments mean and what it may call.
uint64_t kernel_abi();

}  // namespace tinygrad::runtime
