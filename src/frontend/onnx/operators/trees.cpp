// Ensembles of decision trees, evaluated on the host.
#include <fmt/core.h>

#include <cmath>
#include <map>
#include <set>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators/ml.h"

namespace tinygrad::onnx {

namespace {

enum class Test : uint8_t { less_or_equal, less, greater_or_equal, greater, equal, not_equal, member, leaf };

struct TreeNode {
  Test test = Test::leaf;
  int64_t feature = 0;
  double threshold = 0;
  size_t if_true = 0, if_false = 0;  ///< nodes
  bool missing_is_true = false;
  std::vector<double> members = {};
  std::vector<std::pair<int64_t, double>> weights = {};  ///< of a leaf: target, weight

  bool holds(double x) const {
    if (std::isnan(x)) return missing_is_true;
    switch (test) {
      case Test::less_or_equal: return x <= threshold;
      case Test::less: return x < threshold;
      case Test::greater_or_equal: return x >= threshold;
      case Test::greater: return x > threshold;
      case Test::equal: return x == threshold;
      case Test::not_equal: return x != threshold;
      case Test::member: return std::find(members.begin(), members.end(), x) != members.end();
      default: return false;
    }
  }
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<size_t> roots;

  /// ValueError for trees that have a cycle: a row would never come to a leaf.
  void check() const {
    enum class Mark : uint8_t { unseen, open, done };
    std::vector<Mark> marks(nodes.size(), Mark::unseen);
    for (size_t root : roots) {
      std::vector<size_t> open{root};
      while (!open.empty()) {
        const size_t at = open.back();
        const bool is_left = marks[at] != Mark::unseen;
        if (is_left) open.pop_back();
        marks[at] = is_left ? Mark::done : Mark::open;
        if (is_left || nodes[at].test == Test::leaf) continue;
        for (size_t next : {nodes[at].if_true, nodes[at].if_false}) {
          if (marks[next] == Mark::open) throw ValueError("a tree has a cycle");
          if (marks[next] == Mark::unseen) open.push_back(next);
        }
      }
    }
  }

