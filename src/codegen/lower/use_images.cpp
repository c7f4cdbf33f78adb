#include "codegen/lower/use_images.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "shape/ranges.h"
#include "symbolic/gated.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t texel = 4;           // elements
constexpr size_t most_written = 8;     // images that every device with images lets a kernel write
constexpr size_t most_conditions = 8;  // looked at to leave them out

/// A LOAD or STORE of whole texels.
struct Access {
  UOp node, lane;
  UOp number;  ///< of the texel, in the order of memory
  UOp gate;    ///< null: always
};

struct Coordinates {
  UOp y, x, gate;
};

struct Image {
  int64_t width = 0, height = 0;
  std::vector<Coordinates> places;  ///< of each access
};

bool is_plain(const UOp& u) {
  return std::ranges::none_of(toposort(u), [](const UOp& n) { return n.is(Op::LOAD) || n.is(Op::REDUCE); });
}

/// The access, if it is of whole texels.
std::optional<Access> texels_of(const UOp& u) {
  const UOp& at = u.src(0).src(1);
  UOp lane;
  for (const UOp& r : ranges_of(at))
    if (r.arg_as<RangeArg>().kind == AxisKind::lane) lane = r;
  if (!lane || constant_size(lane) != texel || stride_of(at, lane) != 1 || !is_plain(at)) return {};
  const size_t plain = u.is(Op::LOAD) ? 1 : 2;
  Access a{.node = u, .lane = lane, .number = {}, .gate = {}};
  if (u.src_count() > plain) {
    a.gate = u.src(2);
    const bool alike = is_plain(a.gate) && !is_open_over(a.gate, std::span(&lane, 1));
    if (!alike || (u.is(Op::LOAD) && !is_const(u.src(1), 0))) return {};
  }
  NodeMap<UOp> first;
  first[lane] = index_const(0);
  const UOp begin = symbolic::simplify_index(substitute(at, first));
  if (!is_const(symbolic::simplify_index(floor_mod(begin, texel)), 0)) return {};
  a.number = symbolic::simplify_index(floor_div(begin, texel));
  return a;
}

/// Arguments that may be images, with all of their accesses.
std::map<int32_t, std::vector<Access>> candidates(const UOp& sink) {
  std::map<int32_t, std::vector<Access>> out;
  std::map<int32_t, UOp> arguments;
  std::map<uint16_t, int> alike;  // arguments by their alias class
  for (const UOp& u : toposort(sink)) {
    if (!u.is(Op::PARAM) || u.src_count() == 0) continue;
    arguments[u.arg_as<ParamArg>().slot] = u;
    ++alike[u.arg_as<ParamArg>().alias];
  }
  for (const auto& [slot, u] : arguments) {
    const Scalar* size = const_value(u.src(0));
    const bool is_texels = size && size->as_int() > 0 && size->as_int() % texel == 0;
    const bool is_alone = alike[u.arg_as<ParamArg>().alias] == 1 && !alike.contains(0);
    if (is_texels && is_alone && (u.dtype() == DType::float32 || u.dtype() == DType::float16)) out[slot];
  }
  for (const UOp& u : toposort(sink)) {
    if (u.is(Op::AFTER) && u.src(0).is(Op::PARAM)) out.erase(u.src(0).arg_as<ParamArg>().slot);  // read behind a store to it
    if ((!u.is(Op::LOAD) && !u.is(Op::STORE)) || !u.src(0).src(0).is(Op::PARAM)) continue;
    const auto found = out.find(u.src(0).src(0).arg_as<ParamArg>().slot);
    if (found == out.end()) continue;
    const auto access = texels_of(u);
    if (access && (found->second.empty() || found->second[0].node.op() == u.op()))
      found->second.push_back(*access);
    else
      out.erase(found);
  }
  size_t written = 0;
  std::erase_if(
      out, [&](const auto& found) { return found.second.empty() || (found.second[0].node.is(Op::STORE) && ++written > most_written); });
  return out;
}

