#include <fmt/compile.h>
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "renderer/llvmir/emitter.h"
#include "renderer/llvmir/vectors.h"

// Every op is defined for every input (uop/ops.def), while LLVM's division and shifts are not: those get selects around them, which
// constant operands do without.
namespace tinygrad::renderer::llvmir {
namespace {

std::string int_splat(int64_t value, const Value& like) { return splat_literal(Scalar::from_int(value, like.dtype), like.lanes); }

class Alu {
 public:
  Alu(Emitter& out, Op op, DType dtype, const std::vector<Value>& sources, bool no_wrap)
      : out_(out),
        op_(op),
        dtype_(dtype),
        s_(sources),
        no_wrap_(no_wrap),
        hint_(name(op)),
        type_(type_name(sources[0].dtype, sources[0].lanes)) {
    for (char& c : hint_) c = static_cast<char>(c | 0x20);  // lower case, digits stay
  }

  std::string emit() {
    const DType d = s_[0].dtype;
    switch (op_) {
      case Op::ADD: return binary(is_float(d) ? fusing("fadd", "fadd contract") : is_bool(d) ? "or" : no_wrap_ ? "add nsw" : "add");
      case Op::SUB: return binary(is_float(d) ? fusing("fsub", "fsub contract") : is_bool(d) ? "xor" : no_wrap_ ? "sub nsw" : "sub");
      case Op::MUL: return binary(is_float(d) ? fusing("fmul", "fmul contract") : is_bool(d) ? "and" : no_wrap_ ? "mul nsw" : "mul");
      case Op::FDIV: return binary("fdiv");
      case Op::XOR: return binary("xor");
      case Op::OR: return binary("or");
      case Op::AND: return binary("and");
      case Op::NEG: return negate();
      case Op::RECIPROCAL: return line("fdiv {} {}, {}", type_, int_splat(1, s_[0]), s_[0].ref);
      case Op::SQRT: return intrinsic("llvm.sqrt");
      case Op::TRUNC: return is_float(d) ? intrinsic("llvm.trunc") : s_[0].ref;
      case Op::LDEXP: return scaled(out_, s_[0], s_[1]);
      case Op::MAX: return maximum();
      case Op::CMPLT: return binary(is_float(d) ? "fcmp olt" : is_signed(d) ? "icmp slt" : "icmp ult");
      case Op::CMPNE: return binary(is_float(d) ? "fcmp une" : "icmp ne");
      case Op::CMPEQ: return binary(is_float(d) ? "fcmp oeq" : "icmp eq");
      case Op::SHL: return shift(no_wrap_ ? "shl nsw" : "shl");
      case Op::SHR: return shift(is_signed(d) ? "ashr" : "lshr");
      case Op::CDIV:
      case Op::CMOD: return divide();
      case Op::WHERE: return select(typed(s_[0]), s_[1].ref, s_[2].ref, type_name(dtype_, s_[0].lanes));
      case Op::MULACC: return mulacc();
      default: throw InternalError(fmt::format("LLVM IR: {} must be decomposed before rendering", name(op_)));
    }
  }

 private:
  template <class... T>
  std::string line(fmt::format_string<T...> text, T&&... args) {
    return out_.define(hint_, fmt::format(text, std::forward<T>(args)...));
  }
  std::string binary(std::string_view instruction) {
    return out_.define(hint_, fmt::format(FMT_COMPILE("{} {} {}, {}"), instruction, type_, s_[0].ref, s_[1].ref));
  }
  std::string intrinsic(std::string_view base) {
    std::vector<std::string> arguments;
    for (const Value& v : s_) arguments.push_back(typed(v));
    return out_.call(hint_, type_, fmt::format("{}.{}", base, suffix(s_[0].dtype, s_[0].lanes)), arguments);
  }
  std::string select(std::string_view condition, std::string_view yes, std::string_view no, std::string_view type) {
    return out_.define(hint_, fmt::format(FMT_COMPILE("select {}, {} {}, {} {}"), condition, type, yes, type, no));
  }
  /// Multiply-adds fuse, but halves are rounded after each op, also by processors that would compute them at once.
  std::string_view fusing(std::string_view never, std::string_view allowed) const {
    return s_[0].dtype == DType::float16 ? never : allowed;
  }
  /// That a source is a constant makes the op simpler.
  bool is_known() const { return s_[0].constant || s_[1].constant; }
  std::string bits() const { return type_name(DType::bool_, s_[0].lanes); }

