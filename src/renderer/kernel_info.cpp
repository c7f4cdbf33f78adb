#include "renderer/kernel_info.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "renderer/scratch.h"
#include "symbolic/mean.h"
#include "target/target.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {
namespace {

int64_t wrapped(uint64_t x) { return static_cast<int64_t>(x); }

int64_t quotient(int64_t a, int64_t b, bool floor) {
  if (b == 0) return 0;
  if (b == -1) return wrapped(-static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return floor && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t shifted_left(int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : wrapped(static_cast<uint64_t>(a) << b); }
int64_t shifted_right(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

/// What `op` does to three values of which it may use fewer; nothing for an op that index expressions do not have.
std::optional<int64_t> apply(Op op, int64_t a, int64_t b, int64_t c) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::ADD: return wrapped(ua + ub);
    case Op::SUB: return wrapped(ua - ub);
    case Op::MUL: return wrapped(ua * ub);
    case Op::MULACC: return wrapped(ua * ub + static_cast<uint64_t>(c));
    case Op::NEG: return wrapped(-ua);
    case Op::CDIV: return quotient(a, b, false);
    case Op::FLOORDIV: return quotient(a, b, true);
    case Op::CMOD: return b == 0 ? 0 : wrapped(ua - ub * static_cast<uint64_t>(quotient(a, b, false)));
    case Op::FLOORMOD: return b == 0 ? 0 : wrapped(ua - ub * static_cast<uint64_t>(quotient(a, b, true)));
    case Op::MAX: return std::max(a, b);
    case Op::CMPLT: return a < b;
    case Op::CMPNE: return a != b;
    case Op::CMPEQ: return a == b;
    case Op::AND: return a & b;
    case Op::OR: return a | b;
    case Op::XOR: return a ^ b;
    case Op::SHL: return shifted_left(a, b);
    case Op::SHR: return shifted_right(a, b);
    case Op::WHERE: return a ? b : c;
    case Op::CAST: return a;
    default: return std::nullopt;
  }
}

}  // namespace

IndexExpr::IndexExpr(const UOp& expression, std::span<const Symbol> variables) {
  if (const Scalar* c = const_value(expression)) {
    constant_ = c->as_int();
    return;
  }
  NodeMap<int32_t> position;
  for (const UOp& u : toposort(expression)) {
    Step step{.op = u.op()};
    if (u.is(Op::CONST)) {
      step.value = u.arg_as<ConstArg>().value.as_int();
    } else if (u.is(Op::VAR)) {
      const auto found = std::find(variables.begin(), variables.end(), u.arg_as<VarArg>().name);
      if (found == variables.end())
        throw InternalError(fmt::format("launch expression {}: its variable is not bound", print_expr(expression)));
      step.value = found - variables.begin();
    } else if (u.src_count() <= 3 && !is_float(u.dtype()) && apply(u.op(), 1, 1, 1)) {
      int32_t* sources[] = {&step.a, &step.b, &step.c};
      for (size_t i = 0; i < u.src_count(); ++i) *sources[i] = position[u.src(i)];
    } else {
      throw InternalError(
          fmt::format("launch expression {}: {} is not an integer operation on variables", print_expr(expression), name(u.op())));
    }
    position[u] = static_cast<int32_t>(steps_.size());
    steps_.push_back(step);
  }
}

bool IndexExpr::is_valid(size_t variables) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    const auto number = static_cast<int32_t>(i);
    if (s.op == Op::CONST) continue;
    if (s.op == Op::VAR ? s.value < 0 || static_cast<size_t>(s.value) >= variables : !apply(s.op, 1, 1, 1)) return false;
    for (int32_t source : {s.a, s.b, s.c})
      if (s.op != Op::VAR && (source < 0 || source >= number)) return false;
  }
  return true;
}

int64_t IndexExpr::evaluate(std::span<const int64_t> variables) const {
  if (steps_.empty()) return constant_;
  SmallVector<int64_t, 32> values;
  for (const Step& s : steps_) {
    if (s.op == Op::CONST)
      values.push_back(s.value);
    else if (s.op == Op::VAR)
      values.push_back(variables[static_cast<size_t>(s.value)]);
    else
      values.push_back(*apply(s.op, values[static_cast<size_t>(s.a)], values[static_cast<size_t>(s.b)], values[static_cast<size_t>(s.c)]));
  }
  return values.back();
}

LaunchDims KernelInfo::launch_dims(std::span<const int64_t> variable_values) const {
  LaunchDims dims;
  for (int i = 0; i < 3; ++i) {
    dims.global[i] = global[i].evaluate(variable_values);
    dims.local[i] = local[i].evaluate(variable_values);
  }
  dims.chunks = chunks.evaluate(variable_values);
  return dims;
}

