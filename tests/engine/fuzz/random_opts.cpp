#include "engine/fuzz/random_opts.h"

#include <algorithm>
#include <span>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "codegen/codegen.h"
#include "codegen/kernel_axes.h"
#include "codegen/opt/parse_opts.h"
#include "uop/graph.h"

namespace tinygrad::test {
namespace {

class OptGenerator {
 public:
  OptGenerator(const UOp& sink, const Target& target, Dice& dice)
      : sink_(sink), kernel_(codegen::simplified_kernel(sink)), target_(target), dice_(dice) {
    for (const UOp& u : toposort(sink)) params_ += u.is(Op::PARAM) && u.src_count() > 0;
  }

  std::vector<Opt> make() {
    if (codegen::kernel_axes(kernel_).empty()) return {};
    for (int64_t tries = dice_.number(1, 8); tries > 0; --tries) {
      const Opt o = opt();
      if (copies(o) > 32) continue;
      opts_.push_back(o);
      if (!is_valid()) opts_.pop_back();
    }
    while (!opts_.empty() && !lowers()) opts_.pop_back();  // too much of a group's memory, tensor cores for an emulated dtype
    return opts_;
  }

 private:
  Opt opt() {
    using enum OptOp;
    const OptOp op =
        target_.has_groups
            ? dice_.pick({LOCAL, LOCAL, GROUP, GROUP, GROUPTOP, UPCAST, UNROLL, LANE, PADTO, SWAP, BLOCK, STAGE, STAGE, TC, NOLOCALS})
            : dice_.pick({THREAD, UPCAST, UPCAST, UNROLL, UNROLL, LANE, LANE, PADTO, SWAP, STAGE, BLOCK, BLOCK, OUTER, OUTER, TC});
    const auto axes = int64_t(codegen::kernel_axes(kernel_).size());
    Opt o{.op = op, .axis = int32_t(dice_.number(0, axes - 1)), .arg = int32_t(dice_.pick({0, 2, 2, 3, 4, 4, 5, 8, 16}))};
    if (op == SWAP || op == OUTER) o.arg = int32_t(dice_.number(0, axes - 1));
    if (op == TC) o.arg = -1;
    if (op == STAGE)
      o.arg = StageOpt{.slot = int32_t(dice_.number(0, params_ - 1)),
                       .scope = target_.has_groups ? dice_.pick({Scope::group, Scope::group, Scope::thread}) : Scope::thread,
                       .depth = int32_t(dice_.pick({1, 1, 1, 2, 3})),
                       .computed = dice_.number(0, 2) == 0}
                  .arg();
    return o;
  }

  /// How often the body of some loop would be written out.
  int64_t copies(const Opt& last) const {
    const std::vector<UOp> axes = codegen::kernel_axes(kernel_);
    int64_t n = 1;
    const auto count = [&](const Opt& o) {
      if (o.op != OptOp::UPCAST && o.op != OptOp::UNROLL) return;
      n *= o.arg ? o.arg : std::max<int64_t>(1, codegen::constant_size(axes[size_t(o.axis)]));
    };
    for (const Opt& o : opts_) count(o);
    count(last);
    return n;
  }

  bool is_valid() const {
    try {
      codegen::apply_opts(kernel_, opts_, target_);
      return true;
    } catch (const ValueError&) {
      return false;
    }
  }

  bool lowers() const {
    try {
      auto arg = sink_.arg_as<KernelArg>();
      arg.opts = opts_;
      codegen::full_rewrite(sink_.with_arg(arg), target_, codegen::CodegenOptions::from(current_options()));
      return true;
    } catch (const ValueError&) {
      return false;
    } catch (const InternalError&) {
      return true;  // the run reports it, with these opts
    }
  }

  const UOp sink_, kernel_;
  const Target& target_;
  Dice& dice_;
  int64_t params_ = 0;
  std::vector<Opt> opts_;
};

bool is_kernel(const UOp& call) { return call.is(Op::CALL) && call.src(0).is(Op::SINK); }

}  // namespace

KernelOpts random_opts(const schedule::Schedule& schedule, const schedule::TargetOf& target_of, uint64_t seed) {
  Dice dice(seed);
  KernelOpts out;
  const Target& target = target_of(schedule.inputs[0].arg_as<BufferArg>().device);
  for (const UOp& call : schedule.plan->linear.src())
    if (is_kernel(call)) out.push_back(OptGenerator(call.src(0), target, dice).make());
  return out;
}

schedule::Schedule with_opts(const schedule::Schedule& schedule, const KernelOpts& opts) {
  UOps calls;
  size_t next = 0;
  for (const UOp& call : schedule.plan->linear.src()) {
    calls.push_back(call);
    if (!is_kernel(call) || next >= opts.size()) continue;
    auto arg = call.src(0).arg_as<KernelArg>();
    arg.opts = opts[next++];
    UOps sources(call.src().begin(), call.src().end());
    sources[0] = sources[0].with_arg(arg);
    calls.back() = call.with_src(sources);
  }
  auto plan = std::make_shared<schedule::Plan>(*schedule.plan);
  plan->linear = plan->linear.with_src(calls);
  schedule::Schedule out = schedule;
  out.plan = plan;
  return out;
}

std::string to_string(const KernelOpts& opts) {
  std::string out;
  for (size_t i = 0; i < opts.size(); ++i) out += (i ? " | " : "") + codegen::to_string(opts[i]);
  return out;
}

KernelOpts parse_kernel_opts(std::string_view text) {
  KernelOpts out;
  for (;;) {
    const size_t bar = text.find('|');
    out.push_back(codegen::parse_opts(text.substr(0, bar)));
    if (bar == text.npos) return out;
    text.remove_prefix(bar + 1);
  }
}

}  // namespace tinygrad::test