  /// The leaf that a row comes to.
  const TreeNode& leaf(size_t root, std::span<const double> x) const {
    size_t at = root;
    while (true) {
      const TreeNode& n = nodes[at];
      if (n.test == Test::leaf) return n;
      if (n.feature < 0 || n.feature >= int64_t(x.size()))
        throw ValueError(fmt::format("a tree looks at feature {} of {}", n.feature, x.size()));
      at = n.holds(x[size_t(n.feature)]) ? n.if_true : n.if_false;
    }
  }
};

Test test_named(const Call& c, const std::string& name) {
  static const auto& names = *new std::map<std::string, Test>{
      {"BRANCH_LEQ", Test::less_or_equal}, {"BRANCH_LT", Test::less},  {"BRANCH_GTE", Test::greater_or_equal},
      {"BRANCH_GT", Test::greater},        {"BRANCH_EQ", Test::equal}, {"BRANCH_NEQ", Test::not_equal},
      {"BRANCH_MEMBER", Test::member},     {"LEAF", Test::leaf}};
  const auto found = names.find(name);
  if (found == names.end()) c.fail(fmt::format("the test '{}'", name));
  return found->second;
}

std::vector<double> numbers_of(const Call& c, const std::string& name) {
  if (c.has_attribute(name + "_as_tensor")) return c.host(c.tensor_attribute(name + "_as_tensor")).numbers();
  return c.attribute(name, std::vector<double>());
}

/// The trees of attributes that name each node by its tree and number; weights are those of `kind` ("class", "target").
Forest forest_of(const Call& c, const std::string& kind) {
  const std::vector<int64_t> trees = c.required_integers("nodes_treeids"), ids = c.required_integers("nodes_nodeids"),
                             features = c.required_integers("nodes_featureids"), if_true = c.required_integers("nodes_truenodeids"),
                             if_false = c.required_integers("nodes_falsenodeids"),
                             missing = c.attribute("nodes_missing_value_tracks_true", std::vector<int64_t>(trees.size(), 0));
  const std::vector<std::string> modes = c.texts("nodes_modes");
  const std::vector<double> values = numbers_of(c, "nodes_values");
  for (size_t n : {ids.size(), features.size(), if_true.size(), if_false.size(), modes.size(), values.size()})
    if (n != trees.size()) c.fail(fmt::format("lists of {} and {} nodes", trees.size(), n));
  Forest f;
  std::map<std::pair<int64_t, int64_t>, size_t> places;
  std::set<int64_t> known_trees;
  for (size_t i = 0; i < trees.size(); ++i) {
    places[{trees[i], ids[i]}] = i;
    if (known_trees.insert(trees[i]).second) f.roots.push_back(i);
  }
  const auto place = [&](int64_t tree, int64_t id) {
    const auto found = places.find({tree, id});
    if (found == places.end()) c.fail(fmt::format("the tree {} has no node {}", tree, id));
    return found->second;
  };
  for (size_t i = 0; i < trees.size(); ++i) {
    TreeNode n{.test = test_named(c, modes[i]), .feature = features[i], .threshold = values[i]};
    if (n.test != Test::leaf) {
      n.if_true = place(trees[i], if_true[i]);
      n.if_false = place(trees[i], if_false[i]);
      n.missing_is_true = i < missing.size() && missing[i];
    }
    f.nodes.push_back(n);
  }
  const std::vector<int64_t> leaf_trees = c.required_integers(kind + "_treeids"), leaf_ids = c.required_integers(kind + "_nodeids"),
                             targets = c.required_integers(kind + "_ids");
  const std::vector<double> weights = numbers_of(c, kind + "_weights");
  for (size_t i = 0; i < leaf_trees.size(); ++i)
    f.nodes[place(leaf_trees[i], leaf_ids.at(i))].weights.push_back({targets.at(i), weights.at(i)});
  f.check();
  return f;
}

enum class Aggregate : uint8_t { average = 0, sum = 1, min = 2, max = 3 };

Scores evaluate(const Call& c, const Forest& f, const Matrix& x, int64_t targets, Aggregate how) {
  if (targets < 1) c.fail(fmt::format("{} targets", targets));
  Scores out = Scores::zeros(c, x.rows, targets);
  const double infinity = std::numeric_limits<double>::infinity();
  if (how == Aggregate::min || how == Aggregate::max)
    std::fill(out.values.begin(), out.values.end(), how == Aggregate::min ? infinity : -infinity);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (size_t root : f.roots) {
      for (const auto& [target, weight] : f.leaf(root, x.row(r)).weights) {
        if (target < 0 || target >= targets) c.fail(fmt::format("a leaf for target {} of {}", target, targets));
        double& score = out.at(r, target);
        score = how == Aggregate::min ? std::min(score, weight) : how == Aggregate::max ? std::max(score, weight) : score + weight;
      }
    }
  }
  for (double& score : out.values) {
    if (std::isinf(score)) score = 0;
    if (how == Aggregate::average) score /= double(std::max<size_t>(f.roots.size(), 1));
  }
  return out;
}

void add_base(const Call& c, Scores& s) {
  const std::vector<double> base = numbers_of(c, "base_values");
  if (base.empty()) return;
  for (int64_t r = 0; r < s.rows; ++r)
    for (int64_t t = 0; t < s.columns; ++t) s.at(r, t) += base.size() == 1 ? base[0] : base.at(size_t(t));
}

/// Trees of version 5, whose nodes stand in lists and whose leaves are apart.
Forest forest_of_lists(const Call& c) {
  const std::vector<int64_t> features = c.required_integers("nodes_featureids"), if_true = c.required_integers("nodes_truenodeids"),
                             if_false = c.required_integers("nodes_falsenodeids"), true_leaves = c.required_integers("nodes_trueleafs"),
                             false_leaves = c.required_integers("nodes_falseleafs"),
                             missing = c.attribute("nodes_missing_value_tracks_true", std::vector<int64_t>()),
                             roots = c.required_integers("tree_roots"), targets = c.required_integers("leaf_targetids");
  const std::vector<double> splits = c.host(c.tensor_attribute("nodes_splits")).numbers(),
                            weights = c.host(c.tensor_attribute("leaf_weights")).numbers();
  const std::vector<int64_t> modes = c.host(c.tensor_attribute("nodes_modes")).integers();
  std::vector<double> members;
  if (c.has_attribute("membership_values")) members = c.host(c.tensor_attribute("membership_values")).numbers();
  const size_t count = features.size();
  for (size_t n : {if_true.size(), if_false.size(), true_leaves.size(), false_leaves.size(), splits.size(), modes.size()})
    if (n != count) c.fail(fmt::format("lists of {} and {} nodes", count, n));
  if (targets.size() != weights.size()) c.fail("leaves without targets");
  Forest f;
  size_t next_member = 0;
  const auto place = [&](int64_t at, bool is_leaf) {
    const size_t limit = is_leaf ? targets.size() : count;
    if (at < 0 || size_t(at) >= limit) c.fail(fmt::format("there is no node {}", at));
    return size_t(at) + (is_leaf ? count : 0);
  };
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] < 0 || modes[i] > 6) c.fail(fmt::format("the test {}", modes[i]));
    TreeNode n{.test = Test(modes[i]), .feature = features[i], .threshold = splits[i]};
    n.if_true = place(if_true[i], true_leaves[i] != 0);
    n.if_false = place(if_false[i], false_leaves[i] != 0);
    n.missing_is_true = i < missing.size() && missing[i];
    if (n.test == Test::member) {  // the sets follow one another, with NaN between
      while (next_member < members.size() && !std::isnan(members[next_member])) n.members.push_back(members[next_member++]);
      ++next_member;
    }
    f.nodes.push_back(n);
  }
  for (size_t i = 0; i < targets.size(); ++i) f.nodes.push_back({.weights = {{targets[i], weights[i]}}});
  for (int64_t r : roots) f.roots.push_back(place(r, false));
  f.check();
  return f;
}

}  // namespace

