#include "runtime/cpu/cpu_code.h"

#include "runtime/cpu/scratch.h"
#include "runtime/cpu/symbols.h"

namespace tinygrad::runtime {

CpuCode::CpuCode(std::span<const std::byte> object, std::string_view symbol, size_t scratch_bytes)
    : object_(object, cpu_runtime_symbol), run_(reinterpret_cast<Function*>(object_.function(symbol))), scratch_bytes_(scratch_bytes) {}

void CpuCode::run(std::span<void* const> buffers, std::span<const int64_t> variables, int64_t chunks,
                  FunctionRef<ComputePool&()> pool) const {
  const auto run = [&](size_t begin, size_t end) {
    void* scratch = scratch_bytes_ ? thread_scratch(scratch_bytes_) : nullptr;
    run_(buffers.data(), variables.data(), static_cast<int64_t>(begin), static_cast<int64_t>(end), scratch);
  };
  if (chunks == 1)
    run(0, 1);
  else if (chunks > 1)
    pool().run(static_cast<size_t>(chunks), run);
}

}  // namespace tinygrad::runtime
