#include "search/candidates.h"

#include <algorithm>

#include <tinygrad/errors.h>

#include "codegen/kernel_axes.h"
#include "codegen/opt/apply_opts.h"
#include "uop/graph.h"

namespace tinygrad::search {
namespace {

using Opts = std::vector<Opt>;

constexpr int64_t most_copies = 128;  // of the innermost loop, written out

class Neighbours {
 public:
  Neighbours(const UOp& kernel, const Opts& opts, const Target& target)
      : opts_(opts), target_(target), optimized_(codegen::apply_opts(kernel, without_stages(opts), target)) {
    axes_ = codegen::kernel_axes(optimized_);
    for (const UOp& u : toposort(kernel)) {
      if (u.is(Op::LOAD) && u.src(0).src(0).is(Op::PARAM)) {
        const int32_t slot = u.src(0).src(0).arg_as<ParamArg>().slot;
        if (std::find(loaded_.begin(), loaded_.end(), slot) == loaded_.end()) loaded_.push_back(slot);
      }
    }
  }

  std::vector<Opts> run() {
    for (size_t i = 0; i < opts_.size(); ++i) {
      change(i);
      remove(i);
    }
    for (size_t a = 0; a < axes_.size(); ++a) {
      split(int32_t(a));
      if (codegen::is_reduced(axes_[a]))
        go_around(int32_t(a));
      else
        block_outside(int32_t(a));
      stage(int32_t(a));
      if (a > 0 && codegen::is_reduced(axes_[a]) == codegen::is_reduced(axes_[a - 1])) append({OptOp::SWAP, int32_t(a - 1), int32_t(a)});
    }
    if (!target_.tensor_cores.empty()) append({OptOp::TC, 0, -1});
    return std::move(out_);
  }

 private:
  static Opts without_stages(Opts opts) {
    std::erase_if(opts, [](const Opt& o) { return o.op == OptOp::STAGE; });
    return opts;
  }

  void add(Opts opts) {
    int64_t copies = 1;
    for (const Opt& o : opts)
      if (o.op == OptOp::UPCAST || o.op == OptOp::UNROLL) copies *= std::max(1, o.arg);
    if (copies <= most_copies) out_.push_back(std::move(opts));
  }

  void append(const Opt& opt) {
    Opts opts = opts_;
    opts.push_back(opt);
    add(std::move(opts));
  }

  // An opt less, or with another number.

  /// The copies of a block's iterations go with it.
  size_t partner(size_t i) const {
    if (opts_[i].op != OptOp::BLOCK) return i;
    for (size_t k = i + 1; k < opts_.size(); ++k)
      if (opts_[k].op == OptOp::UPCAST && opts_[k].axis == opts_[i].axis + 1 && opts_[k].arg == opts_[i].arg) return k;
    return i;
  }

  void remove(size_t i) {
    Opts opts;
    for (size_t k = 0; k < opts_.size(); ++k)
      if (k != i && k != partner(i)) opts.push_back(opts_[k]);
    add(std::move(opts));
  }

  void set(size_t i, int32_t arg) {
    if (arg < 2 || arg == opts_[i].arg) return;
    Opts opts = opts_;
    opts[partner(i)].arg = opts[i].arg = arg;
    add(std::move(opts));
  }

  void change(size_t i) {
    const int32_t n = opts_[i].arg;
    switch (opts_[i].op) {
      case OptOp::UPCAST:
      case OptOp::BLOCK:
        for (const int32_t other : {n + 1, n - 1, n * 2, n / 2, n + 2, n - 2}) set(i, other);
        break;
      case OptOp::UNROLL:
      case OptOp::LANE:
      case OptOp::LOCAL:
      case OptOp::GROUP:
      case OptOp::GROUPTOP:
      case OptOp::THREAD:
        for (const int32_t other : {n * 2, n / 2}) set(i, other);
        break;
      case OptOp::STAGE: change_stage(i); break;
      default: break;
    }
  }

  void change_stage(size_t i) {
    const auto put = [&](const Opt& opt) {
      if (opt == opts_[i]) return;
      Opts opts = opts_;
      opts[i] = opt;
      add(std::move(opts));
    };
    const StageOpt stage = StageOpt::of(opts_[i].arg);
    for (size_t a = 0; a < axes_.size(); ++a) put({OptOp::STAGE, int32_t(a), opts_[i].arg});
    for (const int32_t slot : loaded_) put({OptOp::STAGE, opts_[i].axis, StageOpt{slot, stage.scope, stage.depth, stage.computed}.arg()});
    if (stage.depth == 1 && stage.scope != Scope::group)
      put({OptOp::STAGE, opts_[i].axis, StageOpt{stage.slot, stage.scope, 1, !stage.computed}.arg()});
    if (target_.has_groups && !stage.computed)
      for (const int32_t depth : {1, 2, 3}) put({OptOp::STAGE, opts_[i].axis, StageOpt{stage.slot, stage.scope, depth}.arg()});
  }

