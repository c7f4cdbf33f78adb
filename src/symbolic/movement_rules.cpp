#include <algorithm>

#include "symbolic/build.h"
#include "symbolic/simplify.h"

namespace tinygrad::symbolic {

namespace {

using namespace rewrite;
constexpr Capture x{0}, inner{1};

/// The outer op over the inner one's operand, with the outer sizes: RESHAPE of RESHAPE, EXPAND of EXPAND.
UOp outer_wins(const Match& m) {
  UOps sources(m.root().src().begin(), m.root().src().end());
  sources[0] = m[x];
  return m.root().with_src(sources);
}

UOp merge_permutes(const Match& m) {
  const Axes &first = m[inner].arg_as<AxesArg>().axes, &second = m.root().arg_as<AxesArg>().axes;
  Axes both;
  for (int axis : second) both.push_back(first[size_t(axis)]);
  return permute(m[x], both);
}

UOp drop_identity_permute(const Match& m) {
  const Axes& axes = m.root().arg_as<AxesArg>().axes;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != int(i)) return {};
  return m[x];
}

/// An axis flipped twice is not flipped.
UOp merge_flips(const Match& m) {
  const Axes &a = m[inner].arg_as<AxesArg>().axes, &b = m.root().arg_as<AxesArg>().axes;
  Axes once;
  std::ranges::copy_if(a, std::back_inserter(once), [&](int axis) { return std::ranges::find(b, axis) == b.end(); });
  std::ranges::copy_if(b, std::back_inserter(once), [&](int axis) { return std::ranges::find(a, axis) == a.end(); });
  std::ranges::sort(once);
  return once.empty() ? m[x] : flip(m[x], once);
}

/// Both begin and end of the outer box count from the inner one's begin.
UOp merge_shrinks(const Match& m) {
  UOps sources{m[x]};
  for (size_t i = 1; i < m.root().src_count(); ++i) sources.push_back(sym_add(m.root().src(i), m[inner].src((i - 1) / 2 * 2 + 1)));
  return m.root().with_src(sources);
}

UOp merge_pads(const Match& m) {
  UOps sources{m[x]};
  for (size_t i = 1; i < m.root().src_count(); ++i) sources.push_back(sym_add(m.root().src(i), m[inner].src(i)));
  return m.root().with_src(sources);
}

UOp drop_empty_pad(const Match& m) {
  const auto amounts = m.root().src().subspan(1);
  return std::ranges::all_of(amounts, [](const UOp& a) { return is_const(a, 0); }) ? m[x] : UOp();
}

bool same_rank(const Match& m) { return m.root().src_count() == m[inner].src_count(); }

Pat twice(Op op) { return pat(op, {pat(op, {x}, rest).named(inner)}, rest); }

}  // namespace

const Rules<>& movement_rules() {
  static const auto& rules = *new Rules<>{
      {twice(Op::RESHAPE), outer_wins, "reshape of reshape"},
      {twice(Op::EXPAND), outer_wins, "expand of expand"},
      {twice(Op::PERMUTE), merge_permutes, "permute of permute"},
      {pat(Op::PERMUTE, {x}), drop_identity_permute, "identity permute"},
      {twice(Op::FLIP), merge_flips, "flip of flip"},
      {pat(Op::FLIP, {x}), [](const Match& m) { return m.root().arg_as<AxesArg>().axes.empty() ? m[x] : UOp(); }, "flip of no axis"},
      {twice(Op::SHRINK), [](const Match& m) { return same_rank(m) ? merge_shrinks(m) : UOp(); }, "shrink of shrink"},
      {twice(Op::PAD), [](const Match& m) { return same_rank(m) ? merge_pads(m) : UOp(); }, "pad of pad"},
      {pat(Op::PAD, {x}, rest), drop_empty_pad, "pad of nothing"},
      // To no dimensions: x must have had none.
      {pat({Op::RESHAPE, Op::EXPAND}, {x.where([](const UOp& u) { return u->scalar; })}), x, "scalar to scalar"},
  };
  return rules;
}

}  // namespace tinygrad::symbolic
