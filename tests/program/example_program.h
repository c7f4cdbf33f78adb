#pragma once

#include "program/stored_programs.h"
#include "uop/build.h"

namespace tinygrad::test {

/// With all that a KernelInfo can hold.
inline StoredProgram example_program() {
  const Symbol names[] = {"m", "n"};
  const UOp m = variable("m", 0, 100), n = variable("n", 0, 100);
  KernelInfo info;
  info.name = "r_n";
  info.variables = {"m", "n"};
  info.params.resize(2);
  info.params[0].size = IndexExpr(m * n + 3, names);
  info.params[0].written = true;
  info.params[0].align = 64;
  info.params[1] = {.slot = 2, .dtype = DType::int8, .size = 40, .read = true, .written = false, .align = 0, .alias = 3};
  info.global[1] = IndexExpr(floor_div(m, 4), names);
  info.chunks = 8;
  info.flops = IndexExpr(max(m, n), names);
  info.scratch_bytes = 1 << 20;
  info.group_bytes = 96 << 10;
  return {info, std::string("\0binary", 7)};
}

}  // namespace tinygrad::test
