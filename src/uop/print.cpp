#include <fmt/format.h>
#include <fmt/ranges.h>

#include "uop/graph.h"

namespace tinygrad {

namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};

std::string_view name(AxisKind k) {
  constexpr std::string_view names[] = {"loop",   "reduce", "thread", "global", "local",  "group",
                                        "upcast", "unroll", "lane",   "outer",  "element"};
  return names[size_t(k)];
}
std::string to_string(const MeshAxis& m) {
  return m.stride == 1 ? fmt::format("{}", m.count) : fmt::format("{} of stride {}", m.count, m.stride);
}
std::string join(const auto& values) { return fmt::format("{}", fmt::join(values.begin(), values.end(), ",")); }

}  // namespace

std::string_view name(Scope s) {
  constexpr std::string_view names[] = {"reg", "thread", "group", "device", "tensor"};
  return names[size_t(s)];
}

std::string_view name(Collective c) {
  constexpr std::string_view names[] = {"allreduce", "allgather", "reducescatter", "scatter", "gather"};
  return names[size_t(c)];
}

std::string_view name(OptOp o) {
  constexpr std::string_view names[opt_op_count] = {"UPCAST", "UNROLL", "LOCAL", "THREAD", "GROUP", "GROUPTOP", "NOLOCALS",
                                                    "PADTO",  "SWAP",   "TC",    "LANE",   "STAGE", "BLOCK",    "OUTER"};
  return names[size_t(o)];
}

std::string to_string(const Opt& o) {
  if (o.op != OptOp::STAGE) return fmt::format("{}({},{})", name(o.op), o.axis, o.arg);
  const StageOpt s = StageOpt::of(o.arg);
  return fmt::format("STAGE({},{},{},{}{})", o.axis, s.slot, name(s.scope), s.depth, s.computed ? ",computed" : "");
}

std::string to_string(const Arg& arg) {
  return std::visit(
      Overload{
          [](const NoArg&) { return std::string(); },
          [](const ConstArg& a) { return a.value.to_string() + (a.device.empty() ? "" : fmt::format("@{}", a.device.str())); },
          [](const VarArg& a) {
            return fmt::format("{} in {}..{}", a.name.str(), a.min, a.max) +
                   (a.devices.empty() ? "" : fmt::format(" on {}", to_string(a.devices)));
          },
          [](const AxesArg& a) { return fmt::format("({})", join(a.axes)); },
          [](const ReduceArg& a) { return fmt::format("{} ({})", tinygrad::name(a.op), join(a.axes)); },
          [](const BufferArg& a) { return fmt::format("#{} size {} {} {}", a.id, a.size, name(a.scope), a.device.str()); },
          [](const ParamArg& a) {
            std::string s = fmt::format("slot {}", a.slot);
            if (a.align) s += fmt::format(" align {}", a.align);
            if (a.alias) s += fmt::format(" alias {}", a.alias);
            if (!a.device.empty()) s += fmt::format(" {}", to_string(a.device));
            return s;
          },
          [](const IndexArg& a) {
            std::string s = a.width == 1 ? std::string() : fmt::format("width {}", a.width);
            if (a.state) s += fmt::format("{}state {}", s.empty() ? "" : " ", a.state);
            if (a.streams) s += s.empty() ? "streams" : " streams";
            return s;
          },
          [](const DeviceArg& a) { return std::string(a.device.str()) + (a.begin ? fmt::format(" from {}", a.begin) : ""); },
          [](const StageArg& a) {
            std::string runs = a.gap == 0 ? std::string() : fmt::format(" run {} gap {}", a.run, a.gap);
            if (a.swizzle > 1) runs += fmt::format(" run {} swizzle {}", a.run, a.swizzle);
            return fmt::format("{} depth {} layout ({}){}", name(a.scope), a.depth, join(a.layout), runs);
          },
          [](const RangeArg& a) {
            return fmt::format("r{} {}", a.id, name(a.kind)) + (a.order ? fmt::format(" order {}", a.order) : std::string());
          },
          [](const SpecialArg& a) { return fmt::format("{}{}", name(a.kind), a.dim); },
          [](const KernelArg& a) {
            std::string s(a.name.str());
            for (const Opt& o : a.opts) s += " " + to_string(o);
            return s + (a.optimized ? " optimized" : "");
          },
          [](const LinearArg& a) { return std::string(a.kind == 0 ? "schedule" : "kernel"); },
          [](const TextArg& a) { return fmt::format("{} bytes", a.text.str().size()); },
          [](const FunctionArg& a) { return std::string(a.name.str()); },
          [](const TupleArg& a) { return fmt::format("{}", a.index); },
          [](const WmmaArg& a) { return fmt::format("{} {}x{}x{}", a.name.str(), a.m, a.n, a.k); },
          [](const WaitArg& a) { return fmt::format("pending {}", a.pending); },
          [](const TensorArg& a) { return fmt::format("{}{}", a.id, a.is_view ? " view" : ""); },
          [](const HistoryArg& a) { return fmt::format("{}", a.id); },
          [](const StoreArg& a) { return fmt::format("{}", a.id); },
          [](const ShardingArg& a) {
            std::string s = to_string(a.devices);
            for (const ShardedAxis& x : a.axes)
              s += fmt::format("; axis {} over {}", x.axis, to_string(x.mesh)) + (x.is_gathered ? " gathered" : "");
            return s;
          },
          [](const CollectiveArg& a) {
            std::string s(name(a.kind));
            if (a.kind == Collective::allreduce || a.kind == Collective::reducescatter) s += fmt::format(" {}", tinygrad::name(a.op));
            if (a.is_transient) s += " transient";
            for (const MeshAxis& m : a.along) s += fmt::format(" over {}", to_string(m));
            return s + (a.devices.empty() ? "" : fmt::format(" to {}", to_string(a.devices)));
          },
      },
      arg);
}

