#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/dtype.h>
#include "base/hash.h"
#include "base/symbol.h"
#include "uop/op.h"

namespace tinygrad {

/// What a code generator must know of the machine it generates for: data only. Two equal Targets get the same kernels, wherever the
/// compiler runs; a Target never describes "the host" except where `host_cpu_target` fills one in.
struct Target {
  Symbol device;    ///< "CPU", "INTERP", "CUDA", ...
  Symbol renderer;  ///< "LLVM", "CLANG", "INTERP", ...
  Symbol arch;      ///< as the compiler wants it: "znver4", "x86-64-v3", "sm_90a"

  int vector_bits = 0;       ///< widest native vector, 0: scalars only
  int vector_registers = 0;  ///< number of architectural vector registers
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;

  bool has_threads = false;  ///< kernels take a chunk range (AxisKind::thread)
  bool has_groups = false;   ///< kernels run as a grid of work-groups (SPECIAL), with group memory and barriers
  int64_t max_group_items = 0;
  int64_t max_global[3] = {0, 0, 0};
  int64_t group_memory_bytes = 0;
  bool has_buffer_offsets = true;  ///< a kernel may be given a view into a buffer at no cost

  bool supports(Op op) const { return (ops_[int(op) / 64] >> (int(op) % 64)) & 1; }
  bool supports(DType dtype) const { return (dtypes_ >> int(dtype)) & 1; }
  void set_ops(std::initializer_list<Op> ops);
  void set_dtypes(std::initializer_list<DType> dtypes);

  /// Native lanes of a dtype, 1 where there are no vectors.
  int lanes(DType dtype) const { return vector_bits == 0 ? 1 : vector_bits / bitsize(dtype); }
  /// Everything that may change a kernel, for cache keys.
  ContentKey key() const;
  /// "CPU:LLVM:znver4"
  std::string name() const;

  friend bool operator==(const Target&, const Target&) = default;

 private:
  static_assert(op_count <= 128);
  uint64_t ops_[2] = {0, 0};
  uint32_t dtypes_ = 0;
};

/// Fixed targets, for tests, replay and compiling for another machine.
Target cpu_target(
    std::string_view arch);  ///< "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), "znver4", ...; ValueError for one it does not know
Target interp_target();      ///< the interpreted device: GPU-shaped, every op and dtype native
/// The machine this process runs on, from CPUID and the caches the system reports.
Target host_cpu_target();

}  // namespace tinygrad
