#include "run/show.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include <nlohmann/json.hpp>

#include <tinygrad/errors.h>

namespace tinygrad::apps {

namespace {

constexpr int64_t fewest_classes = 10, most_values = 8;

/// Of scores for classes, of one thing: how many classes there are; else 0.
int64_t classes_of(const Result& result, bool has_labels) {
  if (!result.tensor || !is_float(result.tensor->dtype())) return 0;
  Sizes shape = result.shape;
  while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
  const bool fits = shape.size() == 1 && result.shape.size() <= 4;
  return fits && (has_labels ? shape[0] > 1 : result.has_fixed_row && shape[0] >= fewest_classes) ? shape[0] : 0;
}

/// On one line, so that no text of a file can move the cursor.
std::string shown(const std::string& text) { return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace); }

template <class T>
std::string joined(const std::vector<T>& values, bool has_more) {
  return fmt::format("{}{}", fmt::join(values, ", "), has_more ? ", ..." : "");
}

std::string first_values(const Result& result) {
  if (!result.tensor) {
    std::vector<std::string> first;
    for (size_t i = 0; i < std::min(result.texts.size(), size_t(most_values)); ++i) first.push_back(shown(result.texts[i]));
    return joined(first, result.texts.size() > first.size());
  }
  const Tensor flat = result.tensor->flatten();
  const bool has_more = flat.numel() > most_values;
  const Tensor first = has_more ? flat.shrink_to({most_values}) : flat;
  if (!is_float(first.dtype())) return joined(first.tolist<int64_t>(), has_more);
  std::vector<std::string> texts;
  for (const double v : first.tolist<double>()) texts.push_back(fmt::format("{:.6g}", v));
  return joined(texts, has_more);
}

}  // namespace

std::vector<std::string> read_labels(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw IoError(fmt::format("cannot read the labels {}: {}", path, std::generic_category().message(errno)));
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(line);
  }
  return out;
}

std::vector<Ranked> ranked(const Result& result, const std::vector<std::string>& labels, int64_t top) {
  const int64_t classes = classes_of(result, !labels.empty());
  if (classes == 0 || top <= 0) return {};
  if (!labels.empty() && int64_t(labels.size()) != classes)
    throw ValueError(fmt::format("run: {} labels for the {} classes of '{}'", labels.size(), classes, result.name));
  std::vector<double> scores = result.tensor->tolist<double>();
  if (std::ranges::any_of(scores, [](double s) { return !std::isfinite(s); })) return {};
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  if (*std::ranges::min_element(scores) < 0 || std::fabs(sum - 1) > 0.01) {
    const double greatest = *std::ranges::max_element(scores);
    for (double& s : scores) s = std::exp(s - greatest);
    const double whole = std::accumulate(scores.begin(), scores.end(), 0.0);
    for (double& s : scores) s /= whole;
  }
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[size_t(a)] > scores[size_t(b)]; });
  std::vector<Ranked> out;
  for (size_t i = 0; i < std::min(order.size(), size_t(top)); ++i)
    out.push_back({order[i], labels.empty() ? "" : labels[size_t(order[i])], scores[size_t(order[i])]});
  return out;
}

void print_result(const Result& result, const std::vector<Ranked>& classes) {
  fmt::print("  {}  {} ({})\n", result.name, result.type, fmt::join(result.shape, ", "));
  for (const Ranked& r : classes)
    fmt::print("    {:6.2f} %  {:>4}{}\n", r.score * 100, r.place,
               r.label.empty() ? "" : "  " + shown(r.label).substr(1, shown(r.label).size() - 2));
  if (classes.empty()) fmt::print("    {}\n", first_values(result));
  if (result.tensor && is_float(result.tensor->dtype()))
    if (const int64_t bad = result.tensor->isfinite().logical_not().sum().item<int64_t>(); bad > 0)
      fmt::print("    {} of {} elements are not finite\n", bad, result.tensor->numel());
}

}  // namespace tinygrad::apps