namespace {

/// A count of work: mostly a number, for which no nodes are made, else an expression of dtype index, whatever width the kernel counts in.
class Count {
 public:
  Count(int64_t number) : number_(number) {}
  explicit Count(const UOp& size) {
    if (const Scalar* c = const_value(size))
      number_ = c->as_int();
    else
      expression_ = cast(size, DType::index);
  }
  bool is_number(int64_t n) const { return !expression_ && number_ == n; }
  UOp uop() const { return expression_ ? expression_ : index_const(number_); }

  friend Count operator*(const Count& a, const Count& b) {
    if (a.is_number(1)) return b;
    if (b.is_number(1)) return a;
    if (a.expression_ || b.expression_) return of(a.uop() * b.uop());
    return wrapped(static_cast<uint64_t>(a.number_) * static_cast<uint64_t>(b.number_));
  }
  friend Count operator+(const Count& a, const Count& b) {
    if (a.is_number(0)) return b;
    if (b.is_number(0)) return a;
    if (a.expression_ || b.expression_) return of(a.uop() + b.uop());
    return wrapped(static_cast<uint64_t>(a.number_) + static_cast<uint64_t>(b.number_));
  }
  friend Count smaller(const Count& a, const Count& b) {
    if (a.expression_ || b.expression_) return of(min(a.uop(), b.uop()));
    return std::min(a.number_, b.number_);
  }

 private:
  static Count of(UOp expression) {
    Count c(0);
    c.expression_ = std::move(expression);
    return c;
  }

  int64_t number_ = 0;
  UOp expression_;  ///< null for a number
};

/// Lanes of each value of a linear program, given those of its sources.
int64_t lanes_of(const UOp& u, const NodeMap<int64_t>& lanes) {
  const auto of = [&](size_t i) {
    const int64_t* n = lanes.find(u.src(i));
    return n ? *n : 1;
  };
  switch (u.op()) {
    case Op::INDEX:
      if (!u.src(0).in(Group::memory)) return 1;
      return of(1) * u.arg_as<IndexArg>().width;
    case Op::STACK: return static_cast<int64_t>(u.src_count());
    case Op::WMMA: return of(2);
    case Op::EXPAND: return const_value(u.src(1))->as_int();
    case Op::SHRINK: return const_value(u.src(2))->as_int() - const_value(u.src(1))->as_int();
    case Op::LOAD:
    case Op::CAST:
    case Op::BITCAST: return of(0);
    default:
      if (u.in(Group::alu)) return of(u.src_count() - 1);
      return 1;
  }
}

struct Traffic {
  Count loaded = 0, stored = 0;  // bytes, each access counted
};

class Describer {
 public:
  explicit Describer(const UOp& linear) : linear_(linear), lanes_(linear.src_count()) {}

  KernelInfo describe(std::string_view name) {
    for (const UOp& u : linear_.src()) {
      // Every work-item runs the whole program.
      if (u.is(Op::SPECIAL)) trips_[0] = trips_[0] * Count(u.src(0));
    }
    for (const UOp& u : linear_.src()) visit(u);
    info_.name = name;
    for (const auto& [symbol, seen] : variables_) info_.variables.push_back(symbol);
    for (int i = 0; i < 3; ++i) {
      info_.global[i] = expr(global_[i]);
      info_.local[i] = expr(local_[i]);
    }
    info_.chunks = expr(chunks_);
    info_.flops = expr(flops_.uop());
    Count bytes = 0;
    for (const auto& [slot, u] : params_) {
      const Traffic& t = traffic_[slot];
      Count size(u.src(0));
      for (const UOp& s : u.src().subspan(1)) size = size * Count(s);
      const Count whole = size * static_cast<int64_t>(itemsize(u.dtype()));
      bytes = bytes + (smaller(t.loaded, whole) + smaller(t.stored, whole));
      const auto& arg = u.arg_as<ParamArg>();
      info_.params.push_back({.slot = slot,
                              .dtype = u.dtype(),
                              .size = expr(size.uop()),
                              .read = !t.loaded.is_number(0),
                              .written = !t.stored.is_number(0),
                              .align = arg.align,
                              .alias = arg.alias,
                              .image_width = is_image(u) ? static_cast<int32_t>(const_value(u.src(1))->as_int()) : 0});
    }
    info_.bytes = expr(bytes.uop());
    if (keeps_sums_) info_.group_bytes += kept_sums_group_bytes;
    info_.scratch_bytes = ScratchLayout(linear_).bytes();
    return std::move(info_);
  }

