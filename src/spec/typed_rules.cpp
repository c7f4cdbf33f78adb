// Sources, arg, dtype and shape of every op, as uop/ops.def has them.
#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "shape/infer.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "spec/border.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::spec {

using namespace rewrite;

namespace {

constexpr size_t no_limit = ~size_t(0);

struct Limits {
  size_t least = 0, most = no_limit;
};

/// How many sources an op takes, where ops.def says "any number".
Limits source_limits(Op op) {
  if (info(op).arity >= 0) return {size_t(info(op).arity), size_t(info(op).arity)};
  switch (op) {
    case Op::SINK:
    case Op::LINEAR:
    case Op::PARAM:
    case Op::BARRIER:
    case Op::COMMIT:
    case Op::WAIT: return {};
    case Op::FETCH:
    case Op::INDEX: return {2, 4};
    case Op::REALIZED: return {1, 2};
    case Op::WMMA: return {3, 4};
    case Op::LOAD: return {1, 3};
    case Op::STORE: return {2, 3};
    case Op::AFTER:
    case Op::END: return {2, no_limit};
    default: return {1, no_limit};
  }
}

Verdict takes_its_sources(const Match& m) {
  const UOp& u = m.root();
  const Limits limits = source_limits(u.op());
  if (u.src_count() >= limits.least && u.src_count() <= limits.most) return {};
  return Violation{fmt::format("{} sources", u.src_count()), fmt::format("{} to {}", limits.least, limits.most)};
}

template <class... T>
Verdict has_arg(const Match& m) {
  return expect((std::holds_alternative<T>(m.root().arg()) || ...), [&] {
    return Violation{fmt::format("arg '{}'", to_string(m.root().arg())), fmt::format("the arg that ops.def gives {}", name(m.root().op()))};
  });
}

/// Ops whose arg is not NoArg.
OpSet ops_with_arg() {
  using enum Op;
  return ops({CONST,    VAR,      IOTA,  PERMUTE, FLIP, REDUCE, COLLECTIVE, BUFFER,  PARAM, INDEX,  COPY,     STAGE, SINK, LINEAR,
              FUNCTION, GETTUPLE, RANGE, SPECIAL, WMMA, MSTACK, SHARD,      UNSHARD, WAIT,  TENSOR, REALIZED, KNOWN, AFTER});
}

bool is_number_of_index(DType d) { return d == DType::index || d == DType::int32 || d == DType::int64; }

/// What infer_dtype gives for its sources.
Verdict has_inferred_dtype(const Match& m) {
  const UOp& u = m.root();
  try {
    const DType d = infer_dtype(u.op(), u.src());
    return expect(d == u.dtype(), [&] { return Violation{std::string(repr(u.dtype())), fmt::format("{}, by its sources", repr(d))}; });
  } catch (const DTypeError& e) {
    return Violation{e.what(), "sources of dtypes that the op takes"};
  }
}

Verdict is_value(const Match& m) { return verdict(m.root().dtype() != DType::void_, "no value (void)", "a value"); }

Verdict takes_values(const Match& m) {
  for (const UOp& s : m.root().src())
    if (s.dtype() == DType::void_) return Violation{fmt::format("{}, which is no value", name(s.op())), "values as sources"};
  return {};
}

Verdict counts_with_index(const Match& m) {
  const UOp& u = m.root();
  if (!is_number_of_index(u.dtype())) return Violation{std::string(repr(u.dtype())), "index, or int32 or int64 once the width is chosen"};
  for (const UOp& s : u.src())
    if (s.dtype() != u.dtype()) return Violation{fmt::format("a source of {}", repr(s.dtype())), std::string(repr(u.dtype()))};
  return {};
}

/// Sizes and offsets after the first source (of PARAM: all of them).
Verdict has_integer_sizes(const Match& m) {
  const UOp& u = m.root();
  for (size_t i = u.is(Op::PARAM) || u.is(Op::IOTA) ? 0 : 1; i < u.src_count(); ++i)
    if (!is_number_of_index(u.src(i).dtype()))
      return Violation{fmt::format("a size of {}", repr(u.src(i).dtype())), "sizes of dtype index"};
  return {};
}

Verdict is_bool_source(const UOp& u, size_t i, std::string_view what) {
  if (i >= u.src_count()) return {};
  return expect(is_bool(u.src(i).dtype()), [&] { return Violation{fmt::format("{} of {}", what, repr(u.src(i).dtype())), "bool"}; });
}

Verdict shape_fits(const Match& m) {
  try {
    shape_of(m.root());
    return {};
  } catch (const InternalError& e) {
    return Violation{e.what(), "sources with shapes"};
  } catch (const Error& e) {
    return Violation{e.what(), "sources whose shapes fit"};
  }
}

bool is_reduce_op(Op op) { return ops({Op::ADD, Op::MUL, Op::MAX, Op::AND, Op::OR, Op::XOR}).test(size_t(op)); }

Verdict reduces(const Match& m) {
  const UOp& u = m.root();
  const Op op = u.arg_as<ReduceArg>().op;
  if (op == Op::FUNCTION && u.is(Op::REDUCE)) return {};
  if (!is_reduce_op(op)) return Violation{std::string(name(op)), "ADD, MUL, MAX, AND, OR or XOR"};
  const DType d = u.src(0).dtype();
  const bool bits = op == Op::AND || op == Op::OR || op == Op::XOR;
  return expect(d != DType::void_ && !(bits && is_float(d)),
                [&] { return Violation{fmt::format("{} over {}", name(op), repr(d)), "an op that the dtype has"}; });
}

/// A FUNCTION of `inputs` values giving the carried ones.
Verdict is_body(const UOp& f, const UOp& identities, size_t inputs) {
  if (!f.is(Op::FUNCTION) || !f.src(0).is(Op::TUPLE)) return Violation{std::string(name(f.op())), "a FUNCTION that gives a TUPLE"};
  const UOp& out = f.src(0);
  bool same = out.src_count() == identities.src_count();
  for (size_t i = 0; same && i < out.src_count(); ++i) same = out.src(i).dtype() == identities.src(i).dtype();
  if (!same) return Violation{"a body giving " + print_expr(out), "one value of the same dtype for each identity"};
  for (const UOp& u : toposort(out))
    if (u.is(Op::PARAM) && size_t(u.arg_as<ParamArg>().slot) >= inputs)
      return Violation{fmt::format("slot {}", u.arg_as<ParamArg>().slot), fmt::format("slots below {}", inputs)};
  return {};
}

Verdict is_general_form(const Match& m) {
  const UOp& u = m.root();
  if (!is_general_reduce(u)) return {};
  if (u.src_count() < 4) return Violation{fmt::format("{} sources", u.src_count()), "values, identities, step and merge"};
  if (!u.src(0).is(Op::TUPLE) || !u.src(1).is(Op::TUPLE)) return Violation{"no TUPLEs", "TUPLEs of values and of identities"};
  const size_t carried = u.src(1).src_count();
  if (Verdict v = is_body(u.src(2), u.src(1), carried + u.src(0).src_count())) return v;
  return is_body(u.src(3), u.src(1), 2 * carried);
}

Verdict constant_has_its_dtype(const Match& m) {
  const UOp& u = m.root();
  const DType d = u.arg_as<ConstArg>().value.dtype();
  return expect(d == u.dtype() && d != DType::void_,
                [&] { return Violation{fmt::format("a node of {} with a value of {}", repr(u.dtype()), repr(d)), "one dtype"}; });
}

Verdict calls(const Match& m) {
  const UOp &u = m.root(), &body = u.src(0);
  if (!body.is(Op::FUNCTION)) return verdict(u.dtype() == DType::void_, repr(u.dtype()), "void");
  if (u.dtype() != body.dtype()) return Violation{std::string(repr(u.dtype())), fmt::format("{}, as its body", repr(body.dtype()))};
  for (const UOp& p : toposort(body.src(0)))
    if (p.is(Op::PARAM)) {
      const auto slot = size_t(p.arg_as<ParamArg>().slot);
      if (slot + 1 >= u.src_count()) return Violation{fmt::format("no argument for slot {}", slot), "one argument for each slot"};
      if (p.dtype() != u.src(slot + 1).dtype())
        return Violation{fmt::format("{} for slot {}", repr(u.src(slot + 1).dtype()), slot), std::string(repr(p.dtype()))};
    }
  return {};
}

/// What GETTUPLE takes its element from.
const UOp* element(const UOp& from, size_t i) {
  const UOp* tuple = &from;
  if (is_general_reduce(from)) tuple = &from.src(1);
  if (from.is(Op::CALL) && from.src(0).is(Op::FUNCTION)) tuple = &from.src(0).src(0);
  return tuple->is(Op::TUPLE) && i < tuple->src_count() ? &tuple->src(i) : nullptr;
}

Verdict gets_an_element(const Match& m) {
  const UOp& u = m.root();
  const UOp* from = element(u.src(0), size_t(u.arg_as<TupleArg>().index));
  if (!from) return Violation{fmt::format("element {} of {}", u.arg_as<TupleArg>().index, name(u.src(0).op())), "an element that exists"};
  return expect(u.dtype() == from->dtype(),
                [&] { return Violation{std::string(repr(u.dtype())), fmt::format("{}, as the element", repr(from->dtype()))}; });
}

}  // namespace

