// The register tile of a matrix product fills the vector registers and stays in them: the inner loop neither spills nor reloads.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
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

/// The inner loop of an x86-64 program: of those with products of vectors, the one with the fewest instructions.
std::vector<Instruction> inner_loop(const std::string& disassembly) {
  std::vector<Instruction> all, best;
  std::istringstream lines(disassembly);
  for (std::string line; std::getline(lines, line);)
    all.push_back({std::strtol(line.c_str(), nullptr, 16), line.substr(line.find(':') + 1)});
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    long by = 0;  // from the next instruction
    if (std::sscanf(all[i].text.c_str(), "\tj%*s %ld", &by) != 1 || by >= 0) continue;
    std::vector<Instruction> body;
    bool multiplies = false;
    for (size_t k = 0; k <= i; ++k) {
      if (all[k].at < all[i + 1].at + by) continue;
      multiplies = multiplies || all[k].text.starts_with("\tvfmadd");
      body.push_back(all[k]);
    }
    if (multiplies && (best.empty() || body.size() < best.size())) best = body;
  }
  return best;
}

std::string compiled(const char* arch, const UOp& kernel) {
  const Context options{{.beam = 0, .dev = fmt::format("NULL:LLVM:{}", arch), .noopt = false}};
  const RenderedProgram p = render_program(kernel, Device::get("NULL"), current_options());
  return compiler::disassemble_llvm(compiler::compile_llvmir(p.source, arch), arch);
}

void expect_no_spills(const char* arch, const char* vector, size_t accumulators, const UOp& kernel) {
  const std::vector<Instruction> loop = inner_loop(compiled(arch, kernel));
  std::set<std::string> sums;
  for (const Instruction& i : loop) {
    EXPECT_EQ(i.text.find("%rsp"), std::string::npos) << i.text;
    const size_t result = i.text.rfind(vector);
    if (i.text.starts_with("\tvfmadd") && result != std::string::npos) sums.insert(i.text.substr(result));
  }
  EXPECT_GE(sums.size(), accumulators);
}

void expect_no_spills(const char* arch, const char* vector, size_t accumulators, int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE(fmt::format("{}x{}x{} for {}", m, n, k, arch));
  expect_no_spills(arch, vector, accumulators, codegen::test::matmul(m, n, k));
}

/// (m, k) by the transpose of (n, k), as layers have their weights.
UOp product_of_rows(int64_t m, int64_t n, int64_t k) {
  using namespace codegen::test;
  const UOp i = loop(m, 0), j = loop(n, 1), t = reduce_loop(k, 2);
  const UOp terms = read(arg(1, m * k), i * k + t) * read(arg(2, n * k), j * k + t);
  return kernel({ended(write(arg(0, m * n), i * n + j, reduce_over(Op::ADD, terms, {t})), {i, j})});
}

TEST(RegisterTiles, OfMatrixProductsDoNotSpill) {
  if (const std::string why = compiler::llvm_missing(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [m, n, k] : {std::tuple{512, 512, 512}, {1024, 1024, 1024}, {1000, 1000, 1000}, {128, 4096, 4096}}) {
    for (const char* arch : {"x86-64-v4", "znver4"}) expect_no_spills(arch, "%zmm", 24, m, n, k);
    for (const char* arch : {"x86-64-v3", "znver3"}) expect_no_spills(arch, "%ymm", 12, m, n, k);
  }
  // With few rows, the terms that AVX2's loops hold are no sums (FewRowsReadAMatrixInStreams).
  for (const char* arch : {"x86-64-v4", "znver4"}) expect_no_spills(arch, "%zmm", 24, 64, 4096, 4096);
}

TEST(RegisterTiles, OfProductsOfRowsDoNotSpill) {
  if (const std::string why = compiler::llvm_missing(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [m, n, k] : {std::tuple{128, 2304, 768}, {128, 768, 768}, {200, 1000, 512}, {16, 2304, 768}})
    for (const char* arch : {"x86-64-v3", "znver3"}) {
      SCOPED_TRACE(fmt::format("{}x{}x{} for {}", m, n, k, arch));
      expect_no_spills(arch, "%ymm", 8, product_of_rows(m, n, k));
    }
}

}  // namespace
}  // namespace tinygrad
