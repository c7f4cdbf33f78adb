#pragma once
/// What a code generator must know of a machine.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/symbol.h>

namespace tinygrad {

enum class Op : uint8_t;  // what a node of the library's graphs does
struct ContentKey;

/// A unit that multiplies small matrices, d = a b + c with a (m, k), b (k, n), c and d (m, n), together for `items` neighbouring
/// work-items, or, on a CPU, lanes. Each item holds some elements of every matrix. Sizes are powers of two. The bits of a row or column
/// number are bits of the item's number or of the number of an element in the item; items that differ only in bits that are in neither hold
/// copies. A factor may also be read from memory of the work-group, for all items at once.
struct TINYGRAD_EXPORT TensorCore {
  /// The source of one bit of a row or column number, listed from the lowest: bit `n` of the item's number or of the element's.
  struct Bit {
    bool of_element = false;
    uint8_t n = 0;
    friend bool operator==(const Bit&, const Bit&) = default;
  };
  struct Layout {
    std::vector<Bit> row, column;
    /// The matrix lies in memory of the work-group. An element's number is its place there, except that behind each `run` of places `gap`
    /// are free, or that pieces of `run` places are swizzled.
    bool in_memory = false;
    int run = 1, gap = 0;
    int swizzle = 1;       ///< the number of a piece is xored with the number of its group of 8 pieces, modulo this
    int elements() const;  ///< elements in each item, or in memory
    int64_t place_of(int64_t element) const { return (element ^ element / (8 * run) % swizzle * run) + element / run * gap; }
    int64_t row_of(int64_t item, int64_t element) const;
    int64_t column_of(int64_t item, int64_t element) const;
    friend bool operator==(const Layout&, const Layout&) = default;
  };

  Symbol name;
  int m = 0, n = 0, k = 0;
  DType a_type = DType::void_, b_type = DType::void_, out = DType::void_;  ///< the last of c and d
  int items = 0;
  int kept_bits = 0;           ///< bits to which the mantissas of factors are rounded, ties away from zero; 0: all
  bool cuts_off = false;       ///< mantissas are cut to those bits instead of rounded
  bool tensor_memory = false;  ///< it adds to sums in a memory of the cores' own, which items only copy to and from
  Layout a, b, c;

  friend bool operator==(const TensorCore&, const TensorCore&) = default;
};

/// What a core of a CPU does in a cycle, and what its caches and memory give it: the numbers by which plans for kernels are chosen. Rates
/// are what one core sustains. docs/processors.md says where they come from, and which choices they decide.
struct TINYGRAD_EXPORT CpuCore {
  Symbol name;                     ///< of the microarchitecture: "zen3", "golden_cove"
  bool is_measured = false;        ///< on this machine, by `tg tune`
  double multiply_add_bits = 512;  ///< of vectors whose multiply-adds start in one cycle, in all units together
  double multiply_add_cycles = 4;  ///< until the result may be used
  int l1_ways = 8, l2_ways = 8;    ///< lines that one set of a cache holds
  double l2_bytes_a_cycle = 20, l3_bytes_a_cycle = 12, memory_bytes_a_cycle = 4;
  double memory_cycles = 300;   ///< until a line from memory arrives
  double lines_in_flight = 12;  ///< that the first cache waits for at once
  double fork_cycles = 4096;    ///< to hand work to waiting threads and to await them

  friend bool operator==(const CpuCore&, const CpuCore&) = default;
};

/// What a code generator must know of the machine it generates for: data only. Two equal Targets get the same kernels, wherever the
/// compiler runs; a Target never describes "the host" except where `host_cpu_target` fills one in.
struct TINYGRAD_EXPORT Target {
  Symbol device;    ///< "CPU", "INTERP", "CUDA", ...
  Symbol renderer;  ///< "LLVM", "CLANG", "INTERP", ...
  Symbol arch;      ///< as the compiler wants it: "znver4", "x86-64-v3", "sm_90a"

  int vector_bits = 0;            ///< widest native vector, 0: scalars only
  int vector_registers = 0;       ///< number of architectural vector registers
  bool vector_math = true;        ///< ALU ops take vectors; else vectors are only loaded and stored, at most `vector_bits` at once
  int most_lanes = 0;             ///< of a vector in memory, if that is less than what fits; 0: no such limit
  bool vector_floats = true;      ///< vectors hold floats, too
  bool unaligned_vectors = true;  ///< in memory they may begin at any element
  int memory_alignment = 0;       ///< bytes: where a kernel's arguments begin is a multiple of it, whatever they hold; 0: not promised
  bool has_cache_hints = false;   ///< stores may go past the caches (IndexArg::streams), and it has PREFETCH
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  CpuCore core = {};  ///< of a CPU

