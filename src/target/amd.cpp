#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "target/target.h"

namespace tinygrad {
namespace {

struct AmdArch {
  std::string_view name;
  std::string_view cores;  ///< the family of its matrix cores
  int64_t l1_bytes, l2_bytes, l3_bytes;
};

// The caches are those of the largest machine of the kind, the second level that of one die.
constexpr AmdArch kAmdArchs[] = {
    {"gfx906", "", 16 << 10, 4 << 20, 0},
    {"gfx90a", "gfx90a", 16 << 10, 8 << 20, 0},
    {"gfx942", "gfx942", 32 << 10, 4 << 20, 256 << 20},
    {"gfx1030", "", 16 << 10, 4 << 20, 128 << 20},
    {"gfx1100", "gfx1100", 32 << 10, 6 << 20, 96 << 20},
    {"gfx1101", "gfx1100", 32 << 10, 4 << 20, 64 << 20},
    {"gfx1102", "gfx1100", 32 << 10, 2 << 20, 32 << 20},
    {"gfx1103", "gfx1100", 32 << 10, 2 << 20, 0},
    {"gfx1151", "gfx1100", 32 << 10, 2 << 20, 32 << 20},
    {"gfx1200", "gfx1201", 32 << 10, 4 << 20, 32 << 20},
    {"gfx1201", "gfx1201", 32 << 10, 8 << 20, 64 << 20},
};

}  // namespace

Target amd_target(std::string_view arch) {
  std::string known;
  for (const AmdArch& a : kAmdArchs) {
    if (a.name != arch) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
      continue;
    }
    Target t;
    t.device = "HIP";
    t.renderer = "HIP";
    t.arch = arch;
    t.vector_bits = 128;
    t.vector_registers = 64;  // of 128 bits: what leaves enough for a full group of work-items
    t.vector_math = false;
    t.l1_bytes = a.l1_bytes;
    t.l2_bytes = a.l2_bytes;
    t.l3_bytes = a.l3_bytes;
    t.has_groups = true;
    t.max_group_items = 1024;
    // The number of work-items along an axis has 32 bits.
    t.max_global[0] = UINT32_MAX / 1024;
    t.max_global[1] = t.max_global[2] = UINT16_MAX;
    t.group_memory_bytes = 64 << 10;
    t.max_buffers = 128;
    if (!a.cores.empty()) t.tensor_cores = tensor_cores(a.cores);
    t.set_ops({Op::SQRT, Op::RECIPROCAL, Op::NEG,  Op::TRUNC, Op::CAST, Op::BITCAST, Op::ADD,   Op::MUL,
               Op::SUB,  Op::FDIV,       Op::CDIV, Op::CMOD,  Op::MAX,  Op::CMPLT,   Op::CMPNE, Op::CMPEQ,
               Op::XOR,  Op::OR,         Op::AND,  Op::SHL,   Op::SHR,  Op::WHERE,   Op::MULACC});
    t.set_dtypes({DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64,
                  DType::uint64, DType::float16, DType::float32, DType::float64});
    return t;
  }
  throw ValueError(fmt::format("HIP: unknown architecture '{}'; known are {}", arch, known));
}

}  // namespace tinygrad
