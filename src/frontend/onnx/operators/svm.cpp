// Support vector machines, evaluated on the host.
#include <fmt/core.h>

#include <cmath>
#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators/ml.h"

namespace tinygrad::onnx {

namespace {

struct Kernel {
  std::string type;
  double gamma = 0, coefficient = 0, degree = 0;

  static Kernel of(const Call& c, bool is_linear) {
    Kernel k{.type = is_linear ? "LINEAR" : c.attribute("kernel_type", "LINEAR")};
    const std::vector<double> params = c.attribute("kernel_params", std::vector<double>());
    if (params.size() >= 3) k = {k.type, params[0], params[1], params[2]};
    if (k.type != "LINEAR" && k.type != "POLY" && k.type != "RBF" && k.type != "SIGMOID") c.fail(fmt::format("the kernel '{}'", k.type));
    return k;
  }
  double operator()(std::span<const double> a, std::span<const double> b) const {
    if (a.size() != b.size()) throw ValueError(fmt::format("{} features, expected {}", a.size(), b.size()));
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += type == "RBF" ? (a[i] - b[i]) * (a[i] - b[i]) : a[i] * b[i];
    if (type == "RBF") return std::exp(-gamma * sum);
    if (type == "POLY") return std::pow(gamma * sum + coefficient, degree);
    if (type == "SIGMOID") return std::tanh(gamma * sum + coefficient);
    return sum;
  }
};

std::vector<double> list(const Call& c, const char* name) { return c.attribute(name, std::vector<double>()); }

/// Probabilities of classes from those of pairs (Wu, Lin and Weng 2004, second method).
std::vector<double> couple(const std::vector<std::vector<double>>& pairs) {
  const size_t k = pairs.size();
  std::vector<double> p(k, 1.0 / double(k)), qp(k);
  std::vector<std::vector<double>> q(k, std::vector<double>(k, 0.0));
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < k; ++j)
      if (j != t) {
        q[t][t] += pairs[j][t] * pairs[j][t];
        q[t][j] = -pairs[j][t] * pairs[t][j];
      }
  for (size_t round = 0; round < std::max<size_t>(100, k); ++round) {
    double pqp = 0, worst = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = std::inner_product(q[t].begin(), q[t].end(), p.begin(), 0.0);
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < k; ++t) worst = std::max(worst, std::fabs(qp[t] - pqp));
    if (worst < 0.005 / double(k)) break;
    for (size_t t = 0; t < k; ++t) {
      const double step = (pqp - qp[t]) / q[t][t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t][t] + 2 * qp[t])) / (1 + step) / (1 + step);
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t][j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

struct Machine {
  const Call& c;
  std::vector<int64_t> per_class;
  std::vector<double> vectors, coefficients, rho, prob_a, prob_b;
  Kernel kernel;
  int64_t classes, count;

  explicit Machine(const Call& call)
      : c(call),
        per_class(call.attribute("vectors_per_class", std::vector<int64_t>())),
        vectors(list(call, "support_vectors")),
        coefficients(list(call, "coefficients")),
        rho(list(call, "rho")),
        prob_a(list(call, "prob_a")),
        prob_b(list(call, "prob_b")) {
    count = 0;
    for (int64_t n : per_class) {
      if (n < 0 || n > int64_t(coefficients.size())) c.fail(fmt::format("{} vectors of a class", n));
      count += n;
    }
    kernel = Kernel::of(call, count == 0);
    const size_t labels =
        std::max(call.texts("classlabels_strings").size(), call.attribute("classlabels_ints", std::vector<int64_t>()).size());
    classes = std::max<int64_t>(int64_t(labels), 1);
    if (rho.empty()) c.fail("lacks rho");
    if (classes > 4096) c.fail(fmt::format("{} classes", classes));
    const int64_t pairs = classes * (classes - 1) / 2;
    if (count > 0 &&
        (int64_t(per_class.size()) != classes || int64_t(rho.size()) < pairs || int64_t(coefficients.size()) < (classes - 1) * count ||
         vectors.size() % size_t(count) != 0 || (!prob_a.empty() && (int64_t(prob_a.size()) < pairs || int64_t(prob_b.size()) < pairs))))
      c.fail("lists that do not fit the number of support vectors");
  }

  /// The scores of pairs, and how many each class wins.
  std::vector<double> pairs(std::span<const double> x, std::vector<double>& votes) const {
    const size_t width = vectors.size() / size_t(count);
    std::vector<double> products, out;
    for (int64_t i = 0; i < count; ++i) products.push_back(kernel(x, std::span(vectors).subspan(size_t(i) * width, width)));
    std::vector<int64_t> first(per_class.size(), 0);
    std::partial_sum(per_class.begin(), per_class.end() - 1, first.begin() + 1);
    const auto part = [&](int64_t row, int64_t of) {
      double sum = 0;
      for (int64_t i = first[size_t(of)]; i < first[size_t(of)] + per_class[size_t(of)]; ++i)
        sum += coefficients[size_t(row * count + i)] * products[size_t(i)];
      return sum;
    };
    for (int64_t i = 0; i < classes; ++i) {
      for (int64_t j = i + 1; j < classes; ++j) {
        out.push_back(rho[out.size()] + part(j - 1, i) + part(i, j));
        ++votes[size_t(out.back() > 0 ? i : j)];
      }
    }
    return out;
  }
  std::vector<double> probabilities(const std::vector<double>& scores) const {
    std::vector<std::vector<double>> pairwise(size_t(classes), std::vector<double>(size_t(classes), 0.0));
    size_t at = 0;
    for (size_t i = 0; i < size_t(classes); ++i) {
      for (size_t j = i + 1; j < size_t(classes); ++j, ++at) {
        const double p = std::clamp(1 - 1 / (1 + std::exp(-(scores[at] * prob_a[at] + prob_b[at]))), 1e-7, 1 - 1e-7);
        pairwise[i][j] = p;
        pairwise[j][i] = 1 - p;
      }
    }
    return couple(pairwise);
  }
};

}  // namespace

