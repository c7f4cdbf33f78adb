// Axes named by a formula: the notation of einops (Rogozhnikov, "Einops: Clear and Reliable Tensor Manipulations with Einstein-like
// Notation", ICLR 2022).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "ops/movement.h"

namespace tinygrad::ops {

namespace {

using Names = std::vector<std::string>;
/// The named axes that make one axis of the value, slowest first: one name, or those in parentheses, or none for a size of 1.
struct Group {
  Names names;
  bool parentheses = false;
};
using Side = std::vector<Group>;

constexpr std::string_view ellipsis = "...";

[[noreturn]] void bad_formula(std::string_view formula, std::string_view why) {
  throw ValueError(fmt::format("rearrange: \"{}\": {}", formula, why));
}

/// A name as in Python, with no underscore at either end (einops keeps those for itself).
bool is_axis_name(std::string_view s) {
  auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !s.empty() && std::all_of(s.begin(), s.end(), letter) && !std::isdigit(static_cast<unsigned char>(s.front())) &&
         s.front() != '_' && s.back() != '_';
}

/// Parentheses and what stands between them and spaces. "…" is a way to write "...".
Names tokens_of(std::string_view text) {
  Names out;
  std::string word;
  auto finish = [&] {
    if (word == "\u2026") word = ellipsis;
    if (!word.empty()) out.push_back(std::move(word));
    word.clear();
  };
  for (char c : text) {
    const bool parenthesis = c == '(' || c == ')';
    if (!parenthesis && !std::isspace(static_cast<unsigned char>(c))) {
      word += c;
      continue;
    }
    finish();
    if (parenthesis) out.emplace_back(1, c);
  }
  finish();
  return out;
}

Side parse_side(std::string_view formula, std::string_view text) {
  Side side;
  bool open = false;
  for (const std::string& t : tokens_of(text)) {
    if (t == "(") {
      if (open) bad_formula(formula, "parentheses within parentheses; write one level");
      side.push_back({{}, true});
    } else if (t == ")") {
      if (!open) bad_formula(formula, "\")\" without \"(\"");
    } else if (t == "1") {
      if (!open) side.push_back({});
    } else {
      if (t != ellipsis && !is_axis_name(t))
        bad_formula(formula, fmt::format("\"{}\" is no axis name; expects letters, digits and inner underscores, \"...\" or 1", t));
      if (!open) side.push_back({});
      side.back().names.push_back(t);
    }
    open = t == "(" || (open && t != ")");
  }
  if (open) bad_formula(formula, "\"(\" without \")\"");
  return side;
}

Names names_of(const Side& side) {
  Names out;
  for (const Group& g : side) out.insert(out.end(), g.names.begin(), g.names.end());
  return out;
}

struct Formula {
  Side from, to;
};

Formula parse_formula(std::string_view formula) {
  const size_t arrow = formula.find("->");
  if (arrow == std::string_view::npos || formula.find("->", arrow + 2) != std::string_view::npos)
    bad_formula(formula, "expects exactly one \"->\"");
  Formula f{parse_side(formula, formula.substr(0, arrow)), parse_side(formula, formula.substr(arrow + 2))};
  const Names left = names_of(f.from), right = names_of(f.to);
  for (const Names* side : {&left, &right})
    for (const std::string& n : *side)
      if (std::count(side->begin(), side->end(), n) > 1)
        bad_formula(formula, fmt::format("{} is twice on the {}", n, side == &left ? "left" : "right"));
  for (const std::string& n : left)
    if (std::find(right.begin(), right.end(), n) == right.end()) bad_formula(formula, fmt::format("{} is only on the left", n));
  for (const std::string& n : right)
    if (std::find(left.begin(), left.end(), n) == left.end()) bad_formula(formula, fmt::format("{} is only on the right", n));
  for (const Group& g : f.from)
    if (g.parentheses && std::find(g.names.begin(), g.names.end(), ellipsis) != g.names.end())
      bad_formula(formula, "\"...\" in parentheses on the left: its sizes cannot be told apart");
  return f;
}

/// "..." replaced by a name for each axis that it stands for: names that no formula can have.
Side spelled(const Side& side, size_t count) {
  Side out;
  for (const Group& g : side) {
    Group with{{}, g.parentheses};
    bool had = false;
    for (const std::string& n : g.names) {
      if (n != ellipsis) with.names.push_back(n);
      for (size_t i = 0; n == ellipsis && i < count; ++i) with.names.push_back(fmt::format("...{}", i));
      had = had || n == ellipsis;
    }
    if (!had || g.parentheses)
      out.push_back(std::move(with));
    else
      for (std::string& n : with.names) out.push_back({{std::move(n)}});
  }
  return out;
}

void spell_ellipsis(Formula& f, std::string_view formula, const Shape& in) {
  const Names left = names_of(f.from);
  const bool has = std::find(left.begin(), left.end(), ellipsis) != left.end();
  const size_t written = f.from.size() - (has ? 1 : 0);
  if (in.size() < written || (!has && in.size() > written))
    throw ShapeError(
        fmt::format("rearrange: \"{}\": {} has {} axes, expects {}{}", formula, to_string(in), in.size(), has ? "at least " : "", written));
  f.from = spelled(f.from, in.size() - written);
  f.to = spelled(f.to, in.size() - written);
}

const SInt* given_size(std::span<const NamedSize> sizes, std::string_view name) {
  for (const NamedSize& s : sizes)
    if (s.first == name) return &s.second;
  return nullptr;
}

/// The sizes of an axis' named parts: those given, and the one left over.
Shape part_sizes(std::string_view formula, const Shape& in, size_t axis, const Group& group, std::span<const NamedSize> sizes) {
  auto fail = [&](std::string_view why) {
    throw ShapeError(
        fmt::format("rearrange: \"{}\": axis {} of {} is ({}): {}", formula, axis, to_string(in), fmt::join(group.names, " "), why));
  };
  Shape out;
  SInt product = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < group.names.size(); ++i) {
    const SInt* size = given_size(sizes, group.names[i]);
    if (size && surely_less(*size, 0)) fail(fmt::format("{} = {} is negative", group.names[i], to_string(*size)));
    if (!size && open) fail(fmt::format("the sizes of {} and {} are both open; give one", group.names[*open], group.names[i]));
    if (!size) open = i;
    out.push_back(size ? *size : SInt(1));
    product *= out.back();
  }
  if (open) {
    if (product == 0 || surely_differ(floor_mod(in[axis], product), 0))
      fail(fmt::format("{} elements are no multiple of {}", to_string(in[axis]), to_string(product)));
    out[*open] = floor_div(in[axis], product);
  } else if (surely_differ(product, in[axis])) {
    fail(fmt::format("the given sizes make {} elements, not {}", to_string(product), to_string(in[axis])));
  }
  return out;
}

}  // namespace

UOp rearrange(const UOp& x, std::string_view formula, std::span<const NamedSize> sizes) {
  Formula f = parse_formula(formula);
  const Names written = names_of(f.from);
  for (const NamedSize& s : sizes)
    if (std::find(written.begin(), written.end(), s.first) == written.end())
      bad_formula(formula, fmt::format("a size is given for {}, which is not in the formula", s.first));
  const Shape& in = shape_of(x);
  spell_ellipsis(f, formula, in);

  Shape parts, out;
  for (size_t i = 0; i < f.from.size(); ++i) {
    const Shape s = part_sizes(formula, in, i, f.from[i], sizes);
    parts.append(s.begin(), s.end());
  }
  const Names from = names_of(f.from);
  Axes order;
  for (const Group& g : f.to) {
    SInt size = 1;
    for (const std::string& n : g.names) {
      order.push_back(int(std::find(from.begin(), from.end(), n) - from.begin()));
      size *= parts[size_t(order.back())];
    }
    out.push_back(size);
  }
  return ops::reshape(ops::permute(ops::reshape(x, parts), order), out);
}

}  // namespace tinygrad::ops
