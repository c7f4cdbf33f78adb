// Kernels take no more arguments than their device allows, whatever a program is made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>

#include "schedule/schedule.h"
#include "shape/shape.h"
#include "support/program_parts.h"
#include "uop/graph.h"

namespace tinygrad::schedule {
namespace {

using namespace test_programs;

constexpr int64_t rows = 6, columns = 5;

UOp given() { return tensor({rows, columns}); }

std::vector<UOp> many(int n) {
  std::vector<UOp> out;
  for (int i = 0; i < n; ++i) out.push_back(given());
  return out;
}

UOp sum_of(std::span<const UOp> terms) {
  UOp sum = terms[0];
  for (const UOp& t : terms.subspan(1)) sum = add(sum, t);
  return sum;
}

UOp balanced_sum_of(std::span<const UOp> terms) {
  if (terms.size() == 1) return terms[0];
  const size_t half = terms.size() / 2;
  return add(balanced_sum_of(terms.first(half)), balanced_sum_of(terms.subspan(half)));
}

/// One value of very many tensors, drawn by seed.
UOp drawn(uint32_t seed, int inputs) {
  std::mt19937 random(seed);
  std::vector<UOp> values = many(inputs);
  while (values.size() > 1) {
    const size_t i = random() % values.size();
    const UOp a = values[i];
    values.erase(values.begin() + int64_t(i));
    UOp& b = values[random() % values.size()];
    switch (random() % 7) {
      case 0: b = mul(a, b); break;
      case 1: b = maximum(exp(mul(a, 0.1)), b); break;
      case 2: b = sub(b, sum(a, int(random() % 2), true)); break;
      case 3: b = where(lt(a, 0.5), a, b); break;
      case 4: b = matmul(matmul(a, ops::transpose(b)), b); break;
      case 5: b = shrink(pad(add(a, b), {{1, 1}, {2, 0}}), {{0, rows}, {1, columns + 1}}); break;
      default: b = add(softmax(a), b); break;
    }
  }
  return values[0];
}

Programs programs() {
  Programs all = {
      {"sum", [] { return outputs({sum_of(many(100))}); }},
      {"balanced sum", [] { return outputs({balanced_sum_of(many(100))}); }},
      {"sum of a sum", [] { return outputs({sum(sum_of(many(100)), 0, false)}); }},
      {"product with a sum", [] { return outputs({matmul(sum_of(many(70)), ops::transpose(sum_of(many(70))))}); }},
      {"parts", [] { return outputs({cat(many(100), 0)}); }},
      {"a sum in another shape",
       [] { return outputs({add(ops::transpose(sum_of(many(50))), ops::transpose(mul(sum_of(many(50)), sum_of(many(50)))))}); }},
      {"written over",
       [] {
         const UOp x = given();
         return Stores{assigned(x, add(x, sum_of(many(100))))};
       }},
      {"many results of the same",
       [] {
         const UOp x = given();
         std::vector<UOp> out;
         for (const UOp& y : many(100)) out.push_back(output(add(x, y)));
         return out;
       }},
      {"gradients of products",
       [] {
         const std::vector<UOp> w = many(40);
         UOp x = given();
         for (const UOp& u : w) x = tanh(mul(x, u));
         return sgd(sum(x), w);
       }},
  };
  for (uint32_t seed = 1; seed <= 8; ++seed) all.push_back({"drawn", [seed] { return outputs({drawn(seed, 60)}); }});
  return all;
}

size_t arguments(const UOp& call) {
  return size_t(std::ranges::count_if(call.src().subspan(1), [](const UOp& u) { return u.is(Op::PARAM); }));
}

TEST(ArgumentLimit, HoldsForEveryKernel) {
  for (const Target& device : {cpu_target("x86-64-v3"), interp_target()})
    for (const int most : {4, 8, 30, 64}) {
      Target target = device;
      target.max_buffers = most;
      for (const Program& p : programs()) {
        SCOPED_TRACE(testing::Message() << p.name << " on " << device.name() << " with " << most);
        const Schedule s = make_schedule(sink(UOps(p.build())), [&](Symbol) -> const Target& { return target; }, {.cache = false});
        for (const UOp& call : s.plan->linear.src()) EXPECT_LE(arguments(call), size_t(most));
      }
    }
}

}  // namespace
}  // namespace tinygrad::schedule
