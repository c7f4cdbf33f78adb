// Stores past the caches and prefetches, on the processor.
#include <gtest/gtest.h>

#include <cstring>

#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

constexpr size_t line_bytes = 64;

/// What the kernel leaves if its result begins so many bytes behind the beginning of a line; nothing is written around it.
std::map<int32_t, spec::Array> run_behind(Kernel& kernel, const KernelInfo& info, const spec::EvalInputs& inputs, size_t behind) {
  std::map<int32_t, spec::Array> memory = inputs.params;
  std::vector<void*> handles;
  for (auto& [slot, array] : memory) handles.push_back(array.bytes.data());
  std::vector<std::byte>& result = memory.at(0).bytes;
  std::vector<std::byte> room(result.size() + 3 * line_bytes, std::byte{7});
  void* line = room.data() + 1;
  size_t left = room.size() - 1;
  std::byte* const at = static_cast<std::byte*>(std::align(line_bytes, result.size() + line_bytes, line, left)) + behind;
  std::ranges::copy(result, at);
  handles[0] = at;
  kernel.launch(handles, {}, info.launch_dims({}), true);
  std::copy_n(at, result.size(), result.begin());
  EXPECT_EQ(at[-1], std::byte{7});
  EXPECT_EQ(at[result.size()], std::byte{7});
  return memory;
}

TEST(CacheHints, ResultsMayBeginAnywhere) {
  const std::pair<UOp, const char*> kernels[] = {{elementwise(400), "LANE(0,16) UPCAST(0,2)"},
                                                 {elementwise(400), "LANE(0,8)"},
                                                 {product_and_sum(12, 64, 40), "LANE(1,16) UPCAST(0,4) UPCAST(1,2)"},
                                                 {product_and_sum(12, 64, 40, true), "LANE(1,16) UPCAST(0,4)"},
                                                 {product_and_sum(12, 50, 40), "LANE(1,16) UPCAST(0,4)"}};
  for (const char* name : {"CPU:LLVM", "CPU:CLANG"}) {
    const Context choice{{.ccache = false, .dev = name}};
    Device& device = Device::get("CPU");
    for (const auto& [kernel, opts] : kernels)
      for (const size_t behind : {0, 4, 16, 32}) {
        SCOPED_TRACE(std::string(name) + ", " + opts + ", " + std::to_string(behind) + " bytes behind");
        const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) {
          const KernelInfo info = describe_kernel(linear, "k");
          return run_behind(*device.load(info, linear, device.compile(device.render(linear, info))), info, inputs, behind);
        };
        EXPECT_EQ(difference_on(kernel, parse_opts(opts), with_small_caches(device.target()), run), "");
      }
  }
}

}  // namespace
}  // namespace tinygrad::codegen
