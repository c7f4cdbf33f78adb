#include "runtime/cpu/cpu_code.h"

#include <typeinfo>

#include "base/hash.h"
#include "runtime/cpu/scratch.h"
#include "runtime/cpu/symbols.h"

namespace tinygrad::runtime {

CpuCode::CpuCode(std::span<const std::byte> object, std::string_view symbol, size_t scratch_bytes)
    : object_(object, cpu_runtime_symbol), run_(reinterpret_cast<Function*>(object_.function(symbol))), scratch_bytes_(scratch_bytes) {}

void CpuCode::run_piece(std::span<void* const> buffers, std::span<const int64_t> variables, size_t begin, size_t end) const {
  void* scratch = scratch_bytes_ ? thread_scratch(scratch_bytes_) : nullptr;
  run_(buffers.data(), variables.data(), static_cast<int64_t>(begin), static_cast<int64_t>(end), scratch);
}

void CpuCode::run(std::span<void* const> buffers, std::span<const int64_t> variables, int64_t chunks,
                  FunctionRef<ComputePool&()> pool) const {
  if (chunks == 1)
    run_piece(buffers, variables, 0, 1);
  else if (chunks > 1)
    pool().run(static_cast<size_t>(chunks), [&](size_t begin, size_t end) { run_piece(buffers, variables, begin, end); });
}

uint64_t kernel_abi() {
  constexpr int meaning = 1;  // of the arguments: to be changed where their types don't tell
  uint64_t id = hash_all(meaning, std::string_view(typeid(CpuCode::Function).name()));
  for (const RuntimeSymbol& s : cpu_runtime_symbols()) id = hash_all(id, s.name);
  return id;
}

}  // namespace tinygrad::runtime
