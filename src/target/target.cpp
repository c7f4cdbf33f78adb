#include "target/target.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "target/tensor_cores/registers.h"

namespace tinygrad {
namespace {

constexpr const char* kX86 = "x86_64-unknown-linux-gnu";
constexpr const char* kArm = "aarch64-unknown-linux-gnu";
constexpr const char* kRiscV = "riscv64-unknown-linux-gnu";
constexpr const char* kHexagon = "hexagon-unknown-linux-musl";

struct CpuArch {
  std::string_view name;
  const char* triple;
  int vector_bits;
  int vector_registers;
  int64_t l1_bytes, l2_bytes, l3_bytes;
  std::string_view core;                       ///< what its numbers are of (cpu_cores.cpp), the first microarchitecture of the kind
  std::string_view cores = {};                 ///< the family of its tensor cores
  bool halves = false;                         ///< it computes with vectors of float16
  std::string_view cpu = name, features = {};  ///< as LLVM has them
  std::string_view tiles = {};                 ///< the family of its tensor cores that have tile registers
};

// The caches are those of a core of the first machines of the kind, and a share of the last level. Vectors whose width is the machine's to
// choose are taken to have the least one that the name promises.
constexpr CpuArch kCpuArchs[] = {
    {"x86-64-v2", kX86, 128, 16, 32 << 10, 256 << 10, 8 << 20, "nehalem"},
    {"x86-64-v3", kX86, 256, 16, 32 << 10, 256 << 10, 8 << 20, "haswell", "avx2"},
    {"x86-64-v4", kX86, 512, 32, 32 << 10, 1 << 20, 16 << 20, "skylake_server", "avx512"},
    {"haswell", kX86, 256, 16, 32 << 10, 256 << 10, 8 << 20, "haswell", "avx2"},
    {"broadwell", kX86, 256, 16, 32 << 10, 256 << 10, 16 << 20, "haswell", "avx2"},
    {"skylake", kX86, 256, 16, 32 << 10, 256 << 10, 8 << 20, "skylake", "avx2"},
    {"alderlake", kX86, 256, 16, 48 << 10, 1280 << 10, 30 << 20, "golden_cove_client", "avx_vnni"},
    {"arrowlake", kX86, 256, 16, 48 << 10, 3 << 20, 36 << 20, "lion_cove", "avx_vnni_int8"},
    {"sierraforest", kX86, 256, 16, 32 << 10, 1 << 20, 96 << 20, "gracemont", "avx_vnni_int8"},
    {"skylake-avx512", kX86, 512, 32, 32 << 10, 1 << 20, 16 << 20, "skylake_server", "avx512"},
    {"cascadelake", kX86, 512, 32, 32 << 10, 1 << 20, 16 << 20, "skylake_server", "avx512_vnni"},
    {"cooperlake", kX86, 512, 32, 32 << 10, 1 << 20, 16 << 20, "skylake_server", "avx512_bf16"},
    {"icelake-server", kX86, 512, 32, 48 << 10, 1280 << 10, 32 << 20, "sunny_cove", "avx512_vnni"},
    {"sapphirerapids", kX86, 512, 32, 48 << 10, 2 << 20, 32 << 20, "golden_cove", "avx512_bf16", true, "sapphirerapids", {}, "amx"},
    {"emeraldrapids", kX86, 512, 32, 48 << 10, 2 << 20, 64 << 20, "golden_cove", "avx512_bf16", true, "emeraldrapids", {}, "amx"},
    {"graniterapids", kX86, 512, 32, 48 << 10, 2 << 20, 64 << 20, "golden_cove", "avx512_bf16", true, "graniterapids", {}, "amx_fp16"},
    {"znver2", kX86, 256, 16, 32 << 10, 512 << 10, 16 << 20, "zen2", "avx2"},
    {"znver3", kX86, 256, 16, 32 << 10, 512 << 10, 32 << 20, "zen3", "avx2"},
    {"znver4", kX86, 512, 32, 32 << 10, 1 << 20, 32 << 20, "zen4", "avx512_bf16"},
    {"znver5", kX86, 512, 32, 48 << 10, 1 << 20, 32 << 20, "zen5", "avx512_bf16"},
    {"armv8-a", kArm, 128, 32, 32 << 10, 512 << 10, 4 << 20, "cortex_a72", "", false, "generic"},
    {"cortex-a72", kArm, 128, 32, 32 << 10, 1 << 20, 1 << 20, "cortex_a72"},
    {"neoverse-n1", kArm, 128, 32, 64 << 10, 1 << 20, 8 << 20, "neoverse_n1", "arm_dot", true},
    {"neoverse-v1", kArm, 128, 32, 64 << 10, 1 << 20, 32 << 20, "neoverse_v1", "arm_i8mm_bf16", true},
    {"neoverse-n2", kArm, 128, 32, 64 << 10, 1 << 20, 32 << 20, "neoverse_n2", "arm_i8mm_bf16", true},
    {"neoverse-v2", kArm, 128, 32, 64 << 10, 2 << 20, 32 << 20, "neoverse_v2", "arm_i8mm_bf16", true},
    {"apple-m1", kArm, 128, 32, 128 << 10, 3 << 20, 8 << 20, "firestorm", "arm_dot", true},
    {"rv64gcv", kRiscV, 128, 32, 32 << 10, 512 << 10, 2 << 20, "rv64gcv", "", false, "generic-rv64", "+m,+a,+f,+d,+c,+v,+zvl128b"},
    {"rv64gcv_zvl256b", kRiscV, 256, 32, 32 << 10, 512 << 10, 4 << 20, "rv64gcv", "", false, "generic-rv64", "+m,+a,+f,+d,+c,+v,+zvl256b"},
};

struct DspArch {
  std::string_view name;
  bool vector_floats;
  std::string_view cpu, features;
};

constexpr DspArch kDspArchs[] = {
    {"v66", false, "hexagonv66", "+hvxv66,+hvx-length128b"},
    {"v68", true, "hexagonv68", "+hvxv68,+hvx-length128b"},
};

/// The one of a name in a table; throws ValueError.
template <class Arch, size_t n>
const Arch& find_arch(std::string_view device, const Arch (&table)[n], std::string_view name) {
  std::string known;
  for (const Arch& a : table) {
    if (a.name == name) return a;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
  }
  throw ValueError(fmt::format("{}: unknown architecture '{}'; known are {}", device, name, known));
}

/// What C has, on integers and floats.
void set_c_ops(Target& t) {
  t.set_ops({Op::SQRT, Op::RECIPROCAL, Op::NEG,  Op::TRUNC, Op::CAST, Op::BITCAST, Op::ADD,   Op::MUL,
             Op::SUB,  Op::FDIV,       Op::CDIV, Op::CMOD,  Op::MAX,  Op::CMPLT,   Op::CMPNE, Op::CMPEQ,
             Op::XOR,  Op::OR,         Op::AND,  Op::SHL,   Op::SHR,  Op::WHERE,   Op::MULACC});
  // bfloat16 and fp8 have neither registers nor conversions; float16 has conversions and is computed in float32 by the compiler.
  t.set_dtypes({DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64,
                DType::uint64, DType::float16, DType::float32, DType::float64});
}

}  // namespace

void Target::set_ops(std::initializer_list<Op> ops) {
  ops_[0] = ops_[1] = 0;
  for (Op op : ops) ops_[int(op) / 64] |= uint64_t{1} << (int(op) % 64);
}

void Target::set_op(Op op, bool has) {
  const uint64_t bit = uint64_t{1} << (int(op) % 64);
  uint64_t& ops = ops_[int(op) / 64];
  ops = has ? ops | bit : ops & ~bit;
}

void Target::set_dtypes(std::initializer_list<DType> dtypes) {
  dtypes_ = 0;
  for (DType d : dtypes) dtypes_ |= uint32_t{1} << int(d);
}

void Target::set_converted(std::initializer_list<DType> dtypes) {
  converted_ = 0;
  for (DType d : dtypes) converted_ |= uint32_t{1} << int(d);
}

void Target::drop_dtype(DType dtype) {
  dtypes_ &= ~(uint32_t{1} << int(dtype));
  converted_ &= ~(uint32_t{1} << int(dtype));
  std::erase_if(tensor_cores, [&](const TensorCore& c) { return c.a_type == dtype || c.b_type == dtype || c.out == dtype; });
}

ContentKey Target::key() const {
  ContentHasher h;
  h.add(device.str()).add(renderer.str()).add(arch.str());
  h.add(vector_bits).add(vector_registers).add(l1_bytes).add(l2_bytes).add(l3_bytes);
  h.add(core.name.str()).add(core.l1_ways).add(core.l2_ways);
  for (const double n : {core.multiply_add_bits, core.multiply_add_cycles, core.lines_in_flight, core.l2_bytes_a_cycle,
                         core.l3_bytes_a_cycle, core.memory_bytes_a_cycle, core.memory_cycles, core.fork_cycles})
    h.add(std::bit_cast<uint64_t>(n));
  h.add(vector_math)
      .add(vector_floats)
      .add(unaligned_vectors)
      .add(most_lanes)
      .add(memory_alignment)
      .add(async_copy_bytes)
      .add(has_cache_hints);
  h.add(has_threads).add(threads).add(has_groups).add(max_group_items);
  for (int64_t n : max_global) h.add(n);
  h.add(max_image_width).add(max_image_height).add(image_pitch);
  h.add(group_memory_bytes).add(declared_group_bytes).add(max_buffers).add(has_buffer_offsets).add(shares_memory);
  for (const TensorCore& c : tensor_cores) h.add(c.name.str());
  return h.add(ops_[0]).add(ops_[1]).add(dtypes_).add(converted_).finish();
}

std::string Target::name() const {
  std::string text(device.str());
  for (Symbol part : {renderer, arch}) {
    if (part.empty()) break;
    text += ':';
    text += part.str();
  }
  return text;
}

Target cpu_target(std::string_view arch) {
  const CpuArch& a = find_arch("CPU", kCpuArchs, arch);
  Target t;
  t.device = "CPU";
  t.renderer = "LLVM";
  t.arch = arch;
  t.vector_bits = a.vector_bits;
  t.vector_registers = a.vector_registers;
  t.l1_bytes = a.l1_bytes;
  t.l2_bytes = a.l2_bytes;
  t.l3_bytes = a.l3_bytes;
  t.core = cpu_core(a.core);
  t.has_cache_hints = a.triple == kX86;
  t.has_threads = true;
  t.max_buffers = 64;
  for (const std::string_view family : {a.tiles, a.cores})
    if (!family.empty()) std::ranges::copy(tensor_cores(family), std::back_inserter(t.tensor_cores));
  set_c_ops(t);
  if (a.triple == kRiscV) t.drop_dtype(DType::float16);                // conversions are an extension
  if (a.cores == "arm_i8mm_bf16") t.set_converted({DType::bfloat16});  // see set_renderer
  return t;
}

std::vector<std::string_view> cpu_archs() {
  std::vector<std::string_view> out;
  for (const CpuArch& a : kCpuArchs) out.push_back(a.name);
  return out;
}

bool computes_halves(const Target& target) {
  return target.device == Symbol("CPU") && find_arch("CPU", kCpuArchs, target.arch.str()).halves;
}

void set_renderer(Target& target, std::string_view renderer) {
  target.renderer = Symbol(renderer);
  const bool is_cpu = target.device == Symbol("CPU");
  const bool has_avx512 = is_cpu && find_arch("CPU", kCpuArchs, target.arch.str()).triple == kX86 && target.vector_bits == 512;
  target.set_op(Op::LDEXP, renderer == "LLVM" && has_avx512);  // C has it of one number only
  // BFCVT rounds denormal numbers, too, which x86's VCVTNEPS2BF16 takes for zero. LLVM 19 cannot compile what it makes of C's conversions:
  // arithmetic on bfloats in vectors of any length.
  if (is_cpu && renderer != "LLVM") target.set_converted({});
}

Target dsp_target(std::string_view arch) {
  const DspArch& a = find_arch("DSP", kDspArchs, arch);
  Target t;
  t.device = "DSP";
  t.renderer = "CLANG";
  t.arch = arch;
  t.vector_bits = 1024;
  t.vector_registers = 32;
  t.vector_floats = a.vector_floats;
  t.l1_bytes = 32 << 10;
  t.l2_bytes = 1 << 20;
  t.max_buffers = 64;
  set_c_ops(t);
  t.drop_dtype(DType::float16);
  return t;
}

ProcessorNames processor_names(std::string_view arch) {
  for (const DspArch& a : kDspArchs)
    if (a.name == arch) return {kHexagon, std::string(a.cpu), std::string(a.features)};
  const CpuArch& a = find_arch("CPU", kCpuArchs, arch);
  return {a.triple, std::string(a.cpu), std::string(a.features)};
}

Target interp_target() {
  Target t;
  t.device = "INTERP";
  t.renderer = "INTERP";
  t.vector_bits = 128;
  t.vector_registers = 64;
  t.l1_bytes = 32 << 10;
  t.l2_bytes = 1 << 20;
  t.l3_bytes = 0;
  t.has_groups = true;
  t.max_group_items = 256;
  for (int64_t& n : t.max_global) n = INT32_MAX;
  t.group_memory_bytes = 48 << 10;
  t.max_image_width = t.max_image_height = 16384;
  for (const char* family :
       {"sm_80", "small", "avx512_bf16", "avx2", "sm_80_bytes", "sm_80_doubles", "sm_89", "sm_80_tf32", "gfx90a", "gfx942", "gfx1100",
        "gfx1201", "apple7", "xe_hpg", "sm_90a", "sm_90a_tf32", "sm_100a", "sm_100a_tf32", "amx_fp16"})
    for (const TensorCore& core : tensor_cores(family))
      if (std::ranges::find(t.tensor_cores, core) == t.tensor_cores.end()) t.tensor_cores.push_back(core);
#define TG_OP(name, groups, arity, doc) Op::name,
  t.set_ops({
#include "uop/ops.def"
  });
#undef TG_OP
  t.set_dtypes({DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64,
                DType::uint64, DType::fp8e4m3, DType::fp8e5m2, DType::fp8e4m3fnuz, DType::fp8e5m2fnuz, DType::float16, DType::bfloat16,
                DType::float32, DType::float64});
  return t;
}

}  // namespace tinygrad
