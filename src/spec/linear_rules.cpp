// The linear program: what the code generator gives to renderers and the interpreted device.
#include <algorithm>

#include <fmt/core.h>

#include "shape/shape.h"
#include "spec/border.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::spec {

using namespace rewrite;

namespace {

OpSet instructions() {
  using enum Op;
  return ops({CONST,    VAR,    SPECIAL, PARAM, BUFFER, RANGE, END,    IF,    ENDIF,  BARRIER, FETCH,
              PREFETCH, COMMIT, WAIT,    INDEX, LOAD,   STORE, EXPAND, STACK, SHRINK, WMMA,    WMMA_WAIT}) |
         ops(Group::elementwise);
}

Verdict stands_in_order(const Match& m, Program& program) {
  const UOp& u = m.root();
  if (program.is_listed(u)) return Violation{"the same instruction earlier in the list", "each instruction once"};
  for (const UOp& s : u.src()) {
    if (!program.is_listed(s)) return Violation{fmt::format("its source {} not listed yet", print_expr(s)), "sources earlier in the list"};
    // What an END stands for may be the loop's last instruction.
    if (!program.in_scope(s))
      return Violation{fmt::format("its source {} inside a block that has ended", print_expr(s)), "sources in scope"};
  }
  return {};
}

Verdict ends_the_innermost(const Match& m, Program& program) {
  const UOp& u = m.root();
  const Op opens = u.is(Op::END) ? Op::RANGE : Op::IF;
  if (u.is(Op::END) && u.src_count() != 2) return Violation{fmt::format("{} sources", u.src_count()), "END(x, range)"};
  const UOp &opener = u.src(u.src_count() - 1), &innermost = program.innermost();
  return expect(opener.is(opens) && opener == innermost, [&] {
    return Violation{fmt::format("an end of {} inside {}", print_expr(opener), innermost ? print_expr(innermost) : "no block"),
                     "the end of the innermost open block"};
  });
}

Verdict is_a_loop(const Match& m, Program& program) {
  const AxisKind kind = m.root().arg_as<RangeArg>().kind;
  if (kind == AxisKind::upcast || kind == AxisKind::unroll || kind == AxisKind::lane || kind == AxisKind::element)
    return Violation{to_string(m.root().arg()), "loops only: this kind was to be expanded"};
  if (kind != AxisKind::thread) return {};
  return verdict(program.depth() == 0 && !program.has_threads, "a second or an inner loop over threads", "threads as the outermost loop");
}

Verdict is_memory_near(const Match& m) {
  const auto& b = m.root().arg_as<BufferArg>();
  return expect(b.scope == Scope::reg || b.scope == Scope::group || b.scope == Scope::tensor,
                [&] { return Violation{to_string(m.root().arg()), "scope reg, group or tensor"}; });
}

Verdict is_argument(const Match& m, Program& program) {
  const UOp& u = m.root();
  if (is_image(u) ? !all_known(shape_of(u)) : rank_of(u) != 1)
    return Violation{to_string(shape_of(u)), "flat memory, or an image of known size"};
  const int32_t slot = u.arg_as<ParamArg>().slot;
  const auto [at, is_new] = program.params.try_emplace(slot, u);
  return expect(slot >= 0 && (is_new || at->second == u),
                [&] { return Violation{fmt::format("another PARAM of slot {}", slot), "one PARAM for a slot"}; });
}

bool is_memory(const UOp& u) { return u.in(Group::memory); }

/// An address in memory, or one lane of a vector.
Verdict is_place_or_lane(const Match& m) {
  const UOp& u = m.root();
  if (is_image(u.src(0))) {
    const bool is_texel = u.src_count() == 3 && u.arg_as<IndexArg>().width == 4 && shape_of(u.src(1)).empty() && shape_of(u.src(2)).empty();
    return verdict(is_texel, "another place in an image", "INDEX(image, y, x; width 4)");
  }
  if (u.src_count() != 2) return Violation{"a validity", "a gate at the LOAD or STORE"};
  if (is_memory(u.src(0))) {
    const bool one_or_run = u.arg_as<IndexArg>().width == 1 || rank_of(u.src(1)) == 0;
    return expect(one_or_run, [&] {
      return Violation{fmt::format("width {} at {}", u.arg_as<IndexArg>().width, describe_value(u.src(1))),
                       "one run, or one place per lane"};
    });
  }
  const Shape& shape = shape_of(u.src(0));
  const Scalar* lane = const_value(u.src(1));
  if (shape.size() != 1 || !lane)
    return Violation{fmt::format("{} at {}", describe_value(u.src(0)), print_expr(u.src(1))), "INDEX(vector, CONST)"};
  return expect(lane->as_int() >= 0 && surely_less(lane->as_int(), shape[0]),
                [&] { return Violation{fmt::format("lane {} of {}", lane->as_int(), to_string(shape)), "a lane that exists"}; });
}

bool same_shape(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

/// Every broadcast is an EXPAND.
Verdict has_equal_shapes(const Match& m) {
  const UOp& u = m.root();
  for (const UOp& s : u.src())
    if (!same_shape(shape_of(s), shape_of(u)))
      return Violation{describe_value(s), fmt::format("sources of shape {}", to_string(shape_of(u)))};
  return {};
}

Verdict uses_values(const Match& m) {
  for (const UOp& s : m.root().src())
    if (is_memory(s) || is_address(s)) return Violation{fmt::format("{}, which is a place", name(s.op())), "values, read by a LOAD"};
  return {};
}

/// The place, what is stored or the alternative, and a gate of () or of each lane.
Verdict is_access(const Match& m) {
  const UOp& u = m.root();
  if (!is_address(u.src(0))) return Violation{std::string(name(u.src(0).op())), "an INDEX of memory"};
  if (u.is(Op::LOAD) && u.src_count() == 2) return Violation{"an alternative without a gate", "both or none"};
  const Shape& shape = shape_of(u.src(0));
  if (is_tensor_memory(u.src(0))) {
    const bool is_filled = u.is(Op::STORE) && u.src_count() == 2 && (is_const(u.src(1), 0) || same_shape(shape_of(u.src(1)), shape));
    const bool is_whole = same_shape(shape_of(u.src(0).src(0)), shape);
    return verdict(is_whole && (is_filled || u.src_count() == 1), "another access to tensor memory",
                   "the LOAD or the STORE of a whole tile");
  }
  if (u.src_count() > 1 && !same_shape(shape_of(u.src(1)), shape))
    return Violation{describe_value(u.src(1)), fmt::format("shape {}", to_string(shape))};
  if (u.src_count() < 3 || shape_of(u.src(2)).empty()) return {};
  return expect(same_shape(shape_of(u.src(2)), shape),
                [&] { return Violation{describe_value(u.src(2)), fmt::format("a gate of shape () or {}", to_string(shape))}; });
}

/// Two places of as many elements, and gates for all of them.
Verdict is_copy(const Match& m) {
  const UOp& u = m.root();
  for (size_t i = 0; i < 2; ++i)
    if (!is_address(u.src(i))) return Violation{std::string(name(u.src(i).op())), "an INDEX of memory"};
  if (u.src(0).dtype() != u.src(1).dtype() || !same_shape(shape_of(u.src(0)), shape_of(u.src(1))))
    return Violation{describe_value(u.src(1)), fmt::format("a place of {}", describe_value(u.src(0)))};
  for (const UOp& gate : u.src().subspan(2))
    if (!is_bool(gate.dtype()) || rank_of(gate) != 0) return Violation{describe_value(gate), "one bool"};
  return {};
}

/// What items hold of a factor, or where it is in memory of the group, or, on a CPU, of the thread; sums that items hold, or a tile in
/// tensor memory.
Verdict multiplies(const Match& m) {
  const UOp& u = m.root();
  const bool in_place = is_tensor_memory(u.src(2));
  if (in_place != (u.dtype() == DType::void_)) return Violation{std::string(repr(u.dtype())), "void where sums are added to in place"};
  for (size_t i = 0; i < u.src_count(); ++i) {
    const UOp& s = u.src(i);
    const bool is_near = is_address(s) && s.src(0).is(Op::BUFFER) && s.src(0).arg_as<BufferArg>().scope != Scope::tensor;
    if (is_memory(s) || (is_address(s) && (i == 2 ? !in_place : !is_near)))
      return Violation{print_expr(s), "values, factors in near memory or sums in tensor memory"};
  }
  return {};
}

/// Sums of products under way have names for their lanes, and other products that go on with them; what else uses them waits.
Verdict waits_for_products(const Match& m, Program& program) {
  const UOp& u = m.root();
  if (u.is(Op::WMMA_WAIT)) {
    const bool all = std::ranges::all_of(u.src(), [&](const UOp& s) { return s.is(Op::WMMA) && program.is_under_way(s); });
    return verdict(all, "a product that is not under way", "asynchronous WMMAs that were not waited for");
  }
  for (const UOp& s : u.src())
    if (program.is_overwritten(s)) return Violation{print_expr(s), "sums that no other product has been added to"};
  if (!program.has_products_under_way() || u.is(Op::COMMIT) || u.is(Op::WAIT)) return {};
  const auto awaited = [](bool holds) { return verdict(holds, "products under way", "a WMMA_WAIT before it"); };
  if (u.is(Op::RANGE) || u.is(Op::END) || u.is(Op::IF) || u.is(Op::ENDIF) || u.is(Op::BARRIER)) return awaited(false);
  if (u.is(Op::STACK) || u.is(Op::SHRINK) || u.is(Op::INDEX)) return {};
  if ((u.is(Op::LOAD) || u.is(Op::STORE)) && program.is_under_way(u.src(0).src(0))) return awaited(false);
  for (size_t i = 0; i < u.src_count(); ++i)
    if (program.is_under_way(u.src(i)) && !(is_asynchronous(u) && i == 2 && (u.src(2).is(Op::WMMA) || is_tensor_memory(u.src(2)))))
      return awaited(false);
  return {};
}

Verdict has_lanes(const Match& m) {
  const Shape& shape = shape_of(m.root());
  return expect(shape.size() <= 1 && all_known(shape),
                [&] { return Violation{to_string(shape), "a scalar or one vector axis of known size"}; });
}

Verdict moves_lanes(const Match& m) {
  const UOp& u = m.root();
  for (const UOp& n : u.src().subspan(1))
    if (!n.is(Op::CONST)) return Violation{print_expr(n), "CONSTs"};
  const size_t rank = u.is(Op::EXPAND) ? 0 : 1;
  return expect(rank_of(u.src(0)) == rank,
                [&] { return Violation{describe_value(u.src(0)), rank == 0 ? "a scalar to expand" : "a vector"}; });
}

Verdict is_supported(const Match& m, Program& program) {
  return expect(!program.supports || program.supports(m.root()),
                [&] { return Violation{fmt::format("{} of {}", name(m.root().op()), repr(m.root().dtype())), "what the target has"}; });
}

}  // namespace

const BorderRules<Program>& linear_rules() {
  using enum Op;
  static const auto& table = *new BorderRules<Program>{
      {any_but(instructions()), [](const Match& m) { return verdict(false, name(m.root().op()), "an instruction"); }, "op"},
      {any_node(), stands_in_order, "order"},
      {any_node(), [](const Match& m) { return verdict(m.root().dtype() != DType::index, "dtypes.index", "int32 or int64"); },
       "index dtype"},
      {pat({END, ENDIF}), ends_the_innermost, "blocks nest"},
      {pat(RANGE), is_a_loop, "range"},
      {pat(BUFFER), is_memory_near, "buffer"},
      {pat(PARAM), is_argument, "param"},
      {pat(INDEX), is_place_or_lane, "place or lane"},
      {pat({LOAD, STORE}), is_access, "access"},
      {pat(FETCH), is_copy, "copy"},
      {pat(PREFETCH), [](const Match& m) { return verdict(is_address(m.root().src(0)), "no place", "an INDEX of memory"); }, "prefetched"},
      {pat(WMMA), multiplies, "factors"},
      {any_node(), waits_for_products, "products under way"},
      {any_of(ops(Group::elementwise)), uses_values, "values"},
      {pat({EXPAND, SHRINK, STACK}), uses_values, "values"},
      {any_but(ops({PARAM, BUFFER})), has_lanes, "lanes"},
      {any_of(ops(Group::elementwise)), has_equal_shapes, "equal shapes"},
      {pat({EXPAND, SHRINK}), moves_lanes, "lanes moved"},
      {any_of(ops(Group::elementwise)), is_supported, "supported"},
  };
  return table;
}

}  // namespace tinygrad::spec
