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

 private:
  using Function = void(void* const* buffers, const int64_t* variables, int64_t chunk_begin, int64_t chunk_end, void* scratch);

  LoadedObject object_;
  Function* run_;
  size_t scratch_bytes_;
};

}  // namespace tinygrad::runtime
