// Arithmetic on indices in kernels that are full of it: divisions and remainders, and all operations, as the kernels leave simplification.
// docs/symbolic.md has the table.
#include "support/programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "codegen/codegen.h"
#include "schedule/schedule.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

using namespace test_programs;

struct Counts {
  int divisions = 0, operations = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};
void PrintTo(const Counts& c, std::ostream* out) { *out << c.divisions << " divisions, " << c.operations << " operations"; }

std::vector<UOp> kernels_of(const std::vector<UOp>& stores) {
  const Target target = cpu_target("x86-64-v4");
  const schedule::Schedule s = schedule::make_schedule(sink(stores), [&](Symbol) -> const Target& { return target; }, {.cache = false});
  std::vector<UOp> kernels;
  for (const UOp& call : s.plan->linear.src())
    if (call.src(0).is(Op::SINK)) kernels.push_back(call.src(0));
  return kernels;
}

UOp after(const UOp& kernel, std::string_view step) {
  std::vector<Step> steps;
  full_rewrite_to_sink(kernel, cpu_target("x86-64-v4"), {.noopt = true}, &steps);
  return std::ranges::find_if(steps, [&](const Step& s) { return s.name == step; })->result;
}

/// Of the nodes of dtype index and the conditions on them after a step, before opts copy any.
Counts counts_of(const std::vector<UOp>& stores, std::string_view step) {
  Counts out;
  for (const UOp& kernel : kernels_of(stores)) {
    for (const UOp& u : toposort(after(kernel, step))) {
      const bool on_indices = u.dtype() == DType::index || (u.src_count() > 0 && u.dtype() == DType::bool_);
      if (!u.in(Group::alu) || !on_indices) continue;
      ++out.operations;
      out.divisions += u.is(Op::FLOORDIV) || u.is(Op::FLOORMOD) || u.is(Op::CDIV) || u.is(Op::CMOD);
    }
  }
  return out;
}

std::vector<UOp> conv_gradients(const ConvOptions& options) {
  const UOp x = tensor({4, 8, 16, 16}), w = tensor({16, 8, 3, 3});
  std::vector<UOp> out;
  for (const UOp& g : gradients(sum(square(conv2d(x, w, {}, options))), {x, w})) out.push_back(output(g));
  return out;
}

struct Case {
  const char* name;
  Counts without, with;  ///< what gates say of indices
  int left;              ///< divisions after loops are split where they are divided, short ones written out
  std::function<std::vector<UOp>()> build;
};

