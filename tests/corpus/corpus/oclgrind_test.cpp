// The kernels of models on oclgrind, an OpenCL device that finds races and accesses out of bounds, and prints them: with the opts of the
// full size and loops made shorter, beside what the interpreted device says. ctest runs it as corpus.oclgrind (cmake/TgTests.cmake).
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "corpus/small_kernels.h"
#include "device/buffer.h"
#include "runtime/every_device.h"

namespace tinygrad::test {
namespace {

constexpr double usual_operations = 1 << 12;
/// Each byte has some dozens there that tell who touched it, made anew for each launch. Kernels that jump through more are left to the
/// interpreter.
constexpr uint64_t most_bytes = 1 << 20;

/// As test::interpret does.
void run_on(Device& device, const LinearProgram& program, const search::TrialMemory& memory) {
  std::vector<BufferPtr> buffers;
  std::vector<void*> handles;
  for (const search::TrialMemory::Slot& s : memory.slots()) {
    buffers.push_back(Buffer::make(device, int64_t(s.count), s.dtype));
    buffers.back()->copyin(memory.content(s));
    handles.push_back(buffers.back()->handle());
  }
  const std::string binary = device.compile(device.render(program.linear, program.info));
  device.load(program.info, program.linear, binary)->launch(handles, {}, program.info.launch_dims({}), true);
  for (size_t i = 0; i < buffers.size(); ++i)
    if (const search::TrialMemory::Slot& s = memory.slots()[i]; s.place.written) buffers[i]->copyout(memory.result(s));
}

TEST(Oclgrind, ModelsComputeTheSame) {
  // What is freed must go: with each launch the finder of races looks at all memory that there is.
  const Context on_cl{{.dev = "CL", .lru = false}};
  if (const std::string why = why_not("CL"); !why.empty()) GTEST_SKIP() << why;
  Device& device = Device::get("CL");
  if (!device.target().arch.str().starts_with("Oclgrind"))
    GTEST_SKIP() << "for a device that checks accesses, not " << device.target().name();
  const std::vector<UOp> kernels = scheduled_corpus("NULL:OPENCL");
  std::vector<std::optional<SmallKernel>> small(kernels.size());
  task_pool().parallel_for(kernels.size(), [&](size_t i) { small[i].emplace(kernels[i], device.target(), usual_operations); });
  std::set<std::string> different;
  size_t too_large = 0;
  std::string failures;
  // One after another, as oclgrind's compiler is for one thread. So nothing must have been computed there before, either.
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!different.insert(small[i]->structure()).second) continue;
    std::string wrong;
    try {
      const LinearProgram optimized(small[i]->optimized, device.target());
      if (search::trial_bytes(optimized.info, {}) > most_bytes) {
        ++too_large;
        continue;
      }
      wrong = complaint(*small[i], optimized, device.target(),
                        [&](const auto& program, const auto& memory) { run_on(device, program, memory); });
    } catch (const Error& e) {
      wrong = e.what();
    }
    if (!wrong.empty()) failures += fmt::format("{}: {}\n", kernels[i].arg_as<KernelArg>().name.str(), wrong.substr(0, 2000));
  }
  const size_t run = different.size() - too_large;
  fmt::print("{} kernels, and {} with too much memory\n", run, too_large);
  EXPECT_EQ(failures, "");
  EXPECT_GE(run, 300u);
}

}  // namespace
}  // namespace tinygrad::test
