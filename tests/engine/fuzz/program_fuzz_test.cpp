// Random tensor programs: the evaluator, CPU:LLVM and, for shares of them, the interpreted device and CPU:CLANG agree.
//
// Programs are numbered: 0 .. 1999, or 99999 with TG_TEST_SCALE=20. TG_FUZZ_FIRST and TG_FUZZ_COUNT choose a range of them, so that a long
// run can be cut into pieces; TG_FUZZ_PROGRAM runs the one of a seed that a failure has printed, and TG_FUZZ_OPTS, also printed, says how
// its kernels are optimized.
#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "engine/fuzz/check_program.h"
#include "support/test_scale.h"

namespace tinygrad::test {
namespace {

constexpr uint64_t shards = 8;

uint64_t program_count() { return test_scale() > 1 ? uint64_t(5000) * uint64_t(test_scale()) : 2000; }

/// Seeds of different programs; those that are not fair are passed over.
uint64_t program_seed(uint64_t number, uint64_t attempt) { return seed() + (number << 16) + number + attempt; }

/// Of a few programs all run on the interpreted device and CPU:LLVM, of many one in 20 on the former. CPU:CLANG starts a compiler for every
/// kernel: it runs one of 20, with TG_FUZZ_CLANG_SHARE=1 all. One in four runs with random opts too.
Runs runs_of(uint64_t number, uint64_t program) {
  const bool many = test_scale() > 1, interpreted = !many || number % 20 == 0;
  Runs runs{.devices = {"CPU:LLVM"}, .with_other_opts = {}, .seed = program};
  if (number % env_number("TG_FUZZ_CLANG_SHARE", 20) == 0) runs.devices.push_back("CPU:CLANG");
  if (interpreted) runs.devices.push_back("INTERP");
  if (number % 4 == 0) runs.with_other_opts.push_back("CPU:LLVM");
  if (interpreted && number % 4 == 0) runs.with_other_opts.push_back("INTERP");
  return runs;
}

/// False for a program that is not fair; a failure is reported with the program, made smaller.
bool run_program(uint64_t program, const Runs& runs) {
  // Every kernel is met once; half of the programs run without optimizations, a quarter without narrow floats, a quarter without 64-bit
  // integers, and a quarter computes transcendental functions by itself: other ways through code generation.
  const uint64_t kind = program / 8 % 4;
  const char* emulated[] = {"", "float16,bfloat16,fp8e4m3,fp8e5m2,fp8e4m3fnuz,fp8e5m2fnuz",
                            program / 32 % 2 ? "float16,bfloat16,fp8e4m3,fp8e5m2,fp8e4m3fnuz,fp8e5m2fnuz,int64" : "", "int64,uint64"};
  const Context options{
      {.ccache = false, .emulated_dtypes = emulated[kind], .noopt = program / 4 % 2 == 0, .transcendental = kind == 2 ? 2 : 1}};
  Program p;
  try {
    p = random_program(program);
    const Verdict v = check(p, runs);
    if (!v.fair) return false;
    if (v.difference.empty()) return true;
    const Program small = smallest_failing(p, runs);
    ADD_FAILURE() << "TG_FUZZ_PROGRAM=" << program << ": " << v.difference << "\n"
                  << to_string(p) << "made smaller: " << check(small, runs).difference << "\n"
                  << to_string(small);
  } catch (const std::exception& e) {
    ADD_FAILURE() << "TG_FUZZ_PROGRAM=" << program << ": " << e.what() << "\n" << to_string(p);
  }
  return true;
}

class ProgramFuzz : public testing::TestWithParam<uint64_t> {};

TEST_P(ProgramFuzz, DevicesAgreeWithTheEvaluator) {
  if (const uint64_t only = env_number("TG_FUZZ_PROGRAM", 0)) {
    if (GetParam() == 0) {
      EXPECT_TRUE(run_program(only, {{"CPU:LLVM", "CPU:CLANG", "INTERP"}, {"CPU:LLVM", "INTERP"}, only})) << "the program is not fair";
    }
    return;
  }
  const uint64_t first = env_number("TG_FUZZ_FIRST", 0), count = env_number("TG_FUZZ_COUNT", program_count());
  for (uint64_t n = first; n < first + count; ++n) {
    if (n / 4 % shards != GetParam()) continue;
    for (uint64_t attempt = 0;; ++attempt)
      if (const uint64_t program = program_seed(n, attempt); run_program(program, runs_of(n, program))) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, ProgramFuzz, testing::Range(uint64_t(0), shards));

}  // namespace
}  // namespace tinygrad::test
