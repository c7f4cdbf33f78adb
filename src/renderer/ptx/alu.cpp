#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "renderer/ptx/emitter.h"

// Every op is defined for every input (uop/ops.def), while PTX says nothing of division by zero: that gets selects around it, which
// constant operands do without. Shifts by more than the width give what they must.
namespace tinygrad::renderer::ptx {
namespace {

class Alu {
 public:
  Alu(Emitter& out, Op op, DType dtype, std::span<const Operand> sources)
      : out_(out), op_(op), dtype_(dtype), s_(sources), d_(sources[op == Op::WHERE ? 1 : 0].dtype) {}

  std::string run() {
    if (op_ == Op::WHERE) return where();
    if (is_bool(d_)) return logic();
    if (d_ == DType::float16 && !has_halves()) return through_float32();
    switch (op_) {
      case Op::CMPLT: return compare("lt");
      case Op::CMPNE: return compare(is_float(d_) ? "neu" : "ne");
      case Op::CMPEQ: return compare("eq");
      case Op::ADD: return wrapped(typed(rounded("add")));
      case Op::SUB: return wrapped(typed(rounded("sub")));
      case Op::MUL: return wrapped(typed(is_float(d_) ? rounded("mul") : "mul.lo"));
      case Op::MULACC: return wrapped(multiply_add());
      case Op::FDIV: return typed("div.rn");
      case Op::RECIPROCAL: return typed("rcp.rn");
      case Op::SQRT: return typed("sqrt.rn");
      case Op::TRUNC: return is_float(d_) ? emit(fmt::format("cvt.rzi.{0}.{0}", type_name(d_))) : out_.in_register(s_[0]);
      case Op::NEG: return wrapped(emit(fmt::format("neg.{}", is_float(d_) ? type_name(d_) : signed_name())));
      case Op::MAX: return maximum();
      case Op::AND: return by_bits("and");
      case Op::OR: return by_bits("or");
      case Op::XOR: return by_bits("xor");
      case Op::SHL: return wrapped(shift("shl", bits_name(d_)));
      case Op::SHR: return shift("shr", type_name(d_));
      case Op::CDIV:
      case Op::CMOD: return wrapped(divide());
      default: throw InternalError(fmt::format("PTX: {} must be decomposed before rendering", name(op_)));
    }
  }

 private:
  bool has_halves() const { return op_ != Op::FDIV && op_ != Op::RECIPROCAL && op_ != Op::SQRT && op_ != Op::TRUNC; }
  std::string operands() const {
    std::string out = s_[0].text;
    for (const Operand& x : s_.subspan(1)) (out += ", ") += x.text;
    return out;
  }
  std::string emit(std::string_view instruction) { return out_.define(dtype_, instruction, operands()); }
  std::string typed(std::string_view instruction) { return emit(fmt::format("{}.{}", instruction, type_name(d_))); }
  /// Assemblers fuse a product with a sum unless both say how they round. Halves are rounded after each op.
  std::string rounded(std::string_view instruction) const { return fmt::format("{}{}", instruction, d_ == DType::float16 ? ".rn" : ""); }
  std::string by_bits(std::string_view instruction) { return emit(fmt::format("{}.{}", instruction, bits_name(d_))); }
  std::string compare(std::string_view how) {
    const std::string_view type = is_float(d_) || how == "lt" ? type_name(d_) : bits_name(d_);
    return emit(fmt::format("setp.{}.{}", how, type));
  }
  std::string_view signed_name() const { return bitsize(d_) <= 16 ? "s16" : bitsize(d_) == 32 ? "s32" : "s64"; }

  /// Of 8 bits, the register holds 16.
  std::string wrapped(std::string x) {
    if (dtype_ == DType::int8) return out_.define(dtype_, "cvt.s16.s8", x);
    if (dtype_ == DType::uint8) return out_.define(dtype_, "and.b16", x + ", 255");
    return x;
  }

  std::string logic() {
    std::string a = out_.in_register(s_[0]);
    const std::string b = s_.size() > 1 ? out_.in_register(s_[1]) : "";
    const auto both = [&](std::string_view instruction) { return out_.define(DType::bool_, instruction, a + ", " + b); };
    switch (op_) {
      case Op::ADD:
      case Op::MAX:
      case Op::OR: return both("or.pred");
      case Op::MUL:
      case Op::AND: return both("and.pred");
      case Op::SUB:
      case Op::XOR:
      case Op::CMPNE: return both("xor.pred");
      case Op::CMPEQ: return out_.define(DType::bool_, "not.pred", both("xor.pred"));
      case Op::CMPLT: return out_.define(DType::bool_, "and.pred", out_.define(DType::bool_, "not.pred", a) + ", " + b);
      case Op::MULACC: return out_.define(DType::bool_, "or.pred", fmt::format("{}, {}", both("and.pred"), out_.in_register(s_[2])));
      case Op::NEG:
      case Op::TRUNC: return a;
      default: throw InternalError(fmt::format("PTX: {} of bool must be decomposed before rendering", name(op_)));
    }
  }