uint64_t hash_arg(const Arg& arg) {
  if (std::holds_alternative<NoArg>(arg)) return hash_combine(0, 0);  // as below
  const uint64_t h =
      std::visit(Overload{
                     [](const NoArg&) { return uint64_t(0); },
                     [](const ConstArg& a) { return hash_all(a.value.dtype(), a.value.bits(), a.device) ^ uint64_t(a.given); },
                     [](const VarArg& a) {
                       const uint64_t v = hash_all(a.name, a.min, a.max);
                       return a.devices.empty() ? v : hash_all(v, a.devices);
                     },
                     [](const AxesArg& a) { return hash_all(a.axes); },
                     [](const ReduceArg& a) { return hash_all(a.op, a.axes); },
                     [](const BufferArg& a) { return hash_all(a.id, a.size, a.scope, a.device); },
                     [](const ParamArg& a) { return hash_all(a.slot, a.align, a.alias, a.device); },
                     [](const IndexArg& a) { return hash_all(a.width, a.state, a.streams); },
                     [](const DeviceArg& a) { return a.begin ? hash_all(a.device, a.begin) : hash_all(a.device); },
                     [](const StageArg& a) { return hash_all(a.scope, a.depth, a.layout, a.run, a.gap, a.swizzle); },
                     [](const RangeArg& a) { return hash_all(a.id, a.kind, a.order); },
                     [](const SpecialArg& a) { return hash_all(a.kind, a.dim); },
                     [](const KernelArg& a) {
                       uint64_t k = hash_all(a.name, a.optimized);
                       for (const Opt& o : a.opts) k = hash_all(k, o.op, o.axis, o.arg);
                       return k;
                     },
                     [](const LinearArg& a) { return hash_all(a.kind); },
                     [](const TextArg& a) { return hash_all(a.text); },
                     [](const FunctionArg& a) { return hash_all(a.name, a.gradient_id); },
                     [](const TupleArg& a) { return hash_all(a.index); },
                     [](const WmmaArg& a) { return hash_all(a.name, a.m, a.n, a.k, a.a, a.b, a.out); },
                     [](const WaitArg& a) { return hash_all(a.pending); },
                     [](const TensorArg& a) { return hash_all(a.id, a.is_view); },
                     [](const HistoryArg& a) { return hash_all(a.id); },
                     [](const StoreArg& a) { return hash_all(a.id); },
                     [](const ShardingArg& a) { return hash_all(a.devices, a.axes); },
                     [](const CollectiveArg& a) { return hash_all(a.kind, a.op, a.is_transient, a.devices, a.along); },
                 },
                 arg);
  return hash_combine(arg.index(), h);
}

