// What the kernels of models mean on GPUs: each, with the opts that its target has for the full size and loops made shorter, is run by the
// interpreted device, tensor cores and all, and compared with the same loops without opts and with those in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "corpus/compile_all.h"
#include "corpus/shrink.h"
#include "corpus/small_kernels.h"
#include "device/device.h"
#include "support/test_scale.h"
#include "uop/graph.h"

namespace tinygrad::test {
namespace {

constexpr double usual_operations = 1 << 17;

/// GPUs of one kind: what one of them has run, another need not.
struct Gpus {
  const char* name;
  std::vector<std::string> devices;
};

class Interpreter : public testing::TestWithParam<Gpus> {
 protected:
  /// What came of the kernels of a device.
  struct Outcome {
    std::mutex mutex = {};
    std::set<std::string> different = {};
    size_t run = 0, with_cores = 0, failed = 0;
    double largest = 0;
    std::string failures = {}, first_failure = {};
  };

  static Target target_of(const std::string& device) {
    const Context context{{.dev = device}};
    return Device::get("NULL").target();
  }

  /// Empty if nothing is wrong with it.
  std::string run(const UOp& full, const Target& target, Outcome& outcome) {
    const SmallKernel kernel(full, target, usual_operations);
    std::string structure = kernel.structure();
    {
      const std::lock_guard lock(outcome.mutex);
      if (!outcome.different.insert(structure).second) return {};
      outcome.with_cores += std::ranges::count(kernel.opts, OptOp::TC, &Opt::op) > 0;
      outcome.largest = std::max(outcome.largest, operations(kernel.plain));
    }
    const LinearProgram optimized(kernel.optimized, target);
    structure += structure_of(print_graph(optimized.linear));
    {
      const std::lock_guard lock(outcome.mutex);
      if (!run_.insert(std::move(structure)).second) return {};
      ++outcome.run;
    }
    return complaint(kernel, optimized, target);
  }

 private:
  std::set<std::string> run_;
};

TEST_P(Interpreter, ModelsComputeTheSame) {
  for (const std::string& device : GetParam().devices) {
    const Target target = target_of(device);
    const std::vector<UOp> kernels = scheduled_corpus(device);
    Outcome o;
    task_pool().parallel_for(kernels.size(), [&](size_t i) {
      std::string wrong;
      try {
        wrong = run(kernels[i], target, o);
      } catch (const Error& e) {
        wrong = e.what();
      }
      if (wrong.empty()) return;
      const std::lock_guard lock(o.mutex);
      o.failures += fmt::format("{}: {}\n", kernels[i].arg_as<KernelArg>().name.str(), wrong.substr(0, wrong.find('\n')));
      if (o.failed++ == 0) o.first_failure = wrong;
    });
    fmt::print("{}: {} kernels, {} with tensor cores, up to {:.0f} operations; {} of them new and run, {} failed\n", device,
               o.different.size(), o.with_cores, o.largest, o.run, o.failed);
    EXPECT_EQ(o.failed, 0u) << o.failures << o.first_failure.substr(0, 8000);
    EXPECT_GT(o.different.size(), 0u);
    if (sample_of() == 1) {
      EXPECT_GE(o.different.size(), 300u);
      EXPECT_EQ(o.with_cores > 0, !target.tensor_cores.empty());
    }
    EXPECT_LE(o.largest, most_operations);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Interpreter,
                         testing::Values(Gpus{"NVIDIA", {"NULL:PTX:sm_90a", "NULL:PTX:sm_100a", "NULL:PTX:sm_80"}},
                                         Gpus{"CDNA", {"NULL:HIP:gfx942", "NULL:HIP:gfx90a"}},
                                         Gpus{"RDNA", {"NULL:HIP:gfx1201", "NULL:HIP:gfx1100", "NULL:OPENCL"}}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tinygrad::test
