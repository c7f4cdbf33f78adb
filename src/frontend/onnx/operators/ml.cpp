// Operators of ai.onnx.ml but for trees and support vectors: what scikit-learn's exports are made of.
#include "frontend/onnx/operators/ml.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include <tinygrad/errors.h>

namespace tinygrad::onnx {

namespace {

/// An approximation of the inverse of erf (Winitzki 2008), as the operators' authors use it.
double inverse_erf(double x) {
  const double rest = (1 - x) * (1 + x);
  if (rest == 0) return 0;
  const double log = std::log(rest), v = 2 / (std::numbers::pi * 0.147) + 0.5 * log;
  return (x < 0 ? -1 : 1) * std::sqrt(std::sqrt(v * v - log / 0.147) - v);
}

void softmax(std::span<double> row, bool keeps_zeros) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& x : row) {
    x = keeps_zeros && std::fabs(x) <= 1e-7 ? x * std::exp(-most) : std::exp(x - most);
    sum += x;
  }
  for (double& x : row) x = sum == 0 ? 0.5 : x / sum;
}

}  // namespace

void transform_scores(std::span<double> row, const std::string& name) {
  if (name == "NONE" || row.empty()) return;
  if (name == "SOFTMAX" || name == "SOFTMAX_ZERO") return softmax(row, name == "SOFTMAX_ZERO");
  if (name != "LOGISTIC" && name != "PROBIT") throw ValueError(fmt::format("the transformation '{}'", name));
  for (double& x : row) x = name == "LOGISTIC" ? 1 / (1 + std::exp(-x)) : std::numbers::sqrt2 * inverse_erf(2 * x - 1);
}

Matrix matrix_of(const Call& call, size_t input) {
  const HostArray a = call.host(input);
  Matrix m{.values = a.numbers()};
  m.columns = a.shape.empty() ? 1 : a.shape.back();
  if (a.shape.size() > 2) call.fail(fmt::format("expects a matrix, got ({})", fmt::join(a.shape, ", ")));
  m.rows = a.shape.size() == 2 ? a.shape[0] : 1;
  return m;
}

Value labels_at(const Call& call, const std::vector<int64_t>& places) {
  const Sizes shape{int64_t(places.size())};
  if (const std::vector<std::string> texts = call.texts("classlabels_strings"); !texts.empty()) {
    Strings out{.shape = shape};
    for (int64_t p : places) out.values.push_back(texts.at(size_t(p)));
    return out;
  }
  std::vector<int64_t> integers = call.attribute("classlabels_ints", std::vector<int64_t>());
  if (integers.empty()) integers = call.attribute("classlabels_int64s", integers);
  std::vector<int64_t> out;
  for (int64_t p : places) out.push_back(integers.empty() ? p : integers.at(size_t(p)));
  return host_value(HostArray::of(ElementType::int64, shape, out));
}

