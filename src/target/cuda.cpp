#include <charconv>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "target/target.h"

namespace tinygrad {
namespace {

struct CudaArch {
  int number;               ///< of "sm_80"
  std::string_view suffix;  ///< what real architectures of it may end in: 'a' for its own instructions, 'f' for those of its family
  int64_t l1_bytes, l2_bytes;
  int64_t group_bytes;
};

// Group memory is the most that a kernel may ask for; what is left of the first level by the 48 KiB that every kernel may declare is a
// cache. The second level is that of the largest machine.
constexpr CudaArch kCudaArchs[] = {
    {80, "", 144 << 10, 40 << 20, 163 << 10},     {86, "", 80 << 10, 6 << 20, 99 << 10},       {87, "", 144 << 10, 4 << 20, 163 << 10},
    {89, "", 80 << 10, 96 << 20, 99 << 10},       {90, "a", 208 << 10, 50 << 20, 227 << 10},   {100, "af", 208 << 10, 126 << 20, 227 << 10},
    {103, "af", 208 << 10, 126 << 20, 227 << 10}, {110, "af", 208 << 10, 32 << 20, 227 << 10}, {120, "af", 80 << 10, 128 << 20, 99 << 10},
    {121, "af", 80 << 10, 24 << 20, 99 << 10},
};

const CudaArch* find_arch(std::string_view name) {
  if (!name.starts_with("sm_")) return nullptr;
  name.remove_prefix(3);
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const std::string_view suffix(end, size_t(name.data() + name.size() - end));
  for (const CudaArch& a : kCudaArchs)
    if (error == std::errc() && a.number == number && (suffix.empty() || (suffix.size() == 1 && a.suffix.find(suffix) != a.suffix.npos)))
      return &a;
  return nullptr;
}

void add_cores(Target& t, std::string_view family) {
  for (const TensorCore& core : tensor_cores(family)) t.tensor_cores.push_back(core);
}

}  // namespace

Target cuda_target(std::string_view arch) {
  const CudaArch* a = find_arch(arch);
  if (!a) {
    std::string known;
    for (const CudaArch& k : kCudaArchs) known += fmt::format("{}sm_{}", known.empty() ? "" : ", ", k.number);
    throw ValueError(fmt::format("CUDA: unknown architecture '{}'; known are {}, and sm_90a, sm_100a, ...", arch, known));
  }
  Target t;
  t.device = "CUDA";
  t.renderer = "CUDA";
  t.arch = arch;
  t.vector_bits = 128;
  t.vector_math = false;
  t.unaligned_vectors = false;
  t.memory_alignment = 16;  // allocations are aligned to 256 bytes, what an arena is cut into to 64
  t.vector_registers = 64;  // of 128 bits: what leaves enough for a full group of work-items
  t.l1_bytes = a->l1_bytes;
  t.l2_bytes = a->l2_bytes;
  t.has_groups = true;
  t.max_group_items = 1024;
  t.max_global[0] = INT32_MAX;
  t.max_global[1] = t.max_global[2] = UINT16_MAX;
  t.group_memory_bytes = a->group_bytes;
  t.declared_group_bytes = 48 << 10;
  t.async_copy_bytes = 16;
  t.max_buffers = 128;
  const bool has_own = arch == "sm_90a" || arch == "sm_100a";  // no other machine has their instructions
  if (has_own) add_cores(t, arch);
  add_cores(t, "sm_80");
  add_cores(t, "sm_80_bytes");
  add_cores(t, "sm_80_doubles");
  if (a->number >= 89) add_cores(t, "sm_89");
  if (has_own) add_cores(t, fmt::format("{}_tf32", arch));
  add_cores(t, "sm_80_tf32");
  t.set_ops({Op::SQRT, Op::RECIPROCAL, Op::NEG,  Op::TRUNC, Op::CAST, Op::BITCAST, Op::ADD,   Op::MUL,
             Op::SUB,  Op::FDIV,       Op::CDIV, Op::CMOD,  Op::MAX,  Op::CMPLT,   Op::CMPNE, Op::CMPEQ,
             Op::XOR,  Op::OR,         Op::AND,  Op::SHL,   Op::SHR,  Op::WHERE,   Op::MULACC});
  t.set_dtypes({DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64,
                DType::uint64, DType::float16, DType::float32, DType::float64});
  if (a->number >= 89) {
    t.set_converted({DType::bfloat16, DType::fp8e4m3, DType::fp8e5m2});
  } else {
    t.set_converted({DType::bfloat16});
  }
  return t;
}

}  // namespace tinygrad
