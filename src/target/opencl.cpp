#include "target/target.h"

namespace tinygrad {

Target opencl_target(const OpenClLimits& limits) {
  Target t;
  t.device = "CL";
  t.renderer = "OPENCL";
  t.arch = limits.name;
  t.vector_bits = 128;
  t.vector_registers = 64;
  t.vector_math = false;
  t.l1_bytes = 32 << 10;
  t.l2_bytes = limits.cache_bytes;
  t.has_groups = true;
  t.max_group_items = limits.max_group_items;
  for (int64_t& n : t.max_global) n = INT32_MAX;
  t.group_memory_bytes = limits.group_memory_bytes;
  t.max_buffers = limits.max_buffers;
  t.max_image_width = limits.max_image_width;
  t.max_image_height = limits.max_image_height;
  t.image_pitch = limits.image_pitch;
  t.set_ops({Op::SQRT, Op::RECIPROCAL, Op::NEG,  Op::TRUNC, Op::CAST, Op::BITCAST, Op::ADD,   Op::MUL,
             Op::SUB,  Op::FDIV,       Op::CDIV, Op::CMOD,  Op::MAX,  Op::CMPLT,   Op::CMPNE, Op::CMPEQ,
             Op::XOR,  Op::OR,         Op::AND,  Op::SHL,   Op::SHR,  Op::WHERE,   Op::MULACC});
  t.set_dtypes({DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64,
                DType::uint64, DType::float16, DType::float32, DType::float64});
  if (!limits.has_half) {
    t.drop_dtype(DType::float16);
    t.set_converted({DType::float16});  // vload_half and vstore_half, which every device has
  }
  if (!limits.has_double) t.drop_dtype(DType::float64);
  return t;
}

}  // namespace tinygrad
