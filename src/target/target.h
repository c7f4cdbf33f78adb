#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/target.h>

#include "base/hash.h"
#include "uop/op.h"

namespace tinygrad {

static_assert(op_count <= 128);  // a Target has a bit for each

/// The tensor cores of a kind of machine: "sm_80", "sm_80_bytes", ... and what "sm_89" (mma.sync of the PTX manual) and "sm_90a" (its
/// wgmma) have besides, "sm_100a" (tcgen05), "gfx90a", "gfx942" (MFMA), "gfx1100", "gfx1201" (WMMA), "apple7" (simdgroup matrices),
/// "xe_hpg" (DPAS), "avx512_vnni" and "avx512_bf16" (sums of a few products in each lane) and "small" (8x8x8 for 8 items, for tests).
const std::vector<TensorCore>& tensor_cores(std::string_view family);
/// The one of a name, wherever it is listed; null if there is none.
const TensorCore* find_tensor_core(Symbol name);

/// The most results of one joined reduction that a CPU's kernel computes together, a copy of the code each. Those that do not fit the
/// registers are spilled to the first cache. Fusion counts on as many as the heuristics write out.
inline constexpr int most_kept_results = 128;

/// The bytes of group memory that an array of this size takes.
constexpr int64_t group_array_bytes(int64_t bytes) { return (bytes + 15) / 16 * 16; }

/// Bytes of group memory for kernels that use tensor memory: the address of their part of it, and a barrier for each of up to eight parts
/// of the group that tells when products are done.
inline constexpr int64_t tensor_memory_group_bytes = 80;

/// What an OpenCL device says of itself; the defaults are what every device of OpenCL 1.2 has.
struct OpenClLimits {
  Symbol name = {};
  bool has_double = false, has_half = false;  ///< arithmetic
  int64_t max_group_items = 256;
  int64_t group_memory_bytes = 32 << 10;
  int64_t cache_bytes = 1 << 20;                                       ///< that all items share
  int max_buffers = 64;                                                ///< that a kernel takes as arguments
  int64_t max_image_width = 0, max_image_height = 0, image_pitch = 1;  ///< as Target has them
};
Target opencl_target(const OpenClLimits& limits);
/// Has a CPU's kernels written in a language: "LLVM", which has instructions that others lack, or "CLANG".
void set_renderer(Target& target, std::string_view renderer);
/// The architectures that cpu_target() knows.
std::vector<std::string_view> cpu_archs();
/// The numbers of a microarchitecture: "zen3", "golden_cove", "neoverse_v1", ... Throws ValueError for one it does not know.
CpuCore cpu_core(std::string_view name);
/// The microarchitectures that cpu_core() knows.
std::vector<std::string_view> cpu_core_names();
/// Whether the machine this process runs on has all instructions that compilers use for this one of cpu_archs().
bool host_runs(std::string_view arch);
/// A Hexagon with vectors (HVX) of 128 bytes: "v66"; "v68" has float vectors, too. ValueError for one it does not know.
Target dsp_target(std::string_view arch);

/// What compilers call the processor of an architecture that cpu_target() or dsp_target() knows.
struct ProcessorNames {
  const char* triple;
  std::string cpu, features;  ///< "+v,+zvl128b", beyond those of the processor
};
ProcessorNames processor_names(std::string_view arch);

}  // namespace tinygrad
