// Every program of support/programs.h gives on a device what the evaluator gives.
#include "support/programs.h"

#include <gtest/gtest.h>

#include <cctype>

#include <tinygrad/context.h>

#include "engine/backend/on_memory.h"
#include "engine/run.h"
#include "support/test_scale.h"

namespace tinygrad::engine {
namespace {

class Programs : public testing::TestWithParam<std::tuple<const char*, size_t>> {};

TEST_P(Programs, GiveWhatTheEvaluatorGives) {
  const auto& [choice, number] = GetParam();
  const Context chosen{{.dev = choice}};
  const Symbol device = Device::default_name();
  test_programs::device() = device;
  test::OnMemory memory(sink(test_programs::all()[number].build()), device);
  run_schedule(schedule::make_schedule(memory.graph, target_of), current_options());
  memory.compare_with_evaluator();
}

INSTANTIATE_TEST_SUITE_P(Engine, Programs,
                         testing::Combine(testing::Values("CPU:LLVM", "CPU:CLANG", "INTERP"),
                                          testing::ValuesIn(tinygrad::test::sampled_below(test_programs::all().size()))),
                         [](const auto& test) {
                           std::string name;
                           for (char c : std::string(std::get<0>(test.param)) + "_" +
                                             std::string(test_programs::all()[std::get<1>(test.param)].name))
                             name += std::isalnum(c) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace tinygrad::engine