Results tree_ensemble(Call& c) {
  constexpr const char* transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t how = c.attribute("aggregate_function", 1), transform = c.attribute("post_transform", 0);
  if (how < 0 || how > 3 || transform < 0 || transform > 4) c.fail("an aggregate or a transformation that is unknown");
  Scores s = evaluate(c, forest_of_lists(c), matrix_of(c, 0), c.required_integer("n_targets"), Aggregate(how));
  for (int64_t r = 0; r < s.rows; ++r) transform_scores(s.row(r), transforms[transform]);
  return {s.value(c.type(0) == ElementType::float64 ? ElementType::float64 : ElementType::float32)};
}

Results tree_ensemble_regressor(Call& c) {
  static const auto& names = *new std::map<std::string, Aggregate>{
      {"AVERAGE", Aggregate::average}, {"SUM", Aggregate::sum}, {"MIN", Aggregate::min}, {"MAX", Aggregate::max}};
  const auto how = names.find(c.attribute("aggregate_function", "SUM"));
  if (how == names.end()) c.fail("the aggregate is unknown");
  Scores s = evaluate(c, forest_of(c, "target"), matrix_of(c, 0), c.attribute("n_targets", 1), how->second);
  add_base(c, s);
  for (int64_t r = 0; r < s.rows; ++r) transform_scores(s.row(r), c.attribute("post_transform", "NONE"));
  return {s.value()};
}

Results tree_ensemble_classifier(Call& c) {
  const std::vector<int64_t> ids = c.required_integers("class_ids");
  const int64_t classes =
      int64_t(std::max(c.texts("classlabels_strings").size(), c.attribute("classlabels_int64s", std::vector<int64_t>()).size()));
  const std::string transform = c.attribute("post_transform", "NONE");
  const bool is_binary = std::set<int64_t>(ids.begin(), ids.end()).size() == 1 && classes <= 2;
  Scores s = evaluate(c, forest_of(c, "class"), matrix_of(c, 0), std::max<int64_t>(classes, 1), Aggregate::sum);
  add_base(c, s);
  if (is_binary) {  // one score, for the second class
    Scores two = Scores::zeros(c, s.rows, 2);
    for (int64_t r = 0; r < s.rows; ++r) {
      const double score = s.at(r, std::clamp<int64_t>(ids[0], 0, s.columns - 1));
      two.at(r, 1) = score;
      two.at(r, 0) = transform == "NONE" || transform == "PROBIT" ? 1 - score : -score;
    }
    s = two;
  }
  std::vector<int64_t> best;
  for (int64_t r = 0; r < s.rows; ++r) {
    transform_scores(s.row(r), transform);
    const auto row = s.row(r);
    best.push_back(std::max_element(row.begin(), row.end()) - row.begin());
  }
  return {labels_at(c, best), s.value()};
}

}  // namespace tinygrad::onnx