  /// 11 bits of a mantissa are less than half of 24: rounding twice is rounding once.
  std::string through_float32() {
    std::vector<Operand> wide;
    for (const Operand& x : s_) wide.push_back({.text = emit_cast(out_, x, DType::float32), .dtype = DType::float32});
    return emit_cast(out_, {.text = Alu(out_, op_, DType::float32, wide).run(), .dtype = DType::float32}, DType::float16);
  }

  std::string where() {
    const std::string condition = out_.in_register(s_[0]);
    if (!is_bool(d_))
      return out_.define(dtype_, fmt::format("selp.{}", bits_of_select()), fmt::format("{}, {}, {}", s_[1].text, s_[2].text, condition));
    const std::string yes = out_.define(DType::bool_, "and.pred", condition + ", " + out_.in_register(s_[1]));
    const std::string other = out_.define(DType::bool_, "not.pred", condition);
    return out_.define(DType::bool_, "or.pred", yes + ", " + out_.define(DType::bool_, "and.pred", other + ", " + out_.in_register(s_[2])));
  }
  std::string_view bits_of_select() const { return d_ == DType::float32 || d_ == DType::float64 ? type_name(d_) : bits_name(d_); }

  std::string maximum() {
    if (d_ != DType::float64) return typed(is_float(d_) ? "max.NaN" : "max");
    const std::string larger = typed("max"), sum = typed("add"), has_nan = out_.define(DType::bool_, "setp.nan.f64", operands());
    return out_.define(d_, "selp.f64", fmt::format("{}, {}, {}", sum, larger, has_nan));
  }

  std::string multiply_add() {
    if (is_float(d_)) return typed("fma.rn");
    return typed("mad.lo");
  }

  /// The amount, of any integer dtype and taken as unsigned, as 32 bits; what does not fit is as good as the width.
  std::string amount() const {
    const Operand& y = s_[1];
    const uint64_t width = uint64_t(bitsize(d_));
    if (y.constant) return std::to_string(std::min(y.constant->as_uint(), width));
    if (bitsize(y.dtype) == 64)
      return out_.define(DType::uint32, "cvt.u32.u64", out_.define(DType::uint64, "min.u64", fmt::format("{}, {}", y.text, width)));
    return bitsize(y.dtype) == 32 ? y.text : out_.define(DType::uint32, "cvt.u32.u16", y.text);
  }
  std::string shift(std::string_view instruction, std::string_view type) {
    return out_.define(dtype_, fmt::format("{}.{}", instruction, type), fmt::format("{}, {}", s_[0].text, amount()));
  }

  /// By zero: 0. The least integer by -1 wraps: its quotient is minus the dividend, its remainder 0.
  std::string divide() {
    const std::string instruction = op_ == Op::CDIV ? "div" : "rem";
    const bool by_minus_one = is_signed(d_) && s_[1].constant && *s_[1].constant == Scalar::from_int(-1, d_);
    if (s_[1].constant && !s_[1].constant->is_zero() && !by_minus_one) return typed(instruction);
    const std::string_view type = type_name(d_), bits = bits_name(d_);
    const std::string x = out_.in_register(s_[0]), y = out_.in_register(s_[1]);
    const auto select = [&](std::string_view yes, const std::string& no, const std::string& condition) {
      return out_.define(d_, fmt::format("selp.{}", bits), fmt::format("{}, {}, {}", yes, no, condition));
    };
    const auto is = [&](int64_t n) { return out_.define(DType::bool_, fmt::format("setp.eq.{}", bits), fmt::format("{}, {}", y, n)); };
    const std::string zero = is(0);
    std::string divisor = select("1", y, zero), minus_one;
    if (is_signed(d_)) divisor = select("1", divisor, minus_one = is(-1));
    std::string result = out_.define(d_, fmt::format("{}.{}", instruction, type), fmt::format("{}, {}", x, divisor));
    if (is_signed(d_) && op_ == Op::CDIV) result = select(out_.define(d_, fmt::format("neg.{}", signed_name()), x), result, minus_one);
    return select("0", result, zero);
  }

  Emitter& out_;
  const Op op_;
  const DType dtype_;
  const std::span<const Operand> s_;
  const DType d_;  ///< of what is computed with
};

}  // namespace

std::string emit_alu(Emitter& out, Op op, DType dtype, std::span<const Operand> sources) { return Alu(out, op, dtype, sources).run(); }

}  // namespace tinygrad::renderer::ptx
