#include "codegen/decomp/choose_index_width.h"

#include <cstdint>
#include <limits>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "codegen/rebuild.h"
#include "symbolic/bounds.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

bool fits_int32(const symbolic::Bounds& b) {
  return b.min >= std::numeric_limits<int32_t>::min() && b.max <= std::numeric_limits<int32_t>::max();
}

bool needs_int64(const UOp& sink) {
  for (const UOp& u : toposort(sink))
    if (u.dtype() == DType::index && !fits_int32(symbolic::bounds(u))) return true;
  return false;
}

/// Where no operand is negative, the processor's division is that of indices.
Op division(const UOp& u) {
  if (!u.is(Op::FLOORDIV) && !u.is(Op::FLOORMOD)) return u.op();
  if (symbolic::bounds(u.src(0)).min < 0 || symbolic::bounds(u.src(1)).min < 0) return u.op();
  return u.is(Op::FLOORDIV) ? Op::CDIV : Op::CMOD;
}

UOp as_width(const UOp& u, const UOps& sources, DType width) {
  if (u.is(Op::CONST)) return constant(u.arg_as<ConstArg>().value.cast(width));
  if (u.is(Op::CAST) && sources[0].dtype() == width) return sources[0];
  return UOp(division(u), width, sources, u.arg());
}

/// Counts with int32 what fits. What does not, such as an index that was an int64 in memory, is left to emulate_long().
class WidthOfEach {
 public:
  explicit WidthOfEach(const UOp& sink) : sink_(sink) {}

  UOp operator()(const UOp& u, const UOps& sources) const {
    const bool is_index = u.dtype() == DType::index;
    DType width = is_index ? width_of(u) : DType::int32;
    if (u.is(Op::INDEX) || u.is(Op::CAST)) return as_width(u, sources, is_index ? width : u.dtype());
    for (const UOp& s : u.src())
      if (s.dtype() == DType::index && width_of(s) == DType::int64) width = DType::int64;
    if (is_index && width == DType::int64 && !u.in(Group::alu) && !u.is(Op::CONST)) does_not_fit(u);
    UOps converted = sources;
    for (size_t i = 0; i < converted.size(); ++i)
      if (u.src(i).dtype() == DType::index) converted[i] = cast(converted[i], width);
    if (!is_index) return u.with_src(converted);
    return cast(as_width(u, converted, width), width_of(u));
  }

 private:
  static DType width_of(const UOp& u) { return fits_int32(symbolic::bounds(u)) ? DType::int32 : DType::int64; }

  [[noreturn]] void does_not_fit(const UOp& u) const {
    const auto* kernel = std::get_if<KernelArg>(&sink_.arg());
    throw CompileError(
        fmt::format("kernel {}: {} goes up to {}, but the target has no 64-bit integers: it counts to {}; use smaller pieces",
                    kernel ? kernel->name.str() : "", print_expr(u), symbolic::bounds(u).max, std::numeric_limits<int32_t>::max()));
  }

  const UOp& sink_;
};

}  // namespace

UOp choose_index_width(const UOp& sink, const Target& target) {
  if (!target.has_int64()) return rebuild(sink, WidthOfEach(sink));
  const DType width = needs_int64(sink) ? DType::int64 : DType::int32;
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (u.dtype() == DType::index) return as_width(u, sources, width);
    // A value that was cast from an index of the same width is that index.
    if (u.is(Op::CAST) && sources[0].dtype() == u.dtype()) return sources[0];
    return u.with_src(sources);
  });
}

}  // namespace tinygrad::codegen
