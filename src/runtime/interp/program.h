#pragma once
/// A linear program made ready to be interpreted: nodes resolved to dense registers and memories, blocks to jumps.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::runtime::interp {

/// A value: `lanes` numbers for each work-item, or for all of them together where it is uniform.
struct Register {
  DType dtype = DType::void_;
  int32_t lanes = 1;
  bool uniform = false;  ///< the same for every item of a work-group by its structure
  int64_t offset = 0;    ///< numbers of the registers of the same uniformity that come before
};

/// A PARAM (scope device) or a BUFFER of the kernel.
struct Memory {
  Scope scope = Scope::device;
  DType dtype = DType::void_;
  int32_t slot = -1;        ///< of a PARAM
  int64_t size = 0;         ///< elements; a PARAM's are known at launch
  bool stored = false;      ///< the program writes to it
  int64_t image_width = 0;  ///< of an image: texels in a row; else 0
};

struct Instruction {
  Op op = Op::SINK;
  int32_t node = 0;  ///< position in Program::nodes, for messages
  int32_t dst = -1;  ///< register
  /// Registers; LOAD: address, alt, gate; STORE: address, value, gate; FETCH: address, address it copies from, gate, validity; WMMA:
  /// factors, or their addresses, and sum
  int32_t src[4] = {-1, -1, -1, -1};
  int32_t memory = -1;        ///< of a WMMA: that its first factor is in, if it is in any
  int32_t other_memory = -1;  ///< that a FETCH copies from, that the second factor of a WMMA is in
  /// First operand of a STACK, first lane of INDEX and SHRINK, dimension of SPECIAL, position of VAR, core of WMMA, sets that a WAIT
  /// leaves; LOAD, STORE of an image: the register of the place in a row, src[0] has the row.
  int32_t extra = 0;
  int32_t width = 1;               ///< elements of a FETCH
  int32_t jump = -1;               ///< the instruction at the other end of the block
  AxisKind kind = AxisKind::loop;  ///< of RANGE and SPECIAL
};

struct Program {
  std::string name;
  UOp linear;
  std::vector<UOp> nodes;
  std::vector<Instruction> code;
  std::vector<int32_t> operands;  ///< sources of STACKs
  std::vector<Register> registers;
  std::vector<Memory> memories;
  std::vector<const TensorCore*> cores;
  int64_t uniform_numbers = 0, varying_numbers = 0;

  const UOp& node(const Instruction& i) const { return nodes[size_t(i.node)]; }
};

/// Parses LINEAR(...; kind 1). `variables` gives the order of the values at launch. Throws InternalError for what is no linear program,
/// naming the kernel and the instruction, and DeviceError for ops that the interpreted device does not have.
Program parse_program(const UOp& linear, std::string_view name, std::span<const Symbol> variables);

}  // namespace tinygrad::runtime::interp