namespace {

/// Categories are of one kind.
size_t category_count(const Call& c, const std::vector<std::string>& texts, const std::vector<int64_t>& integers) {
  if (!texts.empty() && !integers.empty()) c.fail("categories that are texts and integers");
  return texts.size() + integers.size();
}

Tensor vector_of(const std::vector<double>& v) { return Tensor(v, {int64_t(v.size())}).cast(DType::float32); }

Results binarizer(Call& c) {
  const Tensor& x = c.tensor(0);
  return results((x > typed_scalar(c.attribute("threshold", 0.0), x.dtype())).cast(x.dtype()));
}

/// A matrix of maps' values to a tensor of the type named, dense or with zeros between.
Results cast_map(Call& c) {
  const Map& m = c.value(0).map();
  const std::string to = c.choice("cast_to", {"TO_FLOAT", "TO_INT64", "TO_STRING"});
  const bool is_sparse = c.choice("map_form", {"DENSE", "SPARSE"}) == "SPARSE";
  const size_t count = m.integers.size();
  if (m.values.shape() != Sizes{int64_t(count)}) c.fail("expects a map from integers, with a value for each");
  int64_t width = int64_t(count);
  if (is_sparse) width = c.attribute("max_map", 1);
  if (width < 0 || width > (int64_t{1} << 24)) c.fail(fmt::format("{} columns", width));
  const auto place = [&](size_t i) {
    const int64_t at = is_sparse ? m.integers[i] : int64_t(i);
    if (at < 0 || at >= width) c.fail(fmt::format("the key {} of {} columns", at, width));
    return size_t(at);
  };
  if (m.values.kind() == Value::Kind::strings) {
    std::vector<double> out(size_t(width), 0.0);
    Strings texts{.shape = {1, width}, .values = std::vector<std::string>(size_t(width))};
    for (size_t i = 0; i < count; ++i) {
      texts.values[place(i)] = m.values.strings().values[i];
      if (to != "TO_STRING") out[place(i)] = std::strtod(m.values.strings().values[i].c_str(), nullptr);
    }
    if (to == "TO_STRING") return {texts};
    return {host_value(HostArray::of(to == "TO_INT64" ? ElementType::int64 : ElementType::float32, {1, width}, out))};
  }
  const std::vector<double> values = c.host(m.values).numbers();
  std::vector<double> out(size_t(width), 0.0);
  for (size_t i = 0; i < count; ++i) out[place(i)] = values[i];
  if (to == "TO_STRING") {
    Strings texts{.shape = {1, width}};
    for (double x : out) texts.values.push_back(fmt::format("{}", float(x)));
    return {texts};
  }
  return {host_value(HostArray::of(to == "TO_INT64" ? ElementType::int64 : ElementType::float32, {1, width}, out))};
}

Results category_mapper(Call& c) {
  const std::vector<std::string> texts = c.texts("cats_strings");
  const std::vector<int64_t> integers = c.attribute("cats_int64s", std::vector<int64_t>());
  if (texts.size() != integers.size()) c.fail("categories without numbers");
  if (c.value(0).kind() == Value::Kind::strings) {
    std::map<std::string, int64_t> number_of;
    for (size_t i = 0; i < texts.size(); ++i) number_of[texts[i]] = integers[i];
    std::vector<int64_t> out;
    for (const std::string& t : c.value(0).strings().values) {
      const auto found = number_of.find(t);
      out.push_back(found == number_of.end() ? c.attribute("default_int64", -1) : found->second);
    }
    return {host_value(HostArray::of(ElementType::int64, c.shape(0), out))};
  }
  std::map<int64_t, std::string> text_of;
  for (size_t i = 0; i < texts.size(); ++i) text_of[integers[i]] = texts[i];
  Strings out{.shape = c.shape(0)};
  for (int64_t x : c.integers(0)) {
    const auto found = text_of.find(x);
    out.values.push_back(found == text_of.end() ? c.attribute("default_string", "_Unused") : found->second);
  }
  return {out};
}

Results dict_vectorizer(Call& c) {
  const Map& m = c.value(0).map();
  const std::vector<std::string> texts = c.texts("string_vocabulary");
  const std::vector<int64_t> integers = c.attribute("int64_vocabulary", std::vector<int64_t>());
  const size_t width = category_count(c, texts, integers);
  if (m.values.shape() != Sizes{int64_t(m.texts.size() + m.integers.size())}) c.fail("a map without a value for each key");
  c.take_steps(int64_t(width) * int64_t(m.texts.size() + m.integers.size()) / 64 + 1);
  std::vector<int64_t> from(width, -1);
  for (size_t i = 0; i < width; ++i) {
    const auto find = [&](const auto& keys, const auto& key) {
      const auto found = std::find(keys.begin(), keys.end(), key);
      return found == keys.end() ? int64_t{-1} : int64_t(found - keys.begin());
    };
    from[i] = !texts.empty() ? find(m.texts, texts[i]) : find(m.integers, integers[i]);
  }
  const Sizes shape{1, int64_t(width)};
  if (m.values.kind() == Value::Kind::strings) {
    Strings out{.shape = shape};
    for (int64_t f : from) out.values.push_back(f < 0 ? "" : m.values.strings().values[size_t(f)]);
    return {out};
  }
  const std::vector<double> values = c.host(m.values).numbers();
  std::vector<double> out;
  for (int64_t f : from) out.push_back(f < 0 ? 0 : values[size_t(f)]);
  return {host_value(HostArray::of(m.values.element_type(), shape, out))};
}

Results feature_vectorizer(Call& c) {
  const std::vector<int64_t> sizes = c.attribute("inputdimensions", std::vector<int64_t>());
  std::vector<Tensor> parts;
  for (size_t i = 0; i < c.input_count(); ++i) {
    Tensor x = c.tensor(i).cast(DType::float32);
    if (x.ndim() == 1) x = x.unsqueeze(1);
    if (x.ndim() > 2) x = x.flatten(1);
    if (i < sizes.size() && (sizes[i] < 0 || sizes[i] > int64_t{1} << 24)) c.fail(fmt::format("{} features", sizes[i]));
    if (i < sizes.size() && sizes[i] != x.size(1))
      x = x.pad_to({x.size(0), std::max(sizes[i], x.size(1))}).shrink_to({x.size(0), sizes[i]});
    parts.push_back(x);
  }
  return results(Tensor::cat(parts, 1));
}

/// One number for all features, or one for each.
void check_count(const Call& c, const Tensor& x, size_t count) {
  if (x.ndim() < 1 || (count != 1 && int64_t(count) != x.size(-1))) c.fail(fmt::format("{} numbers for {}", count, x.to_string()));
}

Results imputer(Call& c) {
  const Tensor& x = c.tensor(0);
  if (x.is_floating_point()) {
    const std::vector<double> values = c.attribute("imputed_value_floats", std::vector<double>());
    const double replaced = c.attribute("replaced_value_float", 0.0);
    check_count(c, x, values.size());
    const Tensor is_missing = std::isnan(replaced) ? x.isnan() : x == typed_scalar(replaced, x.dtype());
    return results(is_missing.where(vector_of(values).cast(x.dtype()), x));
  }
  const std::vector<int64_t> values = c.attribute("imputed_value_int64s", std::vector<int64_t>());
  check_count(c, x, values.size());
  return results((x == c.attribute("replaced_value_int64", 0)).where(Tensor(values).cast(x.dtype()), x));
}

/// Keys and values of three kinds, by attributes or by tensors.
struct Encoding {
  std::vector<std::string> texts;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  ElementType type = ElementType::undefined;

