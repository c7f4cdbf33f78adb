#pragma once
/// Runs an expression over scalars, op by op, as dtype/scalar_ops.h defines them.

#include <span>
#include <stdexcept>
#include <vector>

#include "dtype/scalar_ops.h"
#include "uop/graph.h"

namespace tinygrad::codegen::test {

class ScalarProgram {
 public:
  ScalarProgram(const UOp& expr, const std::vector<UOp>& inputs) : nodes_(toposort(expr)), values_(nodes_.size()) {
    NodeMap<int> at;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      at[nodes_[i]] = int(i);
      std::vector<int> sources;
      for (const UOp& s : nodes_[i].src()) sources.push_back(at[s]);
      sources_.push_back(sources);
    }
    for (const UOp& x : inputs) inputs_.push_back(at.find(x) ? at[x] : -1);
  }

  Scalar run(const std::vector<Scalar>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs_[i] >= 0) values_[size_t(inputs_[i])] = inputs[i];
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].is(Op::VAR)) values_[i] = step(i);
    return values_.back();
  }

 private:
  Scalar step(size_t i) const {
    const UOp& u = nodes_[i];
    const auto at = [&](size_t k) -> const Scalar& { return values_[size_t(sources_[i][k])]; };
    switch (u.op()) {
      case Op::CONST: return u.arg_as<ConstArg>().value;
      case Op::CAST: return at(0).cast(u.dtype());
      case Op::BITCAST: return at(0).bitcast(u.dtype());
      case Op::ADD: return scalar::add(at(0), at(1));
      case Op::SUB: return scalar::sub(at(0), at(1));
      case Op::MUL: return scalar::mul(at(0), at(1));
      case Op::NEG: return scalar::neg(at(0));
      case Op::MAX: return scalar::max(at(0), at(1));
      case Op::FDIV: return scalar::fdiv(at(0), at(1));
      case Op::RECIPROCAL: return scalar::reciprocal(at(0));
      case Op::TRUNC: return scalar::trunc(at(0));
      case Op::MULACC: return scalar::mulacc(at(0), at(1), at(2));
      case Op::LDEXP: return scalar::ldexp(at(0), at(1));
      case Op::CDIV: return scalar::cdiv(at(0), at(1));
      case Op::CMOD: return scalar::cmod(at(0), at(1));
      case Op::FLOORDIV: return scalar::floordiv(at(0), at(1));
      case Op::FLOORMOD: return scalar::floormod(at(0), at(1));
      case Op::AND: return scalar::and_(at(0), at(1));
      case Op::OR: return scalar::or_(at(0), at(1));
      case Op::XOR: return scalar::xor_(at(0), at(1));
      case Op::SHL: return scalar::shl(at(0), at(1));
      case Op::SHR: return scalar::shr(at(0), at(1));
      case Op::CMPLT: return scalar::cmplt(at(0), at(1));
      case Op::CMPNE: return scalar::cmpne(at(0), at(1));
      case Op::CMPEQ: return scalar::cmpeq(at(0), at(1));
      case Op::WHERE: return scalar::where(at(0), at(1), at(2));
      default: throw std::logic_error("evaluate_scalar.h does not know " + std::string(name(u.op())));
    }
  }

  std::vector<UOp> nodes_;
  std::vector<Scalar> values_;
  std::vector<std::vector<int>> sources_;
  std::vector<int> inputs_;
};

}  // namespace tinygrad::codegen::test