  bool has_threads = false;  ///< kernels take a chunk range (AxisKind::thread)
  /// That run the chunks of a host's kernels; 0: not known. Only how many chunks there are may depend on it, no plan and no result.
  int threads = 0;
  bool has_groups = false;  ///< kernels run as a grid of work-groups (SPECIAL), with group memory and barriers
  int64_t max_group_items = 0;
  int64_t full_group = 256;  ///< work-items that hide each other's waiting: what heuristics put into a group at most
  int64_t max_global[3] = {0, 0, 0};
  int64_t group_memory_bytes = 0;
  int64_t declared_group_bytes = 0;  ///< of those, what a kernel's text may declare; one with more gets all of it at launch; 0: all
  int async_copy_bytes = 0;          ///< that one asynchronous copy from an argument to group memory moves at most, at least 4; 0: none
  int64_t max_image_width = 0, max_image_height = 0;  ///< in texels of four floats; 0: no images
  int64_t image_pitch = 1;                            ///< texels that the width of an image must be a multiple of
  std::vector<TensorCore> tensor_cores;               ///< best first
  int max_buffers = 16;                               ///< that a kernel takes as arguments
  bool has_buffer_offsets = true;                     ///< a kernel may be given a view into a buffer at no cost
  bool shares_memory = false;                         ///< kernels reach memory of any device of the process that says so, too

  /// Whether kernels run on it at all; a device without only holds data.
  bool computes() const { return (ops_[0] | ops_[1]) != 0; }
  bool supports(Op op) const { return (ops_[int(op) / 64] >> (int(op) % 64)) & 1; }
  bool supports(DType dtype) const { return (dtypes_ >> int(dtype)) & 1; }
  /// A narrow float that is only converted from and to float32: arithmetic on it is done there.
  bool converts(DType dtype) const { return (converted_ >> int(dtype)) & 1; }
  /// Integers of 64 bits, signed and unsigned.
  bool has_int64() const { return supports(DType::int64) && supports(DType::uint64); }
  /// All that it has; set_op adds one or takes it away.
  void set_ops(std::initializer_list<Op> ops);
  void set_op(Op op, bool has);
  void set_dtypes(std::initializer_list<DType> dtypes);
  void set_converted(std::initializer_list<DType> dtypes);
  /// Tensor cores for it go with it.
  void drop_dtype(DType dtype);

  /// Native lanes of a dtype, 1 where there are no vectors.
  int lanes(DType dtype) const { return vector_bits == 0 || (is_float(dtype) && !vector_floats) ? 1 : vector_bits / bitsize(dtype); }
  /// Everything that may change a kernel, for cache keys.
  ContentKey key() const;
  /// "CPU:LLVM:znver4"
  std::string name() const;

  friend bool operator==(const Target&, const Target&) = default;

 private:
  uint64_t ops_[2] = {0, 0};
  uint32_t dtypes_ = 0, converted_ = 0;
};

/// A CPU of a kind: "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), "znver4", "neoverse-n1", "rv64gcv", ... Throws ValueError for one it does
/// not know.
TINYGRAD_EXPORT Target cpu_target(std::string_view arch);
/// A GPU of NVIDIA, by the name of its real architecture: "sm_80", "sm_90a", "sm_100a", ... Throws ValueError for one it does not know.
TINYGRAD_EXPORT Target cuda_target(std::string_view arch);
/// A GPU of AMD: "gfx90a", "gfx942" (waves of 64 items, MFMA), "gfx1100", "gfx1201" (waves of 32, WMMA), ... Throws ValueError for one it
/// does not know.
TINYGRAD_EXPORT Target amd_target(std::string_view arch);
/// Apple's GPUs from A14 and M1 on.
TINYGRAD_EXPORT Target metal_target();
/// The interpreted device: GPU-shaped, every op and dtype native, all tensor cores emulated.
TINYGRAD_EXPORT Target interp_target();
/// The machine this process runs on, from CPUID, the caches the system reports and, where they were kept, its own numbers.
TINYGRAD_EXPORT Target host_cpu_target();
/// Measures the numbers of this machine's cores, which takes some seconds. Others that use it meanwhile make them worse. Throws DeviceError
/// on processors whose instructions it does not know.
TINYGRAD_EXPORT CpuCore measure_host_core();
/// Keeps numbers that were measured of this machine in the disk cache: processes that begin later choose kernels by them. Throws
/// ValueError for what no machine can have, and DeviceError where there is no disk cache or it cannot be written.
TINYGRAD_EXPORT void keep_host_core(const CpuCore& core);
/// Goes back to the numbers of the machine's kind.
TINYGRAD_EXPORT void forget_host_core();

}  // namespace tinygrad