const BorderRules<void>& typed_rules() {
  using enum Op;
  static const auto& table = *new BorderRules<void>{
      {any_node(), takes_its_sources, "sources"},

      {pat(CONST), has_arg<ConstArg>, "arg"},
      {pat(VAR), has_arg<VarArg>, "arg"},
      {pat({PERMUTE, FLIP}), has_arg<AxesArg>, "arg"},
      {pat(REDUCE), has_arg<ReduceArg>, "arg"},
      {pat({MSTACK, SHARD, UNSHARD}), has_arg<ShardingArg>, "arg"},
      {pat(COLLECTIVE), has_arg<CollectiveArg>, "arg"},
      {pat(BUFFER), has_arg<BufferArg>, "arg"},
      {pat(PARAM), has_arg<ParamArg>, "arg"},
      {pat(INDEX), has_arg<IndexArg>, "arg"},
      {pat({IOTA, COPY}), has_arg<DeviceArg>, "arg"},
      {pat(STAGE), has_arg<StageArg>, "arg"},
      {pat(SINK), has_arg<NoArg, KernelArg>, "arg"},
      {pat(LINEAR), has_arg<LinearArg>, "arg"},
      {pat(KNOWN), has_arg<TextArg>, "arg"},
      {pat(FUNCTION), has_arg<FunctionArg>, "arg"},
      {pat(GETTUPLE), has_arg<TupleArg>, "arg"},
      {pat(RANGE), has_arg<RangeArg>, "arg"},
      {pat(SPECIAL), has_arg<SpecialArg>, "arg"},
      {pat(WMMA), has_arg<WmmaArg>, "arg"},
      {pat(WAIT), has_arg<WaitArg>, "arg"},
      {pat(TENSOR), has_arg<TensorArg>, "arg"},
      {pat(REALIZED), has_arg<HistoryArg>, "arg"},
      {pat(AFTER), has_arg<NoArg, StoreArg>, "arg"},
      {any_but(ops_with_arg()), has_arg<NoArg>, "arg"},

      {pat(CONST), constant_has_its_dtype, "constant"},
      {pat({VAR, BIND, RANGE, SPECIAL}), counts_with_index, "index dtype"},
      {pat({PARAM, IOTA, RESHAPE, EXPAND, PAD, SHRINK}), has_integer_sizes, "sizes"},
      {pat({BUFFER, PARAM, CAST, BITCAST, COPY, STAGE, STACK}), is_value, "value"},
      {any_of(ops(Group::movement | Group::identity)), is_value, "value"},
      {pat({CAST, BITCAST, STACK}), takes_values, "value"},
      {any_but(ops({VAR, BIND, RANGE, SPECIAL, CONST, IOTA, BUFFER, PARAM, CAST, BITCAST, WMMA, GETTUPLE, CALL})), has_inferred_dtype,
       "dtype"},
      {pat(IOTA), [](const Match& m) { return verdict(is_int(m.root().dtype()), repr(m.root().dtype()), "an integer dtype"); }, "dtype"},
      {pat(BITCAST),
       [](const Match& m) {
         const DType from = m.root().src(0).dtype(), to = m.root().dtype();
         return expect(itemsize(from) == itemsize(to),
                       [&] { return Violation{fmt::format("{} as {}", repr(from), repr(to)), "equal item sizes"}; });
       },
       "bitcast"},
      {pat(LOAD), [](const Match& m) { return is_bool_source(m.root(), 2, "a gate"); }, "condition"},
      {pat(STORE), [](const Match& m) { return is_bool_source(m.root(), 2, "a gate"); }, "condition"},
      {pat(IF), [](const Match& m) { return is_bool_source(m.root(), 0, "a condition"); }, "condition"},
      {pat(REDUCE), reduces, "reduce op"},
      {pat(REDUCE), is_general_form, "general reduce"},
      {pat(CALL), calls, "call"},
      {pat(GETTUPLE), gets_an_element, "element"},
      {pat(BUFFER), [](const Match& m) { return verdict(m.root().arg_as<BufferArg>().size >= 0, "a negative size", "a size from 0"); },
       "buffer size"},
      {pat(INDEX),
       [](const Match& m) {
         return expect(m.root().arg_as<IndexArg>().width >= 1, [&] { return Violation{to_string(m.root().arg()), "a width from 1"}; });
       },
       "index width"},
      {any_but(ops({LINEAR, SINK})), shape_fits, "shape"},
  };
  return table;
}

}  // namespace tinygrad::spec
