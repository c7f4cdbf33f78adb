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

/// A unit that multiplies small matrices, d = a b + c with a (m, k), b (k, n), c and d (m, n), together for `items` neighbouring
/// work-items, or, on a CPU, lanes. Each item holds a part of every matrix. Sizes are powers of two, and a row or column number is made of
/// bits of the item's number and of the number of the element among those that the item holds.
struct TensorCore {
  /// Where a bit of a row or column number, from the lowest, comes from: bit `n` of the item, or of the element.
  struct Bit {
    bool of_element = false;
    uint8_t n = 0;
    friend bool operator==(const Bit&, const Bit&) = default;
  };
  struct Layout {
    std::vector<Bit> row, column;
    int elements() const;  ///< that an item holds
    int64_t row_of(int64_t item, int64_t element) const;
    int64_t column_of(int64_t item, int64_t element) const;
    friend bool operator==(const Layout&, const Layout&) = default;
  };

  Symbol name;
  int m = 0, n = 0, k = 0;
  DType a_type = DType::void_, b_type = DType::void_, out = DType::void_;  ///< the last of c and d
  int items = 0;
  Layout a, b, c;

  friend bool operator==(const TensorCore&, const TensorCore&) = default;
};

/// The tensor cores of a kind of machine: "sm_80" (mma.sync of the PTX manual), "avx512_vnni" and "avx512_bf16" (sums of a few products in
/// each lane) and "small" (8x8x8 for 8 items, for tests).
const std::vector<TensorCore>& tensor_cores(std::string_view family);
/// The one of a name, wherever it is listed; null if there is none.
const TensorCore* find_tensor_core(Symbol name);

/// Results of one joined reduction that a CPU's kernel computes together, a copy of code each: what registers don't hold of them is in the
/// nearest cache. Fusion counts on what the heuristics then write out.
inline constexpr int most_kept_results = 128;

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
  std::vector<TensorCore> tensor_cores;  ///< best first
  int max_buffers = 16;                  ///< that a kernel takes as arguments
  bool has_buffer_offsets = true;        ///< a kernel may be given a view into a buffer at no cost

  bool supports(Op op) const { return (ops_[int(op) / 64] >> (int(op) % 64)) & 1; }
  bool supports(DType dtype) const { return (dtypes_ >> int(dtype)) & 1; }
  /// Integers of 64 bits, signed and unsigned.
  bool has_int64() const { return supports(DType::int64) && supports(DType::uint64); }
  void set_ops(std::initializer_list<Op> ops);
  void set_dtypes(std::initializer_list<DType> dtypes);
  /// Tensor cores for it go with it.
  void drop_dtype(DType dtype);

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
Target interp_target();      ///< the interpreted device: GPU-shaped, every op and dtype native, all tensor cores emulated
/// The machine this process runs on, from CPUID and the caches the system reports.
Target host_cpu_target();

}  // namespace tinygrad
