// Matrix products and what is made of them.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

DType common(const Call& c, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) c.fail(fmt::format("{} and {} have no product; convert one", repr(a.dtype()), repr(b.dtype())));
  return a.dtype();
}
/// Integers wrap at the size of their dtype; floats are added up in at least float32.
Tensor product(const Call& c, const Tensor& a, const Tensor& b) {
  const DType dtype = common(c, a, b);
  if (a.numel() == 0 || b.numel() == 0) {
    Sizes shape = a.shape();
    if (b.ndim() > 1)
      shape.back() = b.size(-1);
    else
      shape.pop_back();
    if (a.ndim() <= 2 && b.ndim() <= 2) return Tensor::zeros(shape, {.dtype = dtype, .device = a.device()});
  }
  if (is_float(dtype)) return a.matmul(b);
  return a.matmul(b, dtype == DType::uint64 ? DType::uint64 : DType::int64).cast(dtype);
}
void check_rank(const Call& c, const Tensor& x, int rank) {
  if (x.ndim() != rank) c.fail(fmt::format("a tensor of {} axes where {} are expected", x.ndim(), rank));
}
Results mm(const Call& c) {
  const Tensor a = c.tensor("self"), b = c.tensor("mat2");
  check_rank(c, a, 2);
  check_rank(c, b, 2);
  return one(product(c, a, b));
}
Results bmm(const Call& c) {
  const Tensor a = c.tensor("self"), b = c.tensor("mat2");
  check_rank(c, a, 3);
  check_rank(c, b, 3);
  if (a.size(0) != b.size(0)) c.fail("the batches differ");
  return one(product(c, a, b));
}
/// beta * self + alpha * product; self does not count where beta is 0.
Results add_product(const Call& c, std::string_view first, std::string_view second, int rank_a, int rank_b) {
  const Tensor a = c.tensor(first), b = c.tensor(second), bias = c.tensor("self");
  check_rank(c, a, rank_a);
  check_rank(c, b, rank_b);
  const DType dtype = common(c, a, b), wide = wide_type(dtype);
  if (bias.dtype() != dtype) c.fail(fmt::format("{} is added to a product of {}", repr(bias.dtype()), repr(dtype)));
  const bool plain = is_number(c["alpha"], 1) && (is_number(c["beta"], 1) || is_number(c["beta"], 0));
  if (!is_float(dtype) && (c["alpha"].get_if<double>() || c["beta"].get_if<double>())) c.fail("alpha and beta are floats beside integers");
  Tensor out = wide == dtype ? product(c, a, b) : a.matmul(b, wide);
  if (!plain) out = out * typed_number(c["alpha"], out.dtype(), a.device());
  if (!is_number(c["beta"], 0)) {
    Tensor scaled = bias.cast(out.dtype());
    if (!is_number(c["beta"], 1)) scaled = scaled * typed_number(c["beta"], out.dtype(), a.device());
    out = scaled + out;
  }
  return one(out.cast(dtype));
}
Results addmm(const Call& c) { return add_product(c, "mat1", "mat2", 2, 2); }
Results addmv(const Call& c) { return add_product(c, "mat", "vec", 2, 1); }
Results baddbmm(const Call& c) { return add_product(c, "batch1", "batch2", 3, 3); }