std::vector<Case> cases() {
  const auto image = [] { return tensor({4, 8, 16, 16}); };
  const auto filters = [] { return tensor({16, 8, 3, 3}); };
  return {
      {"convolution", {0, 32}, {0, 32}, 0, [=] { return outputs({conv2d(image(), filters(), {}, {.padding = 1})}); }},
      {"strided convolution", {0, 31}, {0, 31}, 0, [=] { return outputs({conv2d(image(), filters(), {}, {.stride = 2, .padding = 1})}); }},
      {"dilated convolution",
       {0, 34},
       {0, 34},
       0,
       [=] { return outputs({conv2d(image(), filters(), {}, {.dilation = 2, .padding = 2})}); }},
      {"convolution's gradients", {0, 101}, {0, 101}, 0, [] { return conv_gradients({.padding = 1}); }},
      {"strided convolution's gradients", {4, 126}, {2, 126}, 0, [] { return conv_gradients({.stride = 2, .padding = 1}); }},
      {"dilated convolution's gradients", {0, 107}, {0, 107}, 0, [] { return conv_gradients({.dilation = 2, .padding = 2}); }},
      {"transposed convolution",
       {4, 57},
       {4, 57},
       0,
       [=] { return outputs({conv_transpose2d(image(), tensor({8, 4, 3, 3}), {}, {.stride = 2, .padding = 1})}); }},
      {"padded max pool",
       {0, 25},
       {0, 25},
       0,
       [=] { return outputs({max_pool2d(image(), {.kernel_size = {3, 3}, .stride = 2, .padding = 1})}); }},
      {"padded average pool",
       {0, 25},
       {0, 25},
       0,
       [=] { return outputs({avg_pool2d(image(), {.kernel_size = {3, 3}, .stride = 2, .padding = 1})}); }},
      {"transpose of a reshape",
       {2, 9},
       {2, 9},
       2,
       [] { return outputs({contiguous(transpose(ops::reshape(transpose(tensor({48, 32})), {24, 64})))}); }},
      {"reshape of a transpose of a reshape",
       {2, 9},
       {2, 9},
       2,
       [] { return outputs({contiguous(ops::reshape(transpose(ops::reshape(tensor({6, 35}), {14, 15})), {10, 21}))}); }},
      {"patches",
       {6, 19},
       {6, 19},
       0,
       [] {
         const UOp patches = ops::permute(ops::reshape(tensor({2, 3, 4, 8, 4, 8}), {2, 3, 4, 8, 4, 8}), {0, 2, 4, 1, 3, 5});
         return outputs({contiguous(ops::reshape(patches, {2, 16, 192}))});
       }},
      {"roll",
       {2, 8},
       {2, 8},
       1,
       [] {
         const int64_t by[] = {3, 5};
         return outputs({contiguous(roll(tensor({16, 24}), by, {0, 1}))});
       }},
      {"flat roll",
       {1, 4},
       {1, 4},
       0,
       [] {
         const int64_t by[] = {5};
         return outputs({contiguous(roll(tensor({16, 24}), by))});
       }},
      {"strided slice",
       {0, 6},
       {0, 6},
       0,
       [] {
         const Index rows = Slice{1, 15, 3}, columns = Slice{{}, {}, -2};
         const Index both[] = {rows, columns};
         return outputs({contiguous(get_item(tensor({16, 24}), both))});
       }},
      {"concatenation",
       {0, 13},
       {0, 13},
       0,
       [] {
         const UOp parts[] = {tensor({4, 8}), tensor({6, 8}), tensor({2, 8})};
         return outputs({ops::flip(ops::cat(parts), {0, 1})});
       }},
      {"padded reshape",
       {2, 14},
       {2, 14},
       2,
       [] { return outputs({contiguous(ops::reshape(ops::pad(tensor({5, 7}), {{1, 2}, {3, 2}}), {96}))}); }},
      {"pad of a reshape of a pad",
       {0, 19},
       {0, 19},
       0,
       [] { return outputs({contiguous(ops::pad(ops::reshape(ops::pad(tensor({30}), {{1, 1}}), {4, 8}), {{1, 1}, {2, 2}}))}); }},
      {"repeat", {2, 6}, {2, 6}, 1, [] { return outputs({contiguous(repeat(tensor({5, 3}), {3, 4}))}); }},
      {"reflected padding",
       {0, 41},
       {0, 41},
       0,
       [] { return outputs({contiguous(ops::pad(tensor({6, 7}), {{2, 2}, {3, 3}}, 0, PadMode::reflect))}); }},
  };
}

TEST(IndexOps, AreAsListed) {
  for (const Case& c : cases()) {
    EXPECT_EQ(counts_of(c.build(), "simplify"), c.without) << c.name;
    EXPECT_EQ(counts_of(c.build(), "simplify gates"), c.with) << c.name;
    EXPECT_EQ(counts_of(c.build(), "simplify expanded").divisions, c.left) << c.name;
  }
}

TEST(IndexOps, ASearchSeesThemAsOptsDo) {
  for (const Case& c : cases())
    for (const UOp& kernel : kernels_of(c.build())) EXPECT_EQ(simplified_kernel(kernel), after(kernel, "merge ranges")) << c.name;
}

TEST(Choices, AreWithoutWhatOptionsForbid) {
  const Target target = interp_target(), few = choices(target, {.nolocals = true, .tensor_cores = false});
  EXPECT_FALSE(target.tensor_cores.empty());
  EXPECT_TRUE(few.tensor_cores.empty());
  EXPECT_EQ(few.max_group_items, 1);
  EXPECT_EQ(choices(target, {.allow_tf32 = true, .images = true}).key(), target.key());
}

}  // namespace
}  // namespace tinygrad::codegen
