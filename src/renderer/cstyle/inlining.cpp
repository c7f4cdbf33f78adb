#include "renderer/cstyle/inlining.h"

#include <algorithm>

#include "uop/build.h"

namespace tinygrad::renderer::cstyle {
namespace {

bool is_control(const UOp& u) {
  return u.is(Op::RANGE) || u.is(Op::END) || u.is(Op::IF) || u.is(Op::ENDIF) || u.is(Op::BARRIER) || u.is(Op::WAIT);
}

bool is_expression(const UOp& u) {
  switch (u.op()) {
    case Op::LOAD:
    case Op::EXPAND:
    case Op::STACK:
    case Op::SHRINK:
    case Op::CAST:
    case Op::BITCAST: return true;
    case Op::INDEX: return !is_address(u);
    default: return u.in(Group::alu);
  }
}

/// Addresses, and what is only another order of lanes, are no computation: they may stand at each use.
bool repeats_names(const UOp& u) { return u.is(Op::INDEX) || u.is(Op::EXPAND) || u.is(Op::STACK) || u.is(Op::SHRINK); }

}  // namespace

Inlining::Inlining(const UOp& linear, const PrivateMemory& memory, bool fuses_halves) : memory_(memory), fuses_halves_(fuses_halves) {
  const auto list = linear.src();
  count_uses(list);
  find_blocks(list);
  // Backwards: an instruction lands where its use does. An address is no computation: it lands where the last of its accesses does.
  std::vector<int32_t> landing(list.size(), -1);
  inlined_.resize(list.size(), false);
  in_place_.resize(list.size(), true);
  for (size_t at = list.size(); at-- > 0;) {
    const UOp& u = list[at];
    const auto use = static_cast<size_t>(landing[at] < 0 ? static_cast<int32_t>(at) : landing[at]);
    if (is_expression(u) && uses_[at] == 1 && use != at && may_move(u, at, use)) inlined_[at] = true;
    // What is used in a loop that begins behind it is used again after what the loop stores.
    if (u.is(Op::LOAD)) in_place_[at] = !crosses_store(u, at, block_end_[at] == block_end_[use] ? use : size_t(block_end_[at]));
    const auto lands = static_cast<int32_t>(inlined_[at] || repeats_names(u) ? use : at);
    for (const UOp& s : u.src()) {
      const int32_t* source = position_.find(s);  // null for the sizes inside an instruction
      // A loop evaluates its bound again and again.
      if (!source || u.is(Op::RANGE)) continue;
      int32_t& of_source = landing[static_cast<size_t>(*source)];
      of_source = std::max(of_source, lands);
    }
  }
}

void Inlining::count_uses(std::span<const UOp> list) {
  uses_.resize(list.size(), 0);
  for (size_t at = 0; at < list.size(); ++at) {
    position_[list[at]] = static_cast<int32_t>(at);
    for (const UOp& s : list[at].src())
      if (const int32_t* source = position_.find(s)) ++uses_[static_cast<size_t>(*source)];
  }
}

void Inlining::find_blocks(std::span<const UOp> list) {
  controls_before_.resize(list.size() + 1, 0);
  block_end_.resize(list.size(), 0);
  last_access_.resize(list.size(), -1);
  std::vector<std::vector<size_t>> open(1);
  const auto close = [&](size_t at) {
    for (size_t inside : open.back()) block_end_[inside] = static_cast<int32_t>(at);
    open.pop_back();
  };
  for (size_t at = 0; at < list.size(); ++at) {
    const UOp& u = list[at];
    controls_before_[at + 1] = controls_before_[at] + is_control(u);
    if (u.is(Op::STORE) || u.is(Op::FETCH)) stores_.emplace_back(static_cast<int32_t>(at), u.src(0));
    if (u.is(Op::END))
      for (size_t i = 1; i < u.src_count(); ++i) close(at);
    if (u.is(Op::ENDIF)) close(at);
    open.back().push_back(at);
    if (u.is(Op::RANGE) || u.is(Op::IF)) open.emplace_back();
    for (const UOp& s : u.src())
      if (is_address(s) && s.src(0).is(Op::BUFFER)) last_access_[static_cast<size_t>(*position_.find(s.src(0)))] = static_cast<int32_t>(at);
  }
  while (!open.empty()) close(list.size());
}

bool Inlining::may_move(const UOp& u, size_t from, size_t to) const {
  if (controls_before_[from] != controls_before_[to]) return false;
  if (u.is(Op::MUL) && u.dtype() == DType::float16 && !fuses_halves_) return false;
  return !u.is(Op::LOAD) || !crosses_store(u, from, to);
}

bool Inlining::crosses_store(const UOp& load, size_t from, size_t to) const {
  const UOp& address = load.src(0);
  auto s =
      std::upper_bound(stores_.begin(), stores_.end(), static_cast<int32_t>(from), [](int32_t at, const auto& x) { return at < x.first; });
  for (; s != stores_.end() && s->first < static_cast<int32_t>(to); ++s) {
    const UOp& stored = s->second;
    const bool from_private = address.src(0).is(Op::BUFFER), to_private = stored.src(0).is(Op::BUFFER);
    if (from_private != to_private) continue;
    if (!from_private) return true;  // two arguments may be one memory
    if (address.src(0) != stored.src(0)) continue;
    const auto a = PrivateMemory::constant_index(address), b = PrivateMemory::constant_index(stored);
    const int64_t a_width = address.arg_as<IndexArg>().width, b_width = stored.arg_as<IndexArg>().width;
    if (!a || !b || (*a < *b + b_width && *b < *a + a_width)) return true;
  }
  return false;
}

bool Inlining::is_local_to_first_access(const UOp& buffer) const {
  if (memory_.layout(buffer).first_access < 0) return false;
  const auto first = static_cast<size_t>(memory_.layout(buffer).first_access);
  return last_access_[static_cast<size_t>(*position_.find(buffer))] < block_end_[first];
}

}  // namespace tinygrad::renderer::cstyle