Results matmul(const Call& c) {
  const Tensor a = c.tensor("self"), b = c.tensor("other");
  if (a.ndim() == 0 || b.ndim() == 0) c.fail("a tensor without axes has no product");
  return one(product(c, a, b));
}
Results dot(const Call& c) {
  const Tensor a = c.tensor("self"), b = c.tensor("tensor");
  const DType dtype = common(c, a, b);
  check_rank(c, a, 1);
  check_rank(c, b, 1);
  if (a.size(0) != b.size(0)) c.fail("the vectors differ in length");
  return one((a.cast(wide_type(dtype)) * b.cast(wide_type(dtype))).sum().cast(dtype));
}
Results mv(const Call& c) {
  check_rank(c, c.tensor("self"), 2);
  check_rank(c, c.tensor("vec"), 1);
  return one(product(c, c.tensor("self"), c.tensor("vec")));
}
Results outer(const Call& c) {
  const Promoted p = promoted(c, {"self", "vec2"});
  return one(is_bool(p.dtype) ? p[0].unsqueeze(1) & p[1] : p[0].unsqueeze(1) * p[1]);
}
Results linear(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight"), bias = c.tensor("bias");
  const DType dtype = common(c, x, weight), wide = wide_type(dtype);
  const Tensor turned = weight.ndim() == 1 ? weight : weight.transpose(0, 1);
  if (!bias.defined()) return one(product(c, x, turned));
  if (!is_float(dtype)) return one(product(c, x, turned) + bias);
  return one((x.matmul(turned, wide) + bias.cast(wide)).cast(dtype));
}
Results bilinear(const Call& c) {
  const Tensor a = c.tensor("input1"), b = c.tensor("input2"), weight = c.tensor("weight"), bias = c.tensor("bias");
  Sizes shape = a.shape();
  shape.back() = weight.size(0);
  const Tensor rows = a.reshape({-1, a.size(-1)}), others = b.reshape({-1, b.size(-1)});
  const Tensor out = Tensor::einsum("ni,oij,nj->no", {rows, weight, others}).reshape(shape);
  return one(bias.defined() ? out + bias : out);
}
/// Torch allows any letters, blanks, and no result, which stands for the letters that occur once, in order.
Results einsum(const Call& c) {
  std::string formula;
  for (char ch : c.text("equation"))
    if (ch != ' ') formula += ch;
  if (formula.find("->") == std::string::npos) {
    std::string letters;
    for (char ch = 'A'; ch <= 'z'; ++ch)
      if (std::ranges::count(formula, ch) == 1 && ch != ',' && std::isalpha(ch)) letters += ch;
    formula += std::string("->") + (formula.find("...") != std::string::npos ? "..." : "") + letters;
  }
  std::vector<Tensor> tensors = c.tensors("tensors");
  if (tensors.empty()) c.fail("no operands");
  const DType dtype = tensors[0].dtype();
  for (Tensor& t : tensors)
    if (t.dtype() != dtype) c.fail("the operands have different dtypes");
  for (Tensor& t : tensors) t = t.cast(is_float(dtype) ? wide_type(dtype) : DType::int64);
  // A sum over axes of one operand has the dtype of sums.
  const size_t arrow = formula.find("->");
  const bool is_sum = tensors.size() == 1 && std::ranges::any_of(formula.substr(0, arrow), [&](char ch) {
                        return std::isalpha(static_cast<unsigned char>(ch)) && formula.find(ch, arrow) == std::string::npos;
                      });
  return one(Tensor::einsum(formula, tensors).cast(is_sum ? sum_type(dtype) : dtype));
}
Results tensordot(const Call& c) {
  Tensor a = c.tensor("self"), b = c.tensor("other");
  const std::vector<int> of_a = c.axes("dims_self", a.ndim(), false), of_b = c.axes("dims_other", b.ndim(), false);
  if (of_a.size() != of_b.size()) c.fail("dims_self and dims_other have different lengths");
  std::vector<int> order_a, order_b = of_b;
  // Where one of two sizes is 1, the other's elements are added up.
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (b.size(of_b[i]) == 1)
      a = a.sum(of_a[i], {.keepdim = true}).cast(a.dtype());
    else if (a.size(of_a[i]) == 1)
      b = b.sum(of_b[i], {.keepdim = true}).cast(b.dtype());
    else if (a.size(of_a[i]) != b.size(of_b[i]))
      c.fail("the sizes that are added up differ");
  }
  Sizes shape;
  int64_t inner = 1;
  for (int i = 0; i < a.ndim(); ++i)
    if (std::ranges::find(of_a, i) == of_a.end()) {
      order_a.push_back(i);
      shape.push_back(a.size(i));
    }
  for (int i : of_a) {
    order_a.push_back(i);
    inner *= a.size(i);
  }
  for (int i = 0; i < b.ndim(); ++i)
    if (std::ranges::find(of_b, i) == of_b.end()) {
      order_b.push_back(i);
      shape.push_back(b.size(i));
    }
  const auto outer = [&](size_t from, size_t to) {
    return std::accumulate(shape.begin() + ptrdiff_t(from), shape.begin() + ptrdiff_t(to), int64_t{1}, std::multiplies<>());
  };
  const size_t of_left = size_t(a.ndim()) - of_a.size();
  return one(
      product(c, a.permute(order_a).reshape({outer(0, of_left), inner}), b.permute(order_b).reshape({inner, outer(of_left, shape.size())}))
          .reshape(shape));
}