/// Without conditions that fail only where the place is outside of the image.
UOp without_implied(const Coordinates& at, const UOp& gate, int64_t width, int64_t height) {
  const std::vector<UOp> clauses = symbolic::clauses_of(gate);
  if (clauses.size() > most_conditions) return gate;
  UOp left;
  for (const UOp& c : clauses) {
    const bool implied = symbolic::is_outside_unless(at.y, height, c) || symbolic::is_outside_unless(at.x, width, c);
    if (!implied) left = left ? left & c : c;
  }
  return left;
}

Coordinates coordinates(const Access& a, int64_t width, int64_t height) {
  Coordinates at{symbolic::simplify_index(floor_div(a.number, width)), symbolic::simplify_index(floor_mod(a.number, width)), a.gate};
  if (!a.gate) return at;
  const symbolic::Gated y = symbolic::simplify_gated(at.y, a.gate), x = symbolic::simplify_gated(at.x, a.gate);
  at = {y.index, x.index, is_const(y.valid, 1) ? UOp() : y.valid};
  if (at.gate && a.node.is(Op::LOAD)) at.gate = without_implied(at, at.gate, width, height);
  return at;
}

/// What a kernel pays for the places: a condition more than any expression.
int64_t cost(const Image& image) {
  int64_t sum = 0;
  for (const Coordinates& c : image.places) {
    if (c.gate) sum += 1000 * int64_t(symbolic::clauses_of(c.gate).size());
    for (const UOp& u : toposort(std::vector{c.y, c.x})) sum += u.in(Group::alu);
  }
  return sum;
}

/// The cheapest one of `texels` texels, the widest of those; width 0 if none fits.
Image best_image(const std::vector<Access>& accesses, int64_t texels, const Target& target) {
  Image best;
  for (int64_t width = target.image_pitch; width <= std::min(texels, target.max_image_width); width += target.image_pitch) {
    if (texels % width != 0 || texels / width > target.max_image_height) continue;
    Image image{.width = width, .height = texels / width, .places = {}};
    for (const Access& a : accesses) image.places.push_back(coordinates(a, width, image.height));
    if (best.width == 0 || cost(image) <= cost(best)) best = std::move(image);
  }
  return best;
}

UOp access_texel(const UOp& u, const UOps& sources, const UOp& lane, const UOp& memory, const Coordinates& at) {
  const UOp place(Op::INDEX, DType::float32, {memory, at.y, at.x, lane}, IndexArg{});
  if (u.is(Op::STORE)) {
    UOps s{place, cast(sources[1], DType::float32)};
    if (at.gate) s.push_back(at.gate);
    return u.with_src(s);
  }
  UOps s{place};
  if (at.gate) {
    s.push_back(constant(DType::float32, 0));
    s.push_back(at.gate);
  }
  return cast(UOp(Op::LOAD, DType::float32, s, u.arg()), u.dtype());
}

}  // namespace

UOp use_images(const UOp& sink, const Target& target) {
  if (target.max_image_width == 0) return sink;
  struct Texel {
    UOp memory, lane;
    Coordinates at;
  };
  NodeMap<Texel> texels;
  for (const auto& [slot, accesses] : candidates(sink)) {
    const UOp& argument = accesses[0].node.src(0).src(0);
    const Image image = best_image(accesses, const_value(argument.src(0))->as_int() / texel, target);
    if (image.width == 0) continue;
    const UOps sizes{index_const(image.height), index_const(image.width), index_const(texel)};
    for (size_t i = 0; i < accesses.size(); ++i) texels[accesses[i].node] = {argument.with_src(sizes), accesses[i].lane, image.places[i]};
  }
  if (texels.size() == 0) return sink;
  return rebuild(sink, [&](const UOp& u, const UOps& sources) {
    const Texel* t = texels.find(u);
    return t ? access_texel(u, sources, t->lane, t->memory, t->at) : u.with_src(sources);
  });
}

}  // namespace tinygrad::codegen
