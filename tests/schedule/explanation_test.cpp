// What a schedule says of itself: each reason, in a program that gives it.
#include "schedule/explanation.h"

#include <gtest/gtest.h>
#include <tinygrad/context.h>

#include <functional>

#include "base/log.h"
#include "schedule/schedule.h"
#include "support/programs.h"
#include "support/repeated_programs.h"
#include "uop/build.h"

namespace tinygrad::schedule {
namespace {

using namespace test_programs;

const Target& cpu(Symbol) {
  static const Target target = cpu_target("x86-64-v4");
  return target;
}
const Target& with_five_arguments(Symbol) {
  static const Target target = [] {
    Target t = cpu_target("x86-64-v4");
    t.max_buffers = 5;
    return t;
  }();
  return target;
}
const Target& small_caches(Symbol) {
  static const Target target = with_small_caches(cpu_target("x86-64-v4"));
  return target;
}

struct Explained {
  std::string_view name;
  std::function<Stores()> build;
  std::vector<std::string_view> lines;  ///< that the text has, or beginnings of them
  TargetOf target_of = cpu;

  friend void PrintTo(const Explained& e, std::ostream* out) { *out << e.name; }
};

std::string text_of(const Explained& e) {
  const Schedule s = make_schedule(sink(e.build()), e.target_of, {.cache = false, .explains = true});
  return "\n" + s.plan->explanation->text();
}

UOp square_matrix() { return tensor({64, 64}); }
UOp large() { return tensor({256, 256}); }
UOp asked_for(const UOp& x) { return UOp(Op::CONTIGUOUS, x.dtype(), {x}); }
UOp rows(const UOp& x, int64_t begin, int64_t end) { return ops::shrink(x, {{begin, end}, {0, 256}}); }

UOp chain_of_exp(UOp x, int n) {
  for (int i = 0; i < n; ++i) x = ops::exp2(x);
  return x;
}

/// Sums of `n` tensors each, of one more that they share.
Stores sums_with_a_shared_term(int n) {
  const UOp shared = large();
  Stores out;
  for (int i = 0; i < 2; ++i) {
    UOp sum = shared;
    for (int k = 1; k < n; ++k) sum = add(sum, large());
    out.push_back(output(sum));
  }
  return out;
}

std::vector<Explained> values() {
  return {
      {"a result", [] { return outputs({ops::exp2(large())}); }, {"\n 1 E_256_256\n    stores    float32 (256, 256) EXP2: it is a result"}},
      {"asked for",
       [] { return outputs({sum(asked_for(ops::exp2(large())), 1)}); },
       {"stores    float32 (256, 256) CONTIGUOUS of EXP2 for 2: contiguous() asks for it"}},
      {"long reduction",
       [] { return outputs({sum(tensor({1 << 24}))}); },
       {"CONTIGUOUS of REDUCE(ADD) of PARAM for 2: a long reduction is cut into chunks"}},
      {"overwritten",
       [] {
         const UOp b = large();
         return outputs({add(b, assigned(b, mul(b, 2.0)))});
       },
       {"float32 (256, 256) an input: what it is made of is written over before all of its users have run"}},
      {"overlap",
       [] {
         const UOp b = large();
         return Stores{assigned(b, ops::flip(b, {0}))};
       },
       {"float32 (256, 256) an input for 2: the kernel would read elements that it has written over",
        "apart     from 1 E_256_256: an iteration reads what other iterations write"}},
      {"arguments",
       [] {
         UOp sum = large();
         for (int i = 0; i < 8; ++i) sum = add(sum, large());
         return outputs({sum});
       },
       {"without it a kernel would have more arguments than the device takes", "arguments, the device takes 5"},
       with_five_arguments},
      {"circle",
       [] {
         const UOp a = large(), b = large();
         return Stores{assigned(a, ops::flip(b, {0})), assigned(b, ops::flip(a, {0}))};
       },
       {"without it kernels would wait for each other in a circle"}},
      {"full kernel",
       [] { return outputs({sum(chain_of_exp(large(), 40), 1)}); },
       {"stores    float32 (256, 256) EXP2 for 2: the kernel that needs it would take too long to compile"}},
      {"many uses",
       [] {
         const UOp x = ops::sqrt(large());
         UOp total = rows(x, 0, 128);
         for (int i = 1; i < 20; ++i) total = add(total, rows(x, i, 128 + i));
         return outputs({total});
       },
       {"stores    float32 (256, 256) SQRT for 2: more than 16 places need it"}},
      {"inner loop",
       [] { return outputs({sum(relu(matmul(large(), large())), 1)}); },
       {"stores    float32 (256, 256) REDUCE(ADD) of MUL for 2: in the loops of its user"}},
      {"few outputs",
       [] { return outputs({sum(sum(tensor({32, 64, 128}), 2), 1)}); },
       {"stores    float32 (32, 64) REDUCE(ADD) of PARAM for 2: its user has few outputs"}},
      {"cheaper stored",
       [] { return outputs({matmul(ops::exp2(tensor({128, 96})), tensor({96, 64}))}); },
       {"stores    float32 (128, 96) EXP2 for 2: to compute it again would cost ", "apart     from 1 E_128_96: their loops differ"}},
      {"cheaper computed",
       [] {
         const UOp x = ops::exp2(large());
         return outputs({add(x, 1.0), ops::transpose(x)});
       },
       {"computes  float32 (256, 256) EXP2 2 times: that costs "}},
      {"carried",
       [] { return outputs({softmax(large())}); },
       {"computes  float32 (256,) REDUCE(MAX) of PARAM: a loop of the kernel carries it along"}},
  };
}

std::vector<Explained> merges() {
  return {
      {"takes the result",
       [] {
         const UOp x = tensor({256, 256});
         return outputs({mean(x, 1), var(x, 1)});
       },
       {"hands on  float32 (256,) REDUCE(ADD) of PARAM", "REDUCE(ADD) of PARAM and float32 (256,) MUL: it reads at each place what"}},
      {"same memory",
       [] {
         const UOp b = large();
         return Stores{assigned(assigned(b, ops::exp2(large())), ops::sqrt(large()))};
       },
       {"merges    float32 (256, 256) EXP2 and float32 (256, 256) SQRT: both write the same elements"}},
      {"shared reads",
       [] {
         const UOp x = large();
         return outputs({add(x, 1.0), mul(x, 2.0)});
       },
       {"merges    float32 (256, 256) ADD and float32 (256, 256) MUL: both read the same elements"}},
      {"small", [] { return outputs({add(tensor({8}), 1.0), mul(tensor({8}), 2.0)}); }, {"MUL: a launch costs more than they do"}},
      {"between",
       [] {
         const UOp x = asked_for(ops::exp2(large()));
         return outputs({add(x, expand(reshape(asked_for(sum(x, 1)), {256, 1}), {256, 256}))});
       },
       {"another kernel runs between them"}},
      {"two products",
       [] { return outputs({matmul(matmul(square_matrix(), square_matrix()), square_matrix())}); },
       {"apart     from 1 r_64_64_64: an iteration reads what other iterations write"}},
      {"two products of one matrix",
       [] {
         const UOp x = square_matrix();
         return outputs({matmul(x, square_matrix()), matmul(x, square_matrix())});
       },
       {"apart     from 1 r_64_64_64: both reduce, and one of them uses each element for several outputs"}},
      {"product behind",
       [] { return outputs({add(asked_for(ops::exp2(square_matrix())), matmul(square_matrix(), square_matrix()))}); },
       {"apart     from 1 E_64_64: a matrix product does not stand behind another store"}},
      {"other writes",
       [] {
         const UOp b = tensor({512, 256});
         const UOp first = ops::shrink(b, {{0, 256}, {0, 256}});
         const UOp one = assigned(first, large());
         return Stores{assigned(one, ops::sqrt(large()))};
       },
       {"same"}},
      {"nothing saved",
       [] {
         const UOp b = large();
         return Stores{output(add(b, 1.0)), assigned(b, ops::exp2(large()))};
       },
       {"they share no reads"}},
      {"arguments",
       [] { return sums_with_a_shared_term(3); },
       {"apart     from 1 E_256_256: together they have 7 arguments, the device takes 5"},
       with_five_arguments},
      {"weight",
       [] {
         const UOp x = large();
         return outputs({chain_of_exp(x, 200), chain_of_exp(mul(x, 2.0), 200)});
       },
       {"together they weigh "}},
  };
}

std::vector<Explained> loops() {
  return {{"nests", [] { return outputs({add(tensor({8}), 1.0), mul(tensor({9}), 2.0)}); }, {"1 E_8_9_n2 (2 loop nests: each is small"}},
          {"a loop around kernels",
           [] { return attention_gradients({1, 8, 160, 16}); },
           {"(called 8 times in a loop around kernels: what they pass on stays in cache)"},
           small_caches}};
}

class Explains : public testing::TestWithParam<Explained> {};

TEST_P(Explains, TheReason) {
  const std::string text = text_of(GetParam());
  for (std::string_view line : GetParam().lines) EXPECT_NE(text.find(line), std::string::npos) << line << " is not in" << text;
}

INSTANTIATE_TEST_SUITE_P(Values, Explains, testing::ValuesIn(values()));
INSTANTIATE_TEST_SUITE_P(Merges, Explains, testing::ValuesIn(merges()));
INSTANTIATE_TEST_SUITE_P(Loops, Explains, testing::ValuesIn(loops()));

TEST(Explanation, OfWhatIsInsideOfAPadding) {
  Demand d{.dtype = DType::float32, .elements = 65536, .evaluations = 2 * 65536, .uses = 2, .is_padding = true};
  EXPECT_EQ(decide_by_uses(d), std::nullopt);
  EXPECT_EQ(decide_by_cost(d, {.cost = 200}, cpu("CPU")).reason, Reason::padding);
  EXPECT_EQ(decide_by_cost(d, {.cost = 20}, cpu("CPU")).reason, Reason::cheaper_computed);
  d.is_padding = false;
  const Decision stored = decide_by_cost(d, {.cost = 200}, cpu("CPU"));
  EXPECT_EQ(stored, (Decision{true, Reason::cheaper_stored, 200.0 * 65536, store_cost(cpu("CPU"), 65536, 2 * 65536, DType::float32)}));
}

TEST(Explanation, IsLoggedWhenThePlanIsMade) {
  std::string log;
  const ScopedLogSink sink_of_log([&](std::string_view line) { log += line; });
  const Context debug{{.debug = 3}};
  const UOp program = sink(outputs({ops::exp2(tensor({31, 17}))}));
  const auto how = [](int level) { return ScheduleOptions{.explains = level >= 3}; };
  const Schedule quiet = make_schedule(program, cpu, how(2));
  EXPECT_EQ(quiet.plan->explanation, nullptr);
  EXPECT_EQ(log, "");
  const Schedule told = make_schedule(program, cpu, how(3)), again = make_schedule(program, cpu, how(3));
  EXPECT_EQ(log, told.plan->explanation->text());  // once
  EXPECT_EQ(told.plan, again.plan);
  EXPECT_EQ(told.plan->linear, quiet.plan->linear);
}

}  // namespace
}  // namespace tinygrad::schedule
