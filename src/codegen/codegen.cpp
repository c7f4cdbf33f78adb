#include "codegen/codegen.h"

#include <memory>
#include <optional>

#include <tinygrad/errors.h>

#include "codegen/decomp/choose_index_width.h"
#include "codegen/decomp/decompose_ops.h"
#include "codegen/decomp/emulate_dtypes.h"
#include "codegen/decomp/emulate_long.h"
#include "codegen/decomp/widen_integers.h"
#include "codegen/late/await_products.h"
#include "codegen/late/coalesce.h"
#include "codegen/late/fetch_copies.h"
#include "codegen/late/linearize.h"
#include "codegen/late/load_behind_loops.h"
#include "codegen/late/prefetch_strides.h"
#include "codegen/late/speculate_loads.h"
#include "codegen/late/split_vectors.h"
#include "codegen/late/stream_stores.h"
#include "codegen/late/use_tensor_memory.h"
#include "codegen/late/use_tile_registers.h"
#include "codegen/late/vectorize_lanes.h"
#include "codegen/lower/assign_launch_dims.h"
#include "codegen/lower/block_sums.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/lower/expand_unrolled.h"
#include "codegen/lower/group_reduces.h"
#include "codegen/lower/keep_terms.h"
#include "codegen/lower/lower_gates.h"
#include "codegen/lower/lower_reduces.h"
#include "codegen/lower/lower_stages.h"
#include "codegen/lower/peel_ends.h"
#include "codegen/lower/pipeline_stages.h"
#include "codegen/lower/use_images.h"
#include "codegen/opt/tensor_core.h"
#include "codegen/prepare/merge_ranges.h"
#include "codegen/prepare/part_wrapped_loads.h"
#include "codegen/prepare/simplify_gates.h"
#include "codegen/prepare/split_divided.h"
#include "codegen/simplify.h"
#include "rewrite/pipeline.h"
#include "rewrite/rewrite.h"
#include "spec/same_meaning.h"
#include "spec/verify.h"
#include "symbolic/simplify.h"

namespace tinygrad::codegen {

CodegenOptions CodegenOptions::from(const Options& options) {
  return {.noopt = options.noopt,
          .nolocals = options.nolocals,
          .tensor_cores = options.tc != 0,
          .products = options.tc_opt,
          .tensor_core = options.tc_select,
          .allow_tf32 = options.allow_tf32,
          .images = options.image != 0,
          .transcendental = options.transcendental,
          .emulated_dtypes = options.emulated_dtypes,
          .spec = options.spec};
}

namespace {

/// The target without what options take away.
Target usable(const Target& target, const CodegenOptions& options) {
  Target t = without_dtypes(target, options.emulated_dtypes);
  if (!options.images) t.max_image_width = 0;
  if (const int only = options.tensor_core; only >= 0) {
    const bool exists = size_t(only) < t.tensor_cores.size();
    t.tensor_cores = exists ? std::vector{t.tensor_cores[size_t(only)]} : std::vector<TensorCore>();
  }
  if (!options.allow_tf32) std::erase_if(t.tensor_cores, [](const TensorCore& core) { return core.kept_bits != 0; });
  return t;
}

/// What there is to choose of a usable target.
Target choosable(Target t, const CodegenOptions& options) {
  if (!options.tensor_cores) t.tensor_cores.clear();
  if (options.nolocals) t.max_group_items = 1;
  return t;
}

Target choosable(Target t, const CodegenOptions& options, const UOp& sink) {
  t = choosable(std::move(t), options);
  if (options.products == 0)
    std::erase_if(t.tensor_cores, [&](const TensorCore& core) {
      const auto use = tensor_core_axes(sink, core);
      return use && !use->of_arguments;
    });
  return t;
}

/// Near memory is estimated by the heuristics: tiles that turn out too large are left out, the kernel does without.
UOp apply_chosen(const UOp& sink, std::vector<Opt>& opts, const Target& target) {
  for (;;) try {
      return apply_opts(sink, opts, target);
    } catch (const ValueError&) {
      if (opts.empty() || opts.back().op != OptOp::STAGE) throw;
      opts.pop_back();
    }
}

/// The opts are noted in the KernelArg of the result.
UOp optimize(const UOp& sink, const Target& target, const CodegenOptions& options) {
  const auto* given = std::get_if<KernelArg>(&sink.arg());
  KernelArg kernel = given ? *given : KernelArg{};
  if (kernel.optimized) return sink;
  const bool choose = kernel.opts.empty() && !options.noopt;
  if (choose) kernel.opts = heuristic_opts(sink, choosable(target, options, sink), options.products == 2);
  kernel.optimized = true;
  const UOp optimized = choose ? apply_chosen(sink, kernel.opts, target) : apply_opts(sink, kernel.opts, target);
  return optimized.with_arg(kernel);
}

using rewrite::Pipeline;

/// What is looked at after each step.
class StepCheck {
 public:
  StepCheck(const UOp& sink, const CodegenOptions& options, std::vector<Step>* trace) : spec_(options.spec), trace_(trace) {
    if (spec_ >= 1) spec::verify_kernel(sink);
    if (spec_ >= 3) meaning_ = std::make_shared<spec::MeaningCheck>(sink);
  }
  void operator()(const char* step, const UOp& graph) const {
    if (trace_) trace_->push_back({step, graph});
    if (spec_ >= 2) spec::verify_between(graph, step);
    if (meaning_) meaning_->after(step, graph);
  }

