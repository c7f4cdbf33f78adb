// z3 proves of whole kernels that simplification keeps each condition, and each index wherever its condition holds.
#include "support/programs.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "codegen/codegen.h"
#include "schedule/schedule.h"
#include "symbolic/bounds.h"
#include "symbolic/gated.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

/// Expressions in SMT-LIB, each node defined once. What is no arithmetic (a load) is any number within its bounds.
class Smt {
 public:
  std::string term(const UOp& root) {
    for (const UOp& u : toposort_where(std::span(&root, 1), [](const UOp& n) { return n.in(Group::alu) && is_arithmetic(n); }))
      if (!names_.contains(u)) define(u);
    return *names_.find(root);
  }
  std::string text;

 private:
  static bool is_arithmetic(const UOp& u) { return u.dtype() == DType::index || u.dtype() == DType::bool_; }

  void define(const UOp& u) {
    held_.push_back(u);
    if (u.is(Op::CONST)) {
      const int64_t v = const_value(u)->as_int();
      names_[u] = is_bool(u.dtype()) ? (v ? "true" : "false") : v < 0 ? fmt::format("(- {})", -v) : fmt::format("{}", v);
      return;
    }
    const std::string name = fmt::format("n{}", names_.size()), sort = is_bool(u.dtype()) ? "Bool" : "Int";
    const std::string value = u.in(Group::alu) && is_arithmetic(u) ? operation(u) : "";
    if (!value.empty()) {
      text += fmt::format("(define-fun {} () {} {})\n", name, sort, value);
    } else {
      text += fmt::format("(declare-const {} {})\n", name, sort);
      const symbolic::Bounds b = symbolic::bounds(u);
      if (sort == "Int" && b.has_min()) text += fmt::format("(assert (>= {} {}))\n", name, number(b.min));
      if (sort == "Int" && b.has_max()) text += fmt::format("(assert (<= {} {}))\n", name, number(b.max));
    }
    names_[u] = name;
  }
  static std::string number(int64_t v) { return v < 0 ? fmt::format("(- {})", -v) : fmt::format("{}", v); }

  /// Empty for what has no counterpart. SMT-LIB's div and mod by a positive number are those of floor.
  std::string operation(const UOp& u) const {
    const auto of = [&](size_t i) { return *names_.find(u.src(i)); };
    const auto apply = [&](const char* op) { return fmt::format("({} {} {})", op, of(0), of(1)); };
    const bool division = u.is(Op::FLOORDIV) || u.is(Op::FLOORMOD);
    if (division && symbolic::bounds(u.src(1)).min <= 0) return "";
    for (const UOp& s : u.src())
      if (!names_.contains(s) || !is_arithmetic(s)) return "";
    switch (u.op()) {
      case Op::ADD: return apply("+");
      case Op::SUB: return apply("-");
      case Op::MUL: return apply("*");
      case Op::NEG: return fmt::format("(- {})", of(0));
      case Op::FLOORDIV: return apply("div");
      case Op::FLOORMOD: return apply("mod");
      case Op::MAX: return fmt::format("(ite (< {0} {1}) {1} {0})", of(0), of(1));
      case Op::CMPLT: return apply("<");
      case Op::CMPEQ: return apply("=");
      case Op::CMPNE: return apply("distinct");
      case Op::AND: return apply("and");
      case Op::OR: return apply("or");
      case Op::WHERE: return fmt::format("(ite {} {} {})", of(0), of(1), of(2));
      default: return "";
    }
  }

  NodeMap<std::string> names_;
  std::vector<UOp> held_;
};

/// z3's answers, a line each.
std::vector<std::string> ask_z3(const std::string& script) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("tinygrad_proof_{}.smt2", ::getpid());
  std::ofstream(path) << script;
  std::vector<std::string> lines;
  if (std::FILE* out = ::popen(fmt::format("z3 -t:20000 '{}' 2>&1", path.string()).c_str(), "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, out)) lines.emplace_back(line, std::char_traits<char>::length(line) - 1);
    ::pclose(out);
  }
  std::filesystem::remove(path);
  return lines;
}

constexpr size_t least_claims = 40;

TEST(IndexProof, IndicesOfKernelsStayTheSame) {
  const Target target = cpu_target("x86-64-v4");
  Smt smt;
  std::vector<std::string> claims;
  for (const auto& program : test_programs::all()) {
    const schedule::Schedule s =
        schedule::make_schedule(sink(program.build()), [&](Symbol) -> const Target& { return target; }, {.cache = false});
    NodeSet seen;
    for (const UOp& call : s.plan->linear.src()) {
      if (!call.src(0).is(Op::SINK) || !seen.insert(call.src(0))) continue;
      for (const UOp& u : toposort(call.src(0))) {
        if (!u.is(Op::INDEX)) continue;
        const UOp valid = u.src_count() > 2 ? u.src(2) : bool_const(true);
        const symbolic::Gated simple = symbolic::simplify_gated(u.src(1), valid);
        if (simple.index == u.src(1) && simple.valid == valid) continue;
        const std::string holds = smt.term(valid);
        smt.text += fmt::format("(push)\n(assert (not (and (= {0} {1}) (=> {0} (= {2} {3})))))\n(check-sat)\n(pop)\n", holds,
                                smt.term(simple.valid), smt.term(u.src(1)), smt.term(simple.index));
        claims.push_back(fmt::format("{}: {} where {} became {} where {}", program.name, print_expr(u.src(1)), print_expr(valid),
                                     print_expr(simple.index), print_expr(simple.valid)));
      }
    }
  }
  EXPECT_GE(claims.size(), least_claims) << "the programs have too few indices that change";
  // Last, what is assumed of all of them must be possible: from a contradiction everything follows.
  const std::vector<std::string> answers = ask_z3(smt.text + "(check-sat)\n");
  ASSERT_EQ(answers.size(), claims.size() + 1) << (answers.empty() ? "z3 gave no answer; tools/setup installs it" : answers[0]);
  EXPECT_EQ(answers.back(), "sat") << "the bounds contradict each other";
  for (size_t i = 0; i < claims.size(); ++i) EXPECT_EQ(answers[i], "unsat") << claims[i];
}

}  // namespace
}  // namespace tinygrad::codegen