  std::string negate() {
    if (is_float(dtype_)) return line("fneg {} {}", type_, s_[0].ref);
    if (is_bool(dtype_)) return s_[0].ref;
    return line("sub {}{} {}, {}", no_wrap_ ? "nsw " : "", type_, int_splat(0, s_[0]), s_[0].ref);
  }

  std::string maximum() {
    if (is_bool(dtype_)) return binary("or");
    if (!is_float(dtype_)) return intrinsic(is_signed(dtype_) ? "llvm.smax" : "llvm.umax");
    // llvm.maximum is NaN for a NaN and orders the zeros, unlike maxnum and the processors' instructions.
    if (dtype_ != DType::float16) return is_known() || !has_greater(out_, s_[0]) ? intrinsic("llvm.maximum") : greater(out_, s_[0], s_[1]);
    if (!out_.has_halves()) return half_maximum();
    return out_.has_avx512() ? maximum_of_both_orders() : intrinsic("llvm.maximum");
  }

  /// VMAXPH gives its second source for two zeros, so that the bits of both orders together are those of 0.0 if either is 0.0, and for a
  /// NaN.
  std::string maximum_of_both_orders() {
    const std::string integer = type_name(DType::int16, s_[0].lanes);
    std::vector<std::string> most;
    for (const auto& [x, y] : {std::pair(s_[0].ref, s_[1].ref), {s_[1].ref, s_[0].ref}}) {
      const std::string greater = bits() + " " + line("fcmp ogt {} {}, {}", type_, x, y);
      most.push_back(line("bitcast {} {} to {}", type_, select(greater, x, y, type_), integer));
    }
    const std::string result = line("bitcast {} {} to {}", integer, line("and {} {}, {}", integer, most[0], most[1]), type_);
    const std::string has_nan = bits() + " " + line("fcmp uno {} {}, {}", type_, s_[0].ref, s_[1].ref);
    return select(has_nan, binary("fadd"), result, type_);
  }

  /// LLVM 19 makes a call of fmaxf, which loses NaNs, of llvm.maximum for halves, also of one of widened halves. The bits of floats are
  /// in order as integers once those of negative ones are inverted.
  std::string half_maximum() {
    const DType bits_dtype = DType::int16;
    const int lanes = s_[0].lanes;
    const std::string integer = type_name(bits_dtype, lanes);
    const auto literal = [&](int64_t v) { return splat_literal(Scalar::from_int(v, bits_dtype), lanes); };
    const auto inverted = [&](const std::string& v) {
      const std::string sign = line("ashr {} {}, {}", integer, v, literal(15));
      return line("xor {} {}, {}", integer, v, line("and {} {}, {}", integer, sign, literal(0x7fff)));
    };
    std::vector<std::string> keys;
    for (const Value& v : s_) keys.push_back(integer + " " + inverted(line("bitcast {} {} to {}", type_, v.ref, integer)));
    const std::string most = out_.call(hint_, integer, "llvm.smax." + suffix(bits_dtype, lanes), keys);
    const std::string result = line("bitcast {} {} to {}", integer, inverted(most), type_);
    const std::string has_nan = bits() + " " + line("fcmp uno {} {}, {}", type_, s_[0].ref, s_[1].ref);
    return select(has_nan, binary("fadd"), result, type_);
  }