std::string print_graph(std::span<const UOp> roots) {
  const std::vector<UOp> order = toposort(roots, Scopes::enter);
  NodeMap<size_t> number(order.size());
  std::string out;
  for (const UOp& u : order) {
    const size_t next = number.size();
    number[u] = next;
    std::vector<std::string> sources;
    for (const UOp& s : u.src()) {
      if (s.is(Op::CONST))
        sources.push_back(to_string(s.arg()));
      else
        sources.push_back(fmt::format("%{}", *number.find(s)));
    }
    const std::string arg = to_string(u.arg());
    out += fmt::format("%{:<4} {:<10} {:<9} ({}){}{}\n", *number.find(u), name(u.op()), name(u.dtype()), fmt::join(sources, ", "),
                       arg.empty() ? "" : " ; ", arg);
  }
  return out;
}

std::string print_graph(const UOp& root) { return print_graph(std::span(&root, 1)); }

namespace {

std::string_view infix(Op op) {
  switch (op) {
    case Op::ADD: return "+";
    case Op::SUB: return "-";
    case Op::MUL: return "*";
    case Op::FDIV: return "/";
    case Op::CDIV: return "//c";
    case Op::CMOD: return "%c";
    case Op::FLOORDIV: return "//";
    case Op::FLOORMOD: return "%";
    case Op::CMPLT: return "<";
    case Op::CMPNE: return "!=";
    case Op::CMPEQ: return "==";
    case Op::XOR: return "^";
    case Op::OR: return "|";
    case Op::AND: return "&";
    case Op::SHL: return "<<";
    case Op::SHR: return ">>";
    default: return {};
  }
}

constexpr int max_expr_depth = 64;
// A graph that shares nodes is exponentially larger when written as an expression.
constexpr int max_expr_nodes = 1000;

std::string expr(const UOp& u, int depth, int& budget) {
  if (!u) return "null";
  if (depth > max_expr_depth || --budget < 0) return "...";
  switch (u.op()) {
    case Op::CONST: return u.arg_as<ConstArg>().value.to_string();
    case Op::VAR: return std::string(u.arg_as<VarArg>().name.str());
    case Op::RANGE: return fmt::format("r{}", u.arg_as<RangeArg>().id);
    case Op::PARAM: return fmt::format("p{}", u.arg_as<ParamArg>().slot);
    case Op::BUFFER: return fmt::format("b{}", u.arg_as<BufferArg>().id);
    default: break;
  }
  std::vector<std::string> sources;
  for (const UOp& s : u.src()) {
    sources.push_back(expr(s, depth + 1, budget));
    if (budget < 0) break;
  }
  if (auto sign = infix(u.op()); !sign.empty() && sources.size() == 2) return fmt::format("({}{}{})", sources[0], sign, sources[1]);
  const std::string arg = to_string(u.arg());
  return fmt::format("{}({}{}{})", name(u.op()), fmt::join(sources, ", "), arg.empty() ? "" : "; ", arg);
}

}  // namespace

std::string print_expr(const UOp& u) {
  int budget = max_expr_nodes;
  return expr(u, 0, budget);
}

}  // namespace tinygrad