 private:
  IndexExpr expr(const UOp& u) const { return IndexExpr(u, info_.variables); }

  void visit(const UOp& u) {
    lanes_[u] = lanes_of(u, lanes_);
    switch (u.op()) {
      case Op::PARAM:
        params_[u.arg_as<ParamArg>().slot] = u;
        // A size may name variables that the instructions do not.
        for (const UOp& size : u.src())
          for (const UOp& v : toposort(size)) note_variable(v);
        break;
      case Op::VAR: note_variable(u); break;
      case Op::BUFFER:
        if (u.arg_as<BufferArg>().scope == Scope::group) info_.group_bytes += group_bytes(u);
        break;
      case Op::RANGE:
        trips_.push_back(trips_.back() * Count(symbolic::mean(u.src(0))));
        if (u.arg_as<RangeArg>().kind == AxisKind::thread) chunks_ = u.src(0);
        break;
      case Op::END:
        for (size_t i = 1; i < u.src_count(); ++i) trips_.pop_back();
        break;
      case Op::SPECIAL: {
        const auto& arg = u.arg_as<SpecialArg>();
        (arg.kind == AxisKind::global ? global_ : local_)[arg.dim] = u.src(0);
        break;
      }
      case Op::LOAD: count_bytes(u, u.src(0), &Traffic::loaded); break;
      case Op::STORE: count_bytes(u.src(1), u.src(0), &Traffic::stored); break;
      case Op::FETCH: count_bytes(u.src(1), u.src(1), &Traffic::loaded); break;
      case Op::WMMA: {
        flops_ = flops_ + trips_.back() * (2 * u.arg_as<WmmaArg>().k * lanes_[u]);
        const TensorCore* core = find_tensor_core(u.arg_as<WmmaArg>().name);
        keeps_sums_ |= core && core->keeps_sums;
        break;
      }
      default:
        // Arithmetic on indices is not what the user asked for.
        if (u.in(Group::alu) && counts_as_work(u)) {
          const int64_t each = u.is(Op::MULACC) ? 2 : 1;
          flops_ = flops_ + trips_.back() * (each * lanes_[u]);
        }
    }
  }

  /// True unless the value only says where to read or write. Integer arithmetic on data counts, so it must come from a load.
  bool counts_as_work(const UOp& u) {
    if (is_float(u.dtype())) return true;
    bool data = false;
    for (const UOp& s : u.src()) data = data || is_float(s.dtype()) || s.is(Op::LOAD) || (data_.find(s) != nullptr);
    if (data) data_[u] = true;
    return data;
  }

  void note_variable(const UOp& u) {
    if (u.is(Op::VAR)) variables_[u.arg_as<VarArg>().name] = true;
  }

  void count_bytes(const UOp& value, const UOp& index, Count Traffic::* direction) {
    if (!index.src(0).is(Op::PARAM)) return;
    const size_t item = itemsize(index.src(0).dtype());
    Count& total = traffic_[index.src(0).arg_as<ParamArg>().slot].*direction;
    const int64_t each = lanes_[value] * static_cast<int64_t>(item);
    total = total + trips_.back() * each;
  }

  const UOp& linear_;
  KernelInfo info_;
  NodeMap<int64_t> lanes_;
  NodeMap<bool> data_;
  std::map<int32_t, UOp> params_;
  std::map<int32_t, Traffic> traffic_;
  std::map<Symbol, bool> variables_;
  std::vector<Count> trips_{1};  // how often each open block runs
  UOp global_[3] = {index_const(1), index_const(1), index_const(1)};
  UOp local_[3] = {index_const(1), index_const(1), index_const(1)};
  UOp chunks_ = index_const(1);
  Count flops_ = 0;
  bool keeps_sums_ = false;
};

}  // namespace

KernelInfo describe_kernel(const UOp& linear, std::string_view name) { return Describer(linear).describe(name); }

int64_t group_bytes(const UOp& buffer) { return group_array_bytes(buffer.arg_as<BufferArg>().size * int64_t(itemsize(buffer.dtype()))); }

int64_t given_group_bytes(const Target& target, const KernelInfo& info) {
  return target.declared_group_bytes != 0 && info.group_bytes > target.declared_group_bytes ? info.group_bytes : 0;
}

bool stores_to(const KernelInfo& info, const UOp& place) {
  const auto p = std::ranges::find(info.params, place.src(0).arg_as<ParamArg>().slot, &KernelParam::slot);
  return p != info.params.end() && p->written;
}

std::string kernel_symbol(std::string_view kernel_name) {
  std::string out(kernel_name);
  for (char& c : out) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!plain) c = '_';
  }
  return "kernel_" + out;
}

}  // namespace tinygrad
