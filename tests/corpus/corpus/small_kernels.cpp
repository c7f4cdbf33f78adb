#include "corpus/small_kernels.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/tensor.h>

#include "codegen/codegen.h"
#include "codegen/opt/apply_opts.h"
#include "codegen/opt/parse_opts.h"
#include "corpus/compile_all.h"
#include "corpus/shrink.h"
#include "corpus/workloads.h"
#include "kernel/describe_kernel.h"
#include "runtime/interp/kernel.h"
#include "search/accuracy.h"
#include "search/exact_kernel.h"
#include "spec/verify.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::test {
namespace {

/// Sums in another order may round differently, and what is computed from few random numbers may be much less exact than they are.
constexpr double error_factor = 16;
/// Sums without opts lose next to nothing, as they are added up in compensated blocks; those of items are joined one after another, and
/// what cancels in them is much greater than the sum.
constexpr double least_error = 256 * 0x1p-23;

/// Half as many items along the axis where a group has most of them, or else terms of a sum that are written out; whether there were any.
bool make_smaller(std::vector<Opt>& opts) {
  for (const OptOp op : {OptOp::LOCAL, OptOp::UNROLL}) {
    const auto size = [&](const Opt& o) { return o.op == op ? o.arg : 0; };
    const auto most = std::ranges::max_element(opts, {}, size);
    if (most == opts.end() || size(*most) < 2 || size(*most) % 2 != 0) continue;
    most->arg /= 2;
    if (most->arg == 1) opts.erase(most);
    return true;
  }
  return false;
}

}  // namespace

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

SmallKernel::SmallKernel(const UOp& kernel, const Target& target, double usual_operations) {
  std::vector<codegen::Step> steps;
  codegen::full_rewrite_to_sink(kernel, target, {.spec = 0}, &steps);
  const auto step = [&](std::string_view name) { return std::ranges::find(steps, name, &codegen::Step::name)->result; };
  opts = step("apply opts").arg_as<KernelArg>().opts;
  UOp small;
  do small = shrunk(step("merge ranges"), opts, target, usual_operations);
  while (operations(small) > most_operations && make_smaller(opts));
  plain = small.with_arg(KernelArg{.name = "small", .optimized = true});
  optimized = codegen::apply_opts(small, opts, target).with_arg(KernelArg{.name = "small", .opts = opts, .optimized = true});
}

std::string SmallKernel::structure() const { return codegen::to_string(opts) + structure_of(print_graph(plain)); }

LinearProgram::LinearProgram(const UOp& kernel, const Target& target) : linear(codegen::full_rewrite(kernel, target, {.spec = 0})) {
  spec::verify_linear(linear);
  info = describe_kernel(linear, "small");
}

void interpret(const LinearProgram& program, const search::TrialMemory& memory) {
  std::vector<void*> handles;
  for (const search::TrialMemory::Slot& s : memory.slots()) {
    const std::span<std::byte> content = memory.content(s), result = s.place.written ? memory.result(s) : content;
    if (s.place.written) std::ranges::copy(content, result.begin());
    handles.push_back(result.data());
  }
  runtime::interp::make_kernel(program.info, program.linear)->launch(handles, {}, program.info.launch_dims({}), true);
}

std::string complaint(const SmallKernel& kernel, const LinearProgram& optimized, const Target& target, const Run& run) {
  const search::TrialMemory memory(LinearProgram(kernel.plain, interp_target()).info, {});  // in the kernel's own dtypes
  std::optional<search::TrialMemory> exact_memory;
  if (const auto exact = search::exact_kernel(kernel.plain)) {
    const LinearProgram in_doubles(*exact, interp_target());
    interpret(in_doubles, exact_memory.emplace(in_doubles.info, std::span<const int64_t>(), memory));
  }
  interpret(LinearProgram(kernel.plain, target), memory);
  const search::Accuracy accuracy(memory, exact_memory ? &*exact_memory : nullptr, error_factor, least_error);
  run(optimized, memory);
  const std::string wrong = accuracy.complaint(memory);
  return wrong.empty() ? wrong : fmt::format("{}, {}\n{}", wrong, codegen::to_string(kernel.opts), print_graph(kernel.plain));
}

}  // namespace tinygrad::test
