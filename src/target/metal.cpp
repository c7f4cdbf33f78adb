#include "target/target.h"

namespace tinygrad {

Target metal_target() {
  Target t;
  t.device = "METAL";
  t.renderer = "METAL";
  t.arch = "apple7";
  t.vector_bits = 128;
  t.vector_registers = 32;
  t.vector_math = false;
  t.most_lanes = 4;
  t.unaligned_vectors = false;
  t.l1_bytes = 8 << 10;
  t.l2_bytes = 1 << 20;
  t.l3_bytes = 8 << 20;
  t.has_groups = true;
  t.max_group_items = 1024;
  for (int64_t& n : t.max_global) n = INT32_MAX / 1024;
  t.group_memory_bytes = 32 << 10;
  t.max_buffers = 30;  // of 31 places, one is for variables
  t.tensor_cores = tensor_cores("apple7");
  t.set_ops({Op::SQRT, Op::RECIPROCAL, Op::NEG,  Op::TRUNC, Op::CAST, Op::BITCAST, Op::ADD,   Op::MUL,
             Op::SUB,  Op::FDIV,       Op::CDIV, Op::CMOD,  Op::MAX,  Op::CMPLT,   Op::CMPNE, Op::CMPEQ,
             Op::XOR,  Op::OR,         Op::AND,  Op::SHL,   Op::SHR,  Op::WHERE,   Op::MULACC});
  t.set_dtypes({DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64,
                DType::uint64, DType::float16, DType::float32});
  return t;
}

}  // namespace tinygrad
