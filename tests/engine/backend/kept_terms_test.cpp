// What a kernel stores and then loads itself is not asked of those who wrote its memory before: lost memory may be written as a whole.
#include "support/programs.h"

#include <gtest/gtest.h>

#include "base/options.h"
#include "device/device.h"
#include "engine/run.h"
#include "program/program.h"

namespace tinygrad::engine {
namespace {

using namespace test_programs;

TEST(KeptTerms, AreNoReads) {
  const schedule::Schedule s = schedule::make_schedule(sink(std::vector{output(softmax(tensor({64, 1040})))}), target_of, {.cache = false});
  size_t kernels = 0;
  for (const UOp& call : s.plan->linear.src()) {
    if (!call.src(0).is(Op::SINK)) continue;
    ++kernels;
    for (const KernelParam& p : render_program(call.src(0), Device::get("CPU"), current_options()).info.params)
      EXPECT_NE(p.read, p.written) << p.slot;
  }
  EXPECT_EQ(kernels, 1u);
}

}  // namespace
}  // namespace tinygrad::engine
