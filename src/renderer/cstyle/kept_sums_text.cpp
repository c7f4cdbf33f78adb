#include "renderer/cstyle/kept_sums_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "uop/arg.h"

namespace tinygrad::renderer::cstyle {
KeptSumsText::KeptSumsText(Prelude& prelude, const KernelInfo& info, const UOp& linear, Names& names)
    : prelude_(prelude), names_(names), kept_(linear), memory_(prelude, info), tiles_(kept_.tiles().size()) {
  for (const char* own : {"sums", "item"}) names.fresh(own);
}

KeptSumsText::Tile KeptSumsText::new_tile(int32_t columns) {
  Tile t{.column = memory_.add_tile(columns), .columns = columns, .sums = {}, .adds = names_.numbered("adds")};
  variables_ += fmt::format("  bool {} = false;\n", t.adds);
  return t;
}

KeptSumsText::Tile& KeptSumsText::kept(int32_t number, DType dtype) {
  Tile& t = tiles_[size_t(number)];
  if (!t.adds.empty()) return t;
  const int32_t columns = kept_.tiles()[size_t(number)];
  t = new_tile(columns);
  t.sums = {.expr = {names_.numbered("sums")}, .dtype = dtype, .lanes = columns};
  variables_ += fmt::format("  {} {};\n", prelude_.type(dtype, columns), t.sums.expr.text);
  return t;
}

void KeptSumsText::barrier_if_needed(Lines& lines) {
  if (std::string needed = memory_.needed_barrier(); !needed.empty()) lines.push_back(std::move(needed));
}

Value KeptSumsText::begin(const UOp& wmma, const TensorCore& core, bool goes_on, std::string_view a, std::string_view b, const Value& sum,
                          Lines& lines) {
  barrier_if_needed(lines);
  const auto add = [&](const Tile& t) { lines.push_back(memory_.begin_product(core, t.column, a, b, t.adds)); };
  if (const int32_t number = kept_.tile_of(wmma); number >= 0) {
    const Tile& t = kept(number, core.out);
    add(t);
    parts_of_[wmma] = number;
    return t.sums;
  }
  if (goes_on) {
    const auto before = std::ranges::find(given_, UOp(wmma.src(2)), &Given::product);
    before->product = wmma;
    add(before->tile);
    return before->tile.sums;
  }
  const auto known = std::ranges::find(free_, core.n, &Tile::columns);
  Tile t = known == free_.end() ? new_tile(core.n) : *known;
  if (known != free_.end()) free_.erase(known);
  t.sums = {.expr = {names_.numbered("y")}, .dtype = core.out, .lanes = core.n};
  lines.push_back(fmt::format("{} {} = {};", prelude_.type(core.out, core.n), t.sums.expr.text, sum.expr.text));
  const bool is_new = is_zero(wmma.src(2));
  if (!is_new) {
    lines.push_back(memory_.write(t.column, t.sums));
    barrier_if_needed(lines);
  }
  lines.push_back(fmt::format("{} = {};", t.adds, is_new ? "false" : "true"));
  add(t);
  given_.push_back({wmma, t});
  return t.sums;
}

std::optional<Value> KeptSumsText::access(const UOp& u, Lines& lines) {
  if (const KeptSums::Element* e = kept_.element_of(u)) {
    const Tile& t = kept(e->tile, u.is(Op::LOAD) ? u.dtype() : u.src(1).dtype());
    if (u.is(Op::STORE) && e->number == 0) lines.push_back(fmt::format("{} = false;", t.adds));
    if (e->number < 0) parts_of_[u] = e->tile;
    const std::string lane = fmt::format("{}.at[{}]", t.sums.expr.text, std::max(e->number, 0));
    return Value{.expr = {lane}, .dtype = t.sums.dtype, .lanes = 1};
  }
  const bool names_parts = u.is(Op::STACK) || u.is(Op::INDEX);
  const int32_t* tile = names_parts ? parts_of_.find(u.src(0)) : nullptr;
  if (!tile) return std::nullopt;
  Value sums = tiles_[size_t(*tile)].sums;
  if (u.is(Op::STACK)) return sums;
  return Value{.expr = {sums.expr.text + ".at[0]"}, .dtype = sums.dtype, .lanes = 1};
}

KeptSumsText::Lines KeptSumsText::wait() {
  Lines lines{memory_.wait()};
  for (Given& g : given_) {
    lines.push_back(memory_.read(g.tile.column, g.tile.sums, g.tile.adds));
    free_.push_back(std::move(g.tile));
  }
  for (const int32_t t : due_) lines.push_back(memory_.read(tiles_[size_t(t)].column, tiles_[size_t(t)].sums, tiles_[size_t(t)].adds));
  given_.clear();
  due_.clear();
  return lines;
}

KeptSumsText::Lines KeptSumsText::behind(const UOp& u) {
  Lines lines;
  for (const int32_t t : kept_.read_behind(u)) {
    const Tile& tile = tiles_[size_t(t)];
    if (u.is(Op::WMMA))
      due_.push_back(t);
    else
      lines.push_back(memory_.read(tile.column, tile.sums, tile.adds));
  }
  return lines;
}

}  // namespace tinygrad::renderer::cstyle
