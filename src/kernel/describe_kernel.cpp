#include "kernel/describe_kernel.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/function_ref.h"
#include "kernel/accessed_memory.h"
#include "kernel/kernel_info.h"
#include "kernel/scratch_layout.h"
#include "symbolic/mean.h"
#include "target/target.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

int64_t wrapped(uint64_t x) { return static_cast<int64_t>(x); }

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

/// The lanes of each value of a linear program, which follow from those of its sources.
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
  /// `reads` says whether loads of a slot's argument may see what was there before the launch.
  Describer(const UOp& linear, FunctionRef<bool(int32_t slot)> reads) : linear_(linear), reads_(reads), lanes_(linear.src_count()) {}

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
                              .read = !t.loaded.is_number(0) && reads_(slot),
                              .written = !t.stored.is_number(0),
                              .align = arg.align,
                              .alias = arg.alias,
                              .image_width = is_image(u) ? static_cast<int32_t>(const_value(u.src(1))->as_int()) : 0});
    }
    info_.bytes = expr(bytes.uop());
    if (uses_tensor_memory_) info_.group_bytes += tensor_memory_group_bytes;
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
        uses_tensor_memory_ |= core && core->tensor_memory;
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
  const FunctionRef<bool(int32_t slot)> reads_;
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
  bool uses_tensor_memory_ = false;
};

}  // namespace

KernelInfo describe_kernel(const UOp& linear, const UOp& kernel) {
  std::set<int32_t> read;
  for (const UOp& u : toposort(kernel))
    if (const UOp memory = u.is(Op::LOAD) ? memory_of(u.src(0)) : UOp(); memory && memory.is(Op::PARAM))
      read.insert(memory.arg_as<ParamArg>().slot);
  return Describer(linear, [&](int32_t slot) { return read.contains(slot); }).describe(kernel.arg_as<KernelArg>().name.str());
}

KernelInfo describe_kernel(const UOp& linear, std::string_view name) {
  return Describer(linear, [](int32_t) { return true; }).describe(name);
}

}  // namespace tinygrad