  // An opt more.

  int64_t lanes() const {
    int64_t widest = 1;
    for (const UOp& u : toposort(optimized_))
      if (u.is(Op::LOAD) || u.is(Op::STORE)) widest = std::max(widest, int64_t(itemsize(u.is(Op::LOAD) ? u.dtype() : u.src(1).dtype())));
    return target_.vector_bits / (8 * widest);
  }

  void split(int32_t a) {
    const bool reduced = codegen::is_reduced(axes_[size_t(a)]);
    const int64_t size = codegen::constant_size(axes_[size_t(a)]);
    const auto append_all = [&](OptOp op, std::initializer_list<int32_t> sizes) {
      for (const int32_t n : sizes)
        if (n > 1 && (size == 0 || n <= size)) append({op, a, n});
    };
    append_all(reduced ? OptOp::UNROLL : OptOp::UPCAST, {2, 4, 8});
    const auto vector = int32_t(lanes());
    append_all(OptOp::LANE, {vector, vector / 2, vector * 2});
    if (target_.has_threads && !reduced) append_all(OptOp::THREAD, {int32_t(std::min<int64_t>(size, 1 << 20)), 16, 4});
    if (!target_.has_groups) return;
    if (reduced) append_all(OptOp::GROUP, {16, 64, 256});
    if (reduced) append_all(OptOp::GROUPTOP, {16, 64, 256});
    if (!reduced) append_all(OptOp::LOCAL, {4, 8, 16, 32});
  }

  void stage(int32_t a) {
    const Scope scope = target_.has_groups ? Scope::group : Scope::thread;
    for (const int32_t slot : loaded_) {
      const auto same = [&](const Opt& o) { return o.op == OptOp::STAGE && StageOpt::of(o.arg).slot == slot; };
      if (std::none_of(opts_.begin(), opts_.end(), same)) append({OptOp::STAGE, a, StageOpt{.slot = slot, .scope = scope}.arg()});
    }
  }

  /// Runs of `n` iterations of a loop, and the loop over them around all other loops over outputs: what they use stays near.
  void block_outside(int32_t a) {
    const int64_t size = codegen::constant_size(axes_[size_t(a)]);
    for (const int32_t n : {8, 16, 32, 64}) {
      if (size < 2 * n) continue;
      Opts opts = without_stages(opts_);
      opts.push_back({OptOp::BLOCK, a, n});
      for (int32_t place = a; place > 0; --place) opts.push_back({OptOp::SWAP, place - 1, place});
      for (Opt o : opts_) {
        if (o.op != OptOp::STAGE) continue;
        ++o.axis;  // the blocks are number 0
        opts.push_back(o);
      }
      add(std::move(opts));
    }
  }

  /// The loop of a reduction, or blocks of it, around loops over outputs; what is staged is staged for one of its iterations.
  void go_around(int32_t a) {
    const int64_t size = codegen::constant_size(axes_[size_t(a)]);
    for (size_t loop = 0; loop < axes_.size() && !codegen::is_reduced(axes_[loop]); ++loop)
      for (const int32_t n : {0, 128, 256, 512}) {
        if (n && (size < 2 * n || size % n != 0)) continue;
        Opts opts = without_stages(opts_);
        if (n) opts.push_back({OptOp::BLOCK, a, n});
        opts.push_back({OptOp::OUTER, a, int32_t(loop)});
        for (const Opt& o : opts_)
          if (o.op == OptOp::STAGE) opts.push_back({OptOp::STAGE, a, o.arg});
        add(std::move(opts));
      }
  }

  const Opts& opts_;
  const Target& target_;
  const UOp optimized_;
  std::vector<UOp> axes_;
  std::vector<int32_t> loaded_;
  std::vector<Opts> out_;
};

}  // namespace

std::vector<Opts> neighbours(const UOp& kernel, const Opts& opts, const Target& target) {
  try {
    return Neighbours(kernel, opts, target).run();
  } catch (const ValueError&) {
    return {};
  }
}

}  // namespace tinygrad::search