  std::string mulacc() {
    // fmuladd, not fma: a processor without fused multiply-add is not made to call a function.
    if (is_float(dtype_)) return intrinsic("llvm.fmuladd");
    const std::string product = line("{} {} {}, {}", is_bool(dtype_) ? "and" : "mul", type_, s_[0].ref, s_[1].ref);
    return line("{} {} {}, {}", is_bool(dtype_) ? "or" : "add", type_, product, s_[2].ref);
  }

  /// An amount of the width or more, or a negative one, shifts everything out.
  std::string shift(std::string_view instruction) {
    const Value &x = s_[0], &y = s_[1];
    const int width = bitsize(x.dtype);
    if (y.constant && y.constant->as_uint() < static_cast<uint64_t>(width)) {
      return line("{} {} {}, {}", instruction, type_, x.ref, splat_literal(Scalar::from_uint(y.constant->as_uint(), x.dtype), x.lanes));
    }
    const std::string amount_type = type_name(y.dtype, y.lanes);
    const std::string inside = line("icmp ult {} {}, {}", amount_type, y.ref, int_splat(width, y));
    std::string amount = y.ref;
    if (bitsize(y.dtype) != width) amount = line("{} {} {} to {}", bitsize(y.dtype) > width ? "trunc" : "zext", amount_type, y.ref, type_);
    const std::string condition = fmt::format("{} {}", bits(), inside);
    if (instruction == "ashr") {
      const std::string clamped = select(condition, amount, int_splat(width - 1, x), type_);
      return line("ashr {} {}, {}", type_, x.ref, clamped);
    }
    const std::string shifted = line("{} {} {}, {}", instruction, type_, x.ref, amount);
    return select(condition, shifted, int_splat(0, x), type_);
  }

  /// By zero: 0. The least integer by -1 wraps.
  std::string divide() {
    const Value &x = s_[0], &y = s_[1];
    const bool is_signed_type = is_signed(x.dtype), quotient = op_ == Op::CDIV;
    const std::string instruction = fmt::format("{}{}", is_signed_type ? "s" : "u", quotient ? "div" : "rem");
    const Scalar minus_one = Scalar::from_int(-1, x.dtype);
    if (y.constant && !y.constant->is_zero() && !(is_signed_type && *y.constant == minus_one)) return binary(instruction);

    const std::string zero = int_splat(0, x), one = int_splat(1, x);
    const std::string by_zero = bits() + " " + line("icmp eq {} {}, {}", type_, y.ref, zero);
    if (!is_signed_type) {
      const std::string result = line("{} {} {}, {}", instruction, type_, x.ref, select(by_zero, one, y.ref, type_));
      return select(by_zero, zero, result, type_);
    }
    // With a divisor of 0 or -1 replaced by 1 the remainder is 0, as it must be.
    const std::string by_minus_one = bits() + " " + line("icmp eq {} {}, {}", type_, y.ref, int_splat(-1, x));
    const std::string divisor = select(by_minus_one, one, select(by_zero, one, y.ref, type_), type_);
    std::string result = line("{} {} {}, {}", instruction, type_, x.ref, divisor);
    if (!quotient) return result;
    const std::string negated = line("sub {} {}, {}", type_, zero, x.ref);
    return select(by_zero, zero, select(by_minus_one, negated, result, type_), type_);
  }

  Emitter& out_;
  const Op op_;
  const DType dtype_;
  const std::vector<Value>& s_;
  const bool no_wrap_;
  std::string hint_;
  const std::string type_;
};

}  // namespace

Value emit_alu(Emitter& out, Op op, DType dtype, const std::vector<Value>& sources, bool no_wrap) {
  for (const Value& v : sources) {
    if (v.lanes != sources[0].lanes) {
      throw InternalError(fmt::format("LLVM IR: {} of {} and {} lanes: sources must have one width", name(op), sources[0].lanes, v.lanes));
    }
  }
  return {.ref = Alu(out, op, dtype, sources, no_wrap).emit(), .dtype = dtype, .lanes = sources[0].lanes};
}

}  // namespace tinygrad::renderer::llvmir
