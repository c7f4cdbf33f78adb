// Random tensor programs: the evaluator, the interpreted device, CPU:LLVM and, for a share of them, CPU:CLANG agree.
#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "engine/fuzz/check_program.h"
#include "support/test_scale.h"

namespace tinygrad::test {
namespace {

constexpr int shards = 8, programs_per_shard = 250;
constexpr const char* all_devices[] = {"INTERP", "CPU:LLVM", "CPU:CLANG"};

/// CPU:CLANG starts a compiler for every kernel: it runs one program of 20, of 8 in `make test-full` (5,000 there), as many with
/// optimizations as without. TG_FUZZ_CLANG_SHARE=1 runs all there.
Devices devices_for(uint64_t program) {
  const uint64_t share = env_number("TG_FUZZ_CLANG_SHARE", test_scale() > 1 ? 8 : 20);
  const bool is_chosen = env_number("TG_FUZZ_PROGRAM", 0) == program || program / 2 % share == 0;
  return Devices(all_devices).first(is_chosen ? 3 : 2);
}

/// Seeds of different programs; those that are not fair are passed over.
uint64_t program_seed(uint64_t shard, uint64_t number) { return seed() + (shard << 40) + number; }

/// False for a program that is not fair; a failure is reported with the program, made smaller.
bool run_program(uint64_t program) {
  // Every kernel is met once; half of the programs run without optimizations, which are another way through code generation.
  const Context options{{.ccache = false, .noopt = program % 2 == 0}};
  Program p;
  try {
    p = random_program(program);
    const Verdict v = check(p, devices_for(program));
    if (!v.fair) return false;
    if (v.difference.empty()) return true;
    const Program small = smallest_failing(p, devices_for(program));
    ADD_FAILURE() << "TG_FUZZ_PROGRAM=" << program << ": " << v.difference << "\n"
                  << to_string(p) << "made smaller: " << check(small, devices_for(program)).difference << "\n"
                  << to_string(small);
  } catch (const std::exception& e) {
    ADD_FAILURE() << "TG_FUZZ_PROGRAM=" << program << ": " << e.what() << "\n" << to_string(p);
  }
  return true;
}

class ProgramFuzz : public testing::TestWithParam<int> {};

TEST_P(ProgramFuzz, DevicesAgreeWithTheEvaluator) {
  if (const uint64_t only = env_number("TG_FUZZ_PROGRAM", 0)) {
    if (GetParam() == 0) {
      EXPECT_TRUE(run_program(only)) << "the program is not fair";
    }
    return;
  }
  int done = 0;
  for (uint64_t i = 0; done < programs_per_shard * test_scale(); ++i) done += run_program(program_seed(uint64_t(GetParam()), i));
}

INSTANTIATE_TEST_SUITE_P(Shards, ProgramFuzz, testing::Range(0, shards));

}  // namespace
}  // namespace tinygrad::test
