// Matrix products and Einstein summation.
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// The axes before the matrices broadcast.
void check_batches(const Shape& a, const Shape& b) {
  for (size_t i = 3; i <= std::min(a.size(), b.size()); ++i) {
    const SInt &m = a[a.size() - i], &n = b[b.size() - i];
    if (!(m == n) && !(m == 1) && !(n == 1))
      throw ShapeError(fmt::format("matmul: cannot multiply {} by {}: the batches {} and {} differ and neither is 1", to_string(a),
                                   to_string(b), to_string(m), to_string(n)));
  }
}

}  // namespace

UOp matmul(const UOp& a, const UOp& b, std::optional<DType> dtype) {
  const Shape &as = shape_of(a), &bs = shape_of(b);
  if (as.empty() || bs.empty())
    throw ShapeError(fmt::format("matmul: cannot multiply {} by {}: both need at least one axis", to_string(as), to_string(bs)));
  const bool row = as.size() == 1, column = bs.size() == 1;
  const SInt &inner_a = as.back(), &inner_b = bs[bs.size() - (column ? 1 : 2)];
  if (!(inner_a == inner_b))
    throw ShapeError(fmt::format("matmul: cannot multiply {} by {}: the inner sizes {} and {} differ", to_string(as), to_string(bs),
                                 to_string(inner_a), to_string(inner_b)));
  const DType out = dtype.value_or(common_dtype(a, b));
  // Products of narrow floats are exact in what they are summed in.
  const DType acc = dtype.value_or(sum_acc_dtype(out));
  const UOp x = tinygrad::cast(a, acc), y = tinygrad::cast(b, acc);
  // (..., m, 1, k) by (..., 1, n, k); a vector has no m or n of its own.
  const UOp left = row || column ? x : ops::unsqueeze(x, -2);
  const UOp columns = column ? y : ops::transpose(y, -1, -2);
  const UOp right = row || column ? columns : ops::unsqueeze(columns, -3);
  check_batches(as, bs);
  return tinygrad::cast(sum(mul(left, right), -1, false, acc), out);
}

UOp linear(const UOp& x, const UOp& weight, const UOp& bias, std::optional<DType> dtype) {
  if (dtype) return linear(tinygrad::cast(x, *dtype), tinygrad::cast(weight, *dtype), bias ? tinygrad::cast(bias, *dtype) : bias);
  const UOp y = rank_of(weight) == 1 ? mul(x, weight) : matmul(x, weight);
  return bias ? add(y, bias) : y;
}

namespace {

struct Formula {
  std::vector<std::string> inputs;
  std::string output;
};

[[noreturn]] void bad_formula(std::string_view formula, std::string_view why) {
  throw ValueError(fmt::format("einsum: \"{}\": {}", formula, why));
}

/// Letters for the axes that "..." stands for: codes that no formula has.
std::string ellipsis_letters(size_t from, size_t to) {
  std::string out;
  for (size_t i = from; i < to; ++i) out += char(0x80 + i);
  return out;
}

std::string axis_name(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter)) ? std::string(1, letter) : "an axis of \"...\"";
}

/// Letters, and one "..." at most.
void check_term(std::string_view formula, std::string term) {
  if (const size_t at = term.find("..."); at != std::string::npos) term.erase(at, 3);
  for (char c : term)
    if (!std::isalpha(static_cast<unsigned char>(c)))
      bad_formula(formula, fmt::format("'{}' is no letter; expects terms such as ij,jk->ik or ...i,i->...", c));
}

void spell_ellipses(Formula& f, std::string_view formula, std::span<const UOp> operands, bool explicit_output) {
  size_t most = 0;
  std::vector<size_t> counts(f.inputs.size(), 0);
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    if (f.inputs[i].find("...") == std::string::npos) continue;
    const size_t letters = f.inputs[i].size() - 3;
    if (rank_of(operands[i]) < letters) bad_formula(formula, fmt::format("operand {} has fewer axes than letters", i));
    counts[i] = rank_of(operands[i]) - letters;
    most = std::max(most, counts[i]);
  }
  auto spell = [](std::string& s, const std::string& letters) {
    if (const size_t at = s.find("..."); at != std::string::npos) s.replace(at, 3, letters);
  };
  for (size_t i = 0; i < f.inputs.size(); ++i) spell(f.inputs[i], ellipsis_letters(most - counts[i], most));
  if (explicit_output)
    spell(f.output, ellipsis_letters(0, most));
  else
    f.output = ellipsis_letters(0, most);
}

