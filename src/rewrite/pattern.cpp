#include "rewrite/pattern.h"

namespace tinygrad::rewrite {

Pat Capture::dtype(DType d) const { return Pat(*this).dtype(d); }
Pat Capture::dtype(std::initializer_list<DType> ds) const { return Pat(*this).dtype(ds); }
Pat Capture::dtype(bool (*test)(DType)) const { return Pat(*this).dtype(test); }
Pat Capture::where(Predicate test) const { return Pat(*this).where(test); }

namespace {

OpSet op_set(std::initializer_list<Op> ops) {
  OpSet set;
  for (Op op : ops) set.set(size_t(op));
  return set;
}

OpSet op_set(Group group) {
  OpSet set;
  for (int op = 0; op < op_count; ++op) set.set(size_t(op), in_group(Op(op), group));
  return set;
}

}  // namespace

Pat::Pat(Number n) : ops_(op_set({Op::CONST})), number_(n) {}

Pat::Pat(OpSet ops, std::optional<std::vector<Pat>> sources, bool more) : ops_(ops), sources_(std::move(sources)), more_(more) {}

Pat Pat::named(Capture c) && {
  capture_ = c.id;
  return std::move(*this);
}

Pat Pat::dtype(DType d) && { return std::move(*this).dtype({d}); }

Pat Pat::dtype(std::initializer_list<DType> ds) && {
  DTypeSet set;
  for (DType d : ds) set.set(size_t(d));
  dtypes_ &= set;
  return std::move(*this);
}

Pat Pat::dtype(bool (*test)(DType)) && {
  for (int d = 0; d < dtype_count; ++d)
    if (!test(DType(d))) dtypes_.reset(size_t(d));
  return std::move(*this);
}

Pat Pat::where(Predicate test) && {
  tests_.push_back(test);
  return std::move(*this);
}

Pat Pat::ordered() && {
  ordered_ = true;
  return std::move(*this);
}

Pat pat(Op op) { return Pat(op_set({op}), std::nullopt, true); }
Pat pat(Op op, std::initializer_list<Pat> sources) { return Pat(op_set({op}), sources, false); }
Pat pat(Op op, std::initializer_list<Pat> sources, Rest) { return Pat(op_set({op}), sources, true); }
Pat pat(std::initializer_list<Op> ops) { return Pat(op_set(ops), std::nullopt, true); }
Pat pat(std::initializer_list<Op> ops, std::initializer_list<Pat> sources) { return Pat(op_set(ops), sources, false); }
Pat pat(std::initializer_list<Op> ops, std::initializer_list<Pat> sources, Rest) { return Pat(op_set(ops), sources, true); }
Pat pat(Group group) { return Pat(op_set(group), std::nullopt, true); }
Pat pat(Group group, std::initializer_list<Pat> sources) { return Pat(op_set(group), sources, false); }
Pat pat(Group group, std::initializer_list<Pat> sources, Rest) { return Pat(op_set(group), sources, true); }

Pat any_const(Capture c) { return pat(Op::CONST).named(c); }

Pat operator+(const Pat& a, const Pat& b) { return pat(Op::ADD, {a, b}); }
Pat operator-(const Pat& a, const Pat& b) { return pat(Op::SUB, {a, b}); }
Pat operator*(const Pat& a, const Pat& b) { return pat(Op::MUL, {a, b}); }
Pat operator-(const Pat& a) { return pat(Op::NEG, {a}); }
Pat operator&(const Pat& a, const Pat& b) { return pat(Op::AND, {a, b}); }
Pat operator|(const Pat& a, const Pat& b) { return pat(Op::OR, {a, b}); }
Pat operator^(const Pat& a, const Pat& b) { return pat(Op::XOR, {a, b}); }
Pat operator<<(const Pat& a, const Pat& b) { return pat(Op::SHL, {a, b}); }
Pat operator>>(const Pat& a, const Pat& b) { return pat(Op::SHR, {a, b}); }
Pat operator<(const Pat& a, const Pat& b) { return pat(Op::CMPLT, {a, b}); }
Pat floor_div(const Pat& a, const Pat& b) { return pat(Op::FLOORDIV, {a, b}); }
Pat floor_mod(const Pat& a, const Pat& b) { return pat(Op::FLOORMOD, {a, b}); }
Pat max(const Pat& a, const Pat& b) { return pat(Op::MAX, {a, b}); }
Pat eq(const Pat& a, const Pat& b) { return pat(Op::CMPEQ, {a, b}); }
Pat ne(const Pat& a, const Pat& b) { return pat(Op::CMPNE, {a, b}); }
Pat logical_not(const Pat& a) { return pat(Op::CMPNE, {a, Pat(true).dtype(DType::bool_)}); }
Pat where(const Pat& c, const Pat& a, const Pat& b) { return pat(Op::WHERE, {c, a, b}); }

}  // namespace tinygrad::rewrite
