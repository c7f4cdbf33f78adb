// Kernels with loops around them give what the evaluator gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "engine/backend/on_memory.h"
#include "engine/run.h"
#include "support/repeated_programs.h"
#include "support/test_scale.h"

namespace tinygrad::engine {
namespace {

class RepeatedKernels : public testing::TestWithParam<size_t> {};

TEST_P(RepeatedKernels, GiveWhatTheEvaluatorGives) {
  const Symbol device("CPU");
  test_programs::device() = device;
  test::OnMemory memory(sink(test_programs::repeated_programs()[GetParam()].build()), device);
  const Target target = test_programs::with_small_caches(Device::get("CPU").target());
  const schedule::Schedule s = schedule::make_schedule(memory.graph, [&](Symbol) -> const Target& { return target; }, {.cache = false});
  const auto is_repeated = [](const UOp& call) { return std::ranges::any_of(call.src(), [](const UOp& u) { return u.is(Op::BIND); }); };
  EXPECT_TRUE(std::ranges::any_of(s.plan->linear.src(), is_repeated));
  run_schedule(s, current_options());
  memory.compare_with_evaluator();
}

INSTANTIATE_TEST_SUITE_P(Engine, RepeatedKernels,
                         testing::ValuesIn(tinygrad::test::sampled_below(test_programs::repeated_programs().size())), [](const auto& test) {
                           std::string name(test_programs::repeated_programs()[test.param].name);
                           std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace tinygrad::engine