Formula parse_formula(std::string_view text, std::span<const UOp> operands) {
  std::string s(text);
  s.erase(std::remove(s.begin(), s.end(), ' '), s.end());
  Formula f;
  const size_t arrow = s.find("->");
  const std::string left = s.substr(0, arrow);
  if (arrow != std::string::npos) f.output = s.substr(arrow + 2);
  for (size_t begin = 0; begin <= left.size();) {
    const size_t comma = std::min(left.find(',', begin), left.size());
    f.inputs.push_back(left.substr(begin, comma - begin));
    begin = comma + 1;
  }
  for (const std::string& term : f.inputs) check_term(text, term);
  check_term(text, f.output);
  if (f.inputs.size() != operands.size())
    bad_formula(text, fmt::format("{} operands in the formula, got {}", f.inputs.size(), operands.size()));
  spell_ellipses(f, text, operands, arrow != std::string::npos);
  if (arrow == std::string::npos) {
    std::string once;
    for (char c : left)
      if (std::isalpha(static_cast<unsigned char>(c)) && std::count(left.begin(), left.end(), c) == 1) once += c;
    std::sort(once.begin(), once.end());
    f.output += once;
  }
  return f;
}

/// A letter twice in one operand: the diagonal of its axes, which goes last.
UOp take_diagonals(std::string_view formula, UOp x, std::string& letters) {
  for (size_t i = 0; i < letters.size(); ++i) {
    const size_t j = letters.find(letters[i], i + 1);
    if (j == std::string::npos) continue;
    const char c = letters[i];
    if (const Shape& in = shape_of(x); !(in[i] == in[j]))
      throw ShapeError(fmt::format("einsum: \"{}\": {} stands for axes of {} with the sizes {} and {}", formula, c, to_string(in),
                                   to_string(in[i]), to_string(in[j])));
    x = diagonal(x, 0, int(i), int(j));
    letters.erase(j, 1);
    letters.erase(i, 1);
    letters += c;
    i = size_t(-1);  // start again: the axes moved
  }
  return x;
}

}  // namespace

UOp einsum(std::string_view formula, std::span<const UOp> operands, std::optional<DType> dtype) {
  Formula f = parse_formula(formula, operands);
  std::map<char, SInt> sizes;
  std::vector<UOp> xs;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (f.inputs[i].size() != rank_of(operands[i]))
      bad_formula(formula,
                  fmt::format("operand {} has the shape {}, the formula {} axes", i, to_string(shape_of(operands[i])), f.inputs[i].size()));
    xs.push_back(take_diagonals(formula, operands[i], f.inputs[i]));
    for (size_t k = 0; k < f.inputs[i].size(); ++k) {
      const SInt& n = shape_of(xs[i])[k];
      SInt& size = sizes.try_emplace(f.inputs[i][k], n).first->second;
      if (size == 1) size = n;
      if (!(size == n) && !(n == 1))
        throw ShapeError(
            fmt::format("einsum: \"{}\": {} has the sizes {} and {}", formula, axis_name(f.inputs[i][k]), to_string(size), to_string(n)));
    }
  }
  for (char c : f.output)
    if (!sizes.contains(c)) bad_formula(formula, "the output has a letter that no operand has");
  // Output letters first, in their order, then those to sum.
  std::string all = f.output;
  for (const auto& [c, size] : sizes)
    if (all.find(c) == std::string::npos) all += c;
  if (all.size() != sizes.size()) bad_formula(formula, "a letter is twice in the output");
  UOp product;
  for (size_t i = 0; i < xs.size(); ++i) {
    Axes order;
    Shape shape;
    for (char c : all) {
      const size_t at = f.inputs[i].find(c);
      if (at != std::string::npos) order.push_back(int(at));
      shape.push_back(at == std::string::npos ? SInt(1) : shape_of(xs[i])[at]);
    }
    const UOp x = ops::reshape(ops::permute(xs[i], order), shape);
    product = product ? mul(product, x) : x;
  }
  Axes summed;
  for (size_t i = f.output.size(); i < all.size(); ++i) summed.push_back(int(i));
  if (summed.empty()) return dtype ? tinygrad::cast(product, *dtype) : product;
  const DType out = dtype.value_or(product.dtype());
  return tinygrad::cast(sum(product, summed, false, dtype.value_or(sum_acc_dtype(out))), out);
}

}  // namespace tinygrad::ops
