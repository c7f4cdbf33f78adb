#include "target/webgpu.h"

namespace tinygrad {

Target webgpu_target(const WebGpuLimits& limits) {
  Target t;
  t.device = "WEBGPU";
  t.renderer = "WGSL";
  if (limits.has_float16) t.arch = "f16";
  t.l1_bytes = 32 << 10;
  t.l2_bytes = 1 << 20;
  t.has_groups = true;
  t.max_group_items = limits.invocations;
  // Software runs the items of a group as vectors, one after another: those of a large group wait for each other for nothing.
  if (limits.is_software) t.full_group = 32;
  for (int64_t& n : t.max_global) n = limits.groups_per_dimension;
  t.group_memory_bytes = limits.group_memory_bytes;
  t.max_buffers = limits.max_buffers;
  // The precision of exp2, log2 and sin is the driver's choice: ours is the same everywhere.
  t.set_ops({Op::SQRT, Op::RECIPROCAL, Op::NEG,  Op::TRUNC, Op::CAST, Op::BITCAST, Op::ADD,   Op::MUL,
             Op::SUB,  Op::FDIV,       Op::CDIV, Op::CMOD,  Op::MAX,  Op::CMPLT,   Op::CMPNE, Op::CMPEQ,
             Op::XOR,  Op::OR,         Op::AND,  Op::SHL,   Op::SHR,  Op::WHERE,   Op::MULACC});
  t.set_dtypes({DType::bool_, DType::int32, DType::uint32, DType::float32});
  if (limits.has_float16) t.set_dtypes({DType::bool_, DType::int32, DType::uint32, DType::float16, DType::float32});
  return t;
}

}  // namespace tinygrad
