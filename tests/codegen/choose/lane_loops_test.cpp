// The inner loops of products of narrow numbers, by processor: they have its instruction, and what they hold stays in registers. Halves are
// computed as halves where the processor can.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/context.h>

#include "codegen/kernels.h"
#include "compiler/llvm/llvm.h"
#include "device/device.h"
#include "program/program.h"

namespace tinygrad {
namespace {

struct Instruction {
  long at = 0;
  std::string text;
};

std::vector<Instruction> instructions(const std::string& disassembly) {
  std::vector<Instruction> all;
  std::istringstream lines(disassembly);
  for (std::string line; std::getline(lines, line);)
    all.push_back({std::strtol(line.c_str(), nullptr, 16), line.substr(line.find(':') + 1)});
  return all;
}

/// Where a branch goes to; -1 for what is none, or has another form.
long target_of(const Instruction& branch, long next) {
  long by = 0;
  if (std::sscanf(branch.text.c_str(), "\tj%*s %ld", &by) == 1) return next + by;                                                   // x86
  if (std::sscanf(branch.text.c_str(), "\tb.%*s #%ld", &by) == 1 || std::sscanf(branch.text.c_str(), "\tcbnz %*s #%ld", &by) == 1)  // ARM
    return branch.at + by;
  return -1;
}

size_t count(const std::vector<Instruction>& in, std::string_view instruction) {
  size_t n = 0;
  for (const Instruction& i : in) n += i.text.find(fmt::format("\t{}\t", instruction)) != std::string::npos;
  return n;
}

/// Of the loops without loops in them, the one with the most of these instructions.
std::vector<Instruction> inner_loop(const std::vector<Instruction>& all, std::string_view instruction) {
  std::vector<Instruction> best;
  long last = -1;  // where the loop before ends
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const long to = target_of(all[i], all[i + 1].at);
    if (to < 0 || to > all[i].at) continue;
    const bool is_inner = to > last;
    last = all[i].at;
    if (!is_inner) continue;
    std::vector<Instruction> body;
    for (size_t k = 0; k <= i; ++k)
      if (all[k].at >= to) body.push_back(all[k]);
    if (count(body, instruction) > count(best, instruction)) best = body;
  }
  return best;
}

/// Whether it reads or writes what has a place of its own on the stack, rather than an element of a panel there.
bool is_spill(const Instruction& i) { return i.text.find("(%rsp)") != std::string::npos || i.text.find("[sp") != std::string::npos; }

std::string compiled(const UOp& kernel, const char* arch) {
  const Context options{{.beam = 0, .dev = fmt::format("NULL:LLVM:{}", arch), .noopt = false}};
  const RenderedProgram p = render_program(kernel, Device::get("NULL"), current_options());
  return compiler::disassemble_llvm(compiler::compile_llvmir(p.source, arch), arch);
}

class LaneLoops : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = compiler::llvm_missing(); !why.empty()) GTEST_SKIP() << why;
  }
};

struct Product {
  const char* arch;
  DType a, b;
  const char* instruction;
  size_t sums;  ///< vectors of them in a step, at least
};

constexpr DType s8 = DType::int8, u8 = DType::uint8, bf16 = DType::bfloat16;

TEST_F(LaneLoops, HaveTheInstructionOfTheProcessorAndNoSpills) {
  const Product products[] = {
      {"alderlake", u8, s8, "vpdpbusd", 10},      {"alderlake", s8, s8, "vpdpbusd", 10},    {"alderlake", u8, u8, "vpdpbusd", 10},
      {"arrowlake", s8, s8, "vpdpbssd", 10},      {"sierraforest", u8, u8, "vpdpbuud", 10}, {"arrowlake", s8, u8, "vpdpbusd", 10},
      {"icelake-server", s8, s8, "vpdpbusd", 20}, {"znver5", u8, s8, "vpdpbusd", 20},       {"neoverse-n1", s8, s8, "sdot", 16},
      {"apple-m1", u8, u8, "udot", 16},           {"neoverse-n1", u8, s8, "sdot", 16},      {"neoverse-v1", s8, s8, "smmla", 16},
      {"neoverse-n2", u8, u8, "ummla", 16},       {"neoverse-v2", u8, s8, "usmmla", 16},    {"neoverse-v1", bf16, bf16, "bfmmla", 16},
  };
  for (const Product& p : products)
    for (const int64_t n : {256, 1024}) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", p.arch, repr(p.a), repr(p.b), n));
      const DType out = p.a == bf16 ? DType::float32 : DType::int32;
      const std::vector<Instruction> all = instructions(compiled(codegen::test::narrow_matmul(n, n, n, p.a, p.b, out), p.arch));
      const std::vector<Instruction> loop = inner_loop(all, p.instruction);
      EXPECT_GE(count(loop, p.instruction), p.sums);
      for (const Instruction& i : loop) EXPECT_FALSE(is_spill(i)) << i.text;
    }
}

/// A product, a sum, a difference, a root, a quotient and a maximum of halves.
UOp halves() {
  using namespace codegen::test;
  const int64_t n = 4096;
  const DType d = DType::float16;
  const UOp i = loop(n, 0), x = read(arg(1, n, d), i), y = read(arg(2, n, d), i);
  const UOp value = max(alu(Op::SQRT, {x * y + x}) - y, alu(Op::FDIV, {x, y}));
  return kernel({ended(write(arg(0, n, d), i, value), {i})});
}

TEST_F(LaneLoops, OfHalvesConvertNothingWhereTheProcessorComputesThem) {
  for (const auto& [arch, own, conversions] :
       {std::tuple("sapphirerapids", std::vector{"vmulph", "vaddph", "vsubph", "vsqrtph", "vdivph"}, "ph2ps"),
        {"graniterapids", {"vmulph", "vaddph", "vmaxph"}, "ph2ps"},
        {"neoverse-n1", {"fmul", "fadd", "fsub", "fsqrt", "fdiv", "fmax"}, "fcvtl"},
        {"apple-m1", {"fmul", "fadd", "fmax"}, "fcvtl"}}) {
    SCOPED_TRACE(arch);
    const std::string text = compiled(halves(), arch);
    for (const char* instruction : own)
      EXPECT_NE(text.find(fmt::format("\t{}\t", instruction)), std::string::npos) << instruction << "\n" << text;
    EXPECT_EQ(text.find(conversions), std::string::npos) << "they are widened";
    for (const char* fused : {"vfmadd", "fmla", "fmadd"}) EXPECT_EQ(text.find(fused), std::string::npos) << "a product is rounded";
  }
  EXPECT_NE(compiled(halves(), "icelake-server").find("ph2ps"), std::string::npos) << "has conversions alone";
}

TEST_F(LaneLoops, ConvertBfloatsByInstructionsOfArm) {
  const UOp kernel = codegen::test::elementwise(4096, {}, bf16);
  EXPECT_NE(compiled(kernel, "neoverse-v1").find("bfcvtn"), std::string::npos);
  EXPECT_EQ(compiled(kernel, "neoverse-n1").find("bfcvt"), std::string::npos);
  EXPECT_EQ(compiled(kernel, "sapphirerapids").find("vcvtneps2bf16"), std::string::npos) << "it takes denormal numbers for zero";
}

}  // namespace
}  // namespace tinygrad
