// What the kernels of models mean on GPUs: each, with the opts that its target has for the full size and loops made shorter, is run by the
// interpreted device, tensor cores and all, and compared with the same loops without opts and with those in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>
#include <tinygrad/tensor.h>

#include "base/thread_pool.h"
#include "codegen/codegen.h"
#include "codegen/opt/apply_opts.h"
#include "codegen/opt/parse_opts.h"
#include "corpus/compile_all.h"
#include "corpus/shrink.h"
#include "corpus/workloads.h"
#include "renderer/kernel_info.h"
#include "runtime/interp/kernel.h"
#include "search/accuracy.h"
#include "search/exact_kernel.h"
#include "search/trial_memory.h"
#include "spec/verify.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::test {
namespace {

/// What a kernel has where its opts allow it, and where one round of what they take is more.
constexpr double usual_operations = 1 << 17, most_operations = 1 << 20;
/// Sums in another order may round differently, and what is computed from few random numbers may be much less exact than they are.
constexpr double error_factor = 16;

/// The different kernels that the models are made of on a device. What TF32 rounds is compared in tests/runtime/backend/ptx_test.cpp.
std::vector<UOp> scheduled_corpus(const std::string& device) {
  NodeSet known;
  std::vector<UOp> out;
  for (const Corpus& c : corpus()) {
    if (c.allow_tf32) continue;
    const Context context{{.default_float = c.default_float, .dev = device}};
    const apps::Workload work = c.make();
    const UOp linear = Tensor::schedule_linear(work.results);
    for (const UOp& call : linear.src())
      if (const UOp& kernel = call.src(0); kernel.is(Op::SINK) && known.insert(kernel)) out.push_back(kernel);
  }
  return out;
}

/// Half as many items along the axis where a group has most of them; whether there were any.
bool halve_groups(std::vector<Opt>& opts) {
  const auto items = [](const Opt& o) { return o.op == OptOp::LOCAL ? o.arg : 0; };
  const auto most = std::ranges::max_element(opts, {}, items);
  if (most == opts.end() || items(*most) < 2 || items(*most) % 2 != 0) return false;
  if ((most->arg /= 2) == 1) opts.erase(most);
  return true;
}

/// A kernel made small, without opts and with those that the heuristics choose for it at full size, but for the items of groups whose
/// tile is too large as it is.
struct Pair {
  std::vector<Opt> opts;
  UOp plain, optimized;

  Pair(const UOp& kernel, const Target& target) {
    std::vector<codegen::Step> steps;
    codegen::full_rewrite_to_sink(kernel, target, {.spec = 0}, &steps);
    const auto step = [&](std::string_view name) { return std::ranges::find(steps, name, &codegen::Step::name)->result; };
    opts = step("apply opts").arg_as<KernelArg>().opts;
    UOp small;
    do small = shrunk(step("merge ranges"), opts, target, usual_operations);
    while (operations(small) > most_operations && halve_groups(opts));
    plain = small.with_arg(KernelArg{.name = "small", .optimized = true});
    optimized = codegen::apply_opts(small, opts, target).with_arg(KernelArg{.name = "small", .opts = opts, .optimized = true});
  }
  std::string structure() const { return codegen::to_string(opts) + structure_of(print_graph(plain)); }
};

struct Interpreted {
  KernelInfo info;
  UOp linear;

  Interpreted(const UOp& kernel, const Target& target) : linear(codegen::full_rewrite(kernel, target, {.spec = 0})) {
    spec::verify_linear(linear);
    info = describe_kernel(linear, "small");
  }

  void run(const search::TrialMemory& memory) const {
    std::vector<void*> handles;
    for (const search::TrialMemory::Slot& s : memory.slots()) {
      const std::span<std::byte> content = memory.content(s), result = s.place.written ? memory.result(s) : content;
      if (s.place.written) std::ranges::copy(content, result.begin());
      handles.push_back(result.data());
    }
    runtime::interp::make_kernel(info, linear)->launch(handles, {}, info.launch_dims({}), true);
  }
};

/// What is wrong with the opts of the kernel, `optimized` for the target; empty if nothing is.
std::string complaint(const Pair& kernel, const Interpreted& optimized, const Target& target) {
  const search::TrialMemory memory(Interpreted(kernel.plain, interp_target()).info, {});  // in the kernel's own dtypes
  std::optional<search::TrialMemory> exact_memory;
  if (const auto exact = search::exact_kernel(kernel.plain)) {
    const Interpreted in_doubles(*exact, interp_target());
    in_doubles.run(exact_memory.emplace(in_doubles.info, std::span<const int64_t>(), memory));
  }
  Interpreted(kernel.plain, target).run(memory);
  const search::Accuracy accuracy(memory, exact_memory ? &*exact_memory : nullptr, error_factor);
  optimized.run(memory);
  return accuracy.complaint(memory);
}

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
    const std::string_view arch = std::string_view(device).substr(device.rfind(':') + 1);
    return arch.starts_with("sm_") ? cuda_target(arch) : amd_target(arch);
  }

  /// Empty if nothing is wrong with it.
  std::string run(const UOp& full, const Target& target, Outcome& outcome) {
    const Pair kernel(full, target);
    std::string structure = kernel.structure();
    {
      const std::lock_guard lock(outcome.mutex);
      if (!outcome.different.insert(structure).second) return {};
      outcome.with_cores += std::ranges::count(kernel.opts, OptOp::TC, &Opt::op) > 0;
      outcome.largest = std::max(outcome.largest, operations(kernel.plain));
    }
    const Interpreted optimized(kernel.optimized, target);
    structure += structure_of(print_graph(optimized.linear));
    {
      const std::lock_guard lock(outcome.mutex);
      if (!run_.insert(std::move(structure)).second) return {};
      ++outcome.run;
    }
    const std::string wrong = complaint(kernel, optimized, target);
    return wrong.empty() ? wrong : fmt::format("{}, {}\n{}", wrong, codegen::to_string(kernel.opts), print_graph(kernel.plain));
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
    EXPECT_GE(o.different.size(), 300u);
    EXPECT_GT(o.with_cores, 0u);
    EXPECT_LE(o.largest, most_operations);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Interpreter,
                         testing::Values(Gpus{"NVIDIA", {"NULL:PTX:sm_90a", "NULL:PTX:sm_100a", "NULL:PTX:sm_80"}},
                                         Gpus{"CDNA", {"NULL:HIP:gfx942", "NULL:HIP:gfx90a"}},
                                         Gpus{"RDNA", {"NULL:HIP:gfx1201", "NULL:HIP:gfx1100"}}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tinygrad::test
