#include "kernel/address_parts.h"

#include <algorithm>

#include "shape/shape.h"
#include "symbolic/bounds.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

/// True if no lane of the sum leaves the dtype: an address is wider, and does not wrap where the index would.
bool stays_inside(const AddressParts& parts, DType dtype) {
  const symbolic::Bounds base = parts.base ? symbolic::bounds(*parts.base) : symbolic::Bounds{0, 0};
  if (!is_int(dtype) || !is_signed(dtype) || !base.has_min() || !base.has_max()) return false;
  const auto [least, most] = std::ranges::minmax(parts.offsets);
  int64_t low = 0, high = 0;
  return !__builtin_add_overflow(base.min, least, &low) && !__builtin_add_overflow(base.max, most, &high) &&
         low >= min_value(dtype).as_int() && high <= max_value(dtype).as_int();
}

std::optional<AddressParts> repeated(const UOp& expand, std::optional<AddressParts> parts) {
  if (parts) parts->offsets.resize(size_t(const_value(expand.src(1))->as_int()), parts->offsets[0]);
  return parts;
}

/// Of constants: a scalar, lanes, or one that is repeated.
std::optional<AddressParts> constant_lanes(const UOp& u) {
  if (u.is(Op::CONST)) return AddressParts{.base = {}, .offsets = {const_value(u)->as_int()}};
  if (u.is(Op::EXPAND)) return repeated(u, constant_lanes(u.src(0)));
  if (!u.is(Op::STACK)) return std::nullopt;
  AddressParts out;
  for (const UOp& s : u.src()) {
    const Scalar* c = const_value(s);
    if (!c) return std::nullopt;
    out.offsets.push_back(c->as_int());
  }
  return out;
}

std::optional<AddressParts> sum(const UOp& u) {
  auto added = constant_lanes(u.src(1));
  const UOp& rest = u.src(added ? 0 : 1);
  if (!added) added = constant_lanes(u.src(0));
  auto parts = added ? address_parts(rest) : std::nullopt;
  if (!parts) return std::nullopt;
  for (size_t i = 0; i < parts->offsets.size(); ++i) parts->offsets[i] += added->offsets[i];
  return stays_inside(*parts, u.dtype()) ? parts : std::nullopt;
}

}  // namespace

std::optional<AddressParts> address_parts(const UOp& at) {
  if (auto parts = constant_lanes(at)) return parts;
  if (at.is(Op::EXPAND)) return repeated(at, address_parts(at.src(0)));
  if (auto parts = at.is(Op::ADD) ? sum(at) : std::nullopt) return parts;
  if (!shape_of(at).empty()) return std::nullopt;
  return AddressParts{.base = at, .offsets = {0}};
}

}  // namespace tinygrad