Results svm_classifier(Call& c) {
  const Machine m(c);
  const Matrix x = matrix_of(c, 0);
  const std::string transform = c.attribute("post_transform", "NONE");
  const bool is_positive = std::all_of(m.coefficients.begin(), m.coefficients.end(), [](double w) { return w >= 0; });
  std::vector<double> all;
  std::vector<int64_t> places;
  size_t width = 0;
  c.take_steps(x.rows * (int64_t(m.vectors.size() + m.coefficients.size()) / 1024 + 1));
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> scores, votes(size_t(m.classes), 0.0);
    const bool has_probabilities = m.count > 0 && !m.prob_a.empty();
    if (m.count > 0) {
      scores = m.pairs(x.row(r), votes);
      if (has_probabilities) scores = m.probabilities(scores);
    } else {
      for (int64_t k = 0; k < m.classes; ++k)
        scores.push_back(m.kernel(x.row(r), std::span(m.coefficients)
                                                .subspan(size_t(k) * m.coefficients.size() / size_t(m.classes),
                                                         m.coefficients.size() / size_t(m.classes))) +
                         m.rho[0]);
    }
    const std::vector<double>& decides = m.count > 0 ? votes : scores;
    int64_t place = std::max_element(decides.begin(), decides.end()) - decides.begin();
    const double most = decides[size_t(place)];
    const bool is_single = scores.size() == 1;
    if (m.rho.size() == 1 && m.classes == 2 && !has_probabilities && is_positive && most >= 0.5) place = 1;
    if (m.rho.size() == 1 && m.classes != 2) place = most > 0 ? 1 : 0;
    places.push_back(place);
    if (is_single && m.rho.size() == 1 && m.classes == 2)
      scores = {-scores[0], scores[0]};
    else if (is_single && transform != "PROBIT" && m.rho.size() == 1 && m.classes == 1)
      scores = {scores[0]};
    transform_scores(scores, transform);
    width = scores.size();
    all.insert(all.end(), scores.begin(), scores.end());
  }
  const Scores out{x.rows, int64_t(width), all};
  return {labels_at(c, places), out.value()};
}

Results svm_regressor(Call& c) {
  const Matrix x = matrix_of(c, 0);
  const int64_t count = c.attribute("n_supports", 0);
  const Kernel kernel = Kernel::of(c, count <= 0);
  const std::vector<double> vectors = list(c, "support_vectors"), coefficients = list(c, "coefficients"), rho = list(c, "rho");
  if (rho.empty() || (count > 0 && (vectors.size() % size_t(count) != 0 || int64_t(coefficients.size()) < count)))
    c.fail("lists that do not fit the number of support vectors");
  Scores out = Scores::zeros(c, x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = rho[0];
    if (count <= 0) sum += kernel(x.row(r), coefficients);
    for (int64_t i = 0; i < count; ++i) {
      const size_t width = vectors.size() / size_t(count);
      sum += coefficients[size_t(i)] * kernel(x.row(r), std::span(vectors).subspan(size_t(i) * width, width));
    }
    out.at(r, 0) = c.flag("one_class") ? (sum > 0 ? 1 : -1) : sum;
  }
  if (!c.flag("one_class"))
    for (int64_t r = 0; r < out.rows; ++r) transform_scores(out.row(r), c.attribute("post_transform", "NONE"));
  return {out.value()};
}

}  // namespace tinygrad::onnx
