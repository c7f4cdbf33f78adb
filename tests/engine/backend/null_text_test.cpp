// NULL renders what CPU:LLVM compiles, byte for byte: its compile times are those of real kernels.
#include "support/programs.h"

#include <gtest/gtest.h>

#include "base/options.h"
#include "device/device.h"
#include "engine/run.h"
#include "program/program.h"

namespace tinygrad::engine {
namespace {

/// The kernels' texts of a program that is built for a device.
std::vector<std::string> texts(const test_programs::Program& program, const char* device) {
  test_programs::device() = Symbol(device);
  const schedule::Schedule s = schedule::make_schedule(sink(program.build()), target_of, {.cache = false});
  std::vector<std::string> out;
  for (const UOp& call : s.plan->linear.src())
    if (call.src(0).is(Op::SINK)) out.push_back(render_program(call.src(0), Device::get(device), current_options()).source);
  return out;
}

TEST(NullText, IsThatOfTheCpu) {
  size_t kernels = 0;
  for (const auto& program : test_programs::all()) {
    const std::vector<std::string> null = texts(program, "NULL"), cpu = texts(program, "CPU:LLVM");
    kernels += null.size();
    EXPECT_EQ(null, cpu) << program.name;
  }
  test_programs::device() = "CPU";
  EXPECT_GT(kernels, 50u);
}

TEST(NullText, IsInTheLanguageThatIsAskedFor) {
  for (const auto& [device, word] : {std::pair("NULL:CUDA", "__global__ void"), std::pair("NULL:PTX", ".visible .entry"),
                                     std::pair("NULL:HIP", "amdgpu_flat_work_group_size"), std::pair("NULL:METAL", "kernel void"),
                                     std::pair("NULL:OPENCL", "__kernel "), std::pair("NULL:WGSL", "@compute")})
    for (const std::string& text : texts(test_programs::all().front(), device))
      EXPECT_NE(text.find(word), std::string::npos) << device << text;
  test_programs::device() = "CPU";
}

}  // namespace
}  // namespace tinygrad::engine
