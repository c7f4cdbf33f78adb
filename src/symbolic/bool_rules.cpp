#include "symbolic/normal.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::symbolic {

namespace {

using namespace rewrite;
constexpr Capture x{0}, y{1}, c{2};

Pat boolean(Capture a) { return a.dtype(DType::bool_); }

UOp constant_like(const Match& m, bool value) { return same_shape(m.root(), bool_const(value)); }

}  // namespace

const Rules<>& bool_rules() {
  static const auto& rules = *new Rules<>{
      {pat({Op::CMPNE, Op::CMPEQ}, {any_const(c), boolean(x).where([](const UOp& u) { return !u.is(Op::CONST); })}).ordered(),
       [](const Match& m) { return alu(m.root().op(), {m[x], m[c]}); }, "bool constant last"},
      {logical_not(logical_not(x)), x, "!!x"},
      {ne(boolean(x), false), x, "x!=false"},
      {eq(boolean(x), true), x, "x==true"},
      {eq(boolean(x), false), [](const Match& m) { return logical_not(m[x]); }, "x==false"},
      {ne(boolean(x), x), [](const Match& m) { return constant_like(m, false); }, "x!=x bool"},
      {eq(boolean(x), x), [](const Match& m) { return constant_like(m, true); }, "x==x bool"},
      {logical_not(eq(x, y)), [](const Match& m) { return ne(m[x], m[y]); }, "!(x==y)"},
      {logical_not(pat(Op::CMPNE, {x, y}).ordered()), [](const Match& m) { return eq(m[x], m[y]); }, "!(x!=y)"},
      // The arithmetic ops on bools are logic.
      {boolean(x) + y, [](const Match& m) { return m[x] | m[y]; }, "bool +"},
      {boolean(x) * y, [](const Match& m) { return m[x] & m[y]; }, "bool *"},
      {max(boolean(x), y), [](const Match& m) { return m[x] | m[y]; }, "bool max"},
      {boolean(x) - y, [](const Match& m) { return ne(m[x], m[y]); }, "bool -"},
      {boolean(x) ^ y, [](const Match& m) { return ne(m[x], m[y]); }, "bool ^"},
      {boolean(x) < y, [](const Match& m) { return logical_not(m[x]) & m[y]; }, "bool <"},
      {pat({Op::AND, Op::OR}, {x, y}).dtype(DType::bool_), [](const Match& m) { return same_shape(m.root(), normal_logic(m.root())); },
       "and, or"},
      {where(c, true, false).dtype(DType::bool_), c, "where(c,true,false)"},
      {where(c, false, true).dtype(DType::bool_), [](const Match& m) { return logical_not(m[c]); }, "where(c,false,true)"},
      {where(c, boolean(x), false), [](const Match& m) { return m[c] & m[x]; }, "where(c,x,false)"},
      {where(c, true, boolean(x)), [](const Match& m) { return m[c] | m[x]; }, "where(c,true,x)"},
      {where(logical_not(c), x, y), [](const Match& m) { return where(m[c], m[y], m[x]); }, "where(!c,x,y)"},
      {where(true, x, y), [](const Match& m) { return same_shape(m.root(), m[x]); }, "where(true,x,y)"},
      {where(false, x, y), [](const Match& m) { return same_shape(m.root(), m[y]); }, "where(false,x,y)"},
      {where(c, x, x), [](const Match& m) { return same_shape(m.root(), m[x]); }, "where(c,x,x)"},
      {where(c, where(c, x, y), Capture{3}), [](const Match& m) { return same_shape(m.root(), where(m[c], m[x], m[Capture{3}])); },
       "where(c,where(c,x,y),z)"},
      {where(c, Capture{3}, where(c, x, y)), [](const Match& m) { return same_shape(m.root(), where(m[c], m[Capture{3}], m[y])); },
       "where(c,z,where(c,x,y))"},
  };
  return rules;
}

}  // namespace tinygrad::symbolic