/// Distances between all rows of x1 and all of x2.
Results cdist(const Call& c) {
  const Tensor a = c.tensor("x1"), b = c.tensor("x2");
  const double p = c.number("p");
  const DType wide = wide_type(a.dtype());
  const Tensor away = (a.cast(wide).unsqueeze(-2) - b.cast(wide).unsqueeze(-3)).abs();
  Tensor out;
  if (std::isinf(p))
    out = away.max(-1);
  else if (p == 0)
    out = away.ne(0).sum(-1).cast(wide);
  else if (p == 1)
    out = away.sum(-1);
  else if (p == 2)
    out = (away * away).sum(-1).sqrt();
  else
    out = away.pow(p).sum(-1).pow(1 / p);
  return one(out.cast(a.dtype()));
}
/// Those of rows with later rows, one after another.
Results pdist(const Call& c) {
  const Tensor x = c.tensor("self");
  const int64_t n = x.size(0);
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  if (first.empty()) return one(Tensor::zeros({0}, {.dtype = x.dtype(), .device = x.device()}));
  const TensorOptions options{.device = x.device()};
  const Tensor away = (x[{Tensor(first, options)}] - x[{Tensor(second, options)}]).abs().cast(wide_type(x.dtype()));
  const double p = c.number("p");
  Tensor out = std::isinf(p) ? away.max(-1)
               : p == 0      ? away.ne(0).sum(-1).cast(away.dtype())
               : p == 2      ? (away * away).sum(-1).sqrt()
                             : away.pow(p).sum(-1).pow(1 / p);
  return one(out.cast(x.dtype()));
}
Results cross(const Call& c) {
  const Promoted p = promoted(c, {"self", "other"});
  const Extents shape = broadcast_shapes(c, p.operands);
  const int axis = c.axis("dim", int(shape.size()));
  const Tensor a = p[0].expand(shape), b = p[1].expand(shape);
  if (a.size(axis) != 3) c.fail("the axis does not have 3 elements");
  return one(a.roll({-1}, {axis}) * b.roll({1}, {axis}) - a.roll({1}, {axis}) * b.roll({-1}, {axis}));
}

}  // namespace

std::vector<Row> product_operators() {
  return {
      {"aten.mm.default(Tensor self, Tensor mat2)", mm},
      {"aten.bmm.default(Tensor self, Tensor mat2)", bmm},
      {"aten.addmm.default(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)", addmm},
      {"aten.addmv.default(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)", addmv},
      {"aten.baddbmm.default(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", baddbmm},
      {"aten.matmul.default(Tensor self, Tensor other)", matmul},
      {"aten.dot.default(Tensor self, Tensor tensor)", dot},
      {"aten.mv.default(Tensor self, Tensor vec)", mv},
      {"aten.outer.default(Tensor self, Tensor vec2)", outer},
      {"aten.linear.default(Tensor input, Tensor weight, Tensor? bias=None)", linear},
      {"aten.bilinear.default(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)", bilinear},
      {"aten.einsum.default(str equation, Tensor[] tensors, *, int[]? path=None)", einsum},
      {"aten.tensordot.default(Tensor self, Tensor other, int[] dims_self, int[] dims_other)", tensordot},
      {"aten._cdist_forward.default(Tensor x1, Tensor x2, float p, int? compute_mode)", cdist},
      {"aten.cdist.default(Tensor x1, Tensor x2, float p=2, int? compute_mode=None)", cdist},
      {"aten._pdist_forward.default(Tensor self, float p=2)", pdist},
      {"aten.linalg_cross.default(Tensor self, Tensor other, *, int dim=-1)", cross},
  };
}

}  // namespace tinygrad::aten