  static Encoding of(const Call& c, const std::string& name) {
    Encoding e;
    if (c.has_attribute(name + "_tensor")) {
      const Value& v = c.tensor_attribute(name + "_tensor");
      e.type = v.element_type();
      if (v.kind() == Value::Kind::strings)
        e.texts = v.strings().values;
      else if (is_float_type(e.type))
        e.numbers = c.host(v).numbers();
      else
        e.integers = c.host(v).integers();
    } else if (c.has_attribute(name + "_strings")) {
      e.texts = c.texts(name + "_strings");
      e.type = ElementType::string;
    } else if (c.has_attribute(name + "_int64s")) {
      e.integers = c.attribute(name + "_int64s", std::vector<int64_t>());
      e.type = ElementType::int64;
    } else {
      e.numbers = c.attribute(name + "_floats", std::vector<double>());
      e.type = ElementType::float32;
    }
    return e;
  }
  size_t size() const { return std::max({texts.size(), numbers.size(), integers.size()}); }
};

Results label_encoder(Call& c) {
  Encoding keys, values;
  if (c.version() < 2) {  // between classes_strings and their places
    values.integers.resize(c.texts("classes_strings").size());
    for (size_t i = 0; i < values.integers.size(); ++i) values.integers[i] = int64_t(i);
    values.type = ElementType::int64;
    keys.texts = c.texts("classes_strings");
    keys.type = ElementType::string;
    if (c.value(0).kind() != Value::Kind::strings) std::swap(keys, values);
  } else {
    keys = Encoding::of(c, "keys");
    values = Encoding::of(c, "values");
  }
  if (keys.size() != values.size()) c.fail(fmt::format("{} keys and {} values", keys.size(), values.size()));
  // The last of equal keys counts; NaN is one key.
  std::vector<int64_t> places;
  const auto look_up = [&](const auto& list, const auto& items, auto same) {
    if (list.size() != keys.size()) c.fail(fmt::format("keys of another type than {}", c.value(0).to_string()));
    c.take_steps(int64_t(list.size()) * (int64_t(items.size()) / 64 + 1));
    for (const auto& item : items) {
      int64_t at = int64_t(list.size()) - 1;
      while (at >= 0 && !same(list[size_t(at)], item)) --at;
      places.push_back(at);
    }
  };
  const auto equal = [](const auto& a, const auto& b) { return a == b; };
  if (c.value(0).kind() == Value::Kind::strings)
    look_up(keys.texts, c.value(0).strings().values, equal);
  else if (is_float_type(c.type(0)))
    look_up(keys.numbers, c.numbers(0), [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
  else
    look_up(keys.integers, c.integers(0), equal);
  const Sizes shape = c.shape(0);
  const bool has_default = c.has_attribute("default_tensor");
  if (values.type == ElementType::string) {
    const std::string none =
        has_default ? c.tensor_attribute("default_tensor").strings().values.at(0) : c.attribute("default_string", "_Unused");
    Strings out{.shape = shape};
    for (int64_t p : places) out.values.push_back(p < 0 ? none : values.texts.at(size_t(p)));
    return {out};
  }
  if (is_float_type(values.type)) {
    const double none = has_default ? c.host(c.tensor_attribute("default_tensor")).numbers().at(0) : c.attribute("default_float", -0.0);
    std::vector<double> out;
    for (int64_t p : places) out.push_back(p < 0 ? none : values.numbers[size_t(p)]);
    return {host_value(HostArray::of(values.type, shape, out))};
  }
  const int64_t none = has_default ? c.host(c.tensor_attribute("default_tensor")).integers().at(0) : c.attribute("default_int64", -1);
  std::vector<int64_t> out;
  for (int64_t p : places) out.push_back(p < 0 ? none : values.integers[size_t(p)]);
  return {host_value(HostArray::of(values.type, shape, out))};
}

/// x by the coefficients of each class or target, (rows, classes).
Tensor linear_scores(const Call& c, int64_t targets) {
  Tensor x = c.tensor(0);
  if (x.dtype() != DType::float64) x = x.cast(DType::float32);
  if (x.ndim() == 1) x = x.unsqueeze(0);
  if (x.ndim() != 2) c.fail(fmt::format("expects a matrix, got {}", x.to_string()));
  const std::vector<double> coefficients = c.attribute("coefficients", std::vector<double>()),
                            intercepts = c.attribute("intercepts", std::vector<double>());
  if (!intercepts.empty() && int64_t(intercepts.size()) != targets) c.fail(fmt::format("{} intercepts", intercepts.size()));
  if (targets < 1 || targets > int64_t(coefficients.size())) c.fail(fmt::format("{} targets", targets));
  Tensor y = x.matmul(vector_of(coefficients).cast(x.dtype()).reshape({targets, x.size(1)}).T());
  if (!intercepts.empty()) y = y + vector_of(intercepts).cast(x.dtype());
  return y;
}

Results linear_regressor(Call& c) {
  const Tensor y = linear_scores(c, c.attribute("targets", 1));
  const std::string transform = c.attribute("post_transform", "NONE");
  if (transform == "NONE") return results(y);
  Scores s{y.size(0), y.size(1), c.host(Value(y)).numbers()};
  for (int64_t r = 0; r < s.rows; ++r) transform_scores(s.row(r), transform);
  return {s.value()};
}

Results linear_classifier(Call& c) {
  const size_t features = size_t(c.shape(0).empty() ? 0 : c.shape(0).back()),
               coefficients = c.attribute("coefficients", std::vector<double>()).size();
  if (features == 0 || coefficients % features != 0) c.fail(fmt::format("{} coefficients for {} features", coefficients, features));
  Value linear(linear_scores(c, int64_t(coefficients / features)));
  detail::ValueAccess::set_from_input(linear, is_from_input(c.value(0)));
  const HostArray host = c.host(linear);
  Scores s{host.shape[0], host.shape[1], host.numbers()};
  const size_t classes = std::max(c.texts("classlabels_strings").size(), c.attribute("classlabels_ints", std::vector<int64_t>()).size());
  if (s.columns == 1 && classes == 2) {
    Scores two = Scores::zeros(c, s.rows, 2);
    for (int64_t r = 0; r < s.rows; ++r) {
      two.at(r, 0) = -s.at(r, 0);
      two.at(r, 1) = s.at(r, 0);
    }
    s = two;
  }
  const std::string transform = c.attribute("post_transform", "NONE");
  std::vector<int64_t> best;
  for (int64_t r = 0; r < s.rows; ++r) {
    const auto row = s.row(r);
    best.push_back(s.columns == 1 ? row[0] > 0 : std::max_element(row.begin(), row.end()) - row.begin());
    transform_scores(row, transform);
  }
  return {labels_at(c, best), s.value()};
}

Results normalizer(Call& c) {
  const Tensor x = c.tensor(0).cast(DType::float32);
  const std::string norm = c.choice("norm", {"MAX", "L1", "L2"});
  const ReduceOptions kept{.keepdim = true, .dtype = {}};
  const Tensor by = norm == "MAX" ? x.abs().max(-1, kept) : norm == "L1" ? x.abs().sum(-1, kept) : (x * x).sum(-1, kept).sqrt();
  return results(x / (by == 0).where(1, by));
}

Results one_hot_encoder(Call& c) {
  const std::vector<std::string> texts = c.texts("cats_strings");
  const std::vector<int64_t> integers = c.attribute("cats_int64s", std::vector<int64_t>());
  const int64_t width = int64_t(category_count(c, texts, integers));
  if ((c.value(0).kind() == Value::Kind::strings) != integers.empty()) c.fail("categories of another type than the input");
  Sizes shape = c.shape(0);
  shape.push_back(width);
  host_count(c, shape);
  std::vector<double> out;
  const auto add = [&](int64_t hot) {
    if (hot < 0 && !c.flag("zeros", true)) c.fail("a category that is unknown");
    for (int64_t k = 0; k < width; ++k) out.push_back(k == hot);
  };
  if (c.value(0).kind() == Value::Kind::strings) {
    for (const std::string& t : c.value(0).strings().values) {
      const auto found = std::find(texts.begin(), texts.end(), t);
      add(found == texts.end() ? -1 : found - texts.begin());
    }
  } else {
    for (int64_t x : c.host(0).integers()) {
      const auto found = std::find(integers.begin(), integers.end(), x);
      add(found == integers.end() ? -1 : found - integers.begin());
    }
  }
  return {host_value(HostArray::of(ElementType::float32, shape, out))};
}

Results scaler(Call& c) {
  const Tensor x = c.tensor(0).cast(DType::float32);
  const std::vector<double> offset = c.attribute("offset", std::vector<double>{0}), scale = c.attribute("scale", std::vector<double>{1});
  check_count(c, x, offset.size());
  check_count(c, x, scale.size());
  return results((x - vector_of(offset)) * vector_of(scale));
}

/// Maps from classes to their scores, one a row.
Results zip_map(Call& c) {
  const HostArray x = c.host(0);
  const std::vector<std::string> texts = c.texts("classlabels_strings");
  const std::vector<int64_t> integers = c.attribute("classlabels_int64s", std::vector<int64_t>());
  const int64_t width = int64_t(category_count(c, texts, integers));
  const std::vector<double> numbers = x.numbers();
  if (x.shape.empty() || x.shape.back() != width) c.fail(fmt::format("{} classes for ({}) scores", width, fmt::join(x.shape, ", ")));
  if (width == 0 || int64_t(numbers.size()) % width != 0) c.fail(fmt::format("{} classes for {} scores", width, numbers.size()));
  std::vector<Value> out;
  for (size_t at = 0; at < numbers.size(); at += size_t(width)) {
    const std::vector<double> row(numbers.begin() + int64_t(at), numbers.begin() + int64_t(at) + width);
    out.emplace_back(Map{.integers = integers, .texts = texts, .values = host_value(HostArray::of(ElementType::float32, {width}, row))});
  }
  return {Value(std::move(out))};
}

constexpr OperatorRow rows[] = {
    {ml_domain, "Binarizer", 1, binarizer},
    {ml_domain, "CastMap", 1, cast_map},
    {ml_domain, "CategoryMapper", 1, category_mapper},
    {ml_domain, "DictVectorizer", 1, dict_vectorizer},
    {ml_domain, "FeatureVectorizer", 1, feature_vectorizer},
    {ml_domain, "Imputer", 1, imputer},
    {ml_domain, "LabelEncoder", 1, label_encoder},
    {ml_domain, "LinearClassifier", 1, linear_classifier},
    {ml_domain, "LinearRegressor", 1, linear_regressor},
    {ml_domain, "Normalizer", 1, normalizer},
    {ml_domain, "OneHotEncoder", 1, one_hot_encoder},
    {ml_domain, "SVMClassifier", 1, svm_classifier},
    {ml_domain, "SVMRegressor", 1, svm_regressor},
    {ml_domain, "Scaler", 1, scaler},
    {ml_domain, "TreeEnsemble", 5, tree_ensemble},
    {ml_domain, "TreeEnsembleClassifier", 1, tree_ensemble_classifier},
    {ml_domain, "TreeEnsembleRegressor", 1, tree_ensemble_regressor},
    {ml_domain, "ZipMap", 1, zip_map},
};

}  // namespace

std::span<const OperatorRow> ml_operators() { return rows; }

}  // namespace tinygrad::onnx