 private:
  int spec_;
  std::vector<Step>* trace_;
  std::shared_ptr<spec::MeaningCheck> meaning_;
};

/// Up to where opts are chosen.
void simplify_kernel(Pipeline& p) {
  p.step("simplify", simplify(p.graph()));
  p.step("simplify gates", simplify_gates(p.graph()));
  p.step("split divided", split_divided(p.graph()));
  p.step("part wrapped loads", part_wrapped_loads(p.graph()));
  p.step("merge ranges", merge_ranges(p.graph()));
}

}  // namespace

UOp simplify(const UOp& graph) {
  static const auto& rules = *new rewrite::Rules<>((symbolic::index_rules() + symbolic::data_rules()).remembered());
  return rewrite::graph_rewrite(graph, rules, {.name = "simplify"});
}

UOp simplified_kernel(const UOp& sink) {
  Pipeline p("lower", sink);
  simplify_kernel(p);
  return p.graph();
}

Target choices(const Target& target, const CodegenOptions& options) { return choosable(usable(target, options), options); }

Target choices(const Target& target, const CodegenOptions& options, const UOp& sink) {
  return choosable(usable(target, options), options, sink);
}

UOp full_rewrite_to_sink(const UOp& sink, const Target& target, const CodegenOptions& options, std::vector<Step>* trace) {
  const Target has = usable(target, options);
  Pipeline p("lower", sink, StepCheck(sink, options, trace));
  simplify_kernel(p);
  p.step("apply opts", optimize(p.graph(), has, options));
  p.step("bound loops", bound_loops(p.graph()));
  p.step("block sums", block_sums(p.graph()));
  p.step("expand unrolled", expand_unrolled(p.graph()));
  p.step("lower tiled reduces", lower_tiled_reduces(p.graph(), has));
  p.step("expand upcast", expand_upcast(p.graph()));
  p.step("simplify expanded", simplify(p.graph()));
  p.step("group reduces", group_reduces(p.graph()));
  p.step("lower reduces", lower_reduces(p.graph(), has));
  p.step("keep terms", keep_terms(p.graph(), has));
  p.step("pipeline stages", pipeline_stages(p.graph(), has));
  p.step("lower stages", lower_stages(p.graph(), has));
  p.step("peel ends", peel_ends(p.graph(), has));
  p.step("launch dims", assign_launch_dims(p.graph(), target));
  p.step("gates", lower_gates(p.graph()));
  p.step("images", use_images(p.graph(), has));
  p.step("emulate dtypes", emulate_dtypes(p.graph(), has));
  p.step("widen integers", widen_integers(p.graph(), has));
  p.step("index width", choose_index_width(p.graph(), has));
  p.step("decompose ops", decompose_ops(p.graph(), has, options.transcendental));
  p.step("emulate long", emulate_long(p.graph(), has));
  p.step("simplify decomposed", simplify(p.graph()));
  p.step("lanes", vectorize_lanes(p.graph(), has));
  p.step("split vectors", split_vectors(p.graph(), has));
  p.step("coalesce", coalesce(p.graph(), has));
  p.step("fetch copies", fetch_copies(p.graph(), has));
  p.step("speculate loads", speculate_loads(p.graph()));
  p.step("stream stores", stream_stores(p.graph(), has));
  return p.graph();
}

UOp full_rewrite(const UOp& sink, const Target& target, const CodegenOptions& options, std::vector<Step>* trace) {
  Pipeline p("lower", full_rewrite_to_sink(sink, target, options, trace), [&](const char* step, const UOp& linear) {
    if (trace) trace->push_back({step, linear});
  });
  p.step("linearize", linearize(p.graph()));
  p.step("load behind loops", load_behind_loops(p.graph(), target));
  p.step("prefetch strides", prefetch_strides(p.graph(), target));
  p.step("tile registers", use_tile_registers(p.graph(), target));
  p.step("await products", await_products(p.graph()));
  p.step("tensor memory", use_tensor_memory(p.graph()));
  if (options.spec >= 1) spec::verify_linear(p.graph());
  return p.graph();
}

}  // namespace tinygrad::codegen
